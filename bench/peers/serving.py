"""Measures infer serve beside encoder_bench, and beside ONNX Runtime behind a small HTTP server; see README.md."""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import urllib.request

import engines
import programs
import subjects
from programs import Failed, Skip, say

SPECIAL_TOKENS = 2  # [CLS] and [SEP]
AGREE = 1e-4  # of numbers of two vectors of length 1


def parse_arguments():
    def numbers(text):
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(prog="bench/peers/run serving", description=__doc__)
    parser.add_argument("--model", default="minilm", help="minilm, bert-base, or d_model/num_layers/num_heads/d_ff")
    parser.add_argument("--clients", type=numbers, default=[1, 16, 256], help="at once; like 1,16,256")
    parser.add_argument(
        "--threads", type=int, default=programs.num_cores(), help="of the engines; fewer leave a core to the clients"
    )
    parser.add_argument("--words", type=int, default=32, help="of a text; each is a token")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each, in turns")
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--build", metavar="FOLDER", help="a build, taken as it is")
    arguments = parser.parse_args()
    return arguments


@contextlib.contextmanager
def infer_serve(model, threads):
    program = os.path.join(model.build, "bin/infer")
    command = [program, "serve", "-m", model.checkpoint, "--port", "0", "--threads", str(threads)]
    # Its log is a line an answer, as in use.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        note = process.stderr.readline()  # when the model is loaded
        if "http://" not in note:
            raise Failed(f"infer serve says: {note}")
        yield int(note.rsplit(":", 1)[1])
    finally:
        process.terminate()
        process.wait()


def output_of(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {result.returncode}: {result.stderr}{result.stdout}")
    return result.stdout


def vector(port, text):
    body = json.dumps({"inputs": [text]}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/embed", body) as reply:
        return json.load(reply)[0]


def load(port, model, clients, arguments):
    program = os.path.join(model.build, "bin/serve_load")
    command = [program, str(port), "--json", "--clients", str(clients)]
    command += ["--seconds", str(arguments.seconds), "--words", str(arguments.words)]
    command += ["--vocabulary", os.path.join(model.checkpoint, "vocab.txt")]
    return json.loads(output_of(command))


def bench(model, clients, arguments):
    """Texts a second of as many as there are clients, in one batch of token ids."""
    shape = f"{clients}x{arguments.words + SPECIAL_TOKENS}"
    command = [os.path.join(model.build, "bin/encoder_bench"), "--model", model.checkpoint, "--shape", shape]
    command += ["--threads", str(arguments.threads), f"--benchmark_min_time={arguments.seconds}"]
    measured = json.loads(output_of([*command, "--benchmark_format=json"]))
    return {"texts_per_s": measured["benchmarks"][0]["texts/s"]}


def table(rows, model, arguments):
    lines = [
        f"{model.name} ({model.shape}), float32, texts of {arguments.words} words, one a request, "
        f"{arguments.threads} threads, {programs.num_cores()} cores ({programs.cpu_name()})",
        "",
        "| clients | `encoder_bench`, texts/s | `infer serve`, texts/s | p50, ms | p99, ms | of `encoder_bench` "
        "| ONNX Runtime, texts/s | p50, ms | p99, ms |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for clients, measured in rows.items():
        mid = {
            (name, key): statistics.median(each[key] for each in rounds)
            for name, rounds in measured.items()
            for key in rounds[0]
        }
        share = statistics.median(
            ours["texts_per_s"] / most["texts_per_s"]
            for ours, most in zip(measured["serve"], measured["bench"])
        )
        cells = [f"{clients}", f"{mid['bench', 'texts_per_s']:.0f}", f"{mid['serve', 'texts_per_s']:.0f}"]
        cells += [f"{mid['serve', 'p50_ms']:.1f}", f"{mid['serve', 'p99_ms']:.1f}", f"{100 * share:.0f} %"]
        cells += [f"{mid['onnxruntime', 'texts_per_s']:.0f}"]
        cells += [f"{mid['onnxruntime', 'p50_ms']:.1f}", f"{mid['onnxruntime', 'p99_ms']:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def run(arguments):
    engines.install("onnxruntime", allowed=not arguments.build)
    arguments.build = os.path.abspath(arguments.build or os.path.join(subjects.REPO, "build/release"))
    model = subjects.Model(arguments.model, arguments.build)
    peer = engines.start("onnxruntime", model, None, arguments.threads, "f32", "--serve")
    with infer_serve(model, arguments.threads) as ours, peer:
        theirs = peer.hello["port"]
        text = "w123 w4567 w20 w30000"
        both = zip(vector(ours, text), vector(theirs, text))
        if max(abs(a - b) for a, b in both) > AGREE:
            raise Failed("the two servers' vectors differ")
        rows = {clients: {"bench": [], "serve": [], "onnxruntime": []} for clients in arguments.clients}
        for number in range(arguments.rounds):
            for clients, measured in rows.items():
                say(f"round {number + 1} of {arguments.rounds}, {clients} clients")
                measured["bench"].append(bench(model, clients, arguments))
                measured["serve"].append(load(ours, model, clients, arguments))
                measured["onnxruntime"].append(load(theirs, model, clients, arguments))
    print(table(rows, model, arguments))


if __name__ == "__main__":
    try:
        run(parse_arguments())
    except Skip as reason:
        say(f"skipped: {reason}")
        sys.exit(77)
    except Failed as problem:
        say(problem)
        sys.exit(1)
