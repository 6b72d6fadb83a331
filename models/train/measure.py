"""Measures exported models with `infer observe` and adds their numbers to a table.

    python3 models/train/measure.py docs/data/seeds.csv models/sinusoidal models/learned …

A folder's model card (card.py) says which run it is. Rows of the same run are replaced, all others kept. `infer` is
looked for in PATH. The texts are those of examples/sentences.txt.
"""

import argparse
import csv
import json
import os
import re
import subprocess

TEXTS = os.path.join(os.path.dirname(__file__), "../../examples/sentences.txt")
# The views, and their columns that are kept.
KEPT = {
    "effect": ["effect"],
    "split": ["position", "token", "context"],
    "direct": ["position", "token"],
    "sources": ["direct", "attention", "mlp"],
    "parts": ["last_layer"],
    "order": ["shuffle"],
    "attention": ["distance"],
    "probe": ["r2"],
    "masked": ["loss"],
    "lens": ["loss"],
    "causes": ["removed", "random", "shuffled"],
}
RUN = ["kind", "norm", "seed", "tokens"]
FIELDS = RUN + ["layer", "measure", "value"]


def is_kept(measure):
    view, rest = measure.split(".", 1)  # "split.token", "causes.MLP 1.removed"
    return not rest.startswith("head ") and rest.rsplit(".", 1)[-1] in KEPT[view]


def measured(folder):
    command = ["infer", "observe", "-q", "--csv", "-m", folder, "-i", TEXTS, "--only", ",".join(KEPT)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for row in csv.DictReader(out.splitlines()):
        if is_kept(row["measure"]):
            yield row["layer"], row["measure"], f"{float(row['value']):.4g}"


def rows_of(folder):
    """A model's rows, and which run it is: kind, norm, seed and tokens."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        norm = json.load(file)["norm_order"]
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        card = file.read()

    def said(pattern):
        found = re.search(pattern, card, re.MULTILINE)
        if found is None:
            raise ValueError(f"{folder}/README.md has no {pattern}; card.py writes it")
        return found[1]

    tokens = f"{float(said(r'^. trained on . ([0-9.]+) M tokens')):.0f}M"
    run = [said(r"^# (\w+)$"), norm, said(r"^. seed . (\d+) .$"), tokens]
    rows = [("", "valid.loss", said(r"\(loss ([0-9.]+)\)"))]
    rows += measured(folder)
    return run, [run + list(row) for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("folders", nargs="+", metavar="folder")
    args = parser.parse_args()
    table = []
    if os.path.exists(args.table):
        with open(args.table, newline="", encoding="utf-8") as file:
            table = [[row[field] for field in FIELDS] for row in csv.DictReader(file)]
    for folder in args.folders:
        run, rows = rows_of(folder)
        table = [row for row in table if row[: len(RUN)] != run] + rows
        print(*run, len(rows), "rows")
    table.sort(key=lambda row: row[: len(RUN)])  # stable: a run's rows stay in the order of the views
    with open(args.table, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(table)


if __name__ == "__main__":
    main()
