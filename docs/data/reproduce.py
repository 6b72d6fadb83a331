"""Makes the figures of docs/finding.md, and prints its table, from the CSV files in this folder.

    python3 docs/data/reproduce.py [--check]                  # writes docs/figures/finding-*.svg, or compares them
    python3 docs/data/reproduce.py measure NAME FOLDER FILE   # rows of reading.csv, from infer, which is in PATH

reading.csv has the views `reading` and `offset_patterns` of a model, and of random weights where they lose anything without
positions. reading-depth.csv is described in reading-depth.md.
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
COLUMNS = ["left", "left_low", "left_high", "later", "sufficient", "needed", "present"]
PATTERNS = ["offset_patterns", "mirrored", "patterns"]
FIELDS = ["model", "weights", "measure", "texts", "layer", *COLUMNS, *PATTERNS]
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#444444"]
ADDED = ["sinusoidal", "learned", "MiniLM-L6", "e5-small", "AntiBERTy"]
KINDS = ["once", "every", "third", "pre", "learned", "normed"]


def rows_of(name):
    with open(os.path.join(HERE, name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def measure(name, folder, texts):
    command = ["infer", "observe", "-q", "--json", "-m", folder, "-i", texts]
    command += ["--only", "reading,offset_patterns", "--baseline", "random:1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    add_rows(name, json.loads(done.stdout))


def add_rows(name, observed):
    writer = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
    by_loss = "nats" in observed["runs"][0]["notes"]["reading"]
    for run in observed["runs"]:
        views = run["views"]
        if "reading" not in views:
            continue
        about = {
            "model": name,
            "weights": "random" if run.get("untrained") else "trained",
            "measure": "loss" if by_loss else "cosine",
            "texts": run["texts"],
        }
        for l, row in enumerate(views["reading"]):
            patterns = views["offset_patterns"][l - 1] if l and "offset_patterns" in views else {}
            values = {**row, **patterns}
            numbers = {k: values.get(k) for k in COLUMNS + PATTERNS}
            cells = {k: "" if x is None else f"{x:.4g}" for k, x in numbers.items()}
            writer.writerow({**about, "layer": l, **cells})


def curves():
    """By model and weights: the layers' rows, numbers or None."""
    found = {}
    for row in rows_of("reading.csv"):
        numbers = {k: float(row[k]) if row[k] else None for k in COLUMNS + PATTERNS}
        found.setdefault((row["model"], row["weights"]), []).append(numbers)
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

    def line(self, points, color, dashed=False):
        places = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
        for x, y in points if not dashed else ():
            self.dot(x, y, color)

    def dot(self, x, y, color):
        cx, cy = self.at(x, y)
        self.parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="3.5" fill="{color}"/>')

    def key(self, names, x, y):
        for i, (name, color, dashed) in enumerate(names):
            at = y + 18 * i
            dash = ' stroke-dasharray="5 4"' if dashed else ""
            self.parts.append(f'<path d="M{x} {at - 4}h22" stroke="{color}" stroke-width="2"{dash}/>')
            self.text(x + 28, at, name)


def page(width, height, plots):
    style = "font-family:sans-serif;font-size:13px"
    body = "\n".join(part for plot in plots for part in plot.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" style="{style}">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def reading_figure(found):
    plots = []
    for side, (names, layers) in enumerate(
        [(["sinusoidal", "learned", "alibi", "relative", "rotary"], 6), (ADDED[2:] + ["MPNet"], 12)]
    ):
        plot = Plot(60 + 440 * side, 40, 370, 260, (0, layers), (0, 1))
        plot.ticks(range(0, layers + 1, layers // 6), [0, 0.5, 1], "attentions that have positions", "left")
        key = []
        for name, color in zip(names, COLORS):
            for weights, dashed in (("trained", False), ("random", True)):
                rows = found.get((name, weights), [])
                if not rows or (dashed and not side):
                    continue
                plot.line([(l, row["left"]) for l, row in enumerate(rows)], color, dashed)
                key.append((name + (", random weights" if dashed else ""), color, dashed))
        plot.key(key, 885 if side else 290, 62)
        plots.append(plot)
    return page(1120, 350, plots)


def presence_figure(found):
    plot = Plot(70, 40, 420, 330, (0.0008, 0.7), (0.0008, 1.2))
    ticks = [0.001, 0.01, 0.1]
    plot.ticks([*ticks, 0.5], [*ticks, 1], "present: the vectors' share of the stream", "left: what still needs them")
    key = []
    for name, color in zip(ADDED, COLORS):
        for weights, dashed in (("trained", False), ("random", True)):
            rows = found.get((name, weights), [])
            if rows:
                points = [(row["present"], row["left"]) for row in rows]
                plot.line([point for point in points if min(point) > 0.0008], color, dashed)
                key.append((name + (", random weights" if dashed else ""), color, dashed))
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
            plot.dot(value, i, COLORS[KINDS.index(kind) % 6])
        x, y = plot.at(statistics.mean(values), i)
        plot.parts.append(f'<path d="M{x:.1f} {y - 11:.1f}v22" stroke="#222" stroke-width="2"/>')
    return page(600, 330, [plot])


def short(x, digits=2):
    """Without a 0 before the point."""
    return "" if x is None else re.sub(r"^(-?)0\.", r"\1.", f"{x:.{digits}f}")


def reading_table(found):
    head = ["model", "measure", "left after 1, 2, 3", "mean depth", "later than 1, 2, 3", "sufficient: 1, 2", "offset patterns of layers 1–3"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    measures = {(row["model"], row["weights"]): row["measure"] for row in rows_of("reading.csv")}
    for (name, weights), rows in found.items():
        several = {k: ", ".join(short(rows[l][k]) for l in (1, 2, 3)) for k in ("left", "later")}
        depth = f"{sum(row['left'] for row in rows[:-1]):.2f} of {len(rows) - 1}"
        alone = ", ".join(short(rows[l]["sufficient"]) for l in (1, 2))
        patterns = f"{short(rows[3]['offset_patterns'])} ({short(rows[3]['mirrored'])})"
        cells = ["random" if weights == "random" else name, measures[name, weights], several["left"], depth]
        lines.append("| " + " | ".join([*cells, several["later"], alone, patterns]) + " |")
    return lines


def main(arguments):
    if arguments[:1] == ["measure"] and len(arguments) == 4:
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
    table = "\n".join(reading_table(found))
    if not arguments:
        return print(table)
    with open(os.path.join(HERE, "..", "finding.md"), encoding="utf-8") as file:
        if table not in file.read():
            sys.exit(f"docs/finding.md has another table than:\n{table}")


if __name__ == "__main__":
    main(sys.argv[1:])
