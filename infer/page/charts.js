// The charts that several figures share: lines over layers, dots by row, stacked bars, legends.
import {
  axisFx,
  axisX,
  axisY,
  barY,
  dot,
  gridX,
  gridY,
  lineY,
  plot,
  pointerX,
  pointerY,
  ruleX,
  ruleY,
  tip,
} from "@observablehq/plot";
import {estimate, number} from "./data.js";
import {font, svg, textWidth} from "./figure.js";

/** How runs look, wherever they share a chart: one or two, and untrained models beside them. */
export const sides = [
  {colour: "var(--first)"},
  {colour: "var(--second)", dash: "5 3", fill: "var(--surface)"},
  {colour: "var(--first)", dash: "2 3", fill: "var(--surface)"},
  {colour: "var(--second)", dash: "2 3", fill: "var(--surface)"},
];

const kColours = ["position", "token", "third", "fourth", "fifth", "sixth"];
const kSymbols = ["circle", "triangle", "square", "diamond", "star", "wye"];

/** Columns {key, label} with a colour and a symbol each, by their order; what remains is grey. */
export const coloured = (columns) =>
  columns.map(({key, label}, i) => ({
    key,
    name: label,
    colour: `var(--${key === "rest" ? key : kColours[i % kColours.length]})`,
    symbol: kSymbols[i % kSymbols.length],
  }));

/** Rows above a chart: entries {name, colour, dash, line}, then what the y axis measures. */
function heading(entries, yLabel, width) {
  const places = [];
  let x = 0,
    y = 0;
  for (const {name} of entries) {
    const size = 18 + textWidth(name) + 16;
    if (x > 0 && x + size > width) [x, y] = [0, y + 18];
    places.push([x, y]);
    x += size;
  }
  const height = entries.length > 0 ? y + 24 : 0;
  const element = svg(
    "g",
    {"text-anchor": "start", "font-size": 12, fill: "currentColor", "aria-hidden": true},
    entries.map(({name, colour, dash, line}, i) =>
      svg(
        "g",
        {transform: `translate(${places[i]})`},
        line
          ? svg("path", {d: "M0 7h14", stroke: colour, "stroke-width": 2, "stroke-dasharray": dash})
          : svg("rect", {y: 1, width: 12, height: 12, rx: 2, fill: colour}),
        svg("text", {x: 18, y: 11}, name),
      ),
    ),
    svg("text", {y: height + 11, fill: "var(--soft)"}, yLabel),
  );
  return {element, height: height + 26};
}

const kMostDots = 49; // of a line

/** What all charts have in common. */
export const base = {
  style: {fontSize: "12px", fontFamily: font, background: "none", overflow: "visible"},
};

/** Whole numbers from `first` to `last` for an axis, as many as have room; 0 is one of them. */
function wholeTicks(first, last, width) {
  const step = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].find((step) => ((last - first) / step) * 28 <= width) ?? 64;
  const from = Math.ceil(first / step);
  return Array.from({length: Math.floor(last / step) - from + 1}, (_, i) => (from + i) * step);
}

/** The points of `series` that are known, with their series' names, and what a pointer reads of them. */
function readable(series, xLabel, pointer, channels) {
  const points = series
    .flatMap(({name, values}) => values.map((value) => ({...value, name})))
    .filter(({y}) => y !== null && y !== undefined);
  const title = ({name, x, y, low, high}) => `${name}\n${xLabel} ${x}: ${estimate(y, low, high)}`;
  return [points, tip(points, pointer({...channels, fill: "var(--surface)", stroke: "var(--soft)", title}))];
}

/**
 * `series` of {name, colour, dash, symbol, fill, values: [{x, y, low, high}]}, x whole numbers or names; y null
 * leaves a gap; low and high are the ends of y's interval, where it has one. `domain` of y. Many points get no
 * symbols.
 */
export function lines({series, width, xLabel = "layer", yLabel, label, height = 210, domain}) {
  const head = heading(series.length > 1 ? series.map((each) => ({...each, line: true})) : [], yLabel, width);
  const [points, read] = readable(series, xLabel, pointerX, {x: "x", y: "y"});
  const xs = points.map(({x}) => x);
  const named = xs.some((x) => typeof x === "string");
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const chart = plot({
    ...base,
    width,
    height: height + head.height,
    marginTop: head.height,
    marginLeft: 46,
    marginRight: 12,
    marginBottom: 36,
    ariaLabel: label,
    x: {
      label: xLabel,
      labelArrow: "none",
      labelAnchor: "center",
      ...(named
        ? {type: "point"}
        : {domain: [first, last], ticks: wholeTicks(first, last, width - 60), tickFormat: "d"}),
    },
    y: {label: null, zero: true, nice: true, ticks: 4, domain},
    marks: [
      gridY({stroke: "var(--rule)", strokeOpacity: 1, ticks: 4}),
      ruleY([0], {stroke: "var(--soft)"}),
      series.flatMap(({colour, dash, symbol, values, fill = colour}) => [
        ruleX(
          values.filter(({low}) => low !== undefined),
          {x: "x", y1: "low", y2: "high", stroke: colour, strokeWidth: 1},
        ),
        lineY(values, {x: "x", y: "y", stroke: colour, strokeWidth: 2, strokeDasharray: dash}),
        values.length > kMostDots
          ? null
          : dot(values, {x: "x", y: "y", stroke: colour, fill, symbol, r: 3, strokeWidth: 1.5}),
      ]),
      read,
    ],
  });
  chart.append(head.element);
  return chart;
}

/** A text, or as much of its beginning as has room. */
export function cut(text, room) {
  if (textWidth(text) <= room) return text;
  const letters = [...text];
  while (letters.length > 0 && textWidth(`${letters.join("")}…`) > room) letters.pop();
  return `${letters.join("").trimEnd()}…`;
}

const kRow = 16; // pixels from one line of dots to the next

/** The same `series` turned over: a line for each x, from top to bottom, with dots and intervals along it. */
export function dots({series, width, xLabel, yLabel, label, domain}) {
  const head = heading(series.length > 1 ? series : [], yLabel, width);
  const names = [...new Set(series.flatMap(({values}) => values.map(({x}) => x)))];
  const room = Math.min(0.4 * width, Math.max(...names.map((name) => textWidth(`${name}`))));
  const [, read] = readable(series, xLabel, pointerY, {x: "y", y: "x"});
  const chart = plot({
    ...base,
    width,
    height: names.length * kRow + head.height + 40,
    marginTop: head.height + 18,
    marginLeft: room + 12,
    marginRight: 16,
    marginBottom: 22,
    ariaLabel: label,
    x: {domain, inset: 8},
    y: {type: "point", domain: names, padding: 0.5},
    marks: [
      ["top", "bottom"].map((anchor) => axisX({anchor, label: null, tickSize: 0, tickSpacing: 60})),
      axisY({label: null, tickSize: 0, tickFormat: (name) => cut(`${name}`, room)}),
      gridX({stroke: "var(--rule)", strokeOpacity: 1, tickSpacing: 60}),
      gridY({stroke: "var(--rule)", strokeOpacity: 1, strokeDasharray: "1 3"}),
      ruleX([0], {stroke: "var(--soft)"}),
      series.flatMap(({colour, symbol, values}, i) => {
        const at = {y: "x", stroke: colour, dy: ((i + 0.5) / series.length - 0.5) * 0.75 * kRow};
        return [
          ruleY(
            values.filter(({low}) => low !== undefined),
            {...at, x1: "low", x2: "high"},
          ),
          dot(values, {...at, x: "y", fill: colour, symbol, r: 2.5}),
        ];
      }),
      read,
    ],
  });
  chart.append(head.element);
  return chart;
}

/** `rows` of {x, part, value, side}; `parts` of {key, name, colour}, stacked in this order. */
export function stackedBars({rows, parts, labels, width, xLabel, yLabel, label, height = 220}) {
  const head = heading(parts, yLabel, width);
  const xs = [...new Set(rows.map(({x}) => x))];
  const room = (width - 60) / labels.length - 12;
  const step = [1, 2, 3, 4, 6, 8, 12].find((step) => (xs.length / step) * 22 <= room) ?? 24;
  const colours = Object.fromEntries(parts.map(({key, colour}) => [key, colour]));
  const names = Object.fromEntries(parts.map(({key, name}) => [key, name]));
  const chart = plot({
    ...base,
    width,
    height: height + head.height,
    marginTop: head.height + (labels.length > 1 ? 20 : 0),
    marginLeft: 46,
    marginRight: 4,
    marginBottom: 36,
    ariaLabel: label,
    x: {type: "band", label: null, domain: xs, padding: 0.18},
    y: {label: null, ticks: 4, tickFormat: ".0%"},
    fx: {domain: labels, label: null, padding: 0.06},
    marks: [
      axisX({
        ticks: xs.filter((_, i) => i % step === 0),
        tickSize: 0,
        label: xLabel,
        labelArrow: "none",
        labelAnchor: "center",
      }),
      labels.length > 1 ? axisFx({anchor: "top", fontWeight: 600, dy: 2}) : axisFx({ticks: []}),
      barY(rows, {
        x: "x",
        y: "value",
        fx: "side",
        fill: ({part}) => colours[part],
        offset: null,
        order: parts.map(({key}) => key),
        z: "part",
        insetLeft: 0.5,
        insetRight: 0.5,
        title: ({x, part, value}) => `${xLabel} ${x}: ${names[part]} ${number(value)}`,
      }),
      ruleY([0], {stroke: "var(--soft)"}),
    ],
  });
  chart.append(head.element);
  return chart;
}
