"""Measures phasor beside ONNX Runtime and PyTorch on the same weights, token ids and threads; see
README.md."""

import argparse
import contextlib
import json
import os
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

REPO = os.path.dirname(os.path.dirname(engines.HERE))


def parse_arguments():
    def listed(text):
        return text.split(",")

    parser = argparse.ArgumentParser(prog="bench/peers/run", description=__doc__)
    parser.add_argument(
        "--models",
        type=listed,
        default=list(subjects.SHAPES),
        help="minilm, bert-base, or shapes d_model/num_layers/num_heads/d_ff, with commas",
    )
    parser.add_argument("--threads", type=listed, default=["1", "all"], help="like 1,4,all")
    parser.add_argument("--precision", type=listed, default=["f32", "int8"], help="f32,bf16,int8")
    parser.add_argument(
        "--isa", type=listed, default=["native"], help="native,avx2,avx2_vnni: what all are held to"
    )
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each, in turns")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--json", metavar="FILE", help="write all results there as well")
    parser.add_argument("--build", metavar="FOLDER", help="a build, taken as it is")
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build or os.path.join(REPO, "build/release"))
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


def hidden_of(program, batch, d_model):
    """The last hidden states of all tokens, [N, C]."""
    with tempfile.NamedTemporaryFile() as file:
        program.ask(batch=batch, hidden=file.name)
        return np.fromfile(file.name, dtype="<f4").reshape(-1, d_model)


def difference(got, want):
    cosines = (got * want).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(want, axis=1)
    return {"max_diff": float(np.abs(got - want).max()), "mean_cosine": float(cosines.mean())}


def worst(differences):
    return {
        "max_diff": max(d["max_diff"] for d in differences),
        "mean_cosine": min(d["mean_cosine"] for d in differences),
    }


def agrees(precision, outputs):
    """Whether the outputs are what ONNX Runtime computes in float32, as far as that can be."""
    if precision == "f32":
        return outputs["max_diff"] < 1e-4
    return outputs["mean_cosine"] > {"bf16": 0.999, "int8": 0.99}[precision]


def start_all(stack, model, isa, threads, precision):
    """{name: program} of the engines that have the precision, and {name: why} of those left out."""
    running, left_out = {}, {}
    for name, own in engines.precisions(precision).items():
        try:
            program = engines.start(name, model, isa, threads, own)
            running[name] = stack.enter_context(program)
        except programs.Skip as reason:
            left_out[name] = str(reason)
    return running, left_out


def in_turns(running, batches, rounds, seconds):
    """{shape: {engine: its answers, one a round}}; who comes first changes from round to round."""
    answers = {shape: {name: [] for name in running} for shape in batches}
    order = list(running)
    for _ in range(rounds):
        for shape, batch in batches.items():
            for name in order:
                time.sleep(0.1)  # until the other one's threads have stopped spinning
                answers[shape][name].append(running[name].ask(batch=batch, seconds=seconds))
        order.reverse()
    return answers


def row_of(shape, batch, answers, average):
    tokens = sum(map(len, batch))
    row = {"shape": shape, "tokens": tokens, "ratios": {}}
    for name, rounds in answers.items():
        ms = getattr(statistics, average)(answer[f"{average}_ms"] for answer in rounds)
        least = min(answer["min_ms"] for answer in rounds)
        row[name] = {f"{average}_ms": ms, "min_ms": least, "tokens_per_s": 1e3 * tokens / ms}
        if name != BASE:
            row["ratios"][name] = row[BASE]["tokens_per_s"] / row[name]["tokens_per_s"]
    return row


def compare(model, isa, threads, precision, batches, references, arguments, average="median"):
    """One table: the engines, warm, over all batches. `average`: "median" or "mean"."""
    say(", ".join(report.parts(model.name, precision, isa, threads)))
    with contextlib.ExitStack() as stack:
        running, left_out = start_all(stack, model, ISAS[isa], threads, precision)
        outputs = {}
        for name, engine in running.items():
            outputs[name] = worst(
                [
                    difference(hidden_of(engine, batch, model.d_model), references[shape])
                    for shape, batch in batches.items()
                ]
            )
        answers = in_turns(running, batches, arguments.rounds, arguments.seconds)
        versions = {name: engine.hello["version"] for name, engine in running.items()}
    rows = [row_of(shape, batch, answers[shape], average) for shape, batch in batches.items()]
    peers = [name for name in running if name != BASE]
    return {
        "model": model.name,
        "shape": model.shape,
        "isa": isa,
        "threads": threads,
        "precision": precision,
        "rows": rows,
        "geometric_means": {
            name: statistics.geometric_mean(row["ratios"][name] for row in rows) for name in peers
        },
        "outputs": outputs,
        "disagree": [
            name
            for name, own in engines.precisions(precision).items()
            if name in running and not agrees(own, outputs[name])
        ],
        "versions": versions,
        "left_out": left_out,
    }


def peak_memory(model, precision, batch):
    """What fresh programs have resident at most, on one thread."""
    say(f"{model.name}, {precision}, memory")
    result = {"model": model.name, "precision": precision}
    with contextlib.ExitStack() as stack:
        running, _ = start_all(stack, model, None, 1, precision)
        for name, engine in running.items():
            result[name] = engine.ask(batch=batch, seconds=1e-3)["peak_bytes"]
            result[name + "_base"] = engine.hello["base_bytes"]
    return result


def first_results(models, batch, runs):
    """From exec to exit, in milliseconds."""
    say("first results")
    infer = os.path.join(models[0].build, "bin/infer")
    text = "Tom bit a dog."
    rows = [{"what": f'infer "{text}"', BASE: programs.exec_to_exit_ms([infer, text], runs)}]
    words = " ".join(f"w{token_id}" for token_id in batch[0][1:-1])  # and [CLS] and [SEP]
    request = json.dumps({"batch": batch, "hidden": os.devnull}) + "\n"
    for model in models:
        size = os.path.getsize(os.path.join(model.folder, "model.safetensors")) / 1e6
        row = {"what": f"the first 1x16 of {model.name}, {size:.0f} MB"}
        for name in engines.precisions("f32"):
            command = ENGINES[name].command(model, programs.num_cores(), "f32")
            if name == BASE:
                command = [infer, "embed", "-q", "-m", model.folder, words]
            row[name] = programs.exec_to_exit_ms(command, runs, model.scratch, request)
        rows.append(row)
    return rows


def references_of(model, batches):
    """What ONNX Runtime computes in float32."""
    with engines.start(REFERENCE, model, None, programs.num_cores(), "f32") as reference:
        return {
            shape: hidden_of(reference, batch, model.d_model) for shape, batch in batches.items()
        }


def run(arguments):
    scratch = os.path.join(arguments.build, "peers")
    engines.install_onnxruntime(scratch)
    models = [subjects.Model(name, scratch, arguments.build) for name in arguments.models]
    batches = subjects.batches()
    sentence = {"1x16": batches["1x16"]}
    cores = programs.num_cores()
    unusable = {isa: engines.lacks(isa) for isa in arguments.isa if engines.lacks(isa)}
    left_out = {ENGINES[name].title: why for name, why in engines.missing().items()} | unusable
    for name, why in left_out.items():
        say(f"{name} is left out: {why}")
    results = {"cpu": programs.cpu_name(), "cores": cores, "tables": [], "busy": []}
    results["left_out"] = left_out
    for model in models:
        references = references_of(model, batches)
        for isa in [isa for isa in arguments.isa if isa not in unusable]:
            for threads in arguments.threads:
                for precision in arguments.precision:
                    table = compare(model, isa, threads, precision, batches, references, arguments)
                    results["tables"].append(table)
                    print(report.table(table), flush=True)
        with programs.busy(cores):
            results["busy"] += [
                compare(model, "native", cores, precision, sentence, references, arguments, "mean")
                for precision in arguments.precision
            ]
    print(report.busy(results["busy"], cores), flush=True)
    results["first_results"] = first_results(models, batches["1x16"], 2 * arguments.rounds)
    print(report.first_results(results["first_results"]), flush=True)
    results["memory"] = [
        peak_memory(model, precision, batches["32x128"])
        for model in models
        for precision in arguments.precision
    ]
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
    sys.exit(any(table["disagree"] for table in results["tables"] + results["busy"]))


if __name__ == "__main__":
    main()
