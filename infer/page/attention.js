// Attention: the map of one head, and its profile by offset.
import {lines, sides} from "./charts.js";
import {number} from "./data.js";
import {Figure, explained, html, missing, prefix} from "./figure.js";
import {links} from "./links.js";
import {matrices} from "./matrix.js";

/** Runs whose patterns are in the page. */
export const drawable = ({runs}) => runs.filter((run) => run.cells > 0);

/** Why there is none; nothing where nobody asked. */
export function absent({runs}) {
  return missing([...new Set(runs.map((run) => run.missing.heads).filter(Boolean))]);
}

const cursor = {row: 0, column: 0},
  linksCursor = {row: 0, column: 0};

/** What a panel of a run has, as a map and as lines. */
function panelOf(run, runs, view) {
  const {layer, head, words} = view;
  const several = runs.length > 1;
  return {
    run,
    values: run.pattern(view),
    title: `${several ? `${run.label}, ` : ""}layer ${layer}, head ${head}${words ? ", without special tokens" : ""}`,
    label: `Attention of layer ${layer}, head ${head}${several ? ` of ${run.label}` : ""}: ${about(run, view)}${words ? "; shown without special tokens" : ""}`,
  };
}

const whoReadsWhom = {
  title: "Who reads whom",
  keys: ["layer", "head", "words", "linear", "links"],
  wide: true,
  half: true,
};

const map = new Figure({
  ...whoReadsWhom,
  id: "pattern",
  hint: "A row is a token that reads, a column one that is read; a row’s weights sum to 1, again after special tokens are left out, whose rows and columns are then empty. Colours follow the square root of the weight, which shows small ones, or the weight itself. A stripe along the diagonal: the head looks by place, not by meaning.",
  draw: (view, width) => {
    if (view.links) return [];
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
        ...panelOf(run, runs, view),
        rows: {count: run.numTokens, cells: run.cells, names: run.pieces},
        columns: {count: run.numTokens, cells: run.cells, names: run.pieces},
      })),
      read: ({run, values}, row, column) =>
        `${prefix(runs, run)}${run.cellName(row)} reads ${run.cellName(column)} with weight ${number(values[row * run.cells + column])}${run.cells < run.numTokens ? " on average" : ""}${without}`,
    });
  },
});

const lineFigure = new Figure({
  ...whoReadsWhom,
  id: "links",
  hint: "A token on the left reads those on the right that its lines lead to. A line is as opaque as the weight is large; a token’s weights sum to 1. Point at a token to see its lines alone: on the left what it reads, on the right who reads it.",
  draw: (view, width) => {
    if (!view.links) return [];
    const runs = drawable(view).filter((run) => run.has(view));
    if (runs.length === 0) return absent(view);
    const long = runs.filter((run) => run.cells < run.numTokens);
    const panels = runs.filter((run) => !long.includes(run)).map((run) => panelOf(run, runs, view));
    const label = `Attention of layer ${view.layer}, head ${view.head}, as lines`;
    return [
      ...(panels.length > 0 ? links({panels, width, label, cursor: linksCursor}) : []),
      ...missing(long.map((run) => `${prefix(runs, run)}${run.numTokens} tokens are too many for lines; the map shows them`)),
    ];
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

export const attentionFigures = [map, lineFigure, profile];
