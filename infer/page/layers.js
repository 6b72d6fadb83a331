// What happens to position from layer to layer.
import {lines, sides, stackedBars} from "./charts.js";
import {number} from "./data.js";
import {Figure, missing} from "./figure.js";

/** Why runs have no answer, with their names where they differ in that; null where nobody asked. */
function reasons(runs, measure, titled) {
  const silent = runs.filter((run) => run.reason(measure));
  const all = silent.map((run) => run.reason(measure));
  if (all.length === 0) return null;
  const same = new Set(all).size === 1 && (all.length > 1 || !titled);
  return missing(...(same ? [all[0]] : silent.map((run, i) => `${run.label}: ${all[i]}`)));
}

const any = (run, get) => run.layers.some((layer) => (get(layer) ?? null) !== null);

/** Charts of those runs that have an answer, and reasons for those that have none. */
function answered(runs, measure, get, draw) {
  const with_ = runs.filter((run) => any(run, get)),
    without = runs.filter((run) => !any(run, get));
  return [
    with_.length > 0 ? draw(with_) : null,
    without.length > 0 ? reasons(without, measure, runs.length > 1) : null,
  ].filter((element) => element !== null);
}

/** A number for each layer, both runs in one chart. */
function byLayer({id, title, hint, measure, yLabel, get}) {
  return new Figure({
    id,
    title,
    hint,
    keys: ["text"],
    draw: ({runs}, width) =>
      answered(runs, measure, get, (runs) =>
        lines({
          width,
          yLabel,
          label: `${title} by layer. ${runs.map((run) => `${run.label}: ` + run.layers.map((layer) => `${number(get(layer))} at ${layer.layer}`).join(", ")).join(". ")}`,
          series: runs.map((run) => ({
            name: run.label,
            colour: sides[run.side].colour,
            dash: sides[run.side].dash,
            fill: sides[run.side].dot,
            values: run.layers.map((layer) => ({x: layer.layer, y: get(layer) ?? null})),
          })),
        }),
      ),
  });
}

/** Shares of the states’ variance: position, `group` and the rest. */
function splitFigure({id, title, hint, group, get}) {
  const parts = [
    {key: "position", name: "position", colour: "var(--position)"},
    {key: group, name: group, colour: "var(--token)"},
    {key: "rest", name: "rest", colour: "var(--rest)"},
  ];
  const inWords = (shares) => parts.map(({key, name}) => `${name} ${number(shares[key])}`).join(", ");
  return new Figure({
    id,
    title,
    hint,
    wide: true,
    keys: ["text"],
    draw: ({runs}, width) =>
      answered(runs, id, get, (runs) =>
        stackedBars({
          width,
          parts,
          xLabel: "layer",
          yLabel: "share of variance",
          labels: runs.map(({label}) => label),
          label: `Shares of variance by layer. ${runs
            .map(
              (run) =>
                `${run.label}: ` +
                run.layers
                  .filter(get)
                  .map((layer) => `layer ${layer.layer} ${inWords(get(layer))}`)
                  .join("; "),
            )
            .join(". ")}`,
          rows: runs.flatMap((run) =>
            run.layers
              .filter(get)
              .flatMap((layer) =>
                parts.map(({key}) => ({x: layer.layer, part: key, value: get(layer)[key], side: run.label})),
              ),
          ),
        }),
      ),
  });
}

const split = splitFigure({
  id: "split",
  title: "What makes states differ",
  group: "token",
  get: (layer) => layer.split,
  hint: "The text is run in every rotation, so that each token visits each place: the shares of the states’ variance that place alone explains, token alone, and only both together. Large blue: where a token stands decides its state.",
});

const corpusSplit = splitFigure({
  id: "corpus_split",
  title: "What makes states of many texts differ",
  group: "text",
  get: (layer) => layer.corpus_split,
  hint: "States of many texts of one length: the shares of their variance that place alone explains, the text alone, and only both together. Large blue: place decides, whatever the text.",
});

export const reorderings = [
  {key: "swap", name: "two swapped", colour: "var(--position)", symbol: "circle"},
  {key: "ngrams", name: "pairs shuffled", colour: "var(--token)", symbol: "triangle"},
  {key: "reverse", name: "reversed", colour: "var(--third)", symbol: "square"},
  {key: "shuffle", name: "shuffled", colour: "var(--fourth)", symbol: "diamond"},
];

const moved = new Figure({
  id: "moved",
  title: "Moved by the intervention",
  keys: ["text"],
  hint: "How far the states after it are from those before, beside the states’ length. Large: the intervention reaches this layer; falling: the layers recover from it.",
  draw: ({moved}, width) =>
    !moved
      ? []
      : [
          lines({
            width,
            yLabel: "relative change",
            label: `States moved, by layer: ${moved.map(({layer, relative_error: error}) => `${number(error)} at ${layer}`).join(", ")}`,
            series: [
              {
                name: "moved",
                colour: "var(--first)",
                values: moved.map(({layer, relative_error: error}) => ({x: layer, y: error})),
              },
            ],
          }),
        ],
});

const order = new Figure({
  id: "order",
  title: "Order sensitivity",
  keys: ["text"],
  wide: true,
  hint: "How far the tokens’ states move when the same tokens stand in another order, beside the states’ length. Large: order matters. Zero at every layer: the model cannot tell one order from another.",
  draw: ({runs}, width) => {
    const values = runs.flatMap((run) =>
      run.layers.flatMap((layer) => Object.values(layer.order_sensitivity ?? {})),
    );
    const room = runs.length > 1 && width > 560 ? (width - 24) / 2 : width;
    return runs.flatMap((run) =>
      answered(
        [run],
        "order",
        (layer) => layer.order_sensitivity,
        ([run]) =>
          lines({
            width: room,
            yLabel: runs.length > 1 ? `${run.label}: relative change` : "relative change",
            label: `Order sensitivity by layer, ${run.label}; the numbers are in the table by layer`,
            domain: [0, Math.max(...values)],
            series: reorderings
              .filter(({key}) => any(run, (layer) => layer.order_sensitivity?.[key]))
              .map((each) => ({
                ...each,
                values: run.layers.map((layer) => ({
                  x: layer.layer,
                  y: layer.order_sensitivity?.[each.key] ?? null,
                })),
              })),
          }),
      ),
    );
  },
});

export const layerFigures = [
  split,
  corpusSplit,
  byLayer({
    id: "direct",
    title: "Direct path",
    measure: "direct",
    yLabel: "length beside the state’s",
    get: (layer) => layer.direct_position?.norm,
    hint: "The position vector as residual connections alone carry it on, every LayerNorm frozen. Large: the vector added at the bottom is still there.",
  }),
  byLayer({
    id: "effect",
    title: "Effect of positions",
    measure: "effect",
    yLabel: "1 − cosine",
    get: (layer) => layer.position_effect,
    hint: "The mean of 1 − cosine between each state and the same state in a run without positions. Large: positions turned it.",
  }),
  byLayer({
    id: "reach",
    title: "Reach of attention",
    measure: "attention",
    yLabel: "tokens",
    get: (layer) => layer.attention?.distance,
    hint: "The mean distance between a token and what it reads, over all heads. Large: the layer looks far; small: at neighbours.",
  }),
  byLayer({
    id: "entropy",
    title: "Spread of attention",
    measure: "attention",
    yLabel: "nats",
    get: (layer) => layer.attention?.entropy,
    hint: "The mean entropy of what a token reads, over all heads. Large: spread evenly; near 0: one token.",
  }),
  byLayer({
    id: "rank",
    title: "Stable rank of the positions’ means",
    measure: "split",
    yLabel: "directions",
    get: (layer) => layer.position_matrix?.stable_rank,
    hint: "How many directions the means of each place fill. Small: positions lie on a simple curve, however wide the model.",
  }),
  byLayer({
    id: "probe",
    title: "Reading the position back",
    measure: "probe",
    yLabel: "held-out R²",
    get: (layer) => layer.probe?.held_out.r2,
    hint: "How well a linear map tells the position from the state, on texts it was not fitted to. 1: exactly; 0 or less: no better than always saying the mean.",
  }),
  moved,
  order,
];
