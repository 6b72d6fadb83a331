#!/usr/bin/env python3
"""infer shard measured: several processes against one, what a shard costs, and plans of many shards.

    bench/shard_bench.py [-m MODEL] [--infer PROGRAM] [--rounds N] [--lines N] [--small]

Run ./dev build infer before. Prints Markdown; all figures are medians of measurements in turns. --small is for
trying it out. MODEL is a name or a folder; bench/peers/make_model.py makes folders of known sizes.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def sentences(count):
    lines = (ROOT / "examples" / "sentences.txt").read_text("utf-8").splitlines()
    lines = [line for line in lines if line.strip()]
    return "".join(f"{lines[i % len(lines)]} {i}\n" for i in range(count))


class Bench:
    def __init__(self, arguments, folder):
        self.infer, self.model, self.folder = arguments.infer, arguments.model, folder
        self.rounds = arguments.rounds

    def run(self, *words, core=None):
        return self.wait([self.start(*words, core=core)])

    def start(self, *words, core=None):
        pin = [] if core is None else ["taskset", "-c", str(core)]
        return subprocess.Popen([*pin, self.infer, "shard", *map(str, words)], stdout=subprocess.PIPE)

    def wait(self, processes):
        outputs = [process.communicate()[0] for process in processes]
        if any(process.returncode for process in processes):
            raise SystemExit("a run failed")
        return outputs[0]

    def seconds(self, *words):
        start = time.perf_counter()
        self.run(*words)
        return time.perf_counter() - start

    def plan(self, name, lines, lines_per_shard):
        corpus, shards = self.folder / f"{name}.txt", self.folder / name
        corpus.write_text(sentences(lines), "utf-8")
        seconds = self.seconds("plan", "-q", "-m", self.model, "-i", corpus, "-o", shards, "--lines", lines_per_shard)
        return shards, seconds

    def forget(self, shards):
        for entry in shards.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)


def several_processes(bench, lines):
    cores = sorted(os.sched_getaffinity(0))
    count = 16  # shards, which 1, 2 and 4 divide
    shards, _ = bench.plan("processes", lines, -(-lines // count))

    def together(workers):
        """Each runs its part on a core of its own, as long as there are cores. The model is loaded in that time."""
        bench.forget(shards)
        part = count // workers
        start = time.perf_counter()
        bench.wait(
            [
                bench.start("run", "-q", "-t", 1, shards, f"{i * part}-{(i + 1) * part - 1}", core=cores[i % len(cores)])
                for i in range(workers)
            ]
        )
        return time.perf_counter() - start

    numbers = [1, 2, 4]
    times = list(zip(*[[together(workers) for workers in numbers] for _ in range(bench.rounds)]))
    print(f"\n{lines} lines in {count} shards, one thread for each process, {len(cores)} cores:\n")
    print("| processes | seconds | times as fast as one | of linear up to the cores |\n|---|---|---|---|")
    for workers, seconds in zip(numbers, times):
        faster = sorted(one / many for one, many in zip(times[0], seconds))
        middle = statistics.median(faster)
        linear = min(workers, len(cores))
        print(
            f"| {workers} | {statistics.median(seconds):.2f} | {middle:.2f} ({faster[0]:.2f} to {faster[-1]:.2f}) "
            f"| {middle / linear:.2f} |"
        )


def cost_of_a_shard(bench, lines):
    many, _ = bench.plan("many", lines, max(1, lines // 100))
    one, _ = bench.plan("one", lines, lines)
    costs = []
    for _ in range(bench.rounds):
        bench.forget(many)
        bench.forget(one)
        costs.append((bench.seconds("run", "-q", many) - bench.seconds("run", "-q", one)) / 99)
    costs.sort()
    print(
        f"\nA shard costs {1000 * statistics.median(costs):.1f} ms ({1000 * costs[0]:.1f} to {1000 * costs[-1]:.1f}) "
        f"beside its lines: {lines} lines in 100 shards against one."
    )


def restart(bench, count):
    shards, _ = bench.plan("restart", count, 1)
    bench.run("run", "-q", shards)
    last = shards / f"{(count - 1) // 1000:03}" / f"shard-{count - 1:06}.done"
    nothing, one = [], []
    for _ in range(bench.rounds):
        nothing.append(bench.seconds("run", "-q", shards))
        last.unlink()
        one.append(bench.seconds("run", "-q", shards))
    print(
        f"\nWith {count} shards, all but one done, `infer shard run` finds and runs the one in "
        f"{statistics.median(one):.2f} s, and finds that nothing is left in {statistics.median(nothing):.2f} s."
    )


def many_shards(bench, count):
    shards, planned = bench.plan("simulated", count, 1)
    empty = bench.seconds("status", shards)
    for first in range(0, count, 1000):  # the names alone, which is what status reads
        group = shards / f"{first // 1000:03}"
        group.mkdir()
        for shard in range(first, min(count, first + 1000)):
            (group / f"shard-{shard:06}.done").touch()
            (group / f"shard-{shard:06}.npy").touch()
    full = bench.seconds("status", shards)
    done = json.loads(bench.run("status", "--json", shards))["done"]
    assert done == count, done
    index = next(shards.glob("plan.*.npy")).stat().st_size
    print(
        f"\nWith {count} shards, simulated: plan {planned:.1f} s (one line each), status {empty:.2f} s when none is "
        f"done and {full:.2f} s when all are; the index has {index / 1e6:.1f} MB."
    )


def planning(bench, lines):
    _, seconds = bench.plan("planning", lines, 10000)
    size = (bench.folder / "planning.txt").stat().st_size
    print(
        f"\nplan reads {size / seconds / 1e6:.0f} MB and {lines / seconds / 1e6:.1f} million lines a second "
        f"({size / 1e6:.0f} MB, the model loaded in that time)."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="sinusoidal")
    parser.add_argument("--infer", default=str(ROOT / "build" / "release" / "bin" / "infer"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=16000)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--folder", help="where the shards are written (default: a temporary folder)")
    arguments = parser.parse_args()
    scale = 100 if arguments.small else 1
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        several_processes(bench, arguments.lines // scale)
        cost_of_a_shard(bench, 2000)
        planning(bench, 2_000_000 // scale)
        restart(bench, 10_000 // scale)
        many_shards(bench, 1_000_000 // scale)


if __name__ == "__main__":
    main()
