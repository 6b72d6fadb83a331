// Charts and tables of the views. What a view is called, measured in and drawn as, infer says in the
// page's data; none is known here by name.
import {coloured, dots, lines, sides, stackedBars} from "./charts.js";
import {estimate, number} from "./data.js";
import {Figure, explained, half, html, missing, prefix} from "./figure.js";

/** Whether several rows of a view can be of the same layer and head; they have names of their own. */
const hasTerms = ({rows, row_name}) => rows === "heads" && row_name !== "layer";

const nameOfRow = (view) => {
  const ofHead = ({layer, head}) => `${layer}.${head}`;
  if (hasTerms(view)) return (row) => `${ofHead(row)} ${row[view.row_name]}`;
  return {layers: ({layer}) => layer, heads: ofHead}[view.rows] ?? ((row) => row[view.row_name]);
};

const kind = ({rows, row_name}) => ({layers: "layer", heads: "layer.head"})[rows] ?? row_name;

/** Why runs have no answer, with their names where they differ in that; nothing where nobody asked. */
function reasons(view, runs) {
  const silent = runs.filter((run) => run.rows(view).length === 0 && run.missing[view.name]);
  const whys = [...new Set(silent.map((run) => run.missing[view.name]))];
  const all = whys.length === 1 && silent.length === runs.length;
  return all ? whys : silent.map((run) => `${run.label}: ${run.missing[view.name]}`);
}

/** What a chart shows, in words. */
function inWords(view, parts, runs) {
  const nameOf = nameOfRow(view);
  const cell = (row, {key, name}) =>
    (parts.length > 1 ? `${name} ` : "") + estimate(row[key], row[`${key}_low`], row[`${key}_high`]);
  const cells = (row) => parts.map((part) => cell(row, part)).join(", ");
  return `${view.title}. ${runs
    .map((run) => {
      const rows = run.rows(view).map((row) => `${kind(view)} ${nameOf(row)}: ${cells(row)}`);
      return `${run.label}: ${rows.join("; ")}`;
    })
    .join(". ")}`;
}

/** Stacked bars, a panel for each run. */
function bars(view, parts, runs, width) {
  const name = nameOfRow(view);
  return [
    stackedBars({
      width,
      parts,
      xLabel: kind(view),
      yLabel: view.unit,
      labels: runs.map(({label}) => label),
      label: inWords(view, parts, runs),
      rows: runs.flatMap((run) =>
        run
          .rows(view)
          .flatMap((row) =>
            parts.map(({key}) => ({x: name(row), part: key, value: row[key], side: run.label})),
          ),
      ),
    }),
  ];
}

/** All runs in one chart of lines, or a chart for each of them where there are several lines, or dots. */
function curves(view, parts, runs, width) {
  const name = nameOfRow(view);
  const values = (run, {key}) =>
    run
      .rows(view)
      .map((row) => ({x: name(row), y: row[key], low: row[`${key}_low`], high: row[`${key}_high`]}));
  const draw = view.chart === "dots" ? dots : lines;
  const chart = (runs, series, yLabel, rest) =>
    draw({xLabel: kind(view), yLabel, series, label: inWords(view, parts, runs), ...rest});
  if (parts.length === 1 && draw === lines) {
    const series = runs.map((run) => ({...sides[run.side], name: run.label, values: values(run, parts[0])}));
    return [chart(runs, series, view.unit, {width})];
  }
  const all = runs
    .flatMap((run) => parts.flatMap((part) => values(run, part)))
    .flatMap(({y, low, high}) => [y ?? 0, low ?? 0, high ?? 0]);
  return runs.map((run) =>
    chart(
      [run],
      parts.map((part) => ({...part, values: values(run, part)})),
      prefix(runs, run) + view.unit,
      {width: half(runs, width), domain: [Math.min(0, ...all), Math.max(0, ...all)]},
    ),
  );
}

/** The columns that are numbers, ascending. */
const numbersOf = (row) =>
  Object.keys(row)
    .filter((key) => /^-?\d+$/.test(key))
    .map(Number)
    .sort((a, b) => a - b);

/** The rows of the chosen head as curves over their columns, a chart for each run. */
function headCurves(view, runs, width, {layer, head}) {
  const ofHead = (run) => run.rows(view).filter((row) => row.layer === layer && row.head === head);
  const shown = runs.filter((run) => ofHead(run).length > 0);
  if (shown.length === 0) {
    const layers = [...new Set(runs.flatMap((run) => run.rows(view).map((row) => row.layer)))];
    return missing([
      `layer ${layer}, head ${head} has none; ${layers.length > 1 ? "layers" : "only layer"} ${layers.join(", ")} ${layers.length > 1 ? "have" : "has"}`,
    ]);
  }
  const names = [...new Set(shown.flatMap((run) => ofHead(run).map((row) => row[view.row_name])))];
  const looks = coloured(names.map((name) => ({key: name, label: name})));
  const numbers = shown.flatMap((run) =>
    ofHead(run).flatMap((row) => numbersOf(row).map((x) => row[x] ?? 0)),
  );
  const inWords = (run) =>
    ofHead(run).map((row) => {
      const near = numbersOf(row).filter((x) => Math.abs(x) <= 2);
      return `${row[view.row_name]}: ${near.map((x) => `${number(row[x])} at ${x}`).join(", ")}`;
    });
  return shown.map((run) =>
    lines({
      width: half(shown, width),
      series: ofHead(run).map((row) => ({
        ...looks.find(({key}) => key === row[view.row_name]),
        values: numbersOf(row).map((x) => ({x, y: row[x]})),
      })),
      xLabel: "offset",
      yLabel: `${prefix(shown, run)}${view.unit}, head ${layer}.${head}`,
      domain: [Math.min(0, ...numbers), Math.max(0, ...numbers)],
      label: `${view.title}, layer ${layer}, head ${head}. ${run.label}: ${inWords(run).join("; ")}`,
    }),
  );
}

export function viewFigure(view) {
  const parts = coloured(view.columns.slice(0, view.series));
  const ofHead = view.chart === "curves";
  const undrawn = ofHead ? [] : view.columns.slice(view.series).map(({label}) => label);
  const beside = ofHead || view.chart === "dots" || (view.chart === "lines" && parts.length > 1);
  return new Figure({
    id: view.name,
    title: view.title,
    hint: view.hint + (undrawn.length > 0 ? ` Not drawn, see All numbers: ${undrawn.join(", ")}.` : ""),
    keys: ofHead ? ["layer", "head"] : [],
    wide: beside || parts.length > 1,
    beside,
    draw: (now, width) => {
      const shown = now.runs.filter((run) => run.rows(view).length > 0);
      const draw = view.chart === "stacked" ? bars : curves;
      const charts = () => (ofHead ? headCurves(view, shown, width, now) : draw(view, parts, shown, width));
      const noteOf = (run) => run.observed.notes[view.name];
      const noted = shown.filter(noteOf);
      const alike = noted.every((run) => noteOf(run) === noteOf(noted[0]));
      const notes = (alike ? noted.slice(0, 1) : noted).map(
        (run) => (alike ? "" : prefix(noted, run)) + noteOf(run),
      );
      return [
        ...(shown.length > 0 ? charts() : []),
        ...notes.map((note) => html("p", {class: "hint"}, note)),
        ...missing(reasons(view, now.runs)),
      ];
    },
  });
}

/** A view's columns; those of one that names none are the text's own, in the order of their numbers. */
function columnsOf(view, run) {
  if (view.columns.length > 0) return view.columns;
  const names = ["layer", "head", view.row_name];
  const keys = new Set(run.rows(view).flatMap(Object.keys));
  return [...keys]
    .filter((key) => !names.includes(key))
    .sort((a, b) => a - b)
    .map((key) => ({key, label: key.replace("-", "−")}));
}

/** Groups of columns over the same rows: {name, title, columns, rows: a Map from a row's name}. */
export function numberTable(groups, corner, attributes, caption) {
  const names = [...new Set(groups.flatMap(({rows}) => [...rows.keys()]))];
  const meanings = new Map(groups.flatMap(({rows}) => [...rows].map(([name, row]) => [name, row.meaning])));
  const headings = html(
    "tr",
    {},
    html("td", {}),
    groups.map(({name, title, columns}) =>
      html("th", {colspan: columns.length, scope: "colgroup", title}, name),
    ),
  );
  return html(
    "table",
    {class: "numbers", ...attributes},
    caption ? html("caption", {}, caption) : null,
    html(
      "thead",
      {},
      groups.length > 1 ? headings : null,
      html(
        "tr",
        {},
        html("th", {scope: "col"}, corner),
        groups.map(({columns}) =>
          columns.map(({label, meaning}) => html("th", {scope: "col"}, explained(label, meaning))),
        ),
      ),
    ),
    html(
      "tbody",
      {},
      names.map((name) =>
        html(
          "tr",
          {},
          html("th", {scope: "row"}, name === 0 ? "embed" : explained(name, meanings.get(name))),
          groups.map(({columns, rows}) =>
            columns.map(({key}) => html("td", {}, number(rows.get(name)?.[key]))),
          ),
        ),
      ),
    ),
  );
}

/** A table that scrolls sideways where it has no room. */
export const scrolling = (label, table) =>
  html("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label}, table);

/** A table for each view: those of layers beside each other, the others folded. */
function tablesOf(run, views, several) {
  const answered = views.filter((view) => run.rows(view).length > 0);
  const table = (view) => {
    const rows = new Map(run.rows(view).map((row) => [nameOfRow(view)(row), row]));
    const groups = [{columns: columnsOf(view, run), rows}];
    const attributes = {"data-run": run.side, "data-view": view.name};
    const caption = explained(view.title, view.hint);
    const label = several ? `${run.label}, ${view.title}` : view.title;
    return scrolling(label, numberTable(groups, kind(view), attributes, caption));
  };
  const isOfLayers = ({rows}) => rows === "layers";
  return [
    several ? html("h3", {}, run.label) : null,
    html("div", {class: "tables-beside"}, answered.filter(isOfLayers).map(table)),
    ...answered
      .filter((view) => !isOfLayers(view))
      .map((view) => html("details", {}, html("summary", {}, view.title), table(view))),
  ];
}

/** All numbers of all views, and why those that nothing draws have none. */
export function tables({views, runs}) {
  const undrawn = views
    .filter(({chart}) => chart === "none")
    .flatMap((view) => reasons(view, runs).map((why) => `${view.title}: ${why}`));
  return runs
    .flatMap((run) => tablesOf(run, views, runs.length > 1))
    .concat(missing(undrawn))
    .filter((element) => element !== null);
}
