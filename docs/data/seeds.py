"""Prints measures of docs/data/seeds.csv by kind of positions, as means over training seeds.

    python3 docs/data/seeds.py MEASURE[@LAYER] … [--tokens 64M] [--then 64M] [--norm post] [--less KIND]

A name stands for all that begin with it: sources for sources.mlp, sources.mlp for its layers. Without --tokens
the runs are those of the schedule that has the most. ± is half of the 95 % interval over seeds (Student's t).
--then prints "a → b", for the seeds that have both schedules. --less prints differences from a kind, seed by seed:
runs of one seed share their batches, masks and the initial values of shared parameters.
"""

import argparse
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
    mean = f"{round(statistics.mean(values), 3) + 0:.3f}"  # no -0.000
    return f"{mean} ±{half_interval(values):.3f}" if len(values) > 1 else mean


def read_runs(norm):
    """By schedule, measure and layer, kind and seed: the value."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds.csv")
    runs = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["norm"] != norm:
                continue
            name = row["measure"] + (f"@{row['layer']}" if row["layer"] else "")
            kinds = runs.setdefault(row["tokens"], {}).setdefault(name, {})
            kinds.setdefault(row["kind"], {})[row["seed"]] = float(row["value"])
    return runs


def seeds_of(run):
    """By kind."""
    found = {}
    for kinds in run.values():
        for kind, values in kinds.items():
            found.setdefault(kind, set()).update(values)
    return found


def matching(asked, names):
    """The names that begin with `asked`, the layers of a measure in order."""
    found = [name for name in names if re.match(re.escape(asked) + "(?![^.@ ])", name)]
    measures = [name.split("@")[0] for name in found]
    return sorted(found, key=lambda name: (measures.index(name.split("@")[0]), name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="+", metavar="MEASURE")
    parser.add_argument("--tokens")
    parser.add_argument("--then", metavar="TOKENS")
    parser.add_argument("--norm", default="post", choices=["post", "pre"])
    parser.add_argument("--less", choices=KINDS, metavar="KIND")
    args = parser.parse_args()
    runs = read_runs(args.norm)
    most = {tokens: (sum(map(len, seeds_of(run).values())), tokens) for tokens, run in runs.items()}
    tokens = args.tokens or max(runs, key=most.get, default=None)
    schedules = [tokens, args.then] if args.then else [tokens]
    for wanted in schedules:
        if wanted not in runs:
            others = f" of {wanted} tokens; there are {', '.join(runs)}" if runs else ""
            parser.error(f"seeds.csv has no {args.norm}-norm runs{others}")
    seeds = {kind: set.intersection(*(seeds_of(runs[tokens]).get(kind, set()) for tokens in schedules))
             for kind in KINDS}
    kinds = [kind for kind in KINDS if seeds[kind]]
    if not kinds:
        parser.error(f"no seed has runs of {' and of '.join(schedules)} tokens")
    if args.less:
        if args.less not in kinds:
            parser.error(f"seeds.csv has no such runs of {args.less}; there are {', '.join(kinds)}")
        seeds = {kind: seeds[kind] & seeds[args.less] for kind in KINDS if kind != args.less}
        kinds = [kind for kind in KINDS if seeds.get(kind)]
        if not kinds:
            parser.error(f"no seed has runs of {args.less} and of another kind")
    known = runs[tokens]
    names = []
    for asked in args.measures:
        if not (found := matching(asked, known)):
            view = asked.split(".")[0]
            others = {name.split("@")[0] for name in matching(view, known)} or {name.split(".")[0] for name in known}
            parser.error(f"there is no measure {asked}; there are {', '.join(sorted(others))}")
        names += found

    def cell(name, kind):
        steps = []
        for schedule in schedules:
            by_kind = runs[schedule].get(name, {})
            values, base = by_kind.get(kind, {}), by_kind.get(args.less, {})
            values = {seed: value for seed, value in values.items() if seed in seeds[kind]}
            if args.less:
                values = {seed: value - base[seed] for seed, value in values.items() if seed in base}
            steps.append(mean_of(list(values.values())))
        return " → ".join(steps) if steps[0] != "—" else "—"

    table = [[" → ".join(schedules) + " tokens"] + kinds, ["seeds"] + [str(len(seeds[kind])) for kind in kinds]]
    table += [[name] + [cell(name, kind) for kind in kinds] for name in names]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    if any(text != "—" and "±" not in text for row in table[2:] for text in row[1:]):
        print("One seed alone has no interval.")


if __name__ == "__main__":
    main()
