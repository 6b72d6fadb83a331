// What the page opens with: how far positions turn every token's state, and in a sentence what that comes to.
import {cut} from "./charts.js";
import {Figure, html, prefix} from "./figure.js";
import {matrices} from "./matrix.js";

const kSame = 0.1; // degrees; what float32 leaves of 0 after some layers
const kFarWidth = 190; // of the panel of two texts

const sum = (values) => values.reduce((sum, value) => sum + value, 0);

/** "48°", "0.3°". */
const degrees = (angle) => `${angle.toFixed(angle >= 0.05 && angle < 1 ? 1 : 0)}°`;

const layersOf = ({observed}) => Array.from({length: observed.num_layers + 1}, (_, l) => l);

/** The only two texts of a page of one run, where they are different tokens: [Run, Run]; else null. */
function pairOf({texts}) {
  const pair = texts.map(({runs}) => runs);
  if (pair.length !== 2 || pair.some((runs) => runs.length > 1 || runs[0].turns.length === 0)) return null;
  const [[a], [b]] = pair;
  return `${a.observed.ids}` === `${b.observed.ids}` ? null : [a, b];
}

/** How far the same tokens are apart in two texts, by layer: [degrees with positions, without]. */
const apart = ([a, {apart}]) => [apart.subarray(0, layersOf(a).length), apart.subarray(layersOf(a).length)];

/** What positions do to the same tokens in two orders, in words. */
function pairSentence(pair) {
  const [there, without] = apart(pair);
  const same = (angles) => Math.max(...angles) < kSame;
  const last = degrees(there.at(-1));
  if (!same(without)) {
    return `Even without positions this model tells the two orders of these words apart, by ${degrees(without.at(-1))} in the last layer, as one does whose tokens read only those before them; with positions by ${last}.`;
  }
  if (same(there)) return "Both texts are the same to this model: nothing tells it the order of the words.";
  const steps = [...there.slice(1)].map((angle, l) => angle - there[l]);
  const most = 1 + steps.indexOf(Math.max(...steps));
  const begin = "Without positions both texts are the same to this model. With them, ";
  if (!(steps[most - 1] > kSame))
    return `${begin}the same words are ${degrees(there[0])} apart in the embedding, and ${last} in the last layer.`;
  const who = `layer ${most} does most to tell who stands before whom`;
  return most === there.length - 1
    ? `${begin}${who}: after it, the last, the same words are ${last} apart.`
    : `${begin}${who}: after it the same words are ${degrees(there[most])} apart, and ${last} after the last layer.`;
}

/** What the page says first, [{sentence, views}], and all else that was concluded; of two runs what is alike and what not. */
export function said(now) {
  const pair = pairOf(now);
  const {conclusions} = now;
  if (pair?.[1].apart.length > 0)
    return {leads: [{sentence: pairSentence(pair), views: []}], rest: conclusions};
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
  hint: "The angle between the state and the same state in a run without positions, in the embedding and after each layer. 0: positions change nothing; 90: a right angle.",
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
      cells: {height: 24, most: 220, text: (angle) => angle.toFixed(0), step: 10},
      panels: [...shown.map((run) => grid(run, titleOf(run), room)), ...far],
      read: ({run, values}, row, column) =>
        `${pair ? `${quoted(run)}: ` : prefix(shown, run)}positions turn ${run.name(column)} by ${degrees(values[row * run.numTokens + column])} in ${row ? `layer ${row}` : "the embedding"}`,
    });
    const note = "Same words apart: the mean angle between a token’s states in the two texts, with positions and without.";
    return far.length > 0 ? [...charts, html("p", {class: "hint"}, note)] : charts;
  },
});
