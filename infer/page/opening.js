// What the page opens with: how far positions turn every token's state, and in a sentence what that comes to.
import {cut} from "./charts.js";
import {Figure, html, prefix} from "./figure.js";
import {matrices} from "./matrix.js";

const kFarWidth = 190; // of the panel of two texts

const sum = (values) => values.reduce((sum, value) => sum + value, 0);

/** "48°", "0.3°". */
const degrees = (angle) => `${angle.toFixed(angle >= 0.05 && angle < 1 ? 1 : 0)}°`;

const layersOf = ({observed}) => Array.from({length: observed.num_layers + 1}, (_, l) => l);

/** The two texts of a page of one run, where they are different tokens: [Run, Run]; else null. */
export function pairOf({texts}) {
  const pair = texts.slice(0, 2).map(({runs}) => runs);
  if (pair.length < 2 || pair.some((runs) => runs.length > 1 || runs[0].turns.length === 0)) return null;
  if (texts.length > 2 && !pair[1][0].observed.pair) return null;
  const [[a], [b]] = pair;
  return `${a.observed.ids}` === `${b.observed.ids}` ? null : [a, b];
}

/** How far the same tokens are apart in two texts, by layer: [degrees with positions, without]. */
const apart = ([a, {apart}]) => [apart.subarray(0, layersOf(a).length), apart.subarray(layersOf(a).length)];

/** What the page says first, [{sentence, views}], and all else that was concluded; of two runs what is alike and what not. */
export function said(now) {
  const sentence = pairOf(now)?.[1].observed.pair;
  const {conclusions} = now;
  if (sentence) return {leads: [{sentence, views: []}], rest: conclusions};
  const first = now.runs.length > 1 ? 2 : 1;
  return {leads: conclusions.slice(0, first), rest: conclusions.slice(first)};
}

/** A run's [L + 1, T] degrees as a panel of matrices. */
function grid(run, title, width) {
  const {num_layers: L} = run.observed;
  const inWords = layersOf(run).map((l) => {
    const turns = run.turns.subarray(l * run.numTokens, (l + 1) * run.numTokens);
    return `layer ${l}: ${degrees(sum(turns) / turns.length)}`;
  });
  return {
    run,
    values: Float64Array.from(run.turns),
    rows: {count: L + 1, names: layersOf(run).map((l) => (l ? `${l}` : "embed"))},
    columns: {count: run.numTokens, names: run.pieces},
    title: cut(title, width - 70),
    label: `Degrees by which positions turn the states of ${title}, means: ${inWords.join(", ")}; the arrow keys read each`,
    width,
  };
}

/** How far the same tokens are apart in two texts, with and without positions, as a panel. */
function farPanel(pair) {
  const [there, without] = apart(pair).map((angles) => [...angles]);
  const inWords = there.map((angle, l) => `layer ${l}: ${degrees(angle)}, ${degrees(without[l])}`);
  return {
    ...grid(pair[0], "Same words apart", kFarWidth + 70),
    values: Float64Array.from(there.flatMap((angle, l) => [angle, without[l]])),
    columns: {count: 2, names: ["with", "without"]},
    label: `Degrees between the states of the same words in both texts, with positions and without: ${inWords.join("; ")}`,
    width: kFarWidth,
    still: true,
  };
}

const cursor = {row: 0, column: 0};
const quoted = ({observed, pieces}) => `“${observed.text ?? pieces.join(" ")}”`;

export const turnsFigure = new Figure({
  id: "turns",
  title: "How far positions turn each token’s state, in degrees",
  hint: "The angle between a token’s vector (its state, in the embedding and after each layer) and the same in a run without positions, in which every place has the same vector. 0: positions change nothing; 90: a right angle.",
  wide: true,
  draw: (now, width) => {
    const pair = pairOf(now);
    const far = pair?.[1].apart.length > 0 ? [farPanel(pair)] : [];
    const shown = pair ?? now.runs.filter(({turns}) => turns.length > 0);
    if (shown.length === 0) return [];
    const beside = width > 560 && shown.length > 1;
    const farBeside = width > 900 ? far.length : 0;
    const room = beside ? (width - 24 - farBeside * (kFarWidth + 24)) / 2 : width;
    const titleOf = (run) => (pair ? quoted(run) : shown.length > 1 ? run.label : "");
    const charts = matrices({
      width,
      type: "linear",
      name: "degrees",
      cursor,
      label: "Degrees by which positions turn the states",
      cells: {height: width > 560 ? 24 : 17, most: 220, text: (angle) => angle.toFixed(0), step: 10},
      panels: [...shown.map((run) => grid(run, titleOf(run), room)), ...far],
      read: ({run, values}, row, column) =>
        `${pair ? `${quoted(run)}: ` : prefix(shown, run)}positions turn ${run.name(column)} by ${degrees(values[row * run.numTokens + column])} in ${row ? `layer ${row}` : "the embedding"}`,
    });
    const note = "Same words apart: the angle between a token’s states in the two texts, a mean over all tokens; most have not moved.";
    return far.length > 0 ? [...charts, html("p", {class: "hint"}, note)] : charts;
  },
});
