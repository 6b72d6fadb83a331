// The position vectors by themselves: how far they are from each other, and their clock hands.
import {number, place} from "./data.js";
import {Figure, font, missing, svg} from "./figure.js";
import {matrices} from "./matrix.js";

const kMostCells = 128;
const withVectors = (runs) => runs.filter((run) => run.width > 0);

function reasons(runs) {
  const without = runs.filter((run) => run.width === 0 && run.numTokens > 0);
  return without.map((run) =>
    missing(
      `${runs.length > 1 ? `${run.label}: ` : ""}no position vector is added to this model’s embeddings (positions: ${run.observed.positions})`,
    ),
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
  return {values, cells, tokens};
}

const distance = new Figure({
  id: "distances",
  title: "Distances between position vectors",
  keys: ["text"],
  wide: true,
  half: true,
  hint: "The length of the difference of the vectors that two tokens were given. Equal along the diagonals: only how far apart two places are matters. Near 0: the model can hardly tell the two places apart.",
  draw: ({runs}, width) => {
    const shown = withVectors(runs);
    const name = (run, t) => `${run.pieces[t]} (${place(run.observed.position_ids[t])})`;
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
            read: ({run, values, cells, tokens}, row, column) =>
              `${shown.length > 1 ? `${run.label}: ` : ""}${name(run, tokens[row])} and ${name(run, tokens[column])} are ${number(values[row * cells + column])} apart`,
          })),
      ...reasons(runs),
    ];
  },
});

/** The two columns of each of a layout’s pairs (sine, cosine); null for a table without pairs. */
function pairs(run) {
  const layout = run.observed.positions.match(/^sinusoidal \((\w+)\)/)?.[1];
  if (!layout) return null;
  const half = Math.floor(run.width / 2);
  // The first pairs, whose hands move within a text, and the slowest.
  const chosen = [...new Set([0, 1, 2, 3, 4, 5, 6].map((k) => Math.round((k * half) / 16)).concat(half - 1))];
  return chosen.map((i) => ({i, columns: layout === "paper" ? [2 * i, 2 * i + 1] : [i, i + half]}));
}

/** Tokens in which a hand turns once, from two neighbouring places; null where there are none. */
function turn(run, [s, c]) {
  const places = run.observed.position_ids;
  const t = places.findIndex((p, i) => i + 1 < places.length && Math.abs(places[i + 1] - p) === 1);
  if (t < 0) return null;
  const a = run.vector(t),
    b = run.vector(t + 1);
  const angle = Math.atan2(a[c] * b[s] - a[s] * b[c], a[c] * b[c] + a[s] * b[s]);
  return Math.abs(angle) < 1e-7 ? null : (2 * Math.PI) / Math.abs(angle);
}

function clock(run, {i, columns: [s, c]}, token, x, y, size) {
  const tips = Array.from({length: run.numTokens}, (_, t) => [run.vector(t)[s], run.vector(t)[c]]);
  const longest = Math.max(...tips.map(([a, b]) => Math.hypot(a, b))) || 1;
  const radius = size / 2 - 8;
  const at = ([a, b]) => [(a / longest) * radius, (-b / longest) * radius];
  const [hx, hy] = at(tips[token]);
  const period = turn(run, [s, c]);
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
  const all = pairs(run),
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
      "aria-label": `Clock hands of ${run.label} at position ${place(run.observed.position_ids[token])}: ${all.map(({i, columns: [s, c]}) => `pair ${i}: ${number(run.vector(token)[s])}, ${number(run.vector(token)[c])}`).join("; ")}`,
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

const hands = new Figure({
  id: "clocks",
  title: "Clock hands",
  keys: ["text", "token"],
  wide: true,
  half: true,
  hint: "Each pair of columns (sine, cosine) is a hand that turns clockwise as the position grows. Fast hands tell neighbours apart, slow ones far places; “turn” is how many positions a hand needs to come round. Dots: the tokens before.",
  draw: ({runs, token}, width) => {
    const shown = withVectors(runs);
    const without = shown.filter((run) => !pairs(run));
    return [
      ...shown
        .filter(pairs)
        .map((run) => clocks(run, Math.min(token, run.numTokens - 1), width, runs.length > 1)),
      ...without.map((run) =>
        missing(
          `${runs.length > 1 ? `${run.label}: ` : ""}a learned table has no pairs of sine and cosine, and so no hands; its distances are above`,
        ),
      ),
      ...reasons(runs),
    ];
  },
});

export const vectorFigures = [distance, hands];
export const hasHands = ({runs}) => withVectors(runs).some(pairs);
