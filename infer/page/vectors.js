// The position vectors by themselves: how far they are from each other, and their clock hands.
import {number, place} from "./data.js";
import {Figure, font, html, missing, prefix, svg} from "./figure.js";
import {matrices} from "./matrix.js";

const kMostCells = 128;
const withVectors = (runs) => runs.filter((run) => run.width > 0);

function reasons(runs) {
  const without = runs.filter((run) => run.width === 0 && run.numTokens > 0);
  return without.map(
    (run) =>
      `${prefix(runs, run)}no position vector is added to this model’s embeddings (positions: ${run.observed.positions})`,
  );
}

const cursor = {row: 0, column: 0};

/** Euclidean distances of every token’s position vector from every other’s; of some where they are many. */
function distances(run) {
  const cells = Math.min(run.numTokens, kMostCells);
  const tokens = Array.from({length: cells}, (_, c) => Math.floor((c * run.numTokens) / cells));
  const values = new Float64Array(cells * cells);
  for (let i = 0; i < cells; ++i) {
    for (let j = 0; j < i; ++j) {
      const a = run.vector(tokens[i]),
        b = run.vector(tokens[j]);
      let sum = 0;
      for (let c = 0; c < a.length; ++c) sum += (a[c] - b[c]) ** 2;
      values[i * cells + j] = values[j * cells + i] = Math.sqrt(sum);
    }
  }
  const edge = {count: run.numTokens, cells, names: run.pieces};
  const scaled = cells > 2 ? values.filter((_, i) => i >= cells && i % cells > 0) : values;
  return {values, scaled, tokens, rows: edge, columns: edge};
}

export const distanceFigure = new Figure({
  id: "distances",
  title: "Distances between position vectors",
  wide: true,
  half: true,
  hint: "The length of the difference of the vectors that two tokens were given. Equal along the diagonals: only how far apart two places are matters. Near 0: the two vectors are nearly equal. The colours end at the largest distance that is not the first token’s, which often stands apart.",
  draw: ({runs}, width) => {
    const shown = withVectors(runs);
    return [
      ...(shown.length === 0
        ? []
        : matrices({
            width,
            type: "linear",
            name: "distance",
            cursor,
            label: "Distances between position vectors",
            panels: shown.map((run) => ({
              run,
              ...distances(run),
              title: shown.length > 1 ? run.label : "",
              label: `Distances between the position vectors of ${run.numTokens} tokens of ${run.label}`,
            })),
            read: ({run, values, tokens}, row, column) =>
              `${prefix(shown, run)}${run.name(tokens[row])} and ${run.name(tokens[column])} are ${number(values[row * tokens.length + column])} apart`,
          })),
      ...missing(reasons(runs)),
    ];
  },
});

const rowCursor = {row: 0, column: 0};

export const rowsFigure = new Figure({
  id: "vectors",
  title: "The vectors that are added",
  wide: true,
  half: true,
  hint: "A row is the position vector that a token was given, a column one of its numbers. Slow waves down a column, or none: that number is alike at neighbouring places; fast ones tell neighbours apart.",
  draw: ({runs}, width) => {
    const shown = withVectors(runs);
    if (shown.length === 0) return [];
    return matrices({
      width,
      type: "linear",
      name: "value",
      cursor: rowCursor,
      label: "Position vectors",
      cells: {height: 16, most: 320},
      panels: shown.map((run) => ({
        run,
        values: Array.from({length: run.numTokens}, (_, t) => [...run.vector(t)]).flat(),
        rows: {count: run.numTokens, names: run.pieces},
        columns: {count: run.width},
        title: shown.length > 1 ? run.label : "",
        label: `The position vectors of ${run.numTokens} tokens of ${run.label}; the arrow keys read their numbers`,
      })),
      read: ({run}, row, column) =>
        `${prefix(shown, run)}${run.name(row)}, column ${column}: ${number(run.vector(row)[column])}`,
    });
  },
});

/** The first of a layout's pairs, whose hands move within a text, and the slowest. */
function hands({pairs}) {
  const picked = [0, 1, 2, 3, 4, 5, 6]
    .map((k) => Math.round((k * pairs.length) / 16))
    .concat(pairs.length - 1);
  return [...new Set(picked)].map((i) => pairs[i]);
}

/** Positions in which a hand turns once, from two neighbouring ones; null where there are none. */
function turn(run, [s, c]) {
  const places = run.positionIds;
  const t = places.findIndex((p, i) => i + 1 < places.length && Math.abs(places[i + 1] - p) === 1);
  if (t < 0) return null;
  const a = run.vector(t),
    b = run.vector(t + 1);
  const angle = Math.atan2(a[c] * b[s] - a[s] * b[c], a[c] * b[c] + a[s] * b[s]);
  return Math.abs(angle) < 1e-7 ? null : (2 * Math.PI) / Math.abs(angle);
}

function clock(run, {i, columns: [s, c], period = turn(run, [s, c])}, token, x, y, size) {
  const tips = Array.from({length: run.numTokens}, (_, t) => [run.vector(t)[s], run.vector(t)[c]]);
  const longest = Math.max(...tips.map(([a, b]) => Math.hypot(a, b))) || 1;
  const radius = size / 2 - 8;
  const at = ([a, b]) => [(a / longest) * radius, (-b / longest) * radius];
  const [hx, hy] = at(tips[token]);
  return svg(
    "g",
    {transform: `translate(${x + size / 2} ${y + size / 2})`},
    svg("circle", {r: radius, fill: "none", stroke: "var(--rule)", "stroke-width": 1.5}),
    svg("path", {d: `M0 ${-radius}v5`, stroke: "var(--soft)"}),
    tips
      .slice(0, token)
      .map((tip) =>
        svg("circle", {cx: at(tip)[0], cy: at(tip)[1], r: 2, fill: "var(--position)", opacity: 0.35}),
      ),
    svg("path", {
      d: `M0 0L${hx} ${hy}`,
      stroke: "var(--position)",
      "stroke-width": 2.5,
      "stroke-linecap": "round",
    }),
    svg("circle", {cx: hx, cy: hy, r: 3.5, fill: "var(--position)"}),
    svg("text", {y: size / 2 + 8, "text-anchor": "middle", "font-weight": 600}, `pair ${i}`),
    svg(
      "text",
      {y: size / 2 + 22, "text-anchor": "middle", fill: "var(--soft)"},
      period === null
        ? ""
        : `turn: ${period < 1000 ? period.toFixed(1) : Math.round(period).toLocaleString("en")}`,
    ),
  );
}

function clocks(run, token, width, titled) {
  const all = hands(run),
    rows = Math.ceil(all.length / Math.max(2, Math.floor(width / 112)));
  const perRow = Math.ceil(all.length / rows),
    step = width / perRow;
  const size = Math.min(104, step - 8),
    top = titled ? 22 : 0,
    height = top + rows * (size + 34);
  return svg(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "font-size": 11,
      fill: "currentColor",
      "font-family": font,
      "aria-label": `Clock hands of ${run.label} at position ${place(run.positionIds[token])}: ${all.map(({i, columns: [s, c]}) => `pair ${i}: ${number(run.vector(token)[s])}, ${number(run.vector(token)[c])}`).join("; ")}`,
    },
    titled ? svg("text", {x: 0, y: 13, "font-size": 12, "font-weight": 600}, run.label) : null,
    all.map((pair, k) =>
      clock(
        run,
        pair,
        token,
        (k % perRow) * step + (step - size) / 2,
        top + Math.floor(k / perRow) * (size + 34),
        size,
      ),
    ),
  );
}

export const clockFigure = new Figure({
  id: "clocks",
  title: "Clock hands",
  keys: ["token"],
  wide: true,
  half: true,
  hint: "Each pair of columns (sine, cosine) is a hand that turns clockwise as the position grows. Fast hands tell neighbours apart, slow ones far places; “turn” is how many positions a hand needs to come round. Dots: the positions before.",
  draw: ({runs, token}, width) => {
    const shown = withVectors(runs);
    const [turning, without] = [true, false].map((has) =>
      shown.filter(({pairs}) => pairs.length > 0 === has),
    );
    return [
      ...turning.map((run) => clocks(run, Math.min(token, run.numTokens - 1), width, runs.length > 1)),
      ...missing([
        ...without.map(
          (run) =>
            `${prefix(runs, run)}without a formula a table has no pairs of sine and cosine, and so no hands`,
        ),
        ...reasons(runs),
      ]),
    ];
  },
});

/** What a sinusoidal table is, for those who have not met one; nothing where there is none. */
export function formula(runs) {
  if (!runs.some(({pairs}) => pairs.length > 0)) return [];
  return [
    html(
      "p",
      {},
      "Sinusoidal positions: each position has a vector of sines and cosines, which is added once, to the vector of the token that stands there. A pair of its columns is the sine and cosine of one angle (in the first paper position ÷ 10000^(2i/d), in pair i of d columns): a clock hand, whose tip is sine to the right and cosine up. Why pairs? k positions further on, each hand has turned by the same angle, wherever it started; so one matrix leads from every position to the one k further on, and a head can look for “the token before” everywhere in the same way. Many hands of different speeds tell all positions apart.",
    ),
  ];
}

export const hasHands = ({runs}) => withVectors(runs).some(({pairs}) => pairs.length > 0);
