"""Makes the figures of docs/finding.md, and prints its tables, from the CSV files in this folder.

    python3 docs/data/reproduce.py [--check]                          # writes docs/figures/finding-*.svg, or compares them
    python3 docs/data/reproduce.py measure NAME FOLDER FILE [SEEDS]   # rows of reading.csv, by infer in PATH

reading.csv has the views `reading`, `reading_angle` and `offset_patterns` of a model, and of random weights: `initial`,
uniform after Glorot, and `own`, of the trained matrices' sizes; three seeds each where no other number is given, with the least
and the most in the place of an interval. reading-depth.csv is described in reading-depth.md.
"""

import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WITH_INTERVALS = ["left", "random", "left_less_random", "later"]
COLUMNS = [name + end for name in WITH_INTERVALS for end in ("", "_low", "_high")]
COLUMNS += ["shuffled", "sufficient", "needed", "present"]
PATTERNS = ["offset_patterns", "mirrored", "patterns"]
FIELDS = ["model", "weights", "measure", "texts", "layer", *COLUMNS, *PATTERNS]
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#444444"]
SMALL = ["sinusoidal", "learned", "alibi", "relative", "rotary"]
REAL = ["MiniLM-L6", "e5", "BERT"]
ADDED = ["sinusoidal", "learned", "MiniLM-L6", "e5", "BERT"]
KINDS = ["once", "every", "third", "pre", "learned", "normed"]


def rows_of(name):
    with open(os.path.join(HERE, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def measure(name, folder, texts, seeds="3"):
    writer = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
    command = ["infer", "observe", "-q", "--json", "-m", folder, "-i", texts, "--only"]
    for weights, options in (
        ("trained", ["reading,reading_angle,offset_patterns"]),
        ("initial", ["reading_angle", "--baseline", "random:" + seeds]),
        ("own", ["reading_angle", "--baseline", "own:" + seeds]),
    ):
        done = subprocess.run(command + options, check=True, capture_output=True, text=True)
        observed = json.loads(done.stdout)
        writer.writerows(rows_of_run(observed.get("runs", [observed])[-1], name, weights))
        sys.stdout.flush()


def rows_of_run(run, name, weights):
    views = run["views"]
    for view in ("reading", "reading_angle"):
        by = "loss" if "nats" in run["notes"].get(view, "") else "cosine" if view == "reading" else "angle"
        about = {"model": name, "weights": weights, "measure": by, "texts": run["texts"]}
        for l, row in enumerate(views.get(view, [])):
            patterns = views["offset_patterns"][l - 1] if l and view == "reading" and "offset_patterns" in views else {}
            numbers = {k: {**row, **patterns}.get(k) for k in COLUMNS + PATTERNS}
            cells = {k: "" if x is None else f"{x:.4g}" for k, x in numbers.items()}
            yield {**about, "layer": l, **cells}


def curves():
    """By model, weights and measure: the layers' rows, numbers or None."""
    found = {}
    for row in rows_of("reading.csv"):
        numbers = {k: float(row[k]) if row[k] else None for k in COLUMNS + PATTERNS}
        if row["shuffled"]:
            numbers["left_less_shuffled"] = numbers["left"] - numbers["shuffled"]
        found.setdefault((row["model"], row["weights"], row["measure"]), []).append(numbers)
    return found


class Plot:
    """Axes at (x, y), in pixels; a logarithmic one where its scale begins above 0."""

    def __init__(self, x, y, width, height, xs, ys):
        self.box, self.scales, self.parts = (x, y, width, height), (xs, ys), []
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="#999"/>')

    def at(self, x, y):
        left, top, width, height = self.box
        shares = []
        for value, (low, high) in zip((x, y), self.scales):
            if low > 0:
                value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
            shares.append((value - low) / (high - low))
        return left + shares[0] * width, top + (1 - shares[1]) * height

    def text(self, x, y, what, anchor="start", color="#222"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{what}</text>')

    def ticks(self, xs, ys, x_title, y_title):
        left, top, width, height = self.box
        for x in xs:
            self.text(self.at(x, 1)[0], top + height + 16, f"{x:g}", "middle")
        for y in ys:
            self.text(left - 6, self.at(self.scales[0][1], y)[1] + 4, f"{y:g}", "end")
        self.text(left + width / 2, top + height + 36, x_title, "middle")
        self.text(left - 30, top - 12, y_title)

    def line(self, points, kind, dashed=False):
        places = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline points="{places}" fill="none" stroke="{COLORS[kind]}" stroke-width="2"{dash}/>')
        for x, y in points if not dashed else ():
            self.mark(*self.at(x, y), kind)

    def mark(self, x, y, kind):
        """A dot, square, diamond, triangle, cross or ring."""
        shape = ["M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0", "M-3-3h6v6h-6z", "M0-4.5l4.5 4.5l-4.5 4.5l-4.5-4.5z"]
        shape += ["M0-4l4 7h-8z", "M-4-1h3v-3h2v3h3v2h-3v3h-2v-3h-3z", "M-4-2.5h8v5h-8z"]
        self.parts.append(f'<path transform="translate({x:.1f} {y:.1f})" d="{shape[kind]}" fill="{COLORS[kind]}"/>')

    def key(self, names, x, y):
        for i, (name, kind, dashed) in enumerate(names):
            at = y + 18 * i
            dash = ' stroke-dasharray="5 4"' if dashed else ""
            self.parts.append(f'<path d="M{x} {at - 4}h22" stroke="{COLORS[kind]}" stroke-width="2"{dash}/>')
            if not dashed:
                self.mark(x + 11, at - 4, kind)
            self.text(x + 28, at, name)


def page(width, height, plots):
    style = "font-family:sans-serif;font-size:13px"
    body = "\n".join(part for plot in plots for part in plot.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" style="{style}">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def add_curves(plot, found, names, point, weights, key):
    """Lines of the trained models, by the angle; dashed of those with random weights."""
    for i, name in enumerate(names):
        for kind in weights:
            rows = found.get((name, kind, "angle"), [])
            points = [point(l, row) for l, row in enumerate(rows)]
            if rows:
                plot.line([place for place in points if place], i, kind != "trained")
                key.append((name + ("" if kind == "trained" else ", random weights"), i, kind != "trained"))


def reading_figure(found):
    plots = []
    for side, (names, layers) in enumerate([(SMALL, 6), (REAL, 12)]):
        plot = Plot(60 + 440 * side, 40, 370, 260, (0, layers), (0, 1))
        plot.ticks(range(0, layers + 1, layers // 6), [0, 0.5, 1], "attentions that have positions", "left, by the angle")
        key = []
        add_curves(plot, found, names, lambda l, row: (l, row["left"]), ["trained", "own"][: 1 + side], key)
        plot.key(key, 885 if side else 290, 62)
        plots.append(plot)
    return page(1120, 350, plots)


def presence_figure(found):
    plot = Plot(70, 40, 420, 330, (0.0008, 0.7), (0.02, 1.2))
    plot.ticks([0.001, 0.01, 0.1, 0.5], [0.03, 0.1, 0.3, 1], "present: the vectors' share of the stream", "left, by the angle")
    key = []
    add_curves(
        plot, found, ADDED, lambda _, row: (row["present"], row["left"]) if row["present"] > 0.0008 else None, ["trained"], key
    )
    plot.key(key, 510, 60)
    return page(720, 420, [plot])


def depths():
    """By kind: the mean reading depths of its models at the end of training."""
    found = {}
    for row in rows_of("reading-depth.csv"):
        if row["tokens"] == "16M" and row["texts"] == "sequences" and row["depth"]:
            found.setdefault(row["kind"], []).append(row)
    return found


def depth_figure():
    plot = Plot(90, 40, 480, 240, (0, 6), (-0.5, len(KINDS) - 0.5))
    plot.ticks(range(7), [], "mean reading depth, of 6 layers", "")
    for i, kind in enumerate(reversed(KINDS)):
        values = [float(row["depth"]) for row in depths()[kind]]
        plot.text(82, plot.at(0, i)[1] + 4, kind, "end")
        for value in values:
            plot.mark(*plot.at(value, i), KINDS.index(kind))
        x, y = plot.at(statistics.mean(values), i)
        plot.parts.append(f'<path d="M{x:.1f} {y - 11:.1f}v22" stroke="#222" stroke-width="2"/>')
    return page(600, 330, [plot])


def short(x, digits=2):
    """Without a 0 before the point, and without a sign before 0."""
    if x is None:
        return ""
    text = f"{x:.{digits}f}"
    return re.sub(r"^(-?)0\.", r"\1.", text.removeprefix("-") if float(text) == 0 else text).replace("-", "−")


def several(rows, column):
    numbers = [short(rows[l].get(column)) for l in (1, 2, 3)]
    return ", ".join(numbers) if all(numbers) else "–"


def reading_tables(found):
    """By the angle, of all models and their random weights; and by what each model is for."""
    head = ["model", "left after 1, 2, 3", "less random", "less shuffled", "later than 1, 2, 3", "mean depth"]
    by_angle = [head, ["---"] * len(head)]
    head = ["model", "measure", *head[1:5], "sufficient: 1, 2", "offset patterns of layers 1–3"]
    by_own = [head, ["---"] * len(head)]
    for (name, weights, by), rows in found.items():
        shares = [several(rows, column) for column in ("left", "left_less_random", "left_less_shuffled", "later")]
        if by == "angle":
            depth = f"{sum(row['left'] for row in rows[:-1]):.2f} of {len(rows) - 1}"
            by_angle.append([name if weights == "trained" else weights, *shares, depth])
        else:
            patterns = f"{short(rows[3]['offset_patterns'])} ({short(rows[3]['mirrored'])})"
            alone = ", ".join(short(rows[l]["sufficient"]) for l in (1, 2))
            by_own.append([name, by, *shares, alone, patterns])
    return ["\n".join("| " + " | ".join(cells) + " |" for cells in table) for table in (by_angle, by_own)]


def main(arguments):
    if arguments[:1] == ["measure"] and len(arguments) in (4, 5):
        return measure(*arguments[1:])
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__.strip())
    found = curves()
    figures = {"reading": reading_figure(found), "presence": presence_figure(found), "depth": depth_figure()}
    for name, figure in figures.items():
        path = os.path.join(HERE, "..", "figures", f"finding-{name}.svg")
        if arguments:
            with open(path, encoding="utf-8") as file:
                if file.read() != figure:
                    sys.exit(f"docs/figures/finding-{name}.svg is not what the data gives; run docs/data/reproduce.py")
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(figure)
    with open(os.path.join(HERE, "..", "finding.md"), encoding="utf-8") as file:
        report = file.read()
    for table in reading_tables(found):
        if not arguments:
            print(table + "\n")
        elif table not in report:
            sys.exit(f"docs/finding.md has another table than:\n{table}")


if __name__ == "__main__":
    main(sys.argv[1:])
