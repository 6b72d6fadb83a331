// The page of tables of position vectors, one or two beside each other.
import {dot, line, plot, text} from "@observablehq/plot";
import {base, coloured, lines, sides} from "./charts.js";
import {slider, tick} from "./choosers.js";
import {number} from "./data.js";
import {Figure, contents, figures, half, html, part, prefix, section} from "./figure.js";
import {matrices} from "./matrix.js";
import {clockFigure, formula} from "./vectors.js";
import {numberTable, scrolling} from "./views.js";

const kMostCurves = 6; // of pairs, and of positions

const titleOf = (runs, {label}) => (runs.length > 1 ? label : "");

/** At most so many of 0 … count − 1, evenly spread, the first and the last among them. */
function spread(count, most = kMostCurves) {
  const shown = Math.min(count, most);
  return Array.from({length: shown}, (_, i) => Math.floor((i * (count - 1)) / Math.max(1, shown - 1)));
}

/** A matrix of each table as an image. */
function image({id, title, hint, name, values, columns, read}) {
  const cursor = {row: 0, column: 0};
  return new Figure({
    id,
    title,
    hint,
    wide: true,
    keys: ["own"],
    draw: ({runs, own}, width) =>
      matrices({
        own: own && runs.length > 1,
        width,
        type: "linear",
        name,
        cursor,
        label: title,
        panels: runs.map((run) => ({
          run,
          values: Float64Array.from(values(run).flat()),
          rows: {count: run.length, first: run.first_position},
          columns: columns(run),
          title: titleOf(runs, run),
          label: `${title} of ${run.label}: ${run.length} positions; the arrow keys read its numbers`,
        })),
        read: ({run}, row, column) => prefix(runs, run) + read(run, row, column, values(run)[row][column]),
      }),
  });
}

/** Several lines of each table, a chart for each table. */
function curves({id, title, hint, xLabel, series}) {
  return new Figure({
    id,
    title,
    hint,
    wide: true,
    beside: true,
    draw: ({runs}, width) => {
      const all = runs.map((run) => ({run, series: series(run)}));
      const ys = all.flatMap(({series}) => series.flatMap(({values}) => values.map(({y}) => y)));
      return all.map(({run, series}) =>
        lines({
          xLabel,
          series,
          width: half(runs, width),
          yLabel: `${prefix(runs, run)}value`,
          domain: [Math.min(0, ...ys), Math.max(0, ...ys)],
          label: `${title}, ${run.label}: ${series.map(({name}) => name).join(", ")}; the numbers are in the image`,
        }),
      );
    },
  });
}

const table = image({
  id: "image",
  title: "The numbers",
  hint: "A row is a position, a column a dimension. Vertical stripes: a dimension that changes slowly, or not at all.",
  name: "value",
  values: ({values}) => values,
  columns: ({width}) => ({count: width}),
  read: (run, row, column, value) => `${run.name(row)}, column ${column}: ${number(value)}`,
});

const overPositions = curves({
  id: "curves",
  title: "Columns over positions",
  hint: "The first columns of some pairs: the sines, where the table is sinusoidal. Fast ones tell neighbours apart, slow ones far places.",
  xLabel: "position",
  series: ({sines, values, positionIds}) =>
    coloured(spread(sines.length).map((i) => ({key: sines[i], label: `column ${sines[i]}`}))).map((each) => ({
      ...each,
      values: values.map((row, p) => ({x: positionIds[p], y: row[each.key]})),
    })),
});

const overPairs = curves({
  id: "rows",
  title: "Positions over pairs",
  hint: "The same columns by pair, for some positions. Where lines lie on each other, that pair does not tell these positions apart.",
  xLabel: "pair",
  series: (run) =>
    coloured(spread(run.length, 4).map((p) => ({key: p, label: run.name(p)}))).map((each) => ({
      ...each,
      values: run.sines.map((column, x) => ({x, y: run.values[each.key][column]})),
    })),
});

const distances = image({
  id: "distances",
  title: "Cosine distances",
  hint: "1 − the cosine of every two rows. Equal along the diagonals: only how far apart two positions are matters. Near 0 off the diagonal: two positions that point the same way.",
  name: "1 − cosine",
  values: ({distances}) => distances,
  columns: ({length, first_position: first}) => ({count: length, first}),
  read: (run, row, column, value) => `${run.name(row)} and ${run.name(column)}: ${number(value)}`,
});

/** The mean product of rows p and p + offset, of that of a row with itself. */
function similarity({values, width, length}) {
  const means = Array.from({length}, (_, offset) => {
    let sum = 0;
    for (let p = 0; p + offset < length; ++p) {
      for (let c = 0; c < width; ++c) sum += values[p][c] * values[p + offset][c];
    }
    return sum / (length - offset);
  });
  return means.map((mean) => mean / (means[0] || 1));
}

const offsets = new Figure({
  id: "offsets",
  title: "Likeness by offset",
  hint: "The mean dot product of two rows so far apart, beside a row’s with itself. Falling: the farther apart, the less alike; rising again: far is not always less alike.",
  wide: true,
  draw: ({runs}, width) => {
    const series = runs.map((run) => ({
      ...sides[run.side],
      name: run.label,
      values: similarity(run).map((y, x) => ({x, y})),
    }));
    const inWords = ({name, values}) =>
      `${name}: ${spread(values.length, 8)
        .map((x) => `${number(values[x].y)} at ${x}`)
        .join(", ")}`;
    return [
      lines({
        width,
        series,
        xLabel: "offset",
        yLabel: "dot product ÷ a row’s with itself",
        label: `Mean dot product by offset. ${series.map(inWords).join(". ")}`,
      }),
    ];
  },
});

/** The path of the positions through the plane of their first two principal axes. */
function path(run, {runs, token}, width) {
  const {points, share} = run.map;
  const at = points.map(([x, y], p) => ({x, y, p}));
  const size = Math.min(width, 460);
  const numbered = at.filter(({p}) => p % Math.ceil((23 * run.length) / size) === 0);
  const chosen = at.slice(token, token + 1);
  const percent = (of) => `${Math.round(100 * of)} %`;
  const most = Math.max(...points.flat().map(Math.abs)) * 1.08 || 1;
  return plot({
    ...base,
    width: size,
    height: size + 26,
    marginTop: 30,
    marginLeft: 4,
    marginRight: 4,
    marginBottom: 30,
    ariaLabel: `${run.label} in the plane of its first two principal axes, which hold ${percent(share[0] + share[1])} of its variance; ${chosen.map(({x, y, p}) => `${run.name(p)} is at ${number(x)}, ${number(y)}`)}`,
    x: {axis: null, domain: [-most, most]},
    y: {axis: null, domain: [-most, most]},
    marks: [
      line(at, {x: "x", y: "y", stroke: "var(--rule)", strokeWidth: 1.5}),
      dot(at, {x: "x", y: "y", r: 2.5, fill: "var(--position)"}),
      dot(chosen, {x: "x", y: "y", r: 6, stroke: "var(--second)", strokeWidth: 2}),
      text(numbered, {x: "x", y: "y", dy: -9, text: ({p}) => `${run.positionIds[p]}`}),
      text([`${prefix(runs, run)}axes of ${percent(share[0])} and ${percent(share[1])}`], {
        frameAnchor: "top-left",
        dy: -22,
        fill: "var(--soft)",
      }),
    ],
  });
}

const map = new Figure({
  id: "map",
  title: "Path through the plane",
  keys: ["token"],
  wide: true,
  half: true,
  beside: true,
  hint: "The rows in the plane of the two directions in which they differ most, whose shares of their variance stand above, numbered by position. A smooth path: neighbours are alike; a circle: it comes back to where it was.",
  draw: (view, width) => view.runs.map((run) => path(run, view, half(view.runs, width))),
});

/** What was measured, beside the same of random rows and of random tables that are as smooth; `all`: {label, numbers} of each table. */
function properties(all, caption) {
  const columns = [
    {key: "value", label: "value"},
    {key: "random", label: "random", meaning: "of random rows of the same mean length"},
    {key: "smooth", label: "smooth", meaning: "mean over random tables that are as smooth"},
  ];
  const groups = all.map(({label, numbers}) => ({
    name: label,
    columns,
    rows: new Map(Object.values(numbers).map((row) => [row.label, row])),
  }));
  return scrolling(caption, numberTable(groups, "property", {}, caption));
}

export function positionsPage({version, tables: runs, against}) {
  const parts = Object.fromEntries(
    ["title", "slider", "switches", "notes"].map((name) => [name, part(name)]),
  );
  const name = runs.map(({label}) => label).join(" and ");
  const facts = ({length, width, kind, layout, base}) =>
    [
      `${length} positions × ${width} columns`,
      layout ? `${kind} (${layout})` : kind,
      base ? `base ${base}` : null,
      `phasor ${version}`,
    ]
      .filter(Boolean)
      .join(" · ");
  return {
    figures: [table, overPositions, overPairs, distances, offsets, map, clockFigure],
    elements: contents([
      parts.title,
      section("The table", formula(runs), parts.switches, figures([table, overPositions, overPairs])),
      section("Position by position", parts.slider, figures([map, clockFigure], "halves")),
      section("How alike", figures([distances, offsets])),
      section(
        "Properties",
        properties(
          runs.map(({label, properties}) => ({label, numbers: properties})),
          "Of the whole table, beside random rows and random tables that are as smooth",
        ),
        against
          ? properties(
              [{label: name, numbers: against}],
              "Of both tables, beside random rows and random tables that are as smooth",
            )
          : null,
      ),
      html("footer", {}, parts.notes),
    ]),
    about: () => ({runs}),
    start: () => ({
      token: Math.min(1, Math.max(...runs.map(({length}) => length)) - 1),
      own: runs.length > 1,
    }),
    frame({own, set}) {
      if (runs.length > 1) {
        const change = (own) => set({own});
        parts.switches.replaceChildren(tick("Colours of each table up to its own largest", own, change));
      }
      document.title = `${name}: position vectors`;
      document.querySelector("main").dataset.runs = runs.length;
      parts.title.replaceChildren(
        html("p", {class: "eyebrow"}, "Position vectors by themselves"),
        html("h1", {}, name),
        html(
          "ul",
          {class: "facts"},
          runs.map((run) =>
            runs.length > 1
              ? html("li", {class: `side-${run.side}`}, html("strong", {}, run.label), `: ${facts(run)}`)
              : html("li", {}, facts(run)),
          ),
        ),
      );
      parts.notes.replaceChildren(
        html("p", {}, "All numbers are those that infer positions --json prints."),
        html("p", {}, "This page is one file and needs no network."),
      );
    },
    choosers(now) {
      if (!parts.slider.contains(document.activeElement)) parts.slider.replaceChildren(...slider(now));
    },
  };
}
