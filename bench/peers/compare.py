"""Measures phasor beside its peers on the same weights, token ids and threads; see README.md."""

import argparse
import contextlib
import csv
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time

import numpy as np

import engines
import programs
import report
import subjects
from engines import BASE, ENGINES, ISAS, PRECISIONS, REFERENCE
from programs import say


def parse_arguments():
    def listed(text):
        return text.split(",")

    def judged(file):
        with open(file, encoding="utf-8", newline="") as source:
            return [(first, second, float(score)) for first, second, score in csv.reader(source)]

    parser = argparse.ArgumentParser(prog="bench/peers/run", description=__doc__)
    parser.add_argument(
        "--models",
        type=listed,
        default=list(subjects.SHAPES),
        help="minilm, bert-base, or shapes d_model/num_layers/num_heads/d_ff, with commas",
    )
    parser.add_argument("--threads", type=listed, default=["1", "all"], help="like 1,4,all")
    parser.add_argument("--precision", type=listed, default=list(PRECISIONS), help="f32,bf16,int8")
    parser.add_argument(
        "--isa", type=listed, default=["native"], help="native,avx2,avx2_vnni: what all are held to"
    )
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each, in turns")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--pairs", type=judged, default=[], help="of sentences: CSV, a score third")
    parser.add_argument("--json", metavar="FILE", help="write all results there as well")
    parser.add_argument("--build", metavar="FOLDER", help="a build, taken as it is")
    arguments = parser.parse_args()
    for option, known in (("precision", PRECISIONS), ("isa", ISAS)):
        for name in getattr(arguments, option):
            if name not in known:
                parser.error(f"--{option}: {name} is none of {', '.join(known)}")
    for name in arguments.models:
        if name not in subjects.SHAPES and name.count("/") != 3:
            parser.error(f"--models: {name} is none of {', '.join(subjects.SHAPES)}, and no shape")
    for number in arguments.threads:
        if number != "all" and not (number.isdigit() and int(number) > 0):
            parser.error(f"--threads: {number} is neither all nor a number above 0")
    threads = [programs.num_cores() if n == "all" else int(n) for n in arguments.threads]
    arguments.threads = list(dict.fromkeys(threads))  # all may be one
    return arguments


def output_of(program, request, d_model):
    """The last hidden states of all tokens, [N, C], or the texts' vectors."""
    with tempfile.NamedTemporaryFile() as file:
        program.ask(**request, output=file.name)
        return np.fromfile(file.name, dtype="<f4").reshape(-1, d_model)


def difference(got, want):
    cosines = (got * want).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(want, axis=1)
    return {"max_diff": float(np.abs(got - want).max()), "mean_cosine": float(cosines.mean())}


def spearman(vectors, scores):
    """Of the cosines of a pair's vectors, each two rows, with the judgements; ties share a rank."""

    def ranks(values):
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[places]

    cosines = (vectors[0::2] * vectors[1::2]).sum(1)
    return float(np.corrcoef(ranks(cosines), ranks(scores))[0, 1])


def quality(program, model, references, pairs):
    """How far the outputs are from the reference's: the worst batch of ids; texts; judged pairs."""
    found = {
        shape: difference(output_of(program, request, model.d_model), references[shape])
        for shape, request in subjects.requests(model).items()
    }
    vectors = found.pop(subjects.TEXTS, None)
    result = {
        "max_diff": max(each["max_diff"] for each in found.values()),
        "mean_cosine": min(each["mean_cosine"] for each in found.values()),
    }
    if vectors:
        result["text_cosine"] = vectors["mean_cosine"]
    if pairs and model.real:
        request = {"texts": [text for *both, _ in pairs for text in both]}
        scores = [score for *_, score in pairs]
        result["spearman"] = spearman(output_of(program, request, model.d_model), scores)
    return result


def agrees(precision, result):
    """Whether the outputs are what the reference computes in float32, as far as that can be."""
    if precision == "f32":
        return result["max_diff"] < 1e-4
    return result["mean_cosine"] > {"bf16": 0.999, "int8": 0.99}[precision]


def in_turns(running, requests, rounds, seconds):
    """{shape: {engine: its answers, one a round}}; the order is drawn in each round."""
    answers = {shape: {name: [] for name in running} for shape in requests}
    draw = random.Random(1)
    for _ in range(rounds):
        for shape, request in requests.items():
            for name in draw.sample(list(running), len(running)):
                time.sleep(0.1)  # until the other one's threads have stopped spinning
                answers[shape][name].append(running[name].ask(**request, seconds=seconds))
    return answers


def row_of(shape, request, answers):
    count = len(request["texts"]) if "texts" in request else sum(map(len, request["batch"]))
    row = {"shape": shape, "count": count, "ratios": {}, "fastest": {}}
    for name, rounds in answers.items():
        ms = statistics.median(answer["median_ms"] for answer in rounds)
        least = min(answer["min_ms"] for answer in rounds)
        row[name] = {"median_ms": ms, "min_ms": least, "per_s": 1e3 * count / ms}
        if name != BASE:
            row["ratios"][name] = row[BASE]["per_s"] / row[name]["per_s"]
            row["fastest"][name] = least / row[BASE]["min_ms"]
    return row


def geometric_means(rows, which, peers):
    """Of the batches of equal length."""
    plain = [row[which] for row in rows if row["shape"] in subjects.UNIFORM]
    return {name: statistics.geometric_mean(ratios[name] for ratios in plain) for name in peers}


def compare(model, isa, threads, precision, requests, qualities, arguments):
    """One table: the engines, warm, over all batches."""
    say(", ".join(report.parts(model.name, precision, isa, threads)))
    with contextlib.ExitStack() as stack:
        running, left_out = {}, {}
        for name in arguments.engines:
            if precision in ENGINES[name].precisions:
                try:
                    program = engines.start(name, model, ISAS[isa], threads, precision)
                    running[name] = stack.enter_context(program)
                except programs.Skip as reason:
                    left_out[name] = str(reason)
        outputs = {name: qualities(program, name, precision, isa) for name, program in running.items()}
        answers = in_turns(running, requests, arguments.rounds, arguments.seconds)
        versions = {name: engine.hello["version"] for name, engine in running.items()}
    rows = [row_of(shape, request, answers[shape]) for shape, request in requests.items()]
    peers = [name for name in running if name != BASE]
    return {
        "model": model.name,
        "shape": model.shape,
        "isa": isa,
        "threads": threads,
        "precision": precision,
        "rows": rows,
        "geometric_means": geometric_means(rows, "ratios", peers),
        "geometric_means_fastest": geometric_means(rows, "fastest", peers),
        "reference": ENGINES[reference(arguments)].title,
        "outputs": outputs,
        "disagree": [
            name
            for name, output in outputs.items()
            if name in (BASE, REFERENCE) or precision == "f32"  # what a peer's int8 costs is shown
            if not agrees(precision, output)
        ],
        "versions": versions,
        "left_out": left_out,
    }


def peak_memory(model, precision, batch, names):
    """What fresh programs have resident at most, on one thread."""
    say(f"{model.name}, {precision}, memory")
    result = {"model": model.name, "precision": precision}
    for name in names:
        with engines.start(name, model, None, 1, precision) as engine:
            result[name] = engine.ask(batch=batch, seconds=1e-3)["peak_bytes"]
            result[name + "_base"] = engine.hello["base_bytes"]
    return result


def reference(arguments):
    """The engine whose float32 stands for what is right."""
    return REFERENCE if REFERENCE in arguments.engines else BASE


def qualities_of(model, arguments):
    """quality() of a program, made once for each precision and instruction set."""
    with engines.start(reference(arguments), model, None, programs.num_cores(), "f32") as program:
        references = {
            shape: output_of(program, request, model.d_model)
            for shape, request in subjects.requests(model).items()
        }
    known = {}

    def of(program, *key):
        if key not in known:
            known[key] = quality(program, model, references, arguments.pairs)
        return known[key]

    return of


def run(arguments):
    missing = engines.missing(allowed=not arguments.build)
    arguments.build = os.path.abspath(arguments.build or os.path.join(subjects.REPO, "build/release"))
    arguments.engines = [name for name in ENGINES if name not in missing]
    models = [subjects.Model(name, arguments.build) for name in arguments.models]
    cores = programs.num_cores()
    unusable = {isa: engines.lacks(isa) for isa in arguments.isa if engines.lacks(isa)}
    left_out = {ENGINES[name].title: why for name, why in missing.items()} | unusable
    for name, why in left_out.items():
        say(f"{name} is left out: {why}")
    results = {"cpu": programs.cpu_name(), "cores": cores, "tables": [], "memory": []}
    results["left_out"] = left_out
    for model in models:
        requests = subjects.requests(model)
        qualities = qualities_of(model, arguments)
        for isa, threads, precision in itertools.product(
            [isa for isa in arguments.isa if isa not in unusable],
            arguments.threads,
            arguments.precision,
        ):
            table = compare(model, isa, threads, precision, requests, qualities, arguments)
            results["tables"].append(table)
            print(report.table(table), flush=True)
        for precision, outputs in {t["precision"]: t["outputs"] for t in results["tables"]}.items():
            batch = requests["32x128"]["batch"]
            results["memory"].append(peak_memory(model, precision, batch, outputs))
    print(report.memory(results["memory"]))
    print(report.setting(results, arguments))
    return results


def main():
    arguments = parse_arguments()
    try:
        results = run(arguments)
    except programs.Skip as reason:
        say(f"skipped: {reason}")
        sys.exit(77)
    except programs.Failed as problem:
        say(problem)
        sys.exit(1)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump(results, out, indent=1)
    sys.exit(any(table["disagree"] for table in results["tables"]))


if __name__ == "__main__":
    main()
