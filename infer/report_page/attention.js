// Attention: the map of one head, its profile by offset, and all heads at a glance.
import {lines, sides} from "./charts.js";
import {number} from "./data.js";
import {cssValue, Figure, font, html, missing, svg} from "./figure.js";
import {matrices, ramp} from "./matrix.js";

const heads = ({runs}) => Math.max(...runs.map((run) => run.observed.num_heads));
const drawable = ({runs}) => runs.filter((run) => run.cells > 0);

function absent({runs}) {
  const reasons = runs.map((run) => run.reason("attention")).filter(Boolean);
  return reasons.length > 0 ? [missing(...new Set(reasons))] : [];
}

/** Layers and heads that a run has. */
const has = (run, {layer, head}) => layer <= run.observed.num_layers && head <= run.observed.num_heads;

const cursor = {row: 0, column: 0};

const map = new Figure({
  id: "attention", title: "Who reads whom", keys: ["text", "layer", "head"], wide: true, half: true,
  hint: "A row is a token that reads, a column one that is read; a row’s weights sum to 1. A stripe along the diagonal: the head looks by place, not by meaning.",
  draw: (view, width) => {
    const runs = drawable(view).filter((run) => has(run, view));
    if (runs.length === 0) return absent(view);
    const {layer, head} = view;
    return matrices({
      width, type: "sqrt", name: "weight", cursor, label: `Attention of layer ${layer}, head ${head}`,
      panels: runs.map((run) => ({
        run, values: run.pattern(layer, head), cells: run.cells,
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
  return runs.map((run) => html("p", {},
    `${runs.length > 1 ? `${run.label}: this head` : "This head"} ${about(run.head(view))}.`));
}

/** Heads that look at a fixed offset in nearly every row. */
export function positionalHeads(run) {
  return run.layers.flatMap((layer) => (layer.attention?.heads ?? [])
    .filter((head) => (head.positional_offset ?? null) !== null)
    .map((head) => ({layer: layer.layer, head: head.head, offset: head.positional_offset, share: head.positional_share})))
    .sort((a, b) => b.share - a.share);
}

export const offsetName = (offset) => (offset === -1 ? "previous token" : offset === 1 ? "next token" : `${offset} tokens away`);

const kFarthest = 32; // offset that is drawn

/** Whole numbers along an axis from −most to most, as many as have room. */
function wholeTicks(most, width) {
  const step = [1, 2, 4, 8, 16].find((step) => ((2 * most) / step) * 32 <= width) ?? 32;
  return Array.from({length: 2 * Math.floor(most / step) + 1}, (_, i) => (i - Math.floor(most / step)) * step);
}

const profile = new Figure({
  id: "profile", title: "Where this head looks, by offset", keys: ["text", "layer", "head"], wide: true, half: true,
  hint: "The mean weight at each offset: −1 is the token before, 1 the one after. A high peak: the head looks by place.",
  draw: (view, width) => {
    const runs = view.runs.filter((run) => run.numTokens > 0 && run.head(view));
    if (runs.length === 0) return absent(view);
    const longest = Math.max(...runs.map(({numTokens}) => numTokens)) - 1, most = Math.min(longest, kFarthest);
    return [lines({
      width, xLabel: most < longest ? `offset (the middle of −${longest} … ${longest})` : "offset", yLabel: "mean weight",
      ticks: wholeTicks(most, width - 60), height: 320,
      label: `Mean attention weight by offset, layer ${view.layer}, head ${view.head}. ${runs.map((run) => `${run.label}: ` + [-2, -1, 0, 1, 2].map((offset) => `${number(run.head(view).by_offset[offset + run.numTokens - 1] ?? 0)} at ${offset}`).join(", ")).join(". ")}`,
      series: runs.map((run) => ({
        name: run.label, colour: sides[run.side].colour, dash: sides[run.side].dash, fill: sides[run.side].dot,
        symbol: most > 24 ? null : undefined,
        values: run.head(view).by_offset.map((y, i) => ({x: i - run.numTokens + 1, y})).filter(({x}) => Math.abs(x) <= most),
      })),
    })];
  },
});

/** One picture of all patterns, a square of `size` pixels each, scaled to its largest weight. */
function overviewImage(run, size, gap) {
  const {num_layers: L, num_heads: H} = run.observed;
  const sharp = 2;
  const canvas = Object.assign(document.createElement("canvas"), {width: H * (size + gap) * sharp, height: L * (size + gap) * sharp});
  const small = Object.assign(document.createElement("canvas"), {width: run.cells, height: run.cells});
  const context = canvas.getContext("2d"), one = small.getContext("2d");
  const colours = table(ramp());
  context.imageSmoothingEnabled = run.cells > size * sharp;
  context.imageSmoothingQuality = "high";
  for (let layer = 1; layer <= L; ++layer) {
    for (let head = 1; head <= H; ++head) {
      const pixels = one.createImageData(run.cells, run.cells);
      const pattern = run.pattern(layer, head), most = pattern.reduce((a, b) => Math.max(a, b));
      pattern.forEach((weight, i) => pixels.data.set(colours[Math.round(255 * Math.sqrt(weight / most))], 4 * i));
      one.putImageData(pixels, 0, 0);
      context.drawImage(small, (head - 1) * (size + gap) * sharp, (layer - 1) * (size + gap) * sharp, size * sharp, size * sharp);
    }
  }
  return canvas.toDataURL();
}

/** 256 colours of a ramp, as [r, g, b, 255]. */
function table(ramp) {
  const stops = ramp.map((colour) => colour.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16)));
  return Array.from({length: 256}, (_, i) => {
    const at = (i / 255) * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(at));
    return [...stops[k].map((from, c) => Math.round(from + (at - k) * (stops[k + 1][c] - from))), 255];
  });
}

/** All heads of a run; each is a button that chooses it. */
function overview(run, width, view, titled) {
  const {num_layers: L, num_heads: H} = run.observed;
  const left = 24, top = titled ? 38 : 20, gap = 3;
  const size = Math.max(8, Math.min(84, Math.floor((width - left) / H) - gap));
  const x = (head) => left + (head - 1) * (size + gap), y = (layer) => top + (layer - 1) * (size + gap);
  const positional = positionalHeads(run);
  const every = size >= 16 ? 1 : 2;
  const picture = svg("svg", {width: x(H + 1), height: y(L + 1), viewBox: `0 0 ${x(H + 1)} ${y(L + 1)}`, role: "img", "font-size": 11,
                              fill: "currentColor", "font-family": font,
                              "aria-label": `Attention of all ${L * H} heads of ${run.label}; heads that look by place: ${positional.map(({layer, head}) => `layer ${layer} head ${head}`).join(", ") || "none"}`},
    titled ? svg("text", {x: left, y: 12, "font-size": 12, "font-weight": 600}, run.label) : null,
    svg("image", {href: overviewImage(run, size, gap), x: left, y: top, width: H * (size + gap), height: L * (size + gap)}),
    Array.from({length: H}, (_, h) => h % every ? null : svg("text", {x: x(h + 1) + size / 2, y: top - 6, "text-anchor": "middle"}, `${h + 1}`)),
    Array.from({length: L}, (_, l) => svg("text", {x: left - 8, y: y(l + 1) + size / 2, dy: "0.35em", "text-anchor": "end"}, `${l + 1}`)),
    positional.map(({layer, head}) => svg("rect", {x: x(head) - 1, y: y(layer) - 1, width: size + 2, height: size + 2, fill: "none",
                                                   stroke: "var(--token)", "stroke-width": 2})));
  const button = (layer, head) => html("button", {
    type: "button", class: "pick", "data-layer": layer, "data-head": head, tabindex: -1,
    "aria-label": `Layer ${layer}, head ${head}`, title: `Layer ${layer}, head ${head}`,
    style: `left:${x(head) - gap / 2}px; top:${y(layer) - gap / 2}px; width:${size + gap}px; height:${size + gap}px`,
    click: () => view.set({layer, head}),
  });
  const buttons = Array.from({length: L * H}, (_, i) => button(1 + Math.floor(i / H), 1 + (i % H)));
  const moves = {ArrowUp: -H, ArrowDown: H, ArrowLeft: -1, ArrowRight: 1};
  return html("div", {class: "overview", role: "group", "aria-label": `Choose a head of ${run.label}; arrow keys move`, style: `width:${x(H + 1)}px`,
    keydown: (event) => {
      const next = buttons.indexOf(event.target) + (moves[event.key] ?? NaN);
      if (!buttons[next]) return;
      event.preventDefault();
      buttons[next].focus();
      buttons[next].click();
    }}, picture, buttons);
}

const all = new Figure({
  id: "heads", title: "All heads", keys: ["text"], wide: true,
  hint: "Layers from top to bottom, heads from left to right, each in colours up to its own largest weight; choose one to see it above. Framed: heads that look at the token before or after in at least 90 % of the rows.",
  draw: (view, width) => {
    const runs = drawable(view);
    if (runs.length === 0) return absent(view);
    const room = runs.length > 1 && width > 560 ? (width - 24) / 2 : width;
    return runs.map((run) => overview(run, room, view, runs.length > 1));
  },
  refresh({layer, head}) {
    for (const button of this.body.querySelectorAll("button.pick")) {
      const chosen = Number(button.dataset.layer) === layer && Number(button.dataset.head) === head;
      button.setAttribute("aria-pressed", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
  },
});

export const attentionFigures = [map, profile, all];
export const numHeads = heads;
