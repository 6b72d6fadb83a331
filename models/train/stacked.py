"""Trains many models at once on a GPU: the same steps as train.py's, of all models of a kind together.

    python3 models/train/stacked.py WORK OUT once=1-6 every=1-6 third=1-3

WORK holds train.npz and valid.npz. Every model sees the batches, masks and initial values that train.py
gives its seed. OUT gets KIND-<n>M.safetensors at each of STAGES (the seeds' parameters, stacked), KIND.pt to go on
from, and log.csv. Sequences of a batch lie side by side in rows of `max_positions`, and attend to their own alone.
"""

import argparse
import csv
import itertools
import multiprocessing
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import data
import safetensors_io
import tokenizer as tok
from model import Config, Encoder
from train import Recipe, new_optimizer

KINDS = {
    "once": {},
    "every": {"added_before": (1, 2, 3, 4, 5, 6)},
    "third": {"added_before": (3,)},
    "deep": {"num_layers": 12},
    "pre": {"norm_order": "pre"},
    "normed": {"position": "learned", "embedding_norm": True},
    "learned": {"position": "learned"},
}
STAGES = (1, 2, 4, 8, 16, 32, 64)  # million tokens
ROWS = (32, 36, 40, 44, 48, 56, 64)  # to which a batch is filled up
ASKED = 832  # masked tokens of a batch, at most
FIELDS = ("kind", "seed", "step", "tokens", "learning_rate", "train_loss", "seconds")
CHUNK = 50  # batches that travel together


def config_of(kind):
    return Config(**({"position": "sinusoidal"} | KINDS[kind]))


def in_rows(token_ids, targets, length):
    """A masked batch [B, T] as rows: its arrays by name, filled up to ROWS[-1] rows and ASKED masks."""
    T = token_ids.shape[1]
    side = length // T  # sequences in a row
    rows = -(-len(token_ids) // side)
    laid = np.zeros((2, ROWS[-1] * side, T), np.int64)
    laid[0], laid[1] = tok.PAD, data.IGNORE
    laid[:, : len(token_ids)] = token_ids, targets
    rest = ((0, 0), (0, length - side * T))
    ids, asked = (
        np.pad(a.reshape(-1, side * T), rest, constant_values=fill)
        for a, fill in zip(laid, (tok.PAD, data.IGNORE))
    )
    columns = np.arange(length)
    where = np.flatnonzero(asked != data.IGNORE)
    spare = (0, ASKED - len(where))
    return {
        "rows": rows,
        "ids": ids.astype(np.int16),  # [R, length]
        "positions": np.broadcast_to(columns % T, ids.shape).astype(np.uint8),
        "texts": np.where(ids == tok.PAD, side, columns // T).astype(np.uint8),
        "where": np.pad(where, spare).astype(np.int32),  # [ASKED], in rows laid end to end
        "targets": np.pad(asked.flat[where], spare, constant_values=data.IGNORE).astype(np.int16),
    }


def batches(corpus, config, seed, recipe):
    """train.py's batches of a seed, each with its learning rate and the tokens seen after it."""
    tokens = 0
    for epoch in itertools.count():
        sequences = data.pack(corpus, config.max_positions, seed, epoch)
        together = data.batch_sequences(sequences, recipe.batch_tokens, seed, epoch)
        for index, batch in enumerate(together):
            seen, tokens = tokens, tokens + sum(map(len, batch))
            if seen >= recipe.round_start:
                masked = data.mask(batch, config.vocab_size, seed, epoch, index)
                rate = np.float32(recipe.learning_rate_at(seen))
                yield in_rows(*masked, config.max_positions) | {"rate": rate, "tokens": tokens}


def feed(queue, *arguments):
    """Puts CHUNK batches at a time on a queue, as arrays by name."""
    source = batches(*arguments)
    while True:
        together = [next(source) for _ in range(CHUNK)]
        queue.put({name: np.stack([b[name] for b in together]) for name in together[0]})


class Linear(nn.Module):
    def __init__(self, modules):
        super().__init__()
        self.weight = nn.Parameter(torch.stack([m.weight.detach() for m in modules]))  # [M, O, C]
        self.bias = nn.Parameter(torch.stack([m.bias.detach() for m in modules]))

    def forward(self, x):  # [M, ..., C]
        y = torch.baddbmm(self.bias[:, None], x.flatten(1, -2), self.weight.mT)
        return y.view(*x.shape[:-1], -1)


class LayerNorm(Linear):
    def __init__(self, modules):
        super().__init__(modules)
        self.eps = modules[0].eps

    def forward(self, x):
        shape = (len(x), *(1,) * (x.dim() - 2), -1)
        return torch.addcmul(
            self.bias.view(shape), F.layer_norm(x, x.shape[-1:], eps=self.eps), self.weight.view(shape)
        )


def pick(table, rows):
    """Of each of M tables [M, N, C] its rows [M, ...] -> [M, ..., C]."""
    flat = rows.flatten(1).long()[..., None].expand(-1, -1, table.shape[-1])
    return table.gather(1, flat).view(*rows.shape, -1)


class Embedding(nn.Module):
    def __init__(self, modules):
        super().__init__()
        self.weight = nn.Parameter(torch.stack([m.weight.detach() for m in modules]))

    def forward(self, ids):
        return pick(self.weight, ids)


STACKED = {nn.Linear: Linear, nn.LayerNorm: LayerNorm, nn.Embedding: Embedding}


def attend(q, k, v, bias, trace):
    """model.attend() by one kernel: [M, R, H, T, D], bias [M, R, 1, T, T]."""
    together = [t.flatten(0, 1) for t in (q, k, v)]
    mask = bias.flatten(0, 1).expand(-1, q.shape[-3], -1, -1)
    return F.scaled_dot_product_attention(*together, attn_mask=mask).view(q.shape)


def stack(models):
    """The first model, with each module's parameters replaced by those of all models: [M, ...]."""
    for name, module in list(models[0].named_modules()):
        parent, _, attribute = name.rpartition(".")
        if type(module) in STACKED:
            others = [m.get_submodule(name) for m in models]
            setattr(models[0].get_submodule(parent), attribute, STACKED[type(module)](others))
        elif hasattr(module, "attend"):
            module.attend = attend
    models[0].mlm.bias = nn.Parameter(torch.stack([m.mlm.bias.detach() for m in models]))
    return models[0]


class Stack:
    """The models of a kind, one a seed; parameters and AdamW's moments are rows of one array each."""

    def __init__(self, kind, seeds, recipe, device):
        self.kind, self.seeds, self.recipe = kind, seeds, recipe
        config = config_of(kind)
        like = Encoder(config, seed=1)
        optimizer = new_optimizer(like, recipe)
        self.betas, self.eps = optimizer.defaults["betas"], optimizer.defaults["eps"]
        groups = {p: group for group in optimizer.param_groups for p in group["params"]}
        groups = {name: groups[p] for name, p in like.named_parameters()}
        self.model = stack([Encoder(config, seed) for seed in seeds]).to(device)
        parameters = list(self.model.named_parameters())
        self.values = torch.cat([p.detach().flatten(1) for _, p in parameters], 1)  # [M, P]
        self.gradients, self.first, self.second = (torch.zeros_like(self.values) for _ in range(3))
        self.step = torch.zeros((), device=device)
        self.losses = torch.zeros(len(seeds), device=device)
        self.scale, self.decay = torch.zeros((2, self.values.shape[1]), device=device)
        self.pieces, begin = {}, 0
        for name, p in parameters:
            piece = slice(begin, begin + p[0].numel())
            self.pieces[name], begin = (piece, p.shape[1:]), piece.stop
            p.data = self.values[:, piece].view(p.shape)
            p.grad = self.gradients[:, piece].view(p.shape)
            self.scale[piece] = groups[name]["scale"]
            self.decay[piece] = groups[name]["weight_decay"]

    def loss(self, batch):  # [M]
        targets = batch["targets"].long()  # [M, N]
        h = self.model.run(batch["ids"].long(), batch["positions"].long(), batch["bias"])
        logits = self.model.mlm_logits(pick(h.flatten(1, 2), batch["where"]))  # [M, N, V]
        losses = F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=data.IGNORE, reduction="none"
        )
        return losses.view(targets.shape).sum(1) / (targets != data.IGNORE).sum(1)

    def train_step(self, batch):
        """As train.py's, with a gradient's norm and a learning rate for each model."""
        losses = self.loss(batch)
        losses.sum().backward()
        self.losses.copy_(losses.detach())
        self.step += 1
        gradients, (b1, b2) = self.gradients, self.betas
        norm = torch.linalg.vector_norm(gradients, dim=1, keepdim=True)
        gradients *= (self.recipe.clip / (norm + 1e-6)).clamp_max(1)
        self.first.lerp_(gradients, 1 - b1)
        self.second.mul_(b2).addcmul_(gradients, gradients, value=1 - b2)
        rate = batch["rate"][:, None] * self.scale  # [M, P]
        self.values.mul_(1 - rate * self.decay)
        root = (self.second / (1 - b2**self.step)).sqrt_().add_(self.eps)
        self.values.addcdiv_(rate.mul_(self.first).div_(b1**self.step - 1), root)
        gradients.zero_()

    def state(self):
        return {name: getattr(self, name) for name in ("values", "first", "second", "step")}

    def restore(self, state):
        for name, tensor in self.state().items():
            tensor.copy_(state[name])

    def save(self, file, values, tokens):
        tensors = {n: values[:, p].reshape(-1, *shape) for n, (p, shape) in self.pieces.items()}
        about = {"kind": self.kind, "seeds": " ".join(map(str, self.seeds)), "tokens": tokens}
        safetensors_io.save(file, {name: t.cpu().numpy() for name, t in tensors.items()}, about)


def load(file, device):
    """The stacked model of a file that Stack.save() wrote, its kind and its seeds."""
    tensors, about = safetensors_io.load(file)
    seeds = [int(seed) for seed in about["seeds"].split()]
    model = stack([Encoder(config_of(about["kind"]), seed) for seed in seeds])
    model.load_state_dict({name: torch.tensor(t) for name, t in tensors.items()})
    return model.to(device), about["kind"], seeds


def same_text(texts):
    """What is added to the scores of rows of several texts: [..., T] -> [..., 1, T, T]."""
    same = texts[..., None, :, None] == texts[..., None, None, :]
    return torch.zeros(same.shape, device=texts.device).masked_fill(~same, -torch.inf)


class Steps:
    """Steps of several stacks on one batch for each seed; on a GPU a recorded graph for each number of rows."""

    def __init__(self, stacks, seeds, device):
        self.stacks, self.device, self.graphs = stacks, device, {}
        self.of_seed = [torch.tensor([seeds.index(s) for s in k.seeds], device=device) for k in stacks]
        self.streams = [torch.cuda.Stream() for _ in stacks] if device == "cuda" else None
        self.batch = None

    def run(self, rows):
        whole = {name: a[:, :rows] if a.dim() == 3 else a for name, a in self.batch.items()}
        whole["bias"] = same_text(whole.pop("texts"))
        # All of them live until the last stream is done.
        batches = [{name: a[rows] for name, a in whole.items()} for rows in self.of_seed]
        if not self.streams:
            for k, batch in zip(self.stacks, batches):
                k.train_step(batch)
            return
        for k, batch, stream in zip(self.stacks, batches, self.streams):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                k.train_step(batch)
        for stream in self.streams:
            torch.cuda.current_stream().wait_stream(stream)

    def record(self, rows):
        kept = [{name: t.clone() for name, t in k.state().items()} for k in self.stacks]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.run(rows)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        pools = [graph.pool() for graph in self.graphs.values()]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pools[0] if pools else None):
            self.run(rows)
        self.graphs[rows] = graph
        for k, state in zip(self.stacks, kept):
            k.restore(state)

    def __call__(self, arrays, rows):
        if self.batch is None:
            self.batch = {name: a.clone() for name, a in arrays.items()}
        for name, a in arrays.items():
            self.batch[name].copy_(a)
        rows = min(r for r in ROWS if r >= rows)
        if self.device != "cuda":
            return self.run(rows)
        if rows not in self.graphs:
            self.record(rows)
        self.graphs[rows].replay()


def train(stacks, seeds, feeds, steps, recipe, out, limit):
    """Trains until every seed has had the recipe's tokens; the log gets a row for each model and 100 steps."""
    kept, totals = {}, [torch.zeros_like(k.losses) for k in stacks]
    before = np.full(len(seeds), recipe.round_start)
    started = time.time()
    with open(os.path.join(out, "log.csv"), "w", newline="") as log:
        csv.writer(log).writerow(FIELDS)
    for step in range(limit):
        i = step % CHUNK
        if i == 0:
            got = [queue.get() for queue in feeds]
            chunk = {name: np.stack([g[name] for g in got]) for name in got[0]}
            rows, tokens, rates = chunk.pop("rows").max(0), chunk.pop("tokens"), chunk["rate"]
            chunk = {name: torch.from_numpy(a).to(steps.device) for name, a in chunk.items()}
        steps({name: a[:, i] for name, a in chunk.items()}, rows[i])
        for total, k in zip(totals, stacks):
            total += k.losses
        for stage in STAGES:
            passed = (before < stage * 1e6) & (stage * 1e6 <= tokens[:, i])
            for k in stacks if passed.any() else ():
                values = kept.setdefault((k, stage), torch.zeros_like(k.values))
                for row, seed in enumerate(k.seeds):
                    if passed[seeds.index(seed)]:
                        values[row] = k.values[row]
        before = tokens[:, i]
        done = before.min() >= recipe.tokens or step + 1 == limit
        if done or (step + 1) % 100 == 0:
            with open(os.path.join(out, "log.csv"), "a", newline="") as log:
                for total, k in zip(totals, stacks):
                    for seed, loss in zip(k.seeds, total.tolist()):
                        at = seeds.index(seed)
                        loss = f"{loss / (step % 100 + 1):.4f}"
                        rate = f"{rates[at, i]:.3g}"
                        row = [k.kind, seed, step + 1, int(before[at]), rate, loss]
                        csv.writer(log).writerow(row + [f"{time.time() - started:.1f}"])
                    total.zero_()
        if done:
            break
    for (k, stage), values in kept.items():
        k.save(os.path.join(out, f"{k.kind}-{stage}M.safetensors"), values, stage * 10**6)
    for k in stacks:
        torch.save(k.state(), os.path.join(out, k.kind + ".pt"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", help="the folder with train.npz")
    parser.add_argument("out", help="the folder to write")
    parser.add_argument("models", nargs="+", metavar="KIND=FIRST-LAST", help="a kind and its seeds")
    parser.add_argument("--tokens", type=int, default=16_000_000)
    parser.add_argument("--decay", type=float, default=0.25)
    parser.add_argument("--round-start", type=int, default=0, help="go on from OUT/KIND.pt")
    parser.add_argument("--steps", type=int, default=10**9, help="stop after so many")
    arguments = parser.parse_args()

    recipe = Recipe(
        tokens=arguments.tokens, decay=arguments.decay, round_start=arguments.round_start
    )
    kinds = {}
    for model in arguments.models:
        kind, _, numbers = model.partition("=")
        first, last = map(int, numbers.split("-"))
        kinds[kind] = list(range(first, last + 1))
    seeds = sorted(set().union(*kinds.values()))
    corpus = data.Corpus.load(os.path.join(arguments.work, "train.npz"))
    feeds = []
    for seed in seeds:  # before the GPU is in use: they are forks
        feeds.append(multiprocessing.Queue(4))
        given = (feeds[-1], corpus, config_of("once"), seed, recipe)
        multiprocessing.Process(target=feed, args=given, daemon=True).start()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")  # TF32, on a GPU
    os.makedirs(arguments.out, exist_ok=True)
    stacks = [Stack(kind, seeds, recipe, device) for kind, seeds in kinds.items()]
    for k in stacks if recipe.round_start else ():
        k.restore(torch.load(os.path.join(arguments.out, k.kind + ".pt"), map_location=device))
    steps = Steps(stacks, seeds, device)
    train(stacks, seeds, feeds, steps, recipe, arguments.out, arguments.steps)


if __name__ == "__main__":
    main()
