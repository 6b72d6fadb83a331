// The page: what is chosen, and who draws anew when something changes. What stands on it, from top to
// bottom, texts.js says of texts and positions.js of tables of position vectors; live.js asks a server.
import {readReport} from "./data.js";
import {liveForm} from "./live.js";
import {positionsPage} from "./positions.js";
import {textsPage} from "./texts.js";

const report = readReport();
const page = report.tables ? positionsPage(report) : textsPage(report);
const links = report.figure === "links";
const state = {text: 0, layer: 1, head: 1, token: 1, words: false, linear: false, own: false, links};

function view() {
  return {...state, ...page.about(state), set};
}

function set(change) {
  const changed = Object.keys(change).filter((key) => state[key] !== change[key]);
  if (changed.length === 0) return;
  Object.assign(state, change);
  if (changed.includes("text")) Object.assign(state, page.start(view()));
  show(changed.includes("text") ? undefined : changed);
  live?.remember(state);
}

function show(changed) {
  const now = view();
  if (!changed) page.frame(now);
  page.choosers(now);
  draw(changed);
}

function draw(changed) {
  for (const figure of page.figures) figure.update(view(), changed);
  fit();
}

function fit() {
  for (const figure of page.figures) figure.fit();
  for (const link of main.querySelectorAll(".contents a")) {
    link.hidden = document.getElementById(link.hash.slice(1)).clientHeight === 0;
  }
}

/** Shows other texts. What was chosen stays chosen where it still exists. */
function redraw(texts, chosen) {
  const first = report.texts.length === 0;
  report.texts = texts;
  if (first) main.append(...page.elements);
  const within = (number, least, most) => Math.max(least, Math.min(number || least, most));
  state.text = within(chosen.text ?? state.text, 0, texts.length - 1);
  if (first) Object.assign(state, page.start(view()));
  Object.assign(state, chosen, {text: state.text});
  const {runs} = texts[state.text];
  const most = (size) => Math.max(...runs.map(size));
  state.layer = within(state.layer, 1, most(({observed}) => observed.num_layers));
  state.head = within(state.head, 1, most(({observed}) => observed.num_heads));
  state.token = within(state.token, 0, most(({numTokens}) => numTokens) - 1);
  show();
  live.remember(state);
}

const main = document.getElementById("report");
const live = report.live ? liveForm(report, redraw) : null;
if (live) {
  main.append(...live.elements);
  live.restore();
} else {
  main.append(...page.elements);
  Object.assign(state, page.start(view()));
  show();
}

if (report.figure && frameElement) {
  // The cell of a notebook is as high as what it shows.
  document.documentElement.style.overflow = "hidden";
  new ResizeObserver(() => (frameElement.style.height = `${main.offsetHeight}px`)).observe(main);
}
let width = document.documentElement.clientWidth;
addEventListener("resize", () => {
  if (width === document.documentElement.clientWidth) return;
  width = document.documentElement.clientWidth;
  requestAnimationFrame(fit);
});
/** A page that a server sends has nothing to draw before its first answer. */
const drawAnew = () => (live && report.texts.length === 0) || draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAnew);
addEventListener("beforeprint", () => {
  Object.assign(document.documentElement.dataset, {theme: "light", print: ""});
  drawAnew();
});
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.theme;
  delete document.documentElement.dataset.print;
  drawAnew();
});
