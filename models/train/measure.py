"""Measures exported runs with `infer observe` and writes their numbers as a table.

    python3 models/train/measure.py WORK docs/data/seeds.csv sinusoidal sinusoidal-seed1 …

WORK/NAME is a run's exported folder and WORK/NAME.csv its log. Rows of other runs that the table
has are kept. `infer` is looked for in PATH. The texts are those of examples/sentences.txt.
"""

import argparse
import csv
import json
import os
import subprocess

TEXTS = os.path.join(os.path.dirname(__file__), "../../examples/sentences.txt")
# The views, and their columns that are kept.
KEPT = {
    "effect": ["effect"],
    "split": ["position", "token", "context"],
    "direct": ["length", "token_length"],
    "sources": ["direct", "attention", "mlp"],
    "parts": ["last"],
    "order": ["shuffle"],
    "attention": ["distance"],
    "probe": ["r2"],
    "masked": ["loss"],
    "lens": ["loss"],
    "causes": ["cost", "random", "shuffled"],
}
FIELDS = ["kind", "norm", "seed", "tokens", "layer", "measure", "value"]


def is_kept(measure):
    view, rest = measure.split(".", 1)  # "split.token", "causes.MLP 1.cost"
    return not rest.startswith("head ") and rest.rsplit(".", 1)[-1] in KEPT[view]


def measured(folder):
    command = ["infer", "observe", "-q", "--csv", "-m", folder, "-i", TEXTS, "--only", ",".join(KEPT)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for row in csv.DictReader(out.splitlines()):
        if is_kept(row["measure"]):
            yield row["layer"], row["measure"], f"{float(row['value']):.4g}"


def rows_of(work, name):
    """A run's rows, and which run it is: kind, norm, seed and tokens."""
    with open(os.path.join(work, name, "config.json")) as file:
        norm = json.load(file)["norm_order"]
    with open(os.path.join(work, f"{name}.csv")) as file:
        last = list(csv.DictReader(file))[-1]
    seed = name.split("-seed")[1] if "-seed" in name else "1"
    run = [name.split("-")[0], norm, seed, f"{round(int(last['tokens']), -6) // 10**6}M"]
    rows = [("", "valid.loss", f"{float(last['valid_loss']):.4g}")]
    rows += measured(os.path.join(work, name))
    return run, [run + list(row) for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("table")
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    table = []
    if os.path.exists(args.table):
        with open(args.table, newline="") as file:
            table = [[row[field] for field in FIELDS] for row in csv.DictReader(file)]
    for name in args.names:
        run, rows = rows_of(args.work, name)
        table = [row for row in table if row[:4] != run] + rows
        print(name, len(rows), "rows")
    with open(args.table, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(sorted(table, key=lambda row: row[:4]))


if __name__ == "__main__":
    main()
