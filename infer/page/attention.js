// Attention: the map of one head, and its profile by offset.
import {lines, sides} from "./charts.js";
import {number} from "./data.js";
import {Figure, explained, html, missing, prefix} from "./figure.js";
import {matrices} from "./matrix.js";

/** Runs whose patterns are in the page. */
export const drawable = ({runs}) => runs.filter((run) => run.cells > 0);

/** Why there is none; nothing where nobody asked. */
export function absent({runs}) {
  return missing([...new Set(runs.map((run) => run.missing.heads).filter(Boolean))]);
}

const cursor = {row: 0, column: 0};

const map = new Figure({
  id: "pattern",
  title: "Who reads whom",
  keys: ["layer", "head", "words", "linear"],
  wide: true,
  half: true,
  hint: "A row is a token that reads, a column one that is read; a row’s weights sum to 1, again after special tokens are left out, whose rows and columns are then empty. Colours follow the square root of the weight, which shows small ones, or the weight itself. A stripe along the diagonal: the head looks by place, not by meaning.",
  draw: (view, width) => {
    const runs = drawable(view).filter((run) => run.has(view));
    if (runs.length === 0) return absent(view);
    const {layer, head, words, linear} = view;
    const without = words ? ", without special tokens" : "";
    return matrices({
      width,
      type: linear ? "linear" : "sqrt",
      name: linear ? "weight" : "weight (√ scale)",
      cursor,
      label: `Attention of layer ${layer}, head ${head}`,
      panels: runs.map((run) => ({
        run,
        values: run.pattern(view),
        rows: {count: run.numTokens, cells: run.cells, names: run.pieces},
        columns: {count: run.numTokens, cells: run.cells, names: run.pieces},
        title: `${runs.length > 1 ? `${run.label}, ` : ""}layer ${layer}, head ${head}${without}`,
        label: `Attention of layer ${layer}, head ${head}${runs.length > 1 ? ` of ${run.label}` : ""}: ${about(run, view)}${words ? "; the map is without special tokens" : ""}`,
      })),
      read: ({run, values}, row, column) =>
        `${prefix(runs, run)}${run.cellName(row)} reads ${run.cellName(column)} with weight ${number(values[row * run.cells + column])}${run.cells < run.numTokens ? " on average" : ""}${without}`,
    });
  },
});

/** The numbers of the chosen head: {label, meaning, value} of each. */
function numbersOf(run, {views, layer, head}) {
  const {columns} = views.find(({name}) => name === "heads") ?? {columns: []};
  const row = run.head({layer, head});
  return row ? columns.map((column) => ({...column, value: number(row[column.key])})) : [];
}

const about = (run, view) =>
  numbersOf(run, view)
    .map(({label, value}) => `${label} ${value}`)
    .join(", ") || "no numbers";

/** The same under the choosers. */
export function headSentences(view) {
  const runs = view.runs.filter((run) => run.head(view));
  return runs.map((run) =>
    html(
      "p",
      {},
      `${runs.length > 1 ? `${run.label}: this head` : "This head"}: `,
      numbersOf(run, view).map(({label, meaning, value}, i) => [
        i > 0 ? ", " : "",
        explained(label, meaning),
        ` ${value}`,
      ]),
      ".",
    ),
  );
}

const kFarthest = 32; // offset that is drawn

const profile = new Figure({
  id: "profile",
  title: "Where this head looks, by offset",
  keys: ["layer", "head"],
  wide: true,
  half: true,
  hint: "The mean weight at each offset: −1 is the token before, 1 the one after, special tokens included. A high peak: the head looks by place.",
  draw: (view, width) => {
    const runs = view.runs.filter((run) => run.offsets >= 0 && run.has(view));
    if (runs.length === 0) return absent(view);
    const series = runs.map((run) => ({
      ...sides[run.side],
      name: run.label,
      values: run
        .profile(view)
        .map((y, i) => ({x: i - run.offsets, y}))
        .filter(({x}) => Math.abs(x) <= kFarthest),
    }));
    const longest = Math.max(...runs.map(({numTokens}) => numTokens)) - 1;
    const most = Math.max(...series.flatMap(({values}) => values.map(({x}) => x)));
    const inWords = ({name, values}) =>
      `${name}: ${values
        .filter(({x}) => Math.abs(x) <= 2)
        .map(({x, y}) => `${number(y)} at ${x}`)
        .join(", ")}`;
    return [
      lines({
        width,
        series,
        xLabel: most < longest ? `offset (the middle of −${longest} … ${longest})` : "offset",
        yLabel: "mean weight",
        height: 320,
        label: `Mean attention weight by offset, layer ${view.layer}, head ${view.head}. ${series.map(inWords).join(". ")}`,
      }),
    ];
  },
});

export const attentionFigures = [map, profile];
