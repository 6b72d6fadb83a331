"""The Python package measured: what Python costs.

    build/python/venv/bin/python bench/python_bench.py [--threads N] [--rounds N] [--million]

Run ./dev python and ./dev build infer before. Prints Markdown; all figures are medians of measurements in turns.
"""

import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

import phasor
from phasor import _library as c

ROOT = pathlib.Path(__file__).resolve().parents[1]

TEXT = "Tom bit a dog."


def seconds(function, repeat=1):
    start = time.perf_counter()
    for _ in range(repeat):
        function()
    return (time.perf_counter() - start) / repeat


def in_turns(rounds, *functions, repeat=1):
    """The times of each function in each round, [functions][rounds]."""
    for function in functions:
        function()
    times = [[seconds(function, repeat) for function in functions] for _ in range(rounds)]
    return list(zip(*times))


def ratio(a, b):
    """The median of a / b, and its middle half."""
    ratios = sorted(x / y for x, y in zip(a, b))
    quarter = len(ratios) // 4
    return statistics.median(ratios), ratios[quarter], ratios[-1 - quarter]


def sentences(count):
    lines = (ROOT / "examples" / "sentences.txt").read_text("utf-8").splitlines()
    lines = [line for line in lines if line.strip()]
    return [f"{lines[i % len(lines)]} {i}" for i in range(count)]


def one_sentence(threads, rounds):
    """encode() of a short text beside the same call of the C interface with everything prepared."""
    encoder = phasor.Encoder("sinusoidal", threads=threads)
    borrowed = c.BorrowedTexts([TEXT])
    out = np.empty((1, encoder.get_sentence_embedding_dimension()), np.float32)
    options = c.TextOptions(output=c.address(out), output_size=out.size)
    handle = encoder._handle.encoder
    direct, whole = in_turns(
        20 * rounds,
        lambda: c.check(c.lib.embed(handle, borrowed.pointer, ctypes.byref(options), None)),
        lambda: encoder.encode(TEXT),
        repeat=200,
    )
    overhead = statistics.median(w - d for w, d in zip(whole, direct))
    print(
        f"One sentence of 7 tokens: {1e6 * statistics.median(whole):.0f} µs, of which Python takes "
        f"{1e6 * overhead:.1f} µs."
    )


def many_sentences(threads, rounds, model, count=10_000):
    """encode() beside `infer embed`, without the time to start and load of either."""
    infer = c.PREFIX / "bin" / "infer"
    with tempfile.TemporaryDirectory() as folder:
        texts, vectors, one = (os.path.join(folder, name) for name in ("t", "v.npy", "o.npy"))
        lines = sentences(count)
        pathlib.Path(texts).write_text("\n".join(lines) + "\n", "utf-8")
        pathlib.Path(one + ".txt").write_text(TEXT + "\n", "utf-8")
        command = [infer, "embed", "-q", "-m", model, "-t", str(threads)]
        encoder = phasor.Encoder(model, threads=threads)

        def run(source, target):
            subprocess.run([*command, "-i", source, "-o", target], check=True)

        whole, start, python = in_turns(
            rounds,
            lambda: run(texts, vectors),
            lambda: run(one + ".txt", one),
            lambda: encoder.encode(lines),
        )
        assert np.array_equal(np.load(vectors), encoder.encode(lines))
    program = [w - s for w, s in zip(whole, start)]
    middle, low, high = ratio(python, program)
    print(
        f"{count} sentences, {model}, {threads} threads: encode() takes {middle:.3f} ({low:.3f} to "
        f"{high:.3f}) of the time of `infer embed`."
    )


def resident_mb():
    with open("/proc/self/statm", encoding="ascii") as source:
        return int(source.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def a_million(threads):
    encoder = phasor.Encoder("sinusoidal", threads=threads)
    count = 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        out = np.lib.format.open_memmap(
            os.path.join(folder, "v.npy"), "w+", np.float32, (count, 128)
        )
        memory = []

        def texts():
            for i in range(count):
                if i % (count // 10) == 0:
                    out._mmap.madvise(4)  # MADV_DONTNEED: what was written to the file does not count
                    memory.append(resident_mb())
                yield f"Tom bit dog {i}."

        took = seconds(lambda: encoder.encode(texts(), out=out))
    shown = ", ".join(f"{mb:.0f}" for mb in memory)
    print(f"A million sentences in {took:.0f} s; resident memory at each tenth, in MB: {shown}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--million", action="store_true", help="embed a million sentences, too")
    arguments = parser.parse_args()
    one_sentence(arguments.threads, arguments.rounds)
    many_sentences(arguments.threads, arguments.rounds, "sinusoidal")
    if arguments.million:
        a_million(arguments.threads)


if __name__ == "__main__":
    main()
