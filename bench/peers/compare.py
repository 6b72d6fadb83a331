"""Measures phasor beside ONNX Runtime on the same weights, token ids and threads; see README.md."""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np

import programs
import report
import subjects
from subjects import say

REPO = os.path.dirname(os.path.dirname(subjects.HERE))
PRECISIONS = ("f32", "bf16", "int8")
ENGINES = ("phasor", "onnxruntime")


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
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each, in turns")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--json", metavar="FILE", help="write all results there as well")
    parser.add_argument("--build", metavar="FOLDER", help="a build, taken as it is")
    arguments = parser.parse_args()
    arguments.build = arguments.build or os.path.join(REPO, "build/release")
    for name in arguments.precision:
        if name not in PRECISIONS:
            parser.error(f"--precision: {name} is none of {', '.join(PRECISIONS)}")
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


def in_turns(engines, batches, rounds, seconds):
    """{shape: {engine: its answers, one a round}}; who comes first changes from round to round."""
    answers = {shape: {name: [] for name in engines} for shape in batches}
    order = list(engines)
    for _ in range(rounds):
        for shape, batch in batches.items():
            for name in order:
                time.sleep(0.1)  # until the other one's threads have stopped spinning
                answers[shape][name].append(engines[name].ask(batch=batch, seconds=seconds))
        order.reverse()
    return answers


def row_of(shape, batch, answers):
    tokens = sum(map(len, batch))
    row = {"shape": shape, "tokens": tokens}
    for name, rounds in answers.items():
        median = statistics.median(answer["median_ms"] for answer in rounds)
        least = min(answer["min_ms"] for answer in rounds)
        row[name] = {"median_ms": median, "min_ms": least, "tokens_per_s": 1e3 * tokens / median}
    row["ratio"] = row["phasor"]["tokens_per_s"] / row["onnxruntime"]["tokens_per_s"]
    return row


def compare(model, threads, precision, batches, references, arguments):
    """One table: the two engines, warm, over all batches."""
    say(f"{model.name}, {precision}, {report.threads(threads)}")
    with model.start_phasor(threads, precision) as phasor, model.start_onnxruntime(
        threads, precision
    ) as onnxruntime:
        engines = dict(zip(ENGINES, (phasor, onnxruntime)))
        outputs = {}
        for name, engine in engines.items():
            outputs[name] = worst(
                [
                    difference(hidden_of(engine, batch, model.d_model), references[shape])
                    for shape, batch in batches.items()
                ]
            )
        answers = in_turns(engines, batches, arguments.rounds, arguments.seconds)
        versions = {name: engine.hello["version"] for name, engine in engines.items()}
    rows = [row_of(shape, batch, answers[shape]) for shape, batch in batches.items()]
    return {
        "model": model.name,
        "shape": model.shape,
        "threads": threads,
        "precision": precision,
        "rows": rows,
        "geometric_mean": statistics.geometric_mean(row["ratio"] for row in rows),
        "outputs": outputs,
        "agree": agrees(precision, outputs["phasor"]),
        "versions": versions,
    }


def peak_memory(model, precision, batch):
    """What fresh programs have resident at most, on one thread."""
    say(f"{model.name}, {precision}, memory")
    result = {"model": model.name, "precision": precision}
    starts = (model.start_phasor, model.start_onnxruntime)
    for name, start in zip(ENGINES, starts):
        with start(1, precision) as engine:
            result[name] = engine.ask(batch=batch, seconds=1e-3)["peak_bytes"]
            result[name + "_base"] = engine.hello["base_bytes"]
    return result


def first_results(models, batch, runs):
    """From exec to exit, in milliseconds."""
    say("first results")
    infer = models[0].program("infer")
    text = "Tom bit a dog."
    rows = [{"what": f'infer "{text}"', "phasor": programs.exec_to_exit_ms([infer, text], runs)}]
    words = " ".join(f"w{token_id}" for token_id in batch[0][1:-1])  # and [CLS] and [SEP]
    for model in models:
        size = os.path.getsize(os.path.join(model.folder, "model.safetensors")) / 1e6
        command = [infer, "embed", "-q", "-m", model.folder, words]
        row = {"what": f"the first 1x16 of {model.name}, {size:.0f} MB"}
        row["phasor"] = programs.exec_to_exit_ms(command, runs)
        row["onnxruntime"] = programs.exec_to_exit_ms(
            model.onnxruntime(programs.num_cores(), "f32"),
            runs,
            model.scratch,
            json.dumps({"batch": batch, "hidden": os.devnull}) + "\n",
        )
        rows.append(row)
    return rows


def references_of(model, batches):
    """What ONNX Runtime computes in float32."""
    with model.start_onnxruntime(programs.num_cores(), "f32") as onnxruntime:
        return {
            shape: hidden_of(onnxruntime, batch, model.d_model) for shape, batch in batches.items()
        }


def run(arguments):
    scratch = os.path.join(os.path.abspath(arguments.build), "peers")
    subjects.install_onnxruntime(scratch)
    models = [subjects.Model(name, scratch, arguments.build) for name in arguments.models]
    batches = subjects.batches()
    results = {"cpu": programs.cpu_name(), "cores": programs.num_cores(), "tables": []}
    for model in models:
        references = references_of(model, batches)
        for threads in arguments.threads:
            for precision in arguments.precision:
                results["tables"].append(
                    compare(model, threads, precision, batches, references, arguments)
                )
                print(report.table(results["tables"][-1]), flush=True)
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
    except subjects.Skip as reason:
        say(f"skipped: {reason}")
        sys.exit(77)
    except programs.Failed as problem:
        say(problem)
        sys.exit(1)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump(results, out, indent=1)
    sys.exit(0 if all(table["agree"] for table in results["tables"]) else 1)


if __name__ == "__main__":
    main()
