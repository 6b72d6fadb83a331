"""The results as Markdown."""


def _table(head, rows):
    """The first column is words, the others are numbers."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def threads(number):
    return "1 thread" if number == 1 else f"{number} threads"


def _outputs(table):
    outputs = table["outputs"]
    if table["precision"] == "f32":
        text = f"Largest difference of an output: {outputs['phasor']['max_diff']:.1e}."
    else:
        text = (
            "Mean cosine of a token with float32, the worst of the shapes: "
            f"phasor {outputs['phasor']['mean_cosine']:.5f}, "
            f"ONNX Runtime {outputs['onnxruntime']['mean_cosine']:.5f}."
        )
    return text if table["agree"] else f"**These do not agree.** {text}"


def table(result):
    """One model, number of threads and precision."""
    peer = "ONNX Runtime" + (" in f32" if result["precision"] == "bf16" else "")
    rows = [
        [
            row["shape"],
            f"{row['phasor']['tokens_per_s']:.0f}",
            f"{row['onnxruntime']['tokens_per_s']:.0f}",
            f"{row['ratio']:.2f}",
        ]
        for row in result["rows"]
    ]
    rows.append(["geometric mean", "", "", f"{result['geometric_mean']:.2f}"])
    title = f"{result['model']}, {result['precision']}, {threads(result['threads'])}"
    head = ["shape", "phasor tokens/s", f"{peer} tokens/s", "ratio"]
    return f"### {title}\n\n{_table(head, rows)}\n{_outputs(result)}\n"


def first_results(results):
    rows = [
        [row["what"], *(f"{row[name]:.0f} ms" if name in row else "" for name in _ENGINES)]
        for row in results
    ]
    return "### From exec to exit\n\n" + _table(["", "phasor", "ONNX Runtime in Node"], rows)


def memory(results):
    def mib(row, name):
        return f"{row[name] / 2**20:.0f} MiB"

    rows = [
        [
            f"{row['model']}, {row['precision']}",
            mib(row, "phasor"),
            f"{mib(row, 'onnxruntime')} (Node alone: {mib(row, 'onnxruntime_base')})",
        ]
        for row in results
    ]
    head = ["", "phasor", "ONNX Runtime in Node"]
    return "### Most memory resident at 32x128, 1 thread\n\n" + _table(head, rows)


def setting(results, arguments):
    """Where and how it was measured."""
    versions = "; ".join(results["tables"][0]["versions"].values())
    return (
        f"{results['cpu']}, {results['cores']} cores; {versions}. Medians of {arguments.rounds} "
        f"rounds of {arguments.seconds} s in turns. Padding does not count as tokens."
    )


_ENGINES = ("phasor", "onnxruntime")
