"""The results as Markdown."""

import numpy as np

from engines import BASE, ENGINES, ISAS

QUALITIES = (
    ("largest difference", "max_diff", ".1e"),
    ("mean cosine of a token, worst batch", "mean_cosine", ".5f"),
    ("mean cosine of a text", "text_cosine", ".5f"),
    ("Spearman", "spearman", ".4f"),
)


def _table(head, rows):
    """The first column is words, the others are numbers."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def threads(number):
    return "1 thread" if number == 1 else f"{number} threads"


def parts(model, precision, isa, num_threads):
    """A table's title."""
    return [model, precision, *([ISAS[isa].title] if ISAS[isa] else []), threads(num_threads)]


def _title(name):
    return ENGINES[name].title


def _measured(rows):
    """The engines that some row has."""
    return [name for name in ENGINES if any(name in row for row in rows)]


def _speeds(what, rows, result=None):
    """A column of speeds for each engine, of ratios for each peer; `rows`: (words, values)."""
    names = _measured([row for _, row in rows])
    peers = [name for name in names if name != BASE]
    head = [what, *map(_title, names), *(f"phasor / {_title(name)}" for name in peers)]
    lines = []
    for words, row in rows:
        speeds = [f"{row[name]['per_s']:.0f}" if name in row else "" for name in names]
        lines.append([words, *speeds, *_ratios(row["ratios"], peers)])
    if result:
        for words, key in (("", ""), (", of the fastest", "_fastest")):
            means = _ratios(result[f"geometric_means{key}"], peers)
            lines.append([f"geometric mean{words}", *[""] * len(names), *means])
        for words, key, number in QUALITIES:
            values = [f"{result['outputs'][name].get(key, np.nan):{number}}" for name in names]
            if "nan" not in values:
                lines.append([words, *values, *[""] * len(peers)])
    return _table(head, lines)


def _ratios(ratios, peers):
    return [f"{ratios[name]:.2f}" if name in ratios else "" for name in peers]


def _notes(result):
    """Which engines do not agree, and which are left out."""
    notes = [f"Tokens a second (texts: texts a second); what differs, from {result['reference']} in f32."]
    notes += [f"**{_title(name)} does not agree.**" for name in result["disagree"]]
    for reason in dict.fromkeys(result["left_out"].values()):
        names = [_title(name) for name, why in result["left_out"].items() if why == reason]
        notes.append(f"Not measured: {', '.join(names)} ({reason}).")
    return "\n".join(notes) + "\n"


def table(result):
    """One model, number of threads and precision."""
    title = ", ".join(
        parts(result["model"], result["precision"], result["isa"], result["threads"])
    )
    rows = [(row["shape"], row) for row in result["rows"]]
    speeds = _speeds("shape", rows, result)
    return f"### {title}\n\n{speeds}\n{_notes(result)}"


def _in_host(name):
    host = ENGINES[name].host
    return f"{_title(name)} in {host}" if host else _title(name)


def memory(rows):
    def cell(row, name):
        if name not in row:
            return ""
        text, host = f"{row[name] / 2**20:.0f} MiB", ENGINES[name].host
        return f"{text} ({host} alone: {row[name + '_base'] / 2**20:.0f} MiB)" if host else text

    names = _measured(rows)
    lines = [
        [f"{row['model']}, {row['precision']}", *(cell(row, name) for name in names)]
        for row in rows
    ]
    title = "### Most memory resident at 32x128, 1 thread"
    return f"{title}\n\n" + _table(["", *map(_in_host, names)], lines)


def setting(results, arguments):
    """Where and how it was measured."""
    versions = {}
    for result in results["tables"]:
        versions |= result["versions"]
    left_out = "".join(f" {name} is left out: {why}." for name, why in results["left_out"].items())
    return (
        f"{results['cpu']}, {results['cores']} cores; {'; '.join(versions.values())}. Medians of "
        f"{arguments.rounds} rounds of {arguments.seconds} s, in random order. Padding does not count as "
        f"tokens.{left_out}"
    )
