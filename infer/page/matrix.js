// Square matrices beside each other, with one cursor that mouse and arrow keys move and a line that
// reads the cell under it.
import {plot, raster} from "@observablehq/plot";
import {number} from "./data.js";
import {cssValue, font, html, svg, textWidth} from "./figure.js";

const kMostLabels = 40; // tokens along an edge that are named

export function ramp() {
  return ["--ramp-0", "--ramp-1", "--ramp-2", "--ramp-3"].map(cssValue);
}

/** A piece without its mark of a new word, and shortened, for an axis. */
function short(piece) {
  const name = piece.length > 1 ? piece.replace(/^▁/, "") : piece;
  return [...name].length > 9 ? [...name].slice(0, 8).join("") + "…" : name;
}

/** Where tokens are named beside a matrix, or numbered where they are many. */
function edges(run, cells) {
  const named = run.numTokens === cells && cells <= kMostLabels;
  const texts = named ? run.pieces.map(short) : null;
  const step = [1, 2, 4, 8, 16, 32, 64, 128].find((step) => run.numTokens / step <= 10) ?? 256;
  const ticks = named
    ? texts.map((text, t) => [t + 0.5, text])
    : Array.from({length: Math.ceil(run.numTokens / step)}, (_, i) => [
        (i * step * cells) / run.numTokens + 0.5,
        `${i * step}`,
      ]);
  const margin = Math.ceil(Math.max(...ticks.map(([, text]) => textWidth(text)))) + 8;
  return {ticks, margin, named};
}

/** One matrix; the returned element has `cellAt` and `show`. */
function panel({run, values, cells, width, domain, type, title, label}) {
  const {ticks, margin, named} = edges(run, cells);
  const top = (named ? margin : 20) + 24;
  const size = Math.max(60, Math.min(width - margin - 4, 480, Math.max(200, 40 * cells)));
  const scale = size / cells;
  const fontSize = named ? Math.min(12, Math.max(7, scale)) : 12;
  const axes = () =>
    svg(
      "g",
      {"font-size": fontSize, fill: "currentColor", "aria-hidden": true},
      svg("text", {x: margin, y: 12, "font-size": 12, "font-weight": 600, "text-anchor": "start"}, title),
      ticks.map(([at, text]) => [
        svg("text", {x: margin - 5, y: top + at * scale, dy: "0.35em", "text-anchor": "end"}, text),
        named
          ? svg(
              "text",
              {
                transform: `translate(${margin + at * scale} ${top - 5}) rotate(-90)`,
                dy: "0.35em",
                "text-anchor": "start",
              },
              text,
            )
          : svg("text", {x: margin + at * scale, y: top - 6, "text-anchor": "middle"}, text),
      ]),
      svg("rect", {
        x: margin - 0.5,
        y: top - 0.5,
        width: size + 1,
        height: size + 1,
        fill: "none",
        stroke: "var(--rule)",
      }),
    );
  const element = plot({
    width: margin + size + 4,
    height: top + size + 4,
    marginLeft: margin,
    marginTop: top,
    marginRight: 4,
    marginBottom: 4,
    x: {domain: [0, cells], axis: null},
    y: {domain: [cells, 0], axis: null},
    ariaLabel: label,
    color: {type, domain, range: ramp(), interpolate: "rgb"},
    style: {background: "none", overflow: "visible", fontFamily: font},
    marks: [
      raster(values, {
        width: cells,
        height: cells,
        x1: 0,
        y1: 0,
        x2: cells,
        y2: cells,
        imageRendering: "pixelated",
      }),
      axes,
    ],
  });
  const cursor = svg("rect", {
    width: Math.max(scale, 3),
    height: Math.max(scale, 3),
    class: "cursor",
    "data-screen": "",
    fill: "none",
    visibility: "hidden",
  });
  element.append(cursor);
  element.cellAt = (event) => {
    const frame = element.getBoundingClientRect();
    const column = Math.floor((event.clientX - frame.x - margin) / scale),
      row = Math.floor((event.clientY - frame.y - top) / scale);
    return row >= 0 && row < cells && column >= 0 && column < cells ? {row, column} : null;
  };
  element.show = ({row, column}) => {
    cursor.setAttribute("visibility", row < cells && column < cells ? "visible" : "hidden");
    cursor.setAttribute("x", margin + column * scale);
    cursor.setAttribute("y", top + row * scale);
  };
  return element;
}

/** What the colours mean: a bar from 0 to the largest value. */
function colourBar({domain: [, most], type, name}) {
  const width = 160,
    at = (share) => (type === "sqrt" ? Math.sqrt(share) : share) * width;
  const colours = ramp(),
    id = `ramp-${Math.random().toString(36).slice(2)}`;
  const ticks = type === "sqrt" ? [0, 0.25, 1] : [0, 0.5, 1];
  return svg(
    "svg",
    {
      width: width + 90,
      height: 34,
      viewBox: `-12 0 ${width + 90} 34`,
      "font-size": 11,
      fill: "currentColor",
      "font-family": font,
      class: "colour-bar",
      "aria-hidden": true,
    },
    svg(
      "defs",
      {},
      svg(
        "linearGradient",
        {id},
        colours.map((colour, i) => svg("stop", {offset: i / (colours.length - 1), "stop-color": colour})),
      ),
    ),
    svg("rect", {y: 2, width, height: 10, fill: `url(#${id})`, stroke: "var(--rule)"}),
    ticks.map((share) =>
      svg("text", {x: at(share), y: 25, "text-anchor": "middle"}, share === 0 ? "0" : number(share * most)),
    ),
    svg("text", {x: width + 8, y: 11}, name),
  );
}

/**
 * `panels` of {run, values [cells, cells], cells, title, label}, `read(panel, row, column)` a sentence
 * about a cell, `cursor` {row, column}, which is kept up to date.
 */
export function matrices({panels, width, type, name, label, read, cursor}) {
  const beside = panels.length > 1 && width > 560;
  const room = beside ? (width - 24) / 2 : width;
  const most = panels.reduce((most, {values}) => values.reduce((a, b) => Math.max(a, b), most), 0) || 1;
  const elements = panels.map((each) => panel({...each, width: room, domain: [0, most], type}));
  const reading = html(
    "output",
    {class: "reading", "aria-live": "polite"},
    "Point at a cell, or use the arrow keys, to read it.",
  );
  const show = (cell) => {
    const last = Math.max(...panels.map(({cells}) => cells)) - 1;
    Object.assign(cursor, {
      row: Math.max(0, Math.min(last, cell.row)),
      column: Math.max(0, Math.min(last, cell.column)),
    });
    for (const element of elements) element.show(cursor);
    reading.replaceChildren(
      ...panels
        .filter(({cells}) => cursor.row < cells && cursor.column < cells)
        .map((each) => html("span", {}, read(each, cursor.row, cursor.column))),
    );
  };
  const steps = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
  const box = html(
    "div",
    {
      class: "panels",
      tabindex: 0,
      role: "application",
      "aria-label": `${label}; arrow keys move from cell to cell`,
      focus: () => show(cursor),
      keydown: (event) => {
        const step = steps[event.key];
        if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        const size = event.shiftKey ? 8 : 1;
        show({row: cursor.row + size * step[0], column: cursor.column + size * step[1]});
      },
    },
    elements,
  );
  for (const element of elements) {
    for (const type of ["pointermove", "pointerdown"]) {
      element.addEventListener(type, (event) => {
        const cell = element.cellAt(event);
        if (cell) show(cell);
      });
    }
  }
  return [box, reading, colourBar({domain: [0, most], type, name})];
}
