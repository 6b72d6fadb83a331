// The page: what is chosen, and who draws anew when something changes. What stands on it, from top to
// bottom, texts.js says of texts and positions.js of tables of position vectors.
import {readReport} from "./data.js";
import {positionsPage} from "./positions.js";
import {textsPage} from "./texts.js";

const report = readReport();
const page = report.tables ? positionsPage(report) : textsPage(report);
const state = {text: 0, layer: 1, head: 1, token: 1};

function view() {
  return {...state, ...page.about(state), set};
}

function set(change) {
  const changed = Object.keys(change).filter((key) => state[key] !== change[key]);
  if (changed.length === 0) return;
  Object.assign(state, change);
  if (changed.includes("text")) Object.assign(state, page.start(view()));
  show(changed.includes("text") ? undefined : changed);
}

function show(changed) {
  const now = view();
  if (!changed) page.frame(now);
  page.choosers(now);
  for (const figure of page.figures) figure.update(now, changed);
}

document.getElementById("report").append(...page.elements);
Object.assign(state, page.start(view()));
show();

let width = document.documentElement.clientWidth;
addEventListener("resize", () => {
  if (width === document.documentElement.clientWidth) return;
  width = document.documentElement.clientWidth;
  requestAnimationFrame(() => redraw());
});
const redraw = () => page.figures.forEach((figure) => figure.update(view()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", () => {
  Object.assign(document.documentElement.dataset, {theme: "light", print: ""});
  redraw();
});
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.theme;
  delete document.documentElement.dataset.print;
  redraw();
});
