"""Prints measures of docs/data/seeds.csv by kind of positions, as means over training seeds.

    python3 docs/data/seeds.py MEASURE[@LAYER] … [--tokens 16M] [--norm post] [--less KIND]

± is half of the 95 % interval over seeds (Student's t). --less prints differences from a kind, seed by
seed: runs of one seed share their batches, masks and the initial values of shared parameters.
"""

import argparse
import csv
import math
import os
import statistics

KINDS = ["sinusoidal", "learned", "none", "rotary", "relative", "alibi"]
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # by the number of seeds


def mean_of(values):
    if not values:
        return "—"
    mean = f"{statistics.mean(values):.3f}"
    if len(values) < 2:
        return mean
    return f"{mean} ±{T_95[len(values)] * statistics.stdev(values) / math.sqrt(len(values)):.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="+", metavar="MEASURE")
    parser.add_argument("--tokens", default="16M")
    parser.add_argument("--norm", default="post", choices=["post", "pre"])
    parser.add_argument("--less", choices=KINDS)
    args = parser.parse_args()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds.csv"), newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["tokens"], row["norm"]) == (args.tokens, args.norm)]
    found = {}  # by measure and layer, kind, seed
    for row in rows:
        name = row["measure"] + (f"@{row['layer']}" if row["layer"] else "")
        found.setdefault(name, {}).setdefault(row["kind"], {})[row["seed"]] = float(row["value"])
    names = [name for asked in args.measures for name in found if asked in (name, name.split("@")[0])]
    if not names:
        parser.error(f"no such measures; there are {', '.join(sorted({name.split('@')[0] for name in found}))}")
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows) and kind != args.less]
    table = [[""] + kinds]
    table.append(["seeds"] + [str(len({row["seed"] for row in rows if row["kind"] == kind})) for kind in kinds])
    for name in names:
        cells = [name]
        for kind in kinds:
            seeds = found[name].get(kind, {})
            if args.less:
                base = found[name].get(args.less, {})
                seeds = {seed: value - base[seed] for seed, value in seeds.items() if seed in base}
            cells.append(mean_of(list(seeds.values())))
        table.append(cells)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    main()
