"""Prints measures of docs/data/seeds.csv by kind of positions, as means over training seeds.

    python3 docs/data/seeds.py MEASURE[@LAYER] … [--tokens 64M] [--norm post] [--less KIND]

A name stands for all that begin with it: sources for sources.mlp, sources.mlp for its layers.
Without --tokens the runs are those of the schedule that has the most. ± is half of the 95 % interval
over seeds (Student's t). --less prints differences from a kind, seed by seed: runs of one seed share
their batches, masks and the initial values of shared parameters.
"""

import argparse
import collections
import csv
import math
import os
import re
import statistics

KINDS = ["sinusoidal", "learned", "none", "rotary", "relative", "alibi"]
# Student's t, by the number of seeds.
T_95 = dict(enumerate([12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262], start=2))


def half_interval(values):
    return T_95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))


def mean_of(values):
    if not values:
        return "—"
    mean = f"{statistics.mean(values):.3f}"
    return f"{mean} ±{half_interval(values):.3f}" if len(values) > 1 else mean


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="+", metavar="MEASURE")
    parser.add_argument("--tokens")
    parser.add_argument("--norm", default="post", choices=["post", "pre"])
    parser.add_argument("--less", choices=KINDS)
    args = parser.parse_args()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds.csv"), newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["norm"] == args.norm]
    runs = collections.Counter(tokens for tokens, _, _ in {(r["tokens"], r["kind"], r["seed"]) for r in rows})
    tokens = args.tokens or max(runs, key=lambda tokens: (runs[tokens], tokens), default=None)
    if tokens not in runs:
        others = f" of {tokens} tokens; there are {', '.join(sorted(runs))}" if runs else ""
        parser.error(f"seeds.csv has no {args.norm}-norm runs{others}")
    rows = [row for row in rows if row["tokens"] == tokens]
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    if args.less:
        if args.less not in kinds:
            parser.error(f"seeds.csv has no such runs of {args.less}; there are {', '.join(kinds)}")
        kinds.remove(args.less)
    found = {}  # by measure and layer, kind, seed
    for row in rows:
        name = row["measure"] + (f"@{row['layer']}" if row["layer"] else "")
        found.setdefault(name, {}).setdefault(row["kind"], {})[row["seed"]] = float(row["value"])
    names = []
    for asked in args.measures:
        matching = [name for name in found if re.match(re.escape(asked) + "(?![^.@])", name)]
        if not matching:
            measures = sorted({name.split("@")[0] for name in found})
            parser.error(f"there is no measure {asked}; there are {', '.join(measures)}")
        names += matching
    seeds = [len({row["seed"] for row in rows if row["kind"] == kind}) for kind in kinds]
    table = [[f"{tokens} tokens"] + kinds, ["seeds"] + [str(count) for count in seeds]]
    for name in names:
        cells = [name]
        for kind in kinds:
            values = found[name].get(kind, {})
            if args.less:
                base = found[name].get(args.less, {})
                values = {seed: value - base[seed] for seed, value in values.items() if seed in base}
            cells.append(mean_of(list(values.values())))
        table.append(cells)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    if any(cell != "—" and "±" not in cell for row in table[2:] for cell in row[1:]):
        print("One seed alone has no interval.")


if __name__ == "__main__":
    main()
