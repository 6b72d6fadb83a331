// The tokens of a text with their positions, and what a masked one may stand for.
import {place} from "./data.js";
import {html} from "./figure.js";

const same = (runs, key) =>
  runs.every((run) => JSON.stringify(run.observed[key]) === JSON.stringify(runs[0].observed[key]));

/** The tokens, once where both runs have the same; then with both positions where those differ. */
export function strips(runs) {
  const groups = same(runs, "ids") && same(runs, "pieces") ? [runs] : runs.map((run) => [run]);
  const titled = groups.length > 1;
  const twice = groups[0].length > 1 && !same(runs, "position_ids");
  return groups
    .flatMap((group) => [
      titled ? html("p", {class: `side-${group[0].side}`}, html("strong", {}, group[0].label)) : null,
      strip(twice ? group : group.slice(0, 1)),
      ...group.flatMap((run) => masks(run, group.length > 1)),
    ])
    .concat(
      html(
        "p",
        {class: "hint"},
        `Under each token stands its position${twice ? `: ${runs[0].label}, then ${runs[1].label}` : ""}. Dashed: special tokens that the tokenizer puts round every text.`,
      ),
    )
    .filter((element) => element !== null);
}

function strip(runs) {
  const [{observed, pieces, label}] = runs;
  const text = new Set(observed.text_tokens);
  return html(
    "ol",
    {class: "strip", tabindex: 0, "aria-label": `Tokens of ${label} and their positions`},
    pieces.map((piece, t) =>
      html(
        "li",
        {class: text.has(t) ? undefined : "special", title: `token ${t}, id ${observed.ids[t]}`},
        html("span", {class: "piece", dir: "auto"}, piece),
        runs.map((run) =>
          html(
            "span",
            {class: runs.length > 1 ? `place place-${run.side}` : "place"},
            place(run.observed.position_ids[t]),
          ),
        ),
      ),
    ),
  );
}

/** The likeliest fillers of every masked token. */
function masks(run, titled) {
  return (run.observed.masks ?? []).map(({token, fillers}) =>
    html(
      "p",
      {},
      `${titled ? `${run.label}: ` : ""}${run.pieces[token]} at position ${place(run.observed.position_ids[token])}: `,
      fillers.map(({piece, probability}) => `${piece} ${Math.round(100 * probability)} %`).join(", "),
    ),
  );
}
