// Where the first block's attention scores come from: words, places, or one meeting the other.
import {stackedBars} from "./charts.js";
import {number} from "./data.js";
import {Figure, missing} from "./figure.js";

const parts = [
  {key: "position_position", name: "position · position", colour: "var(--position)"},
  {key: "position_token", name: "position · token", colour: "var(--third)"},
  {key: "token_position", name: "token · position", colour: "var(--fourth)"},
  {key: "token_token", name: "token · token", colour: "var(--token)"},
  {key: "rest", name: "biases and rest", colour: "var(--rest)"},
];

export const scores = new Figure({
  id: "scores",
  title: "What the first layer’s attention is made of",
  keys: ["text"],
  wide: true,
  hint: "A score is a query times a key, and each of them is a token’s part plus a position’s part (Ke et al. 2020): each product’s share of the scores’ variance, by head. Large blue: the head asks for places, whatever stands there; below 0: a term works against the others.",
  draw: ({runs}, width) => {
    const shown = runs.filter((run) => run.observed.first_layer_scores);
    const without = runs.filter((run) => !run.observed.first_layer_scores);
    const rows = shown.flatMap((run) => {
      const scores = run.observed.first_layer_scores;
      return [["all", scores], ...scores.heads.map((head) => [`${head.head}`, head])].flatMap(([x, shares]) =>
        parts.map(({key}) => ({x, part: key, value: shares[key], side: run.label})),
      );
    });
    return [
      ...(shown.length === 0
        ? []
        : [
            stackedBars({
              rows,
              parts,
              width,
              labels: shown.map(({label}) => label),
              xLabel: "head",
              yLabel: "share of variance",
              label: shown
                .map(
                  (run) =>
                    `Scores of ${run.label}, all heads: ${parts.map(({key, name}) => `${name} ${number(run.observed.first_layer_scores[key])}`).join(", ")}`,
                )
                .join(". "),
            }),
          ]),
      ...without
        .filter((run) => run.reason("scores"))
        .map((run) => missing(`${runs.length > 1 ? `${run.label}: ` : ""}${run.reason("scores")}`)),
    ];
  },
});
