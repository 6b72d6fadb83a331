// The attention of all heads at a glance, and which of them look by place.
import {absent, drawable} from "./attention.js";
import {Figure, font, half, html, svg} from "./figure.js";
import {ramp} from "./matrix.js";

const kPositional = 0.9; // of the rows have their largest weight at the same neighbour
const kHalf = 0.5; // of the weight

/** Heads with their mean weight on the neighbour that they read most; `words`: special tokens left out. */
function neighbours(run, words) {
  return run.heads.map((head) => {
    const [previous, next] = words ? [head.text_previous, head.text_next] : [head.previous, head.next];
    return {...head, neighbour: previous > next ? "previous" : "next", weight: Math.max(previous, next)};
  });
}

/** The head that infer observe names, too. */
export const mostPositional = (run, words) =>
  neighbours(run, words).reduce((best, head) => (best?.weight >= head.weight ? best : head), undefined);

/**
 * Heads that look at the token before or after from nearly every row, the clearest first; `words`: those
 * that give it half of their weight, special tokens left out.
 */
export function positionalHeads(run, {words}) {
  return neighbours(run, words)
    .filter(({rows, weight}) => (words ? weight >= kHalf : rows >= kPositional))
    .sort((a, b) => (words ? 0 : b.rows - a.rows) || b.weight - a.weight);
}

/** One picture of all patterns, a square of `size` pixels each, scaled to its largest weight. */
function overviewImage(run, size, gap, {words, linear}) {
  const {num_layers: L, num_heads: H} = run.observed;
  const sharp = 2;
  const canvas = Object.assign(document.createElement("canvas"), {
    width: H * (size + gap) * sharp,
    height: L * (size + gap) * sharp,
  });
  const small = Object.assign(document.createElement("canvas"), {width: run.cells, height: run.cells});
  const context = canvas.getContext("2d"),
    one = small.getContext("2d");
  const colours = table(ramp());
  context.imageSmoothingEnabled = run.cells > size * sharp;
  context.imageSmoothingQuality = "high";
  for (let layer = 1; layer <= L; ++layer) {
    for (let head = 1; head <= H; ++head) {
      const pixels = one.createImageData(run.cells, run.cells);
      const pattern = run.pattern({layer, head, words}),
        most = pattern.reduce((a, b) => Math.max(a, b)) || 1;
      const four = new Uint32Array(pixels.data.buffer); // bytes, of a pixel
      pattern.forEach((weight, i) => {
        four[i] = colours[Math.round(255 * (linear ? weight / most : Math.sqrt(weight / most)))];
      });
      one.putImageData(pixels, 0, 0);
      context.drawImage(
        small,
        (head - 1) * (size + gap) * sharp,
        (layer - 1) * (size + gap) * sharp,
        size * sharp,
        size * sharp,
      );
    }
  }
  return canvas.toDataURL();
}

/** 256 colours of a ramp, each in the four bytes of a pixel. */
function table(ramp) {
  const stops = ramp.map((colour) => colour.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16)));
  const bytes = Array.from({length: 256}, (_, i) => {
    const at = (i / 255) * (stops.length - 1),
      k = Math.min(stops.length - 2, Math.floor(at));
    return [...stops[k].map((from, c) => Math.round(from + (at - k) * (stops[k + 1][c] - from))), 255];
  });
  return new Uint32Array(Uint8Array.from(bytes.flat()).buffer);
}

/** All heads of a run; each is a button that chooses it. */
function overview(run, width, view, titled) {
  const {num_layers: L, num_heads: H} = run.observed;
  const left = 24,
    top = titled ? 38 : 20,
    gap = 3;
  const size = Math.max(8, Math.min(84, Math.floor((width - left) / H) - gap));
  const x = (head) => left + (head - 1) * (size + gap),
    y = (layer) => top + (layer - 1) * (size + gap);
  const positional = positionalHeads(run, view);
  const every = size >= 16 ? 1 : 2;
  const picture = svg(
    "svg",
    {
      width: x(H + 1),
      height: y(L + 1),
      viewBox: `0 0 ${x(H + 1)} ${y(L + 1)}`,
      role: "img",
      "font-size": 11,
      fill: "currentColor",
      "font-family": font,
      "aria-label": `Attention of all ${L * H} heads of ${run.label}; heads that look by place: ${positional.map(({layer, head}) => `layer ${layer} head ${head}`).join(", ") || "none"}`,
    },
    titled ? svg("text", {x: left, y: 12, "font-size": 12, "font-weight": 600}, run.label) : null,
    svg("image", {
      href: overviewImage(run, size, gap, view),
      x: left,
      y: top,
      width: H * (size + gap),
      height: L * (size + gap),
    }),
    Array.from({length: H}, (_, h) =>
      h % every
        ? null
        : svg("text", {x: x(h + 1) + size / 2, y: top - 6, "text-anchor": "middle"}, `${h + 1}`),
    ),
    Array.from({length: L}, (_, l) =>
      svg("text", {x: left - 8, y: y(l + 1) + size / 2, dy: "0.35em", "text-anchor": "end"}, `${l + 1}`),
    ),
    positional.map(({layer, head}) =>
      svg("rect", {
        x: x(head) + 1,
        y: y(layer) + 1,
        width: size - 2,
        height: size - 2,
        fill: "none",
        stroke: "var(--token)",
        "stroke-width": 2,
      }),
    ),
  );
  const button = (layer, head) =>
    html("button", {
      type: "button",
      class: "pick",
      "data-layer": layer,
      "data-head": head,
      tabindex: -1,
      "aria-label": `Layer ${layer}, head ${head}`,
      title: `Layer ${layer}, head ${head}`,
      style: `left:${x(head) - gap / 2}px; top:${y(layer) - gap / 2}px; width:${size + gap}px; height:${size + gap}px`,
      click: () => view.set({layer, head}),
    });
  const buttons = Array.from({length: L * H}, (_, i) => button(1 + Math.floor(i / H), 1 + (i % H)));
  const moves = {ArrowUp: -H, ArrowDown: H, ArrowLeft: -1, ArrowRight: 1};
  return html(
    "div",
    {
      class: "overview",
      role: "group",
      "aria-label": `Choose a head of ${run.label}; arrow keys move`,
      style: `width:${x(H + 1)}px`,
      keydown: (event) => {
        const next = buttons.indexOf(event.target) + (moves[event.key] ?? NaN);
        if (!buttons[next]) return;
        event.preventDefault();
        buttons[next].focus();
        buttons[next].click();
      },
    },
    picture,
    buttons,
  );
}

export const overviewFigure = new Figure({
  id: "overview",
  title: "All heads",
  keys: ["words", "linear"],
  wide: true,
  beside: true,
  hint: "Layers from top to bottom, heads from left to right, each in colours up to its own largest weight; choose one to see it above (thick frame). Thin frames: heads that look at the token before or after in at least 90 % of the rows; where special tokens are left out, those that give it half of the weight.",
  draw: (view, width) => {
    const runs = drawable(view);
    if (runs.length === 0) return absent(view);
    return runs.map((run) => overview(run, half(runs, width), view, runs.length > 1));
  },
  refresh({layer, head}) {
    for (const button of this.body.querySelectorAll("button.pick")) {
      const chosen = Number(button.dataset.layer) === layer && Number(button.dataset.head) === head;
      button.setAttribute("aria-pressed", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
  },
});
