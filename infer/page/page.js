// The page: what is chosen, the parts from top to bottom, and who draws anew when something changes.
import {attentionFigures, headSentences} from "./attention.js";
import {keepFocus, named, select, selectNumber, slider} from "./choosers.js";
import {readReport} from "./data.js";
import {html} from "./figure.js";
import {layerFigures} from "./layers.js";
import {overviewFigure, positionalHeads} from "./overview.js";
import {scores} from "./scores.js";
import {tables} from "./tables.js";
import {strips} from "./tokens.js";
import {vectorFigures} from "./vectors.js";

const report = readReport();
const figures = [...layerFigures, ...attentionFigures, overviewFigure, ...vectorFigures, scores];
const state = {text: 0, layer: 1, head: 1, token: 0};

function view() {
  return {...state, ...report.texts[state.text], set};
}

function set(change) {
  const changed = Object.keys(change).filter((key) => state[key] !== change[key]);
  if (changed.length === 0) return;
  Object.assign(state, change);
  if (changed.includes("text")) start();
  show(changed);
}

/** A text's own first choices: its clearest positional head, its first token. */
function start() {
  const {runs} = view();
  const [clearest] = runs.flatMap(positionalHeads).sort((a, b) => b.share - a.share);
  Object.assign(state, {
    layer: clearest?.layer ?? 1,
    head: clearest?.head ?? 1,
    token: Math.min(1, Math.max(0, runs[0].numTokens - 1)),
  });
}

function show(changed) {
  const now = view();
  if (!changed || changed.includes("text")) frame(now);
  choosers(now);
  for (const figure of figures) figure.update(now, changed?.includes("text") ? undefined : changed);
}

const parts = Object.fromEntries(
  ["title", "tokens", "layerChooser", "headChooser", "named", "sentences", "slider", "tables", "notes"].map(
    (name) => [name, html("div", {class: name})],
  ),
);

function section(title, ...children) {
  return html("section", {}, html("h2", {}, title), children);
}

function build() {
  const [map, profile] = attentionFigures;
  const [distances, clocks] = vectorFigures;
  clocks.element.insertBefore(parts.slider, clocks.body);
  document.getElementById("report").append(
    parts.title,
    section("Tokens", parts.tokens),
    section(
      "Layer by layer",
      html(
        "div",
        {class: "figures"},
        layerFigures.map(({element}) => element),
      ),
    ),
    section(
      "Attention",
      html("div", {class: "choosers"}, parts.layerChooser, parts.headChooser),
      parts.named,
      parts.sentences,
      html("div", {class: "figures halves"}, map.element, profile.element, overviewFigure.element),
    ),
    section("Position vectors", html("div", {class: "figures halves"}, distances.element, clocks.element)),
    section("First scores", html("div", {class: "figures"}, scores.element)),
    section("All numbers", parts.tables),
    html("footer", {}, parts.notes),
  );
}

/** What belongs to a text: its title, tokens, tables. */
function frame(now) {
  const {runs} = now;
  const name = nameOf(runs[0]);
  document.title = `${name}: how position travels`;
  document.querySelector("main").dataset.runs = runs.length;
  parts.title.replaceChildren(
    html("p", {class: "eyebrow"}, "How position travels through an encoder"),
    html(
      "h1",
      {class: name.length > 160 ? "long" : name.startsWith("“") ? "quoted" : undefined, dir: "auto"},
      name,
    ),
    html(
      "ul",
      {class: "facts"},
      runs.map((run) =>
        html("li", {class: runs.length > 1 ? `side-${run.side}` : undefined}, facts(run, runs.length > 1)),
      ),
    ),
    textChooser() ?? "",
  );
  parts.tokens.replaceChildren(...(runs[0].numTokens > 0 ? strips(runs) : []));
  parts.tables.replaceChildren(...tables(now));
  parts.notes.replaceChildren(...notes(runs));
}

const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

function nameOf({observed, pieces}) {
  if (observed.file) return `${count(observed.texts, "text")} of ${observed.file.split("/").at(-1)}`;
  const text = observed.text ?? pieces.join(" ");
  return text === "" ? "An empty text" : `“${text}”`;
}

function facts(run, titled) {
  const {
    tokens = run.numTokens,
    model,
    positions,
    precision,
    num_layers,
    num_heads,
    d_model,
    edits = [],
    cut_residuals: cuts = [],
  } = run.observed;
  return [
    titled ? html("strong", {}, run.label) : null,
    titled ? ": " : null,
    [
      `model ${model}`,
      `positions ${positions}`,
      ...edits.map((edit) => `edit ${edit}`),
      ...cuts.map((cut) => `without the residual of ${cut}`),
      count(tokens, "token"),
      `${count(num_layers, "layer")} of ${count(num_heads, "head")}`,
      `${d_model} wide`,
      precision,
      `phasor ${report.version}`,
    ].join(" · "),
  ];
}

function textChooser() {
  if (report.texts.length < 2) return null;
  const names = report.texts.map(({runs: [run]}, i) => `${i + 1}. ${[...nameOf(run)].slice(0, 80).join("")}`);
  return html(
    "div",
    {class: "choosers"},
    html(
      "div",
      {},
      select("Text", names, state.text, (text) => {
        set({text});
        document.getElementById("choose-Text").focus();
      }),
    ),
  );
}

/** What the attention part and the clocks are about. */
function choosers(now) {
  const {runs} = now;
  const layers = Math.max(...runs.map((run) => run.observed.num_layers));
  const heads = Math.max(...runs.map((run) => run.observed.num_heads));
  keepFocus(
    parts.layerChooser,
    selectNumber("Layer", layers, state.layer, (layer) => set({layer})),
  );
  keepFocus(
    parts.headChooser,
    selectNumber("Head", heads, state.head, (head) => set({head})),
  );
  keepFocus(
    parts.named,
    runs.map((run) => named(run, now)),
  );
  parts.sentences.replaceChildren(...headSentences(now));
  if (!parts.slider.contains(document.activeElement)) parts.slider.replaceChildren(...slider(now));
}

function notes(runs) {
  const sentences = [
    "Layer 0 is the sum of the embeddings; layer l is what block l leaves behind. Attention of layer l is that of block l.",
  ];
  const many = runs.find((run) => run.cells > 0 && run.cells < run.numTokens);
  sentences.push(
    `Attention maps keep 8 bits of each weight (less than 0.004 off)${many ? `, and show the means of blocks: ${many.numTokens} tokens in ${many.cells} rows` : ""}; all other numbers are those that infer observe --json prints.`,
  );
  sentences.push("This page is one file and needs no network.");
  return sentences.map((sentence) => html("p", {}, sentence));
}

build();
start();
show();

let width = document.documentElement.clientWidth;
addEventListener("resize", () => {
  if (width === document.documentElement.clientWidth) return;
  width = document.documentElement.clientWidth;
  requestAnimationFrame(() => redraw());
});
const redraw = () => figures.forEach((figure) => figure.update(view()));
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
