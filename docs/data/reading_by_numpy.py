"""Computes the reading curve of docs/finding.md with NumPy alone, in float64, by no code of phasor's but its tokens.

    python3 docs/data/reading_by_numpy.py FOLDER [-i FILE] [--draws N] [--baseline own:SEED|bert:SEED] [--json] [--infer INFER]

FOLDER holds a post-norm encoder that adds positions to its tokens once, as safetensors: in phasor's format
(models/sinusoidal, models/learned) or a BERT. No tokenizer is written again: ids are those of `infer tokenize --json`,
of which the first and the last are special and all others words.

Without word positions, each word has the mean of the vectors of its text's words. Rows are shares of what that run loses:
left      the vectors less their mean, followed through the run's LayerNorms, are subtracted behind attention l;
random    norm-matched random vectors are, whose mean is matched, too;
shuffled  those of the text's words are, each at another word's place;
later     only the attentions behind l have positions.
What is lost: the loss on masked words, with a masked-language-model head; and, of texts without masks, 1 - cosine and
the angle between the words' last states and those of the run with positions, both less the mean of these. The masks of
draw k are those of `infer observe --seed k`; each draw has other random vectors and orders. Brackets: 95 % intervals
over texts. --baseline own: the blocks' matrices are normal, of the trained ones' root mean square, all biases of the
encoder 0, and the gains of its LayerNorms 1; bert: matrices and tables are normal of .02, as BERT begins.
"""

import argparse
import json
import math
import os
import subprocess
import sys

import numpy as np

SENTENCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/sentences.txt")
NAMES = """q attn.q attention.self.query, k attn.k attention.self.key, v attn.v attention.self.value,
out attn.out attention.output.dense, attn_norm attn_norm attention.output.LayerNorm, up mlp.up intermediate.dense,
down mlp.down output.dense, mlp_norm mlp_norm output.LayerNorm, block blocks.{}. encoder.layer.{}.,
token token_embedding.weight embeddings.word_embeddings.weight, mlm mlm.bias cls.predictions.bias,
position position_embedding.weight embeddings.position_embeddings.weight, norm - embeddings.LayerNorm,
type - embeddings.token_type_embeddings.weight, dense mlm.dense cls.predictions.transform.dense,
head_norm mlm.norm cls.predictions.transform.LayerNorm"""  # of tensors: here, in phasor's format, and in a BERT
STEPS = 4096  # of the table of the normal distribution, from -8 to 8
NORMAL = np.array([0.5 + 0.5 * math.erf(i / STEPS / 2**0.5) for i in range(-8 * STEPS, 8 * STEPS + 1)])
SLOPE = np.diff(NORMAL, append=1)


def gelu(x):  # within 1e-8
    at = np.clip((x + 8) * STEPS, 0, 16 * STEPS)
    i = at.astype(int)
    return x * (NORMAL[i] + (at - i) * SLOPE[i])


def frozen(x, run, gain, eps):
    """x less its mean, at the scale that a LayerNorm has in a run."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(run.var(-1, keepdims=True) + eps) * gain


def tensors(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    data, kinds = np.memmap(path, np.uint8, "r", 8 + size), {"F16": np.float16, "F32": np.float32}
    values = lambda at, dtype, shape: data[slice(*at)].view(kinds[dtype]).reshape(shape)
    found = {name: about for name, about in header.items() if about.get("dtype") in kinds}
    return {k.removeprefix("bert."): values(x["data_offsets"], x["dtype"], x["shape"]) for k, x in found.items()}


class Model:
    def __init__(self, folder, baseline=None):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        get, bert = self.config.get, self.config["model_type"] == "bert"
        kind, gelus = get("position", {"kind": "learned"})["kind"], (get("hidden_act"), get("activation"))
        if get("norm_order", "post") != "post" or kind not in ("learned", "sinusoidal") or "gelu" not in gelus:
            sys.exit(f"{folder}: not a post-norm encoder with GELU whose positions are added")
        self.eps, self.heads = get("layer_norm_eps"), get("num_attention_heads") or get("num_heads")
        self.names = {name.split()[0]: name.split()[1 + bert] for name in NAMES.split(",")}
        self.all = tensors(os.path.join(folder, "model.safetensors"))
        self.norm, self.blocks = self.pair(self.names["norm"]) if bert else None, []
        for l in range(get("num_hidden_layers") or get("num_layers")):
            block = self.names["block"].format(l)
            self.blocks.append({part: self.pair(block + self.names[part]) for part in list(self.names)[:8]})
        self.has_head = self.names["mlm"] in self.all
        if baseline is not None:
            kind, seed = baseline.split(":")
            self.randomize(kind == "bert", np.random.default_rng(int(seed)))

    def randomize(self, as_bert, random):
        one = lambda weight: (np.ones_like(weight), 0)
        for table in ("token", "position", "type") if as_bert else ():
            if (name := self.names[table]) in self.all:
                self.all[name] = random.normal(0, 0.02, self.all[name].shape)
        self.norm, self.has_head = self.norm and one(self.norm[0]), False  # by the loss, nothing would be lost
        for block in self.blocks:
            for part, (weight, _) in block.items():
                spread = 0.02 if as_bert else np.sqrt((weight**2).mean())
                block[part] = one(weight) if weight.ndim == 1 else (random.normal(0, spread, weight.shape), 0)

    def pair(self, name):  # weight and bias
        return [self.all[f"{name}.{part}"].astype(np.float64) for part in ("weight", "bias")]

    def vectors(self, place):
        """What is added to tokens at these places."""
        if self.names["position"] in self.all:
            return self.all[self.names["position"]][place].astype(np.float64)
        column = np.arange(self.config["d_model"])
        angles = place[:, None] / self.config["position"]["base"] ** (column // 2 * 2 / len(column))
        return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))

    def normalize(self, x, norm):
        return frozen(x, x, norm[0], self.eps) + norm[1]

    def embed(self, texts, vectors):
        rows = self.all[self.names["token"]][texts.ids].astype(np.float64) * self.config.get("embedding_scale", 1)
        return rows + vectors + (self.all[self.names["type"]][0] if self.norm else 0)

    def attend(self, block, x, texts):
        """The sum of a block's input and its attention's output."""
        there = texts.there

        def padded(part):  # [B, H, T, D]
            rows = np.zeros((*there.shape, x.shape[1]))
            rows[there] = x @ block[part][0].T + block[part][1]
            return rows.reshape(*there.shape, self.heads, -1).transpose(0, 2, 1, 3)

        q, k, v = padded("q"), padded("k"), padded("v")
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True)) * there[:, None, None, :]
        heads = weights / weights.sum(-1, keepdims=True) @ v
        rows = heads.transpose(0, 2, 1, 3).reshape(*there.shape, -1)[there]
        return x + rows @ block["out"][0].T + block["out"][1]

    def run(self, texts, x, first=0, middle=None):
        """The sums behind each attention and each MLP, and the last states. Begins with x, or behind attention `first`
        with the sum `middle`."""
        middles, posts = [], []
        for block in self.blocks[first:]:
            middles.append(self.attend(block, x, texts) if middle is None else middle)
            x, middle = self.normalize(middles[-1], block["attn_norm"]), None
            inner = gelu(x @ block["up"][0].T + block["up"][1])
            posts.append(x + inner @ block["down"][0].T + block["down"][1])
            x = self.normalize(posts[-1], block["mlp_norm"])
        return middles, posts, x

    def losses(self, states, hidden):
        weight, bias = self.pair(self.names["dense"])
        rows = self.normalize(gelu(states @ weight.T + bias), self.pair(self.names["head_norm"]))
        logits = rows @ self.all[self.names["token"]].T.astype(np.float64) + self.all[self.names["mlm"]]
        return np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(hidden)), hidden]


class Run:
    """A run that is kept, with its vectors."""

    def __init__(self, model, texts, vectors):
        self.model, self.sum = model, model.embed(texts, vectors)
        x = model.normalize(self.sum, model.norm) if model.norm else self.sum
        self.middles, self.posts, self.last = model.run(texts, x)

    def paths(self, x):
        """What is left of added vectors behind each attention."""
        scaled, found = lambda x, run, norm: frozen(x, run, norm[0], self.model.eps), []
        x = scaled(x, self.sum, self.model.norm) if self.model.norm else x
        for block, middle, post in zip(self.model.blocks, self.middles, self.posts):
            found.append(x)
            x = scaled(scaled(x, middle, block["attn_norm"]), post, block["mlp_norm"])
        return found


def twister(seed):
    """std::mt19937_64"""
    state = [seed]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) % 2**64)
    while True:
        for i in range(312):
            x = state[i] >> 31 << 31 | state[(i + 1) % 312] % 2**31
            x = state[i] = state[(i + 156) % 312] ^ x >> 1 ^ 0xB5026F5AA96619E9 * (x % 2)
            x ^= x >> 29 & 0x5555555555555555
            x ^= x << 17 & 0x71D67FFFEDA60000
            x ^= x << 37 & 0xFFF7EEE000000000
            yield x ^ x >> 43


def draw_masks(count, seed):
    """15 % of the indices below `count`, at least one, as lens/study/masked.cc draws them."""
    indices, random = list(range(count)), twister(seed)
    masks = max(math.floor(0.15 * count + 0.5), 1)
    for i in range(masks):
        j = i + next(random) % (count - i)
        indices[i], indices[j] = indices[j], indices[i]
    return indices[:masks]


class Texts:
    """The tokens of all texts, and the places whose states are compared: masks, or all words."""

    def __init__(self, ids, mask=None, seed=0):
        sizes = np.array([len(text) for text in ids])
        self.number, self.ids = len(ids), np.concatenate(ids)
        self.there = np.arange(max(sizes)) < sizes[:, None]
        self.text, self.place = np.nonzero(self.there)
        self.words = [end - size + 1 + np.arange(size - 2) for end, size in zip(np.cumsum(sizes), sizes)]
        if mask is not None:
            masks = [words[draw_masks(len(words), seed + i)] for i, words in enumerate(self.words)]
            self.hidden, self.ids[np.concatenate(masks)] = self.ids[np.concatenate(masks)], mask
        self.at = np.concatenate(self.words if mask is None else masks)

    def sums(self, values):
        """Over the places of each text."""
        return np.bincount(self.text[self.at], values, self.number)

    def changed(self, rows, change):
        """Rows whose words are changed, text by text."""
        rows = rows.copy()
        for words in self.words:
            rows[words] = change(rows[words])
        return rows


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def random_like(rows, random):
    """Norm-matched: the norm of the rows' mean, and the norm of all rows less it together."""
    mean, size = rows.mean(0), np.linalg.norm
    drawn = unit(random.normal(size=rows.shape)) * size(rows - mean, axis=1, keepdims=True)
    drawn, common = drawn - drawn.mean(0), random.normal(size=len(mean))
    return drawn * (size(rows - mean) / max(size(drawn), 1e-300)) + common * (size(mean) / size(common))


def lost(model, texts, score_of, seeds):
    """What runs lose, by name and l: sums over the places of each text, [measures, B]. Means over the seeds."""
    vectors = model.vectors(texts.place)
    mean = texts.changed(vectors, lambda rows: rows.mean(0))
    run, without = Run(model, texts, vectors), Run(model, texts, mean)
    score = score_of(model, texts, run)
    paths, missing = run.paths(vectors - mean), without.paths(vectors - mean)
    found = {("with", 0): score(run.last), ("without", 0): score(without.last)}
    for l, path in enumerate(paths):
        end = lambda middle: score(model.run(texts, None, l, middle)[-1])
        less = lambda rows: end(run.middles[l] - rows)
        found["left", l], found["later", l] = less(path), end(without.middles[l] + missing[l])
        draws = [np.random.default_rng([seed, l]) for seed in seeds]
        found["random", l] = np.mean([less(texts.changed(path, lambda rows: random_like(rows, random))) for random in draws], 0)
        found["shuffled", l] = np.mean([less(texts.changed(path, random.permutation)) for random in draws], 0)
    return found


def losses(model, texts, _):
    return lambda last: np.array([texts.sums(model.losses(last[texts.at], texts.hidden))])


def distances(_, texts, run):
    mean = run.last[texts.at].mean(0)
    clean = unit(run.last[texts.at] - mean)

    def score(last):
        cosine = np.clip((clean * unit(last[texts.at] - mean)).sum(1), -1, 1)
        return np.array([texts.sums(1 - cosine), texts.sums(np.degrees(np.arccos(cosine)))])

    return score


def shares(found, measure, places, draws):
    """What a place loses without word positions, and by row the share's [value, low, high] of each l."""
    sums = {key: values[measure] - found["with", 0][measure] for key, values in found.items()}
    whole, rows = sums["without", 0], {}
    ratio = lambda part: [part.sum() / whole.sum(), *np.quantile(draws @ part / (draws @ whole), [0.025, 0.975])]
    for l in range(len(found) // 4):
        left, random, shuffled, later = (sums[name, l] for name in ("left", "random", "shuffled", "later"))
        parts = {"left": left, "random": random, "shuffled": shuffled}
        for name, part in {**parts, "left less random": left - random, "later": whole - later}.items():
            rows.setdefault(name, []).append(ratio(part))
    return {"lost": whole.sum() / places, **rows}


def measured(model, ids, mask, num_draws, by=("loss", "1 - cosine", "angle")):
    """The shares of each measure."""
    draws = np.random.default_rng(1).multinomial(len(ids), np.full(len(ids), 1 / len(ids)), 1000)
    seeds, found = range(1, num_draws + 1), {}
    if model.has_head and "loss" in by:
        texts = [Texts(ids, mask, seed) for seed in seeds]
        each = [lost(model, drawn, losses, [seed]) for drawn, seed in zip(texts, seeds)]
        pooled = {key: sum(one[key] for one in each) for key in each[0]}
        found["loss"] = shares(pooled, 0, num_draws * len(texts[0].at), draws)
    if "angle" in by:
        sums = lost(model, Texts(ids), distances, seeds)
        for i, name in enumerate(["1 - cosine", "angle"]):
            found[name] = shares(sums, i, len(Texts(ids).at), draws)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("-i", "--input", default=SENTENCES)
    parser.add_argument("--infer", default="infer")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--baseline", metavar="own:SEED|bert:SEED")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()

    def tokenize(text, *options):
        command = [chosen.infer, "tokenize", "-q", "--json", "-m", chosen.folder, *options, "-"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, input=text)
        return [np.array(json.loads(line)["ids"]) for line in done.stdout.splitlines()]

    with open(chosen.input, encoding="utf-8") as file:
        ids = [text for text in tokenize(file.read()) if len(text) > 2]
    found = measured(Model(chosen.folder, chosen.baseline), ids, tokenize("[MASK]", "--special")[0][1], chosen.draws)
    if chosen.json:
        return print(json.dumps(found))
    for name, rows in found.items():
        print(f"{name}: {rows.pop('lost'):.3f} lost without word positions")
        for row, values in rows.items():
            print(f"  {row:16}", "  ".join(f"{x:5.3f} [{low:5.3f}, {high:5.3f}]" for x, low, high in values))


if __name__ == "__main__":
    main()
