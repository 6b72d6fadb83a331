// The page of texts: what every layer does with their positions, in one run or two.
import {attentionFigures, headSentences} from "./attention.js";
import {keepFocus, named, select, selectNumber, slider, tick} from "./choosers.js";
import {count} from "./data.js";
import {contents, explained, figures, html, part, section} from "./figure.js";
import {pairOf, said, turnsFigure} from "./opening.js";
import {mostPositional, overviewFigure} from "./overview.js";
import {strips} from "./tokens.js";
import {clockFigure, distanceFigure, formula, hasHands, rowsFigure} from "./vectors.js";
import {tables, viewFigure} from "./views.js";

/** A sentence, with links to the views that show it: to their figures, or to their numbers. */
function conclusion({sentence, views: names}, views, attributes = {}) {
  const links = names.map((name, i) => {
    const {title, rows} = views.find((view) => view.name === name);
    const section = rows === "heads" ? "section-attention" : "section-all-numbers";
    const to = document.getElementById(name) ? name : section;
    return [i > 0 ? "; " : "", html("a", {href: `#${to}`}, title)];
  });
  const said = sentence.replaceAll(" %", "\u00a0%");
  return html("p", attributes, links.length > 0 ? [said.slice(0, -1), " (", links, ")."] : said);
}

export function textsPage(report) {
  const names =
    "title leads textChooser about tokens layerChooser headChooser switches named sentences formula slider tables notes";
  const parts = Object.fromEntries(names.split(" ").map((name) => [name, part(name)]));
  const drawn = report.views.filter(({chart}) => chart !== "none");
  const viewFigures = drawn.map(viewFigure);
  const kinds = drawn.map(({rows, row_name}) => ({layers: "layer", heads: "heads"})[rows] ?? row_name);
  const of = (kind) => viewFigures.filter((_, i) => kinds[i] === kind);
  const by = (kind) => figures(of(kind));
  clockFigure.element.insertBefore(parts.slider, clockFigure.body);

  const ofVectors = [clockFigure, rowsFigure, distanceFigure];
  const all = [turnsFigure, ...viewFigures, ...attentionFigures, overviewFigure, ...ofVectors];
  const choosers = (...some) => (some.length > 0 ? html("div", {class: "choosers"}, some) : "");
  const only = all.find(({id}) => id === report.figure); // all that a notebook's cell shows
  const has = (key) => only.keys.includes(key);
  const shown = only && all.filter((each) => each === only || (has("links") && each.keys.includes("links")));
  const cell = () => [
    only === turnsFigure ? parts.leads : "",
    choosers(...(has("head") ? [parts.layerChooser, parts.headChooser] : []), ...(has("words") ? [parts.switches] : [])),
    figures(shown, "halves"),
    only === turnsFigure && pairOf(report) ? "" : parts.textChooser,
  ];

  return {
    figures: only ? shown : all,
    elements: only ? cell() : contents([
      html("header", {}, parts.title, parts.leads, figures([turnsFigure]), parts.textChooser, parts.about),
      section("Position vectors", parts.formula, figures(ofVectors, "halves")),
      section("Tokens", parts.tokens),
      section(
        "Layer by layer",
        html(
          "p",
          {class: "hint"},
          "Layer 0 is the sum of the embeddings; layer 1 and all others are the states after that layer.",
        ),
        by("layer"),
      ),
      section(
        "Attention",
        choosers(parts.layerChooser, parts.headChooser, parts.switches),
        parts.named,
        parts.sentences,
        figures([...attentionFigures, overviewFigure, ...of("heads")], "halves"),
      ),
      ...[...new Set(kinds)]
        .filter((kind) => kind !== "layer" && kind !== "heads")
        .map((kind) => section(`By ${kind}`, by(kind))),
      section("All numbers", parts.tables),
      html("footer", {}, parts.notes),
    ]),

    about: ({text}) => ({...report, ...report.texts[text]}),

    /** A text's own first choices: the head of --head or that its sentences name, its second token. */
    start({runs}) {
      const {layer, head} = report.opens_on ?? mostPositional(runs[0]) ?? {layer: 1, head: 1};
      return {layer, head, token: Math.min(1, Math.max(0, runs[0].numTokens - 1))};
    },

    /** What belongs to a text: its title, tokens, tables. */
    frame(now) {
      const {runs} = now;
      const name = pairOf(now)?.[1].observed.pair ? "The same words in two orders" : nameOf(runs[0]);
      const models = new Set(runs.map(({observed}) => observed.name));
      document.title = `${name} in ${[...models].join(" and ")}: how position travels`;
      document.querySelector("main").dataset.runs = runs.length;
      const {leads, rest} = said(now);
      parts.title.replaceChildren(
        html(
          "p",
          {class: "eyebrow"},
          `What do positions do in the model${models.size > 1 ? "s" : ""} ${[...models].join(" and ")}?`,
        ),
        html(
          "h1",
          {class: name.length > 160 ? "long" : name.startsWith("“") ? "quoted" : undefined, dir: "auto"},
          name,
        ),
      );
      parts.leads.replaceChildren(
        ...leads.map((each) => conclusion(only ? {...each, views: []} : each, report.views, {class: "lead"})),
      );
      parts.textChooser.replaceChildren(textChooser(now) ?? "");
      parts.about.replaceChildren(
        ...rest.map((each) => conclusion(each, report.views)),
        html(
          "ul",
          {class: "facts"},
          runs.map((run) => {
            const several = runs.length > 1;
            return html("li", {class: several && `side-${run.side}`}, facts(run, several, report.version));
          }),
        ),
      );
      parts.tokens.replaceChildren(
        ...(runs[0].numTokens > 0 ? strips(runs.filter(({observed}) => !observed.untrained)) : []),
      );
      parts.switches.replaceChildren(
        runs.some(({hasSpecial}) => hasSpecial)
          ? tick("Leave special tokens out", now.words, (words) => now.set({words}))
          : "",
        tick("Linear colours", now.linear, (linear) => now.set({linear})),
        tick("Lines instead of the map", now.links, (links) => now.set({links})),
      );
      parts.formula.replaceChildren(...formula(runs));
      parts.tables.replaceChildren(...tables(now));
      parts.notes.replaceChildren(...notes(now));
    },

    /** What the attention part and the clocks are about. */
    choosers(now) {
      const {runs, layer, head, set} = now;
      const most = (size) => Math.max(...runs.map(({observed}) => observed[size]));
      keepFocus(parts.layerChooser, selectNumber("Layer", most("num_layers"), layer, (layer) => set({layer})));
      keepFocus(parts.headChooser, selectNumber("Head", most("num_heads"), head, (head) => set({head})));
      keepFocus(parts.named, runs.map((run) => named(run, now)));
      parts.sentences.replaceChildren(...headSentences(now));
      if (!parts.slider.contains(document.activeElement)) {
        parts.slider.replaceChildren(...(hasHands(now) ? slider(now) : []));
      }
    },
  };
}

function nameOf({observed, pieces}) {
  if (observed.file) return `${count(observed.texts, "text")} of ${observed.file.split("/").at(-1)}`;
  const text = observed.text ?? pieces.join(" ");
  return text === "" ? "An empty text" : `“${text}”`;
}

function facts(run, titled, version) {
  const {tokens = run.numTokens, model, name, untrained, positions, precision} = run.observed;
  const {num_layers, num_heads, d_model, edits = [], cut_residuals: cuts = []} = run.observed;
  return [
    titled ? [html("strong", {}, run.label), ": "] : null,
    untrained
      ? count(untrained, "untrained model")
      : ["model ", explained(name, name === model ? "" : model)],
    [
      "",
      `positions ${positions}`,
      ...edits.map((edit) => `edit ${edit}`),
      ...cuts.map((cut) => `without the residual of ${cut}`),
      count(tokens, "token"),
      `${count(num_layers, "layer")} of ${count(num_heads, "head")}`,
      `${d_model} wide`,
      precision,
      `phasor ${version}`,
    ].join(" · "),
  ];
}

function textChooser({texts, text: chosen, set}) {
  if (texts.length < 2) return null;
  const names = texts.map(({runs: [run]}, i) => `${i + 1}. ${[...nameOf(run)].slice(0, 80).join("")}`);
  return html(
    "div",
    {class: "choosers"},
    html(
      "div",
      {},
      select("Text", names, chosen, (text) => {
        set({text});
        document.getElementById("choose-Text").focus();
      }),
    ),
  );
}

function notes({runs, live}) {
  const sentences = [];
  const many = runs.find((run) => run.cells > 0 && run.cells < run.numTokens);
  sentences.push(
    `Attention maps keep 8 bits of each weight (less than 0.004 off)${many ? `, and show the means of blocks: ${many.numTokens} tokens in ${many.cells} rows` : ""}; all other numbers are those that infer observe --json prints.`,
  );
  if (runs[0].observed.texts > 1) {
    sentences.push("The line through a point is its 95 % interval over texts (bootstrap).");
  }
  const {untrained} = runs.at(-1).observed;
  if (untrained) {
    sentences.push(
      `Untrained: the mean over ${untrained} models of the same architecture with random weights; the line through a point reaches from the least to the most.`,
    );
  }
  sentences.push(
    "phasor’s docs/start-here.md explains the words of this page, and docs/how-position-travels.md what its figures measure.",
  );
  if (!live) sentences.push("This page is one file and needs no network.");
  return sentences.map((sentence) => html("p", {}, sentence));
}
