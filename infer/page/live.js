// The form of the page that infer serve sends: what is typed and chosen goes to the server, and the
// report is drawn anew from its answer. The address holds all of it, so that it can be shared.
import {select} from "./choosers.js";
import {count, readTexts} from "./data.js";
import {html} from "./figure.js";

const kPause = 250; // milliseconds without a change, after which the server is asked
const kSlow = 1000; // after which its answer is said to be on its way
const kRetry = 1000; // after it had no time
const kMostLetters = 2000; // of a text
const kExample = ["the dog bit the man who fed it", "the man bit the dog who fed it"];
const kNothing = "nothing";
/** What the links under the form show; [what is said, address]. */
const examples = (model, other) => [
  [
    "the same words in two orders, with positions and without",
    {
      text: kExample,
      beside: model,
      "beside-positions": "none",
    },
  ],
  [
    "“only” in two places",
    {text: ["She told him that she loved only him.", "only She told him that she loved him."]},
  ],
  ["one word six times", {text: ["dog dog dog dog dog dog"]}],
  ["places counted from the end", {text: ["The dog ran after the cat."], edit: ["reverse"]}],
  ...(other ? [[`${model} beside ${other}`, {text: ["The dog ran after the cat."], beside: other}]] : []),
];
const kPositions = ["own", "none", "sinusoidal:paper", "sinusoidal:marian", "sinusoidal:t2t"].concat([
  "sinusoidal:fairseq",
  "sinusoidal:opennmt",
  "learned",
  "rotary",
  "alibi",
]);
const kEdits = [
  "reverse",
  "zero",
  "mean",
  "repeat",
  "scale=0.5",
  "shift=3",
  "swap=2,5",
  "shuffle=7",
  "mask=causal",
];

/** Of names with a value, or several, or none. */
const address = (values) =>
  `#${Object.entries(values)
    .flatMap(([name, value]) => [value ?? []].flat().map((each) => `${name}=${encodeURIComponent(each)}`))
    .join("&")}`;

/** Inputs with suggestions, one of them always empty. */
class List {
  constructor(name, change) {
    this.name = name;
    this.change = change;
    this.suggestions = html("datalist", {id: `suggestions-${name.replaceAll(" ", "-")}`});
    this.inputs = html("div", {class: "inputs"});
    this.element = html("fieldset", {}, html("legend", {}, name), this.suggestions, this.inputs);
  }

  suggest(values) {
    this.suggestions.replaceChildren(...values.map((value) => html("option", {value})));
  }

  get values() {
    return [...this.inputs.children].map(({value}) => value.trim()).filter((value) => value !== "");
  }
  set values(values) {
    this.inputs.replaceChildren();
    for (const value of values) this.#add(value);
    this.#add("");
  }

  #add(value) {
    const input = html("input", {
      list: this.suggestions.id,
      size: 11,
      maxlength: 40,
      placeholder: this.inputs.childElementCount > 0 ? undefined : "none",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      input: () => {
        const empty = [...this.inputs.children].filter((each) => each.value === "");
        const kept = input.value === "" ? input : empty.at(-1);
        for (const each of empty) if (each !== kept) each.remove();
        if (!kept) this.#add("");
        this.change();
      },
    });
    input.value = value;
    this.inputs.append(input);
    [...this.inputs.children].forEach((each, i) =>
      each.setAttribute("aria-label", `${this.name}, number ${i + 1}`),
    );
  }
}

const kNames = ["text", "model", "positions", "beside", "beside-positions", "edit", "cut", "head", "show"];

/** What the address says; `wrong` is a sentence about what it names in vain. */
function shared(models) {
  const hash = new URLSearchParams(location.hash.slice(1));
  const [layer, head] = (hash.get("head") ?? "").split(".").map(Number);
  const unknown = [...hash.keys()].find((name) => !kNames.includes(name));
  const missing = [hash.get("model"), hash.get("beside")].find((name) => name && !models.includes(name));
  const wrong = unknown
    ? `The address names “${unknown}”; it can name ${kNames.join(", ")}.`
    : missing && `The address names the model “${missing}”; this server has ${models.join(", ")}.`;
  return {
    wrong,
    texts: hash.has("text") ? hash.getAll("text").slice(0, 2) : kExample,
    model: hash.get("model"),
    positions: hash.get("positions") ?? "own",
    beside: hash.get("beside"),
    besidePositions: hash.get("beside-positions") ?? "own",
    edits: hash.getAll("edit"),
    cuts: hash.getAll("cut"),
    chosen: {
      ...(hash.has("show") ? {text: Number(hash.get("show")) - 1} : {}),
      ...(layer > 0 && head > 0 ? {layer, head} : {}),
    },
  };
}

/**
 * `draw(texts, chosen)` draws what the server answered; `chosen` are keys of the page's state. The result
 * has the form and examples, and `remember(state)`, which puts what is chosen in the report into the address.
 */
export function liveForm({models, key: asksKey}, draw) {
  const report = document.getElementById("report");
  let chosen = {}, // for the next answer
    shown = {}, // the page's state
    timer,
    controller;

  const change = () => {
    report.setAttribute("aria-busy", true);
    clearTimeout(timer);
    timer = setTimeout(ask, kPause);
  };
  const textInput = (i) =>
    html("textarea", {
      id: `text-${i + 1}`,
      rows: 1,
      maxlength: kMostLetters,
      spellcheck: "false",
      dir: "auto",
      placeholder: i > 0 ? "none" : undefined,
      input: () => {
        chosen = {text: inputs.slice(0, i).filter(({value}) => value.trim() !== "").length};
        change();
      },
    });
  const inputs = [textInput(0), textInput(1)];
  const labelled = (name, input) => html("div", {}, html("label", {for: input.id}, name), input);
  const names = models.map(({name}) => name);
  const model = html("div"),
    positions = html("div"),
    beside = html("div"),
    besidePositions = html("div");
  const edits = new List("Edits of the positions", change),
    cuts = new List("Cut residual connections", change);
  edits.suggest(kEdits);
  const key = html("input", {id: "key", type: "password", autocomplete: "off", input: change});
  const status = html("p", {role: "status"});
  const say = (what, wrong = false) => {
    status.classList.toggle("wrong", wrong);
    status.textContent = what;
  };

  const choose = (name, options, place, value) => {
    const index = Math.max(0, options.indexOf(value));
    place.replaceChildren(...select(name, options, index, changeModel));
  };
  const value = (place) => place.querySelector("select").value;
  const changeModel = () => {
    const compares = value(beside) !== kNothing;
    besidePositions.hidden = !compares;
    edits.element.hidden = cuts.element.hidden = compares;
    const {num_layers} = models.find(({name}) => name === value(model));
    const layers = Array.from({length: num_layers}, (_, l) => [`${l + 1}.attn`, `${l + 1}.mlp`, `${l + 1}`]);
    cuts.suggest(layers.flat());
    change();
  };

  function restore() {
    const from = shared(names);
    inputs.forEach((input, i) => (input.value = from.texts[i] ?? ""));
    choose("Model", names, model, from.model);
    choose("Positions", [...new Set([...kPositions, from.positions])], positions, from.positions);
    choose("Beside", [kNothing, ...names], beside, from.beside);
    choose(
      "Its positions",
      [...new Set([...kPositions, from.besidePositions])],
      besidePositions,
      from.besidePositions,
    );
    edits.values = from.edits;
    cuts.values = from.cuts;
    chosen = from.chosen;
    changeModel();
    clearTimeout(timer);
    if (!from.wrong) return ask();
    controller?.abort();
    report.removeAttribute("aria-busy");
    say(from.wrong, true);
  }

  const asked = () => ({
    texts: inputs.map(({value}) => value).filter((text) => text.trim() !== ""),
    model: value(model),
    positions: value(positions),
    ...(value(beside) === kNothing
      ? {edits: edits.values, cut_residuals: cuts.values}
      : {beside: value(beside), beside_positions: value(besidePositions)}),
  });

  function share() {
    const {texts, edits, cut_residuals: cuts, ...now} = asked();
    const {layer, head, text} = shown;
    const unlessOwn = (kind) => (kind === "own" ? undefined : kind);
    const hash = address({
      text: texts,
      model: now.model,
      positions: unlessOwn(now.positions),
      beside: now.beside,
      "beside-positions": unlessOwn(now.beside_positions),
      edit: edits,
      cut: cuts,
      head: layer && `${layer}.${head}`,
      show: text > 0 ? text + 1 : undefined,
    });
    if (hash === location.hash) return;
    try {
      history.replaceState(null, "", hash);
    } catch {
      // Browsers take so many a minute; the next change comes.
    }
  }

  async function ask() {
    controller?.abort();
    const {signal} = (controller = new AbortController());
    const what = asked();
    if (what.texts.length === 0) say("Type a sentence.");
    else if (asksKey && key.value === "") say("This server asks for a key.");
    else {
      report.setAttribute("aria-busy", true);
      const slow = setTimeout(() => signal.aborted || say("The model is running."), kSlow);
      try {
        await answer(what, signal);
      } catch (error) {
        if (signal.aborted) return;
        say(error instanceof TypeError ? "The server does not answer." : `${error.message}`, true);
      } finally {
        clearTimeout(slow);
      }
    }
    if (!signal.aborted) report.removeAttribute("aria-busy");
  }

  async function answer(what, signal) {
    const headers = {"Content-Type": "application/json"};
    if (asksKey) headers.Authorization = `Bearer ${key.value}`;
    const response = await fetch("observe", {method: "POST", headers, body: JSON.stringify(what), signal});
    const json = await response.json();
    if (response.status === 429 || response.status === 503) {
      say("The server is busy; it is asked again soon.");
      timer = setTimeout(ask, kRetry);
      return;
    }
    if (response.status === 401) throw new Error("The key is wrong.");
    if (!response.ok) throw new Error(json.error);
    const texts = readTexts(json.texts);
    if (signal.aborted) return;
    draw(texts, chosen);
    chosen = {};
    const sizes = texts.map(({runs: [{numTokens, observed}]}) =>
      observed.dropped > 0
        ? `the first ${numTokens} of ${numTokens + observed.dropped} tokens`
        : count(numTokens, "token"),
    );
    const runs = texts[0].runs;
    const cosines = (json.cosines ?? []).flatMap((cosine, i) =>
      cosine === null ? [] : `${cosine.toFixed(3)}${runs.length > 1 ? ` (${runs[i].label})` : ""}`,
    );
    const alike = cosines.length > 0 ? ` Cosine of the two texts' vectors: ${cosines.join(", ")}.` : "";
    say(`Shown: ${sizes.join(" and ")}.${alike}`);
  }

  addEventListener("hashchange", restore);
  const form = html(
    "form",
    {class: "live", "aria-label": "What is observed", submit: (event) => (event.preventDefault(), ask())},
    html("div", {class: "texts"}, labelled("Text", inputs[0]), labelled("Second text", inputs[1])),
    html(
      "div",
      {class: "choosers"},
      model,
      positions,
      beside,
      besidePositions,
      edits.element,
      cuts.element,
      asksKey ? labelled("Key", key) : null,
    ),
    status,
  );
  // What is jumped to stays visible below the form.
  new ResizeObserver(() =>
    document.documentElement.style.setProperty("--form", `${form.offsetHeight}px`),
  ).observe(form);
  const links = examples(names[0], names[1]).map(([what, hash], i) => [
    i > 0 ? " · " : "",
    html("a", {href: address(hash)}, what),
  ]);
  return {
    elements: [form, html("p", {class: "examples"}, "Examples: ", links)],
    restore,
    remember: (state) => {
      shown = {...state};
      share();
    },
  };
}
