// All numbers by layer and by head, as tables.
import {number} from "./data.js";
import {html} from "./figure.js";

const columns = [
  ["norm", (l) => l.norm],
  ["effect", (l) => l.position_effect],
  ["position", (l) => l.split?.position, "split"],
  ["token", (l) => l.split?.token, "split"],
  ["rest", (l) => l.split?.rest, "split"],
  ["position", (l) => l.corpus_split?.position, "split of texts"],
  ["text", (l) => l.corpus_split?.text, "split of texts"],
  ["rest", (l) => l.corpus_split?.rest, "split of texts"],
  ["stable rank", (l) => l.position_matrix?.stable_rank, "places’ means"],
  ["smooth", (l) => l.position_matrix?.smoothness, "places’ means"],
  ["length", (l) => l.direct_position?.norm, "direct path"],
  ["share", (l) => l.direct_position?.share, "direct path"],
  ["swap", (l) => l.order_sensitivity?.swap, "order sensitivity"],
  ["ngrams", (l) => l.order_sensitivity?.ngrams, "order sensitivity"],
  ["reverse", (l) => l.order_sensitivity?.reverse, "order sensitivity"],
  ["shuffle", (l) => l.order_sensitivity?.shuffle, "order sensitivity"],
  ["reach", (l) => l.attention?.distance, "attention"],
  ["entropy", (l) => l.attention?.entropy, "attention"],
  ["R²", (l) => l.probe?.held_out.r2, "probe, held out"],
  ["error", (l) => l.probe?.held_out.mean_absolute_error, "probe, held out"],
];

const headColumns = [
  "distance",
  "entropy",
  "previous",
  "next",
  "self",
  "first",
  "separators",
  "positional_share",
];

const cell = (value) => html("td", {}, number(value));

/** Heads of columns that belong together, as one cell each. */
function groups(shown) {
  const cells = [];
  for (const [, , group = ""] of shown) {
    if (cells.length > 0 && cells.at(-1).group === group && group !== "") ++cells.at(-1).span;
    else cells.push({group, span: 1});
  }
  return cells.map(({group, span}) =>
    group === "" ? html("td", {}) : html("th", {colspan: span, scope: "colgroup"}, group),
  );
}

function layerTable(run, titled) {
  const shown = columns.filter(([, get]) => run.layers.some((layer) => (get(layer) ?? null) !== null));
  return html(
    "table",
    {class: "numbers", "data-run": run.side},
    html("caption", {}, titled ? `${run.label}, by layer` : "By layer"),
    html(
      "thead",
      {},
      html("tr", {}, html("td", {}), groups(shown)),
      html(
        "tr",
        {},
        html("th", {scope: "col"}, "layer"),
        shown.map(([name]) => html("th", {scope: "col"}, name)),
      ),
    ),
    html(
      "tbody",
      {},
      run.layers.map((layer) =>
        html(
          "tr",
          {},
          html("th", {scope: "row"}, layer.layer === 0 ? "embed" : `${layer.layer}`),
          shown.map(([, get]) => cell(get(layer))),
        ),
      ),
    ),
  );
}

function headTable(run, titled) {
  const rows = run.layers.flatMap((layer) =>
    (layer.attention?.heads ?? []).map((head) =>
      html(
        "tr",
        {},
        html("th", {scope: "row"}, `${layer.layer}.${head.head}`),
        headColumns.map((name) => cell(head[name])),
      ),
    ),
  );
  if (rows.length === 0) return null;
  return html(
    "details",
    {},
    html("summary", {}, titled ? `${run.label}, by head` : "By head"),
    html(
      "div",
      {class: "scroll", tabindex: 0, role: "region", "aria-label": `Numbers by head, ${run.label}`},
      html(
        "table",
        {class: "numbers"},
        html(
          "thead",
          {},
          html(
            "tr",
            {},
            html("th", {scope: "col"}, "layer.head"),
            headColumns.map((name) => html("th", {scope: "col"}, name.replace("_", " "))),
          ),
        ),
        html("tbody", {}, rows),
      ),
    ),
  );
}

export function tables({runs}) {
  return runs
    .flatMap((run) => [
      html(
        "div",
        {class: "scroll", tabindex: 0, role: "region", "aria-label": `Numbers by layer, ${run.label}`},
        layerTable(run, runs.length > 1),
      ),
      headTable(run, runs.length > 1),
    ])
    .filter((element) => element !== null);
}
