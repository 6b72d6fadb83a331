// What is chosen, and with what: lists of numbers, heads by name, a slider for the token.
import {place} from "./data.js";
import {html} from "./figure.js";
import {mostPositional, positionalHeads} from "./overview.js";

/** A labelled list; `change` gets the index that was chosen. */
export function select(name, options, chosen, change) {
  const id = `choose-${name.replaceAll(" ", "-")}`;
  const element = html(
    "select",
    {id, change: () => change(element.selectedIndex)},
    options.map((text, i) => html("option", {selected: i === chosen}, text)),
  );
  return [html("label", {for: id}, name), element];
}

/** The same of the numbers 1 … most. */
export function selectNumber(name, most, chosen, change) {
  const numbers = Array.from({length: most}, (_, i) => `${i + 1}`);
  return select(name, numbers, chosen - 1, (i) => change(i + 1));
}

/** A box to tick; `change` gets whether it is ticked. */
export const tick = (name, checked, change) =>
  html(
    "label",
    {},
    html("input", {type: "checkbox", checked, change: ({target}) => change(target.checked)}),
    ` ${name}`,
  );

/** Replaces what is in a part; what had the focus there has it afterwards. */
export function keepFocus(part, children) {
  const focused = part.contains(document.activeElement);
  part.replaceChildren(...children);
  if (focused) part.querySelector("select, [aria-pressed=true]")?.focus();
}

const kMostNamed = 10;

/** Buttons for the heads of a run that look by place. */
export function named(run, {runs, layer: chosenLayer, head: chosenHead, words, set}) {
  if (run.heads.length === 0) return "";
  const clear = positionalHeads(run, {words});
  const found = clear.length > 0 ? clear : [mostPositional(run, words)];
  const title = runs.length > 1 ? `${run.label}, heads that look by place:` : "Heads that look by place:";
  const none = words
    ? "none gives the token before or after half of its weight, special tokens left out"
    : "none looks at the token before or after in 90 % of the rows";
  return html(
    "p",
    {},
    clear.length > 0 ? `${title} ` : `${title} ${none}; the most positional: `,
    found.slice(0, kMostNamed).map(({layer, head, neighbour, rows, weight}) =>
      html(
        "button",
        {
          type: "button",
          class: "named-head",
          "aria-pressed": layer === chosenLayer && head === chosenHead,
          click: () => set({layer, head}),
        },
        `${layer}.${head} ${neighbour} token, ${words ? "special tokens left out" : `${Math.round(100 * rows)} % of rows`}, mean weight ${weight.toFixed(2)}`,
      ),
    ),
    found.length > kMostNamed ? `and ${found.length - kMostNamed} more, framed below` : null,
  );
}

/** Which token or position the clocks and maps are about. */
export function slider({runs, token: chosen, set}) {
  const name = runs[0].pieces ? "Token" : "Position";
  const says = (t) => {
    const places = runs.flatMap(({positionIds}) => (t in positionIds ? [place(positionIds[t])] : []));
    return [runs[0].pieces?.[t], `position ${[...new Set(places)].join(" and ")}`].filter(Boolean).join(", ");
  };
  const output = html("output", {for: "choose-token"}, says(chosen));
  const input = html("input", {
    id: "choose-token",
    type: "range",
    min: 0,
    max: Math.max(...runs.map(({numTokens}) => numTokens)) - 1,
    value: chosen,
    "aria-valuetext": says(chosen),
    input: () => {
      const token = Number(input.value);
      output.textContent = says(token);
      input.setAttribute("aria-valuetext", says(token));
      set({token});
    },
  });
  return [html("label", {for: "choose-token"}, name), input, output];
}
