// Matrices beside each other, with one cursor that mouse and arrow keys move and a line that reads the
// cell under it.
import {plot, raster} from "@observablehq/plot";
import {number} from "./data.js";
import {cssValue, font, half, html, svg, textWidth} from "./figure.js";

const kMostLabels = 40; // tokens along an edge that are named
const kNumberRoom = 18; // pixels of a cell that its number takes
const kDark = 0.55; // of the most: such cells have their numbers in the colour of the page

const kRamps = {
  plus: ["--ramp-0", "--ramp-1", "--ramp-2", "--ramp-3"],
  both: ["--ramp-minus-2", "--ramp-minus-1", "--ramp-0", "--ramp-1", "--ramp-2"],
};

/** Colours from 0 to the most, or from minus the most where there are numbers below 0. */
export const ramp = (name = "plus") => kRamps[name].map(cssValue);

/** A piece without its mark of a new word, and shortened, for an axis. */
export function short(piece) {
  const name = piece.length > 1 ? piece.replace(/^▁/, "") : piece;
  return [...name].length > 9 ? [...name].slice(0, 8).join("") + "…" : name;
}

/** Where the `count` things along an edge of `cells` are named, or numbered where they are many. */
function labelled({count, cells = count, names, first = 0}) {
  const named = names !== undefined && count === cells && cells <= kMostLabels;
  const step = [1, 2, 4, 8, 16, 32, 64, 128].find((step) => count / step <= 10) ?? 256;
  const ticks = named
    ? names.map((name, t) => [t + 0.5, short(name)])
    : Array.from({length: Math.ceil(count / step)}, (_, i) => [
        (i * step * cells) / count + 0.5,
        `${first + i * step}`,
      ]);
  const margin = Math.ceil(Math.max(...ticks.map(([, text]) => textWidth(text)))) + 8;
  return {cells, ticks, margin, named};
}

/** One matrix; the returned element has what follow() needs. */
function panel({rows: down, columns: across, values, width, scale, title, label, cells, still}) {
  const {type, domain, colours} = scale;
  const rows = labelled(down),
    columns = labelled(across);
  const left = rows.margin,
    top = (columns.named ? columns.margin : 20) + (title ? 24 : 4);
  const square = rows.cells === columns.cells;
  const room = Math.min(width - left - 4, square ? 480 : 720, Math.max(200, 40 * columns.cells));
  const wide = Math.max(60, room);
  const height = cells
    ? Math.min(cells.height * rows.cells, Math.max(cells.most, 9 * rows.cells))
    : square
      ? wide
      : Math.min(480, Math.max((wide / columns.cells) * rows.cells, Math.min(200, 12 * rows.cells)));
  const dx = wide / columns.cells,
    dy = height / rows.cells;
  const sizeOf = ({named}, step) => (named ? Math.min(12, Math.max(7, step)) : 12);
  const written = cells?.text && dx >= kNumberRoom && dy >= 14 ? [...values] : [];
  const axes = () =>
    svg(
      "g",
      {fill: "currentColor", "aria-hidden": true},
      svg("text", {x: left, y: 12, "font-size": 12, "font-weight": 600, "text-anchor": "start"}, title),
      svg(
        "g",
        {"font-size": sizeOf(rows, dy), "text-anchor": "end"},
        rows.ticks.map(([at, text]) => svg("text", {x: left - 5, y: top + at * dy, dy: "0.35em"}, text)),
      ),
      svg(
        "g",
        {"font-size": sizeOf(columns, dx), "text-anchor": columns.named ? "start" : "middle"},
        columns.ticks.map(([at, text]) =>
          columns.named
            ? svg(
                "text",
                {transform: `translate(${left + at * dx} ${top - 5}) rotate(-90)`, dy: "0.35em"},
                text,
              )
            : svg("text", {x: left + at * dx, y: top - 6}, text),
        ),
      ),
      svg("rect", {
        x: left - 0.5,
        y: top - 0.5,
        width: wide + 1,
        height: height + 1,
        fill: "none",
        stroke: "var(--rule)",
      }),
      written.length > 0
        ? svg(
            "g",
            {"font-size": 11, "text-anchor": "middle"},
            written.map((value, i) =>
              svg(
                "text",
                {
                  x: left + ((i % columns.cells) + 0.5) * dx,
                  y: top + (Math.floor(i / columns.cells) + 0.5) * dy,
                  dy: "0.35em",
                  fill: value > kDark * domain[1] ? "var(--surface)" : "var(--ink)",
                },
                cells.text(value),
              ),
            ),
          )
        : null,
    );
  const element = plot({
    width: left + wide + 4,
    height: top + height + 4,
    marginLeft: left,
    marginTop: top,
    marginRight: 4,
    marginBottom: 4,
    x: {domain: [0, columns.cells], axis: null},
    y: {domain: [rows.cells, 0], axis: null},
    ariaLabel: label,
    color: {type, domain, clamp: true, range: colours, interpolate: "rgb"},
    style: {background: "none", overflow: "visible", fontFamily: font},
    marks: [
      raster(values, {
        width: columns.cells,
        height: rows.cells,
        x1: 0,
        y1: 0,
        x2: columns.cells,
        y2: rows.cells,
        imageRendering: "pixelated",
      }),
      axes,
    ],
  });
  const cursor = svg("rect", {
    width: Math.max(dx, 3),
    height: Math.max(dy, 3),
    class: "cursor",
    "data-screen": "",
    fill: "none",
    visibility: "hidden",
  });
  element.append(cursor);
  element.size = still ? {row: 0, column: 0} : {row: rows.cells, column: columns.cells};
  element.cellAt = (event) => {
    const frame = element.getBoundingClientRect();
    return {
      row: Math.floor((event.clientY - frame.y - top) / dy),
      column: Math.floor((event.clientX - frame.x - left) / dx),
    };
  };
  element.show = (cell) => {
    cursor.setAttribute("visibility", cell ? "visible" : "hidden");
    cursor.setAttribute("transform", cell ? `translate(${left + cell.column * dx} ${top + cell.row * dy})` : "");
  };
  return element;
}

/** What the colours mean: a bar from the smallest value to the largest. */
function colourBar({domain: [least, most], type, colours}, name, textOf) {
  const width = 140,
    left = 20, // half of the least value's text
    room = left + width + 16 + textWidth(name),
    at = (value) => {
      const share = (value - least) / (most - least);
      return (type === "sqrt" ? Math.sqrt(share) : share) * width;
    };
  const id = `ramp-${name.replace(/\W+/g, "-")}`;
  const ticks = least < 0 ? [least, 0, most] : [0, (type === "sqrt" ? 0.25 : 0.5) * most, most];
  return svg(
    "svg",
    {
      width: room,
      height: 34,
      viewBox: `0 0 ${room} 34`,
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
    svg("rect", {x: left, y: 2, width, height: 10, fill: `url(#${id})`, stroke: "var(--rule)"}),
    ticks.map((value) => svg("text", {x: left + at(value), y: 25, "text-anchor": "middle"}, textOf(value))),
    svg("text", {x: left + width + 8, y: 11}, name),
  );
}

/**
 * `panels` of {values [rows, columns], rows, columns, title, label}, an edge being {count, cells, names,
 * first}; `scaled` those of the values
 * that the colours cover, all by default; `own`: a scale for each panel; `type` sqrt or linear; `read(panel, row, column)` a sentence about a cell; `cursor` {row,
 * column}, which is kept up to date. `cells` {height, most, text, step} of low cells: text
 * writes the numbers in them, and the colours end at a multiple of step. A
 * panel may have a width of its own, and one that is `still` is not read.
 */
export function matrices({panels, width, type, name, label, read, cursor, own, cells}) {
  const room = half(panels, width);
  const scaleOf = (panels) => {
    const of = (best) =>
      panels.reduce((so, {values, scaled = values}) => scaled.reduce((a, b) => best(a, b), so), 0);
    const least = of(Math.min),
      found = Math.max(of(Math.max), -least) || 1,
      most = cells?.step ? cells.step * Math.ceil(found / cells.step) : found;
    const signed = least < -1e-6 * most; // by more than rounding
    return {type, domain: [signed ? -most : 0, most], colours: ramp(signed ? "both" : "plus")};
  };
  const scales = own ? panels.map((each) => scaleOf([each])) : [scaleOf(panels)];
  const elements = panels.map((each, i) => panel({width: room, ...each, scale: scales[own ? i : 0], cells}));
  const bars = scales.map((scale, i) => colourBar(scale, own ? `${name}, ${panels[i].title}` : name, cells?.text ?? number));
  const [box, reading] = follow({panels, elements, label, read, cursor, thing: "cell"});
  return [box, ...bars, reading];
}

/**
 * [box, line]: the `elements` of panels, in which mouse and arrow keys move the cursor from one `thing` to the
 * next, and the line that reads it. Each has a `size`, `cellAt(event)`, and `show(cell)`, of null where it has no
 * such cell. `released`: nor does any where neither mouse nor keys are there.
 */
export function follow({panels, elements, label, read, cursor, thing, released}) {
  const prompt = `Point at a ${thing}, or use the arrow keys, to read it.`;
  const reading = html("output", {class: "reading", "aria-live": "polite"}, prompt);
  const holds = ({size}, {row, column}) => row >= 0 && row < size.row && column >= 0 && column < size.column;
  const show = (cell) => {
    const within = (at) => Math.max(0, Math.min(cell[at], Math.max(...elements.map(({size}) => size[at])) - 1));
    Object.assign(cursor, {row: within("row"), column: within("column")});
    for (const element of elements) element.show(holds(element, cursor) ? cursor : null);
    const held = panels.filter((_, i) => holds(elements[i], cursor));
    reading.replaceChildren(...held.map((each) => html("span", {}, read(each, cursor.row, cursor.column))));
  };
  const release = () => {
    if (!released) return;
    for (const element of elements) element.show(null);
    reading.replaceChildren(prompt);
  };
  const steps = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
  const box = html(
    "div",
    {
      class: "panels",
      tabindex: 0,
      role: "application",
      "aria-label": `${label}; arrow keys move from ${thing} to ${thing}`,
      focus: () => (!released || box.matches(":focus-visible")) && show(cursor),
      blur: release,
      pointerleave: ({pointerType}) => pointerType === "mouse" && release(),
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
        if (holds(element, cell)) show(cell);
        else release();
      });
    }
  }
  return [box, reading];
}
