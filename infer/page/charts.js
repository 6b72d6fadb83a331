// The charts that several figures share: lines over layers, stacked bars, legends.
import {axisFx, axisX, barY, dot, gridY, lineY, plot, ruleY, tip, pointerX} from "@observablehq/plot";
import {number} from "./data.js";
import {font, svg, textWidth} from "./figure.js";

/** How the two sides of a comparison look, wherever they share a chart. */
export const sides = [
  {colour: "var(--first)", dash: undefined, dot: "var(--first)"},
  {colour: "var(--second)", dash: "5 3", dot: "var(--surface)"},
];

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

const base = {
  style: {fontSize: "12px", fontFamily: font, background: "none", overflow: "visible"},
};

/** Numbers of layers for an axis, as many as have room. */
function layerTicks(numLayers, width) {
  const step = [1, 2, 3, 4, 6, 8, 12].find((step) => (numLayers / step) * 24 <= width) ?? 24;
  return Array.from({length: Math.floor(numLayers / step) + 1}, (_, i) => i * step);
}

/** `series` of {name, colour, dash, symbol, values: [{x, y}]}; y null leaves a gap. `domain` of y. */
export function lines({series, width, xLabel = "layer", yLabel, label, height = 210, ticks, domain}) {
  const head = heading(series.length > 1 ? series.map((each) => ({...each, line: true})) : [], yLabel, width);
  const rows = series
    .flatMap(({name, values}) => values.map((value) => ({...value, name})))
    .filter(({y}) => y !== null && y !== undefined);
  const last = Math.max(1, ...rows.map(({x}) => x));
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
      ticks: ticks ?? layerTicks(last, width - 60),
      tickFormat: "d",
    },
    y: {label: null, zero: true, nice: true, ticks: 4, domain},
    marks: [
      gridY({stroke: "var(--rule)", strokeOpacity: 1, ticks: 4}),
      ruleY([0], {stroke: "var(--soft)"}),
      series.flatMap(({colour, dash, symbol, values, fill = colour}) => [
        lineY(values, {x: "x", y: "y", stroke: colour, strokeWidth: 2, strokeDasharray: dash}),
        symbol === null
          ? null
          : dot(values, {x: "x", y: "y", stroke: colour, fill, symbol, r: 3, strokeWidth: 1.5}),
      ]),
      tip(
        rows,
        pointerX({
          x: "x",
          y: "y",
          fill: "var(--surface)",
          stroke: "var(--soft)",
          title: ({name, x, y}) => `${name}\n${xLabel} ${x}: ${number(y)}`,
        }),
      ),
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
    x: {label: null, domain: xs, padding: 0.18},
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
