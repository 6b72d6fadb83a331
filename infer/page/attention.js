// Attention: the map of one head, and its profile by offset.
import {lines, sides} from "./charts.js";
import {number} from "./data.js";
import {Figure, html, missing} from "./figure.js";
import {matrices} from "./matrix.js";

/** Runs whose patterns are in the page. */
export const drawable = ({runs}) => runs.filter((run) => run.cells > 0);

/** Why there is none; nothing where nobody asked. */
export function absent({runs}) {
  const reasons = runs.map((run) => run.reason("attention")).filter(Boolean);
  return reasons.length > 0 ? [missing(...new Set(reasons))] : [];
}

/** Layers and heads that a run has. */
const has = (run, {layer, head}) => layer <= run.observed.num_layers && head <= run.observed.num_heads;

const cursor = {row: 0, column: 0};

const map = new Figure({
  id: "attention",
  title: "Who reads whom",
  keys: ["text", "layer", "head"],
  wide: true,
  half: true,
  hint: "A row is a token that reads, a column one that is read; a row’s weights sum to 1. A stripe along the diagonal: the head looks by place, not by meaning.",
  draw: (view, width) => {
    const runs = drawable(view).filter((run) => has(run, view));
    if (runs.length === 0) return absent(view);
    const {layer, head} = view;
    return matrices({
      width,
      type: "sqrt",
      name: "weight",
      cursor,
      label: `Attention of layer ${layer}, head ${head}`,
      panels: runs.map((run) => ({
        run,
        values: run.pattern(layer, head),
        cells: run.cells,
        title: `${runs.length > 1 ? `${run.label}, ` : ""}layer ${layer}, head ${head}`,
        label: `Attention of layer ${layer}, head ${head}${runs.length > 1 ? ` of ${run.label}` : ""}: ${about(run.head(view))}`,
      })),
      read: ({run, values, cells}, row, column) =>
        `${runs.length > 1 ? `${run.label}: ` : ""}${run.cellName(row)} reads ${run.cellName(column)} with weight ${number(values[row * cells + column])}${cells < run.numTokens ? " on average" : ""}`,
    });
  },
});

/** What a head does, in words. */
function about(head) {
  if (!head) return "no numbers";
  return `reaches ${number(head.distance)} tokens, entropy ${number(head.entropy)}; previous token ${number(head.previous)}, next ${number(head.next)}, itself ${number(head.self)}, first ${number(head.first)}, separators ${number(head.separators)}`;
}

/** The numbers of the chosen head, under the choosers. */
export function headSentences(view) {
  const runs = view.runs.filter((run) => run.head(view));
  return runs.map((run) =>
    html("p", {}, `${runs.length > 1 ? `${run.label}: this head` : "This head"} ${about(run.head(view))}.`),
  );
}

const kFarthest = 32; // offset that is drawn

/** Whole numbers along an axis from −most to most, as many as have room. */
function wholeTicks(most, width) {
  const step = [1, 2, 4, 8, 16].find((step) => ((2 * most) / step) * 32 <= width) ?? 32;
  return Array.from(
    {length: 2 * Math.floor(most / step) + 1},
    (_, i) => (i - Math.floor(most / step)) * step,
  );
}

const profile = new Figure({
  id: "profile",
  title: "Where this head looks, by offset",
  keys: ["text", "layer", "head"],
  wide: true,
  half: true,
  hint: "The mean weight at each offset: −1 is the token before, 1 the one after. A high peak: the head looks by place.",
  draw: (view, width) => {
    const runs = view.runs.filter((run) => run.numTokens > 0 && run.head(view));
    if (runs.length === 0) return absent(view);
    const longest = Math.max(...runs.map(({numTokens}) => numTokens)) - 1,
      most = Math.min(longest, kFarthest);
    return [
      lines({
        width,
        xLabel: most < longest ? `offset (the middle of −${longest} … ${longest})` : "offset",
        yLabel: "mean weight",
        ticks: wholeTicks(most, width - 60),
        height: 320,
        label: `Mean attention weight by offset, layer ${view.layer}, head ${view.head}. ${runs.map((run) => `${run.label}: ` + [-2, -1, 0, 1, 2].map((offset) => `${number(run.head(view).by_offset[offset + run.numTokens - 1] ?? 0)} at ${offset}`).join(", ")).join(". ")}`,
        series: runs.map((run) => ({
          name: run.label,
          colour: sides[run.side].colour,
          dash: sides[run.side].dash,
          fill: sides[run.side].dot,
          symbol: most > 24 ? null : undefined,
          values: run
            .head(view)
            .by_offset.map((y, i) => ({x: i - run.numTokens + 1, y}))
            .filter(({x}) => Math.abs(x) <= most),
        })),
      }),
    ];
  },
});

export const attentionFigures = [map, profile];
