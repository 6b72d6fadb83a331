"""Computes the reading curve of docs/finding.md with NumPy alone, in float64: no code of phasor's, but its tokens.

    python3 docs/data/reading_by_numpy.py FOLDER [-i FILE] [--draws N] [--baseline own:SEED] [--json]

FOLDER holds a post-norm encoder to whose tokens positions are added once: one of phasor's format (models/sinusoidal,
models/learned) or a BERT in safetensors. The texts' ids come from `infer tokenize --json`, so that no tokenizer is
written again: --infer says which infer, and --tokens names a file that has its output (then --mask is [MASK]'s id).
The first and the last token of a text are special, all others are words.

Without positions, each word has the mean of the vectors of its text's words. Rows are shares of what that run loses:
left      the vectors less this mean, followed through the run's LayerNorms, are subtracted behind attention l;
random    vectors of the same lengths in random directions are;
shuffled  the vectors of the text's words are, each at another word's place;
later     only the attentions behind l have positions.
What is lost: the loss on masked words, with a masked-language-model head; and, of texts without masks, 1 - cosine and
the angle between the words' last states and those of the run with positions, both less the mean of these. Masks of
draw k are those of `infer observe --seed k`; random vectors and orders are drawn anew in each draw. Brackets: 95 %
intervals over texts. With --baseline own:SEED the blocks' matrices are normal, of the trained ones' root mean square,
biases are 0 and the gains of LayerNorms 1; --gains keeps the gains.
"""

import argparse
import json
import math
import os
import subprocess
import sys

try:
    import numpy as np
except ModuleNotFoundError:
    print(f"skipped: {sys.executable} has no NumPy")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = {"q": "attn.q", "k": "attn.k", "v": "attn.v", "out": "attn.out", "attn_norm": "attn_norm", "up": "mlp.up",
        "down": "mlp.down", "mlp_norm": "mlp_norm", "token": "token_embedding", "place": "position_embedding",
        "dense": "mlm.dense", "head_norm": "mlm.norm", "mlm": "mlm.bias", "block": "blocks.{}."}  # fmt: skip
BERT = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
        "out": "attention.output.dense", "attn_norm": "attention.output.LayerNorm", "up": "intermediate.dense",
        "down": "output.dense", "mlp_norm": "output.LayerNorm", "token": "embeddings.word_embeddings",
        "place": "embeddings.position_embeddings", "type": "embeddings.token_type_embeddings",
        "norm": "embeddings.LayerNorm", "dense": "cls.predictions.transform.dense",
        "head_norm": "cls.predictions.transform.LayerNorm", "mlm": "cls.predictions.bias",
        "block": "encoder.layer.{}."}  # fmt: skip
GRID = np.arange(-8, 8, 2**-12)
NORMAL = np.array([0.5 + 0.5 * math.erf(x / math.sqrt(2)) for x in GRID])


def gelu(x):
    return x * np.interp(x, GRID, NORMAL)  # within 2e-9


def tensors(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    data = np.memmap(path, np.uint8, "r", 8 + size)
    types = {"F16": np.float16, "F32": np.float32}
    return {
        name.removeprefix("bert."): data[slice(*about["data_offsets"])].view(types[about["dtype"]]).reshape(about["shape"])
        for name, about in header.items()
        if about.get("dtype") in types
    }


class Model:
    def __init__(self, folder, seed=None, gains=False):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        self.bert = self.config["model_type"] == "bert"
        self.names = BERT if self.bert else OURS
        self.all = tensors(os.path.join(folder, "model.safetensors"))
        get = self.config.get
        kind = get("position", {"kind": "learned"})["kind"]
        if get("norm_order", "post") != "post" or kind not in ("learned", "sinusoidal") or get("hidden_act", "gelu") != "gelu":
            sys.exit(f"{folder} is no post-norm encoder with added vectors and GELU")
        self.heads = get("num_attention_heads") or self.config["num_heads"]
        self.eps = self.config["layer_norm_eps"]
        count = get("num_hidden_layers") or self.config["num_layers"]
        self.blocks = [
            {part: self.pair(self.names["block"].format(l) + self.names[part]) for part in list(OURS)[:8]}
            for l in range(count)
        ]
        self.token = self.all[self.names["token"] + ".weight"]
        self.norm = self.pair(BERT["norm"]) if self.bert else None
        self.head = [self.pair(self.names[part]) for part in ("dense", "head_norm")] if self.names["mlm"] in self.all else None
        if seed is not None:
            self.randomize(np.random.default_rng(seed), gains)

    def pair(self, name):
        return tuple(self.all[f"{name}.{part}"].astype(np.float64) for part in ("weight", "bias"))

    def randomize(self, random, gains):
        self.head = None  # random weights lose nothing by the loss
        blank = lambda norm: (norm[0] if gains else np.ones_like(norm[0]), np.zeros_like(norm[1]))
        self.norm = self.norm and blank(self.norm)
        for block in self.blocks:
            for name, (weight, bias) in block.items():
                matrix = weight.ndim == 2
                spread = np.sqrt((weight**2).mean())
                block[name] = (random.normal(0, spread, weight.shape), 0 * bias) if matrix else blank((weight, bias))

    def vectors(self, place):
        """The position vectors of tokens at these places."""
        if self.names["place"] + ".weight" in self.all:
            return self.all[self.names["place"] + ".weight"][place].astype(np.float64)
        width = self.token.shape[1]
        angles = place[:, None] / self.config["position"]["base"] ** (np.arange(width) // 2 * 2 / width)
        return np.where(np.arange(width) % 2 == 0, np.sin(angles), np.cos(angles))

    def normalize(self, x, norm):
        return self.frozen(x, x, norm) + norm[1]

    def frozen(self, x, run, norm):
        """x less its mean, by the scale of the rows of a run."""
        deviation = np.sqrt(run.var(-1, keepdims=True) + self.eps)
        return (x - x.mean(-1, keepdims=True)) / deviation * norm[0]

    def attention(self, block, x, texts):
        def grid(part):  # [B, H, T, D]
            rows = np.zeros((*texts.there.shape, x.shape[1]))
            rows[texts.there] = x @ block[part][0].T + block[part][1]
            return rows.reshape(*texts.there.shape, self.heads, -1).transpose(0, 2, 1, 3)

        q, k, v = grid("q"), grid("k"), grid("v")
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
        scores = np.where(texts.there[:, None, None, :], scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)
        return mixed.reshape(*texts.there.shape, -1)[texts.there] @ block["out"][0].T + block["out"][1]

    def mlp(self, l, middle):
        """From the sum behind attention l to the sum behind its MLP."""
        block = self.blocks[l]
        x = self.normalize(middle, block["attn_norm"])
        return x + gelu(x @ block["up"][0].T + block["up"][1]) @ block["down"][0].T + block["down"][1]

    def run(self, texts, vectors):
        return Run(self, texts, vectors)

    def end(self, texts, l, middle):
        """The last states of a run that has `middle` behind attention l."""
        while True:
            x = self.normalize(self.mlp(l, middle), self.blocks[l]["mlp_norm"])
            l += 1
            if l == len(self.blocks):
                return x
            middle = x + self.attention(self.blocks[l], x, texts)

    def losses(self, states, hidden):
        (weight, bias), norm = self.head
        rows = self.normalize(gelu(states @ weight.T + bias), norm)
        logits = rows @ self.token.T.astype(np.float64) + self.all[self.names["mlm"]].astype(np.float64)
        highest = logits.max(-1)
        return np.log(np.exp(logits - highest[:, None]).sum(-1)) + highest - logits[np.arange(len(hidden)), hidden]


class Run:
    """The sums before the embedding's norm and behind each attention and MLP, and the last states."""

    def __init__(self, model, texts, vectors):
        tokens = model.token[texts.ids].astype(np.float64) * model.config.get("embedding_scale", 1)
        self.model, self.sum, self.middles, self.posts = model, tokens + vectors, [], []
        if model.bert:
            self.sum += model.all[BERT["type"] + ".weight"][0]
        x = model.normalize(self.sum, model.norm) if model.norm else self.sum
        for l, block in enumerate(model.blocks):
            self.middles.append(x + model.attention(block, x, texts))
            self.posts.append(model.mlp(l, self.middles[-1]))
            x = model.normalize(self.posts[-1], block["mlp_norm"])
        self.last = x

    def paths(self, vectors):
        """What is left of added vectors behind each attention."""
        frozen = self.model.frozen
        x = frozen(vectors, self.sum, self.model.norm) if self.model.norm else vectors
        found = []
        for block, middle, post in zip(self.model.blocks, self.middles, self.posts):
            found.append(x)
            x = frozen(frozen(x, middle, block["attn_norm"]), post, block["mlp_norm"])
        return found


def twister(seed):
    """std::mt19937_64."""
    whole, low = 2**64 - 1, 2**31 - 1
    state = [seed]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) & whole)
    while True:
        for i in range(312):
            x = state[i] & (whole ^ low) | state[(i + 1) % 312] & low
            state[i] = state[(i + 156) % 312] ^ x >> 1 ^ (0xB5026F5AA96619E9 if x & 1 else 0)
            x = state[i]
            x ^= x >> 29 & 0x5555555555555555
            x ^= x << 17 & 0x71D67FFFEDA60000
            x ^= x << 37 & 0xFFF7EEE000000000
            yield x ^ x >> 43


def draw_masks(count, seed):
    """15 % of the indices below `count`, at least one: as lens/study/masked.cc draws them."""
    indices, random = list(range(count)), twister(seed)
    masks = min(max(math.floor(0.15 * count + 0.5), 1), count)
    for i in range(masks):
        j = i + next(random) % (count - i)
        indices[i], indices[j] = indices[j], indices[i]
    return sorted(indices[:masks])


class Texts:
    """All texts as one list of tokens, and the places whose states are looked at."""

    def __init__(self, ids, mask=None, seed=0):
        sizes = [len(text) for text in ids]
        self.number, self.ids = len(ids), np.concatenate(ids)
        self.there = np.arange(max(sizes)) < np.array(sizes)[:, None]
        self.text, self.place = np.nonzero(self.there)
        self.words = (self.place > 0) & (self.place < np.array(sizes)[self.text] - 1)
        self.places = np.nonzero(self.words)[0]
        if mask is not None:
            masks = [draw_masks(len(text) - 2, seed + i) for i, text in enumerate(ids)]
            first = np.cumsum([1, *sizes[:-1]])
            self.places = np.concatenate([start + np.array(m) for start, m in zip(first, masks)])
            self.hidden = self.ids[self.places]
            self.ids[self.places] = mask

    def sums(self, values):
        return np.bincount(self.text[self.places], values, self.number)

    def mean(self, rows):
        """Of each text's words, at these."""
        counts = np.bincount(self.text[self.words], minlength=self.number)
        sums = np.zeros((self.number, rows.shape[1]))
        np.add.at(sums, self.text[self.words], rows[self.words])
        return np.where(self.words[:, None], (sums / counts[:, None])[self.text], rows)

    def shuffled(self, rows, random):
        rows = rows.copy()
        for i in range(self.number):
            places = np.nonzero(self.words & (self.text == i))[0]
            rows[places] = rows[random.permutation(places)]
        return rows


def random_like(rows, random):
    drawn = random.normal(size=rows.shape)
    return drawn * (np.linalg.norm(rows, axis=1) / np.linalg.norm(drawn, axis=1))[:, None]


def curve(model, texts, measure, seeds):
    """What is lost: by row and l, sums over each text [measures, B]; the control's are means over the seeds."""
    vectors = model.vectors(texts.place)
    mean = texts.mean(vectors)
    run, without = Run(model, texts, vectors), Run(model, texts, mean)
    score = measure(model, texts, run)
    path, missing = run.paths(vectors - mean), without.paths(vectors - mean)
    lost = {("without", 0): score(without.last), ("with", 0): score(run.last)}
    for l, middle in enumerate(run.middles):
        less = lambda rows: score(model.end(texts, l, middle - rows))
        lost["left", l + 1] = less(path[l])
        lost["later", l + 1] = score(model.end(texts, l, without.middles[l] + missing[l]))
        randoms = [np.random.default_rng([seed, l]) for seed in seeds]
        lost["random", l + 1] = np.mean([less(random_like(path[l], random)) for random in randoms], 0)
        lost["shuffled", l + 1] = np.mean([less(texts.shuffled(path[l], random)) for random in randoms], 0)
    return lost


def by_loss(model, texts, _):
    return lambda last: [texts.sums(model.losses(last[texts.places], texts.hidden))]


def by_distance(_, texts, run):
    middle = run.last[texts.places].mean(0)
    clean = run.last[texts.places] - middle

    def score(last):
        rows = last[texts.places] - middle
        cosine = (clean * rows).sum(1) / np.linalg.norm(clean, axis=1) / np.linalg.norm(rows, axis=1)
        return [texts.sums(1 - cosine), texts.sums(np.degrees(np.arccos(np.clip(cosine, -1, 1))))]

    return score


def shares(lost, which, draws):
    """Rows of a measure: name, and (value, low, high) of each l."""
    base = lost["with", 0][which]
    whole = lost["without", 0][which] - base
    rows = {}
    for (name, l), sums in lost.items():
        if l:
            sign = -1 if name == "later" else 1
            rows.setdefault(name, []).append(sign * (sums[which] - base) + (whole if name == "later" else 0))
    rows["left less random"] = [left - random for left, random in zip(rows["left"], rows["random"])]
    ratio = lambda part: [float(part.sum() / whole.sum()), *np.quantile(draws @ part / (draws @ whole), [0.025, 0.975])]
    return {name: [ratio(part) for part in parts] for name, parts in rows.items()}


def measured(model, ids, mask, draws):
    """By measure: what is lost without positions, for each place, and the shares."""
    seeds = range(1, draws + 1)
    lost = {}
    if model.head:
        by_seed = [curve(model, Texts(ids, mask, seed), by_loss, [seed]) for seed in seeds]
        masks = draws * len(Texts(ids, mask).places)
        lost["loss"] = ({key: sum(np.array(run[key]) for run in by_seed) for key in by_seed[0]}, 0, masks)
    distances = curve(model, Texts(ids), by_distance, seeds)
    for which, name in enumerate(["1 - cosine", "angle"]):
        lost[name] = (distances, which, len(Texts(ids).places))
    draws = np.random.default_rng(1).multinomial(len(ids), np.full(len(ids), 1 / len(ids)), 1000)
    return {
        name: {"lost": float((sums["without", 0][which] - sums["with", 0][which]).sum() / count), **shares(sums, which, draws)}
        for name, (sums, which, count) in lost.items()
    }


def tokens(arguments):
    """The ids of each text, and of [MASK]."""
    if arguments.tokens:
        with open(arguments.tokens, encoding="utf-8") as file:
            return [np.array(json.loads(line)["ids"]) for line in file], arguments.mask

    def tokenize(text, *options):
        command = [arguments.infer, "tokenize", "-q", "--json", "-m", arguments.folder, *options]
        done = subprocess.run([*command, "-"], check=True, capture_output=True, text=True, input=text)
        return [np.array(json.loads(line)["ids"]) for line in done.stdout.splitlines()]

    with open(arguments.input, encoding="utf-8") as file:
        texts = [ids for ids in tokenize(file.read()) if len(ids) > 2]
    return texts, int(tokenize("[MASK]", "--special")[0][1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("-i", "--input", default=os.path.join(HERE, "../../examples/sentences.txt"))
    parser.add_argument("--infer", default="infer")
    parser.add_argument("--tokens")
    parser.add_argument("--mask", type=int)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--baseline", metavar="own:SEED")
    parser.add_argument("--gains", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seed = int(arguments.baseline.removeprefix("own:")) if arguments.baseline else None
    found = measured(Model(arguments.folder, seed, arguments.gains), *tokens(arguments), arguments.draws)
    if arguments.json:
        return print(json.dumps(found))
    for name, rows in found.items():
        print(f"{name}: {rows.pop('lost'):.3f} lost without positions")
        for row, values in rows.items():
            print(f"  {row:16}", "  ".join(f"{x:5.3f} [{low:5.3f}, {high:5.3f}]" for x, low, high in values))


if __name__ == "__main__":
    main()
