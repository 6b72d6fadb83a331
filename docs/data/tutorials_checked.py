"""Computes the verdicts and numbers of docs/tutorials-checked.md, with NumPy alone.

    python3 docs/data/tutorials_checked.py [--check]   # writes them into the page, or compares them

A claim is an item of the page: `- ✔ **its words**` and the lines below. say() names its first words, its verdict (None:
a matter of how much) and its numbers in their order. What is off by rounding alone is given as the tolerance for it.
"""
import difflib
import json
import math
import pathlib
import re
import sys
try:
    import numpy as np
except ModuleNotFoundError:
    print(f"skipped: {sys.executable} has no NumPy")
    sys.exit(77)

DOCS = pathlib.Path(__file__).resolve().parents[1]
EXACT = 1e-12  # what doubles may be off
CLAIMS = {}


def say(words, verdict, *numbers):
    CLAIMS[words] = ({True: "✔", False: "✘", None: "≈"}[None if verdict is None else bool(verdict)], numbers)


def listed(values, digits=4):
    return ", ".join(f"{value + 0.0:.{digits}f}" for value in np.ravel(values))


def within(a, b, tolerance=EXACT):
    return np.abs(np.subtract(a, b)).max() <= tolerance


def paper(rows, width, n=10000.0, first=0):  # the table [rows, width]
    column = np.arange(width)
    angles = np.arange(first, first + rows)[:, None] / n ** (column // 2 * 2 / width)
    return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))


def wavelengths(table):  # of each pair of columns, from how far it turns between rows 0 and 1
    turned = np.arctan2(table[:2, 0::2], table[:2, 1::2])
    return 2 * np.pi / (turned[1] - turned[0])


def cosine_distances(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return 1 - unit @ unit.T


def by_offset(table):
    """The mean product of rows at each offset, and the share of the products' variance that these means explain."""
    products, place = table @ table.T, np.arange(len(table))
    offset = np.abs(place[:, None] - place)
    means = np.array([np.diagonal(products, k).mean() for k in place])
    of_two = offset > 0  # a row with itself is no likeness
    return means, 1 - ((products - means[offset])[of_two] ** 2).sum() / products[of_two].var() / of_two.sum()


def nearest_rows(table):  # how far they are apart, and at which offset
    return min((np.linalg.norm(table[k:] - table[:-k], axis=1).min(), k) for k in range(1, len(table)))


def off_a_sinusoid(y):  # every sinusoid has y(x + 1) + y(x − 1) = c·y(x): the largest residue, with the best c
    inner, outer = y[1:-1], y[2:] + y[:-2]
    return np.abs(outer - (outer @ inner) / (inner @ inner) * inner).max()


def run(name, ids):
    """The last states [T, C] of a bundled model, sinusoidal or none, and of each state the share of its length that the
    position vectors have on the direct path: through residual connections, and LayerNorms with the run's deviations."""
    folder = DOCS.parent / "models" / name
    config, data = json.loads((folder / "config.json").read_text()), (folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    weights = {
        key: np.frombuffer(data, np.float16, math.prod(at["shape"]), start + at["data_offsets"][0]).reshape(at["shape"])
        for key, at in json.loads(data[8:start]).items()
        if key != "__metadata__"
    }
    direct = paper(len(ids), config["d_model"]) * (config["position"]["kind"] == "sinusoidal")
    x = config["embedding_scale"] * weights["token_embedding.weight"][ids].astype(float) + direct
    shares = []

    def linear(key, x):
        return x @ weights[key + ".weight"].T.astype(float) + weights[key + ".bias"]

    def heads(x):
        return x.reshape(len(ids), config["num_heads"], -1).swapaxes(0, 1)

    def normed(key, x, direct):
        scale = weights[key + ".weight"] / np.sqrt(x.var(1, keepdims=True) + config["layer_norm_eps"])
        x, direct = (scale * (each - each.mean(1, keepdims=True)) for each in (x, direct))
        return x + weights[key + ".bias"], direct

    for block in (f"blocks.{layer}." for layer in range(config["num_layers"])):
        shares.append((np.linalg.norm(direct, axis=1) / np.linalg.norm(x, axis=1)).mean())
        q, k, v = (heads(linear(block + "attn." + each, x)) for each in "qkv")
        pattern = np.exp(q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2]))
        z = (pattern / pattern.sum(2, keepdims=True) @ v).swapaxes(0, 1).reshape(x.shape)
        x, direct = normed(block + "attn_norm", x + linear(block + "attn.out", z), direct)
        up = linear(block + "mlp.up", x)
        gelu = up * (1 + np.vectorize(math.erf)(up / math.sqrt(2))) / 2
        x, direct = normed(block + "mlp_norm", x + linear(block + "mlp.down", gelu), direct)
    return x, [*shares, (np.linalg.norm(direct, axis=1) / np.linalg.norm(x, axis=1)).mean()]


TOM_BIT_A_DOG = np.array([2, 1042, 839, 12, 1090, 7, 3])  # [CLS] Tom bit a dog . [SEP]


def progression(words):
    length, step = wavelengths(paper(2, 512)), 10000 ** (2 / 512)
    assert within(length[1:] / length[:-1], step, 1e-9)
    say(words, None, listed(length[0]), listed(length[-1], 1), listed(step), listed(2e4 * np.pi, 1))


def machine_learning_mastery():
    table, tolerance = paper(4, 4, 100), 5.1e-9
    printed = [[0, 1, 0, 1], [0.84147098, 0.54030231, 0.09983342, 0.99500417]]
    printed += [[0.90929743, -0.41614684, 0.19866933, 0.98006658], [0.14112001, -0.9899925, 0.29552021, 0.95533649]]
    say("The 4×4 table", within(table, printed, tolerance), listed(table[1], 8), f"{tolerance}")
    say("“0 ≤ k < L/2”", len(printed) <= 4 / 2, listed(table[2]), listed(table[3]))
    k, j = np.indices((4, 4))
    angle = k / np.where(j < 2, 1, 10)
    of = [(np.abs(table - np.where(x % 2 == 0, np.sin(angle), np.cos(angle))) <= EXACT).sum() for x in (j, k)]
    say("“Even positions", of[0] == 16, f"{of[0]}", f"{of[1]}")
    phrases = [paper(len(phrase.split()), 4, 100) for phrase in ("I am a robot", "Tom bit a dog")]
    say("“The positional encoding matrix", (phrases[0] == phrases[1]).all(), listed(phrases[1][1]))
    curves = [np.sin(k / 10000 ** (2 * np.arange(100) / 512)) for k in (0, 4, 8, 12)]
    say("The figure", within(paper(13, 512)[::4, :200:2], curves), f"{EXACT}", listed([y[-1] for y in curves]))
    rows, columns = ([off_a_sinusoid(y) for y in each] for each in (curves[1:], paper(100, 512).T[1:]))
    assert max(columns) <= EXACT
    say("“Each position k", max(rows) <= EXACT, listed(rows, 3), f"{EXACT}")
    progression("“The wavelengths of the sinusoids form")
    table = paper(1000, 512)
    say("“The sine and cosine functions", np.abs(table).max() <= 1, listed([table.min(), table.max()], 6))
    (wide, at), (narrow, there), zeros = nearest_rows(table), nearest_rows(paper(1000, 4)), (table[0] == 0).sum()
    say("“You have a unique", min(wide, narrow) > 0, listed(wide, 3), f"{at}", listed(narrow), f"{there}", f"{zeros}")
    means, explained = by_offset(table[:100])
    say("“You have a way of measuring", within(explained, 1), f"{EXACT}", f"{np.argmax(np.diff(means) > 0)}")


def geeks_for_geeks():
    printed, tolerance = [[0.841471, 0.540302, 0.01, 0.99995], [-0.279415, 0.96017, 0.059964, 0.998201]], 5.1e-7
    words = paper(6, 4, first=1)[[0, 5]]
    numbers = listed(words[0], 6), listed(words[1], 6), f"{tolerance}", listed(paper(1, 4), 0)
    say("PE(1) = 0.841471", within(words, printed, tolerance), *numbers)
    say("“Better Generalization", None, f"{np.abs(paper(10, 512) - paper(50, 512)[:10]).max():g}")


def kikaben():
    order = [0, 3, 4, 2, 1, 5, 6]  # [CLS] a dog bit Tom . [SEP]
    moved, pooled = [], []
    for name in ("none", "sinusoidal"):
        before, after = run(name, TOM_BIT_A_DOG)[0][order], run(name, TOM_BIT_A_DOG[order])[0]
        moved.append((np.linalg.norm(after - before, axis=1) / np.linalg.norm(before, axis=1)).mean())
        pooled.append(cosine_distances(np.stack([before.mean(0), after.mean(0)]))[0, 1])
    holds = max(moved[0], pooled[0]) <= EXACT
    say("“Without positional information", holds, f"{EXACT}", listed(moved[1], 3), listed(pooled[1], 3))
    table, steps = paper(128, 512), 127 * 256
    alternating, row = (table[0] == np.arange(512) % 2).sum(), table[1, [0, 1, 2, 3, 510, 511]]
    say("PE(0) = ", alternating == 512, f"{alternating}", "512")
    printed = [0.8414, 0.5403, 0.8218, 0.5696, 0.0001, 0.9999]
    say("PE(1) = (0.8414", within(np.trunc(row * 1e4) / 1e4, printed), listed(row, 8))
    progression("“The wavelengths form a geometric progression from 2π")
    x, y, speed = table[:, 0::2], table[:, 1::2], 2 * np.pi / wavelengths(table)  # sine to the right, cosine up
    clockwise = (x[:-1] * y[1:] - y[:-1] * x[1:] < 0).sum()
    holds = within(np.hypot(x, y), 1) and clockwise == steps and (np.diff(speed) < 0).all()
    say("“A clock with many", holds, f"{clockwise}", f"{steps}", f"{EXACT}", listed(speed[0]), listed(speed[-1], 6))
    holds, frequency = True, 10000 ** (-np.arange(0, 512, 2) / 512)
    for k in (1, 10, 100):
        turn, even = np.zeros((512, 512)), np.arange(0, 512, 2)
        turn[even, even] = turn[even + 1, even + 1] = np.cos(k * frequency)
        turn[even, even + 1], turn[even + 1, even] = np.sin(k * frequency), -np.sin(k * frequency)
        holds = holds and within(table[:28] @ turn.T, table[k : k + 28])
    say("“PE pos+k can", holds, f"{EXACT}")
    shares = run("sinusoidal", TOM_BIT_A_DOG)[1]
    say("“The positional encodings carry over", None, f"{shares[0]:.2f}", f"{shares[-1]:.2f}", f"{len(shares) - 1}")


def harrison_pim():
    table = paper(250, 1024, first=1)  # row p is position p + 1
    apart = cosine_distances(table)
    falls = np.flatnonzero(np.diff(apart[0]) < 0) + 1
    low, high, cut = table.min(), table.max(), np.abs(table[:30] - paper(30, 1024, first=1)).max()
    holds = len(falls) == 0 and low >= 0 and high <= 1 and cut == 0
    say("“Fulfils all of the criteria", holds, f"{cut:g}", f"{len(falls)}", "249", listed([low, high], 6))
    length = wavelengths(paper(2, 1024))
    say("“Early dimensions", length[0] > length[-1], listed(length[0]), listed(length[-1], 1))
    sines, cosines, both = (by_offset(each)[1] for each in (table[:, 0::2], table[:, 1::2], table))
    holds = max(sines, cosines) < 0.999 and within(both, 1)
    say("“If we were to use sin or cosine waves alone", holds, listed(sines), listed(cosines), f"{EXACT}")
    found = apart[[0, 0, 0, 29], [1, 2, 29, 30]]
    holds = within(found, [0.026488616022189992, 0.09339161307513, 0.4323030365719962, 0.02648861602218988])
    say("Cosine distances", holds, *(listed(x, 12) for x in found), f"{EXACT}")
    before, after = (listed(x, 6) for x in apart[0, falls[0] - 1 : falls[0] + 1])
    say("“The distances increase monotonically", len(falls) == 0, f"{len(falls)}", "249", before, f"{falls[0]}", after)
    place, centred = np.arange(250), table - table.mean(0)
    holds = within(apart, apart[0][np.abs(place[:, None] - place)]) and within(np.diag(apart), 0)
    say("The figure of the 250×250", holds, f"{EXACT}", listed(apart.max(), 6))
    squares, axes = np.linalg.eigh(centred @ centred.T)
    points = axes[:, -2:] * np.sqrt(squares[-2:])
    to = np.linalg.norm(points[:, None] - points, axis=2)
    step = 100 * np.diagonal(to, 1).max() / to.max()
    beside = (np.abs(np.argmin(to + np.diag(np.full(250, np.inf)), axis=1) - place) == 1).sum()
    say("“We'd expect them to fall", beside == 250 and step < 5, listed(step, 1), f"{beside}")


def alexey():
    shortest = wavelengths(paper(2, 512))[0]
    say("“The wavelengths form a geometric progression from π", within(shortest, np.pi, 1e-6), listed(shortest))
    say("“Can only be applied", not np.isfinite(paper(2, 5)).all(), listed(paper(2, 5)[1]))
    table = paper(10, 4)
    printed = """0.0000 1.0000 0.0000 1.0000 0.8415 0.5403 0.0100 0.9999 0.9093 -0.4161 0.0200 0.9998 0.1411 -0.9900
    0.0300 0.9996 -0.7568 -0.6536 0.0400 0.9992 -0.9589 0.2837 0.0500 0.9988 -0.2794 0.9602 0.0600 0.9982 0.6570 0.7539
    0.0699 0.9976 0.9894 -0.1455 0.0799 0.9968 0.4121 -0.9111 0.0899 0.9960""".split()
    rounded = listed(table.astype(np.float32)).split(", ")
    say("The 10×4 table", rounded == printed, ", ".join(rounded[4:8]), ", ".join(rounded[36:]))
    say("The last number", rounded[7] == "0.9999", rounded[7], listed(np.float32(table[1, 3]), 8), listed(table[1, 3]))
    seen, new = np.split(paper(256, 128), 2)
    beyond = np.maximum(new.max(0) - seen.max(0), seen.min(0) - new.min(0)) > 0.01
    say("“An ability to extrapolate", None, f"{beyond.sum()}", "128")
    kept, off = paper(10, 20)[:, :5], np.abs(paper(10, 20)[:, :4] - paper(10, 4)).max()
    say("“Suitable for varying", len(kept) == 5 or off == 0, f"{len(kept)}", listed(off))


def filled(page):
    for words, (mark, numbers) in CLAIMS.items():
        found = re.search(r"(?ms)^- [✔✘≈](?= \*\*" + re.escape(words) + r").*?(?=\n\n|\n- |\Z)", page)
        at, rest = re.compile(r"`[-+.,\de ]+`"), iter(numbers)
        if not found or len(at.findall(found[0])) != len(numbers):
            sys.exit(f"the page has no item with {len(numbers)} numbers that begins with: - {mark} **{words}")
        item = f"- {mark}" + at.sub(lambda _: f"`{next(rest)}`", found[0][3:])
        page = page[: found.start()] + item + page[found.end() :]
    marks = re.findall(r"(?m)^- ([✔✘≈]) \*\*", page)
    assert len(marks) == len(CLAIMS), f"{len(marks)} claims, of which {len(CLAIMS)} are computed"
    return re.sub(r"`\d+`(?= \(([✔✘≈])\))", lambda count: f"`{marks.count(count[1])}`", page)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    for tutorial in (machine_learning_mastery, geeks_for_geeks, kikaben, harrison_pim, alexey):
        tutorial()
    file = DOCS / "tutorials-checked.md"
    page, new = file.read_text(encoding="utf-8"), filled(file.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(difflib.unified_diff(page.split("\n"), new.split("\n"), "page", "computed", n=0)) or None)
    file.write_text(new, encoding="utf-8")
