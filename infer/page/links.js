// Attention as lines: tokens in two columns, of which the left one reads the right one.
import {cut} from "./charts.js";
import {number} from "./data.js";
import {font, half, prefix, svg, textWidth} from "./figure.js";
import {follow, short} from "./matrix.js";

const kRow = 20; // pixels from one token to the next
const kLeast = 0.01; // weight that has a line
const kNamed = 4; // partners of a token
const kTop = 48; // of the tokens, below title and headings
const kHeadings = ["reads", "is read"];

/** Of one run; `size`, `cellAt` and `show` are those of follow(), {row: token, column: 0 reads, 1 is read}. */
function panel({run, values, title, label}, room) {
  const count = run.numTokens,
    names = run.pieces.map(short),
    side = Math.ceil(Math.max(...[...names, ...kHeadings].map(textWidth))) + 14,
    right = Math.max(2 * side, Math.min(room - side, 340)),
    [width, height] = [right + side, kTop + count * kRow + 2];
  const y = (token) => kTop + (token + 0.5) * kRow;
  const ends = [...values.keys()].filter((i) => values[i] >= kLeast).map((i) => [Math.floor(i / count), i % count]);
  const lines = ends.map(([from, to]) =>
    svg("line", {x1: side, y1: y(from), x2: right, y2: y(to), opacity: values[from * count + to].toFixed(3)}),
  );
  const mark = svg("rect", {class: "cursor", "data-screen": "", width: side - 4, height: kRow, rx: 4, fill: "none"});
  const column = (heading, i) => {
    const x = i ? right + 6 : side - 6;
    const texts = names.map((name, token) => svg("text", {x, y: y(token), dy: "0.35em"}, name));
    return svg("g", {"text-anchor": i ? "start" : "end"}, svg("text", {x, y: 36, fill: "var(--soft)"}, heading), texts);
  };
  const element = svg(
    "svg",
    {width, height, role: "img", "aria-label": label, "font-size": 12, "font-family": font, fill: "currentColor"},
    svg("text", {y: 12, "font-weight": 600}, cut(title, 0.9 * width)),
    svg("g", {stroke: "var(--position)", "stroke-width": 2}, lines),
    kHeadings.map(column),
    mark,
  );
  element.size = {row: count, column: 2};
  element.cellAt = (event) => {
    const frame = element.getBoundingClientRect(),
      x = event.clientX - frame.x;
    return {row: Math.floor((event.clientY - frame.y - kTop) / kRow), column: [x < side, x > right].indexOf(true)};
  };
  element.show = (cell) => {
    lines.forEach((line, i) => (line.style.display = cell && ends[i][cell.column] !== cell.row ? "none" : ""));
    mark.style.display = cell ? "" : "none";
    mark.setAttribute("transform", cell ? `translate(${cell.column ? right + 2 : 2} ${kTop + cell.row * kRow})` : "");
  };
  element.show(null);
  return element;
}

/** The token of a cell with those that it reads most, or that read it most. */
function partners({run, values}, row, column) {
  const most = run.pieces
    .map((_, t) => ({t, weight: values[column ? t * run.numTokens + row : row * run.numTokens + t]}))
    .filter(({weight}) => weight >= kLeast)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, kNamed);
  const named = most.map(({t, weight}) => `${run.name(t)} ${number(weight)}`).join(", ");
  return `${run.name(row)} ${column ? "is read by" : "reads"} ${named || "no token"}`;
}

/** `panels` of {run, values, title, label} beside each other, with the one `cursor` of follow(). */
export function links({panels, width, label, cursor}) {
  const elements = panels.map((each) => panel(each, half(panels, width)));
  const read = (each, row, column) => prefix(panels, each.run) + partners(each, row, column);
  return follow({panels, elements, thing: "token", label, cursor, read, released: true});
}
