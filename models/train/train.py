"""Trains one twin as a masked language model on one thread; a killed run goes on where it was.

    python3 models/train/train.py WORK --position sinusoidal --tokens 27000000

WORK holds tokenizer.model, train.npz and valid.npz (tokenizer.py, data.py). The run writes
WORK/<name>.pt (the checkpoint) and WORK/<name>.csv (the log). The learning rate is warmed up, held,
and brought to zero over the last part of the budget; until that part begins nothing depends on the
budget, so a run may be stopped and resumed with another --tokens. A finished run goes on in a
second round with a larger --tokens and --round-start set to what it had seen.
"""

import argparse
import csv
import dataclasses
import os
import time

import numpy as np
import torch

import data
import tokenizer as tok
from model import NORM_ORDERS, POSITIONS, Config, Encoder

VALIDATION_SEED = 1929  # the validation masks are the same for every seed and every twin
FIELDS = (
    "step",
    "tokens",
    "learning_rate",
    "train_loss",
    "valid_loss",
    "valid_accuracy",
    "seconds",
)


@dataclasses.dataclass(frozen=True)
class Recipe:
    seed: int = 1
    tokens: int = 27_000_000  # the budget, all rounds together; padding does not count
    round_start: int = 0  # tokens seen when this round of warm-up, hold and decay began
    batch_tokens: int = 4096  # of one step, padding included
    learning_rate: float = 1e-3
    warmup_tokens: int = 1_000_000
    decay: float = 0.5  # the part of the budget over which the learning rate falls to zero
    weight_decay: float = 0.01  # of matrices
    clip: float = 1.0

    def learning_rate_at(self, tokens):
        seen, budget = tokens - self.round_start, self.tokens - self.round_start
        rising = min(1.0, seen / self.warmup_tokens) if self.warmup_tokens else 1.0
        falling = (budget - seen) / (self.decay * budget) if self.decay else 1.0
        return self.learning_rate * max(0.0, min(rising, falling))


def new_optimizer(model, recipe):
    """AdamW; `scale` multiplies the learning rate of a group.

    Tokens reach x as sqrt(C)·E[id], positions as P[pos]: with one rate for both tables, what is
    learned about a position would move sqrt(C) times more slowly than what is about a token. So
    it is with T5's biases, which reach scores as they are, where E and W reach them multiplied.
    """
    tables = ("position_embedding.weight", "relative_bias.weight")
    positions = [p for name, p in model.named_parameters() if name in tables]
    matrices = [p for p in model.parameters() if p.dim() == 2 and p not in set(positions)]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay, "scale": 1.0},
        {"params": vectors, "weight_decay": 0.0, "scale": 1.0},
    ]
    if positions:
        scale = model.config.embedding_scale
        groups.append({"params": positions, "weight_decay": recipe.weight_decay, "scale": scale})
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-6)


def masked_rows(model, token_ids, targets):
    """Logits [N, V] and targets [N] of the masked tokens alone; the others are never projected."""
    token_ids = torch.from_numpy(token_ids)  # [B, T]
    targets = torch.from_numpy(targets).flatten()  # [B·T]
    h = model(token_ids, token_ids == tok.PAD).flatten(0, 1)  # [B·T, C]
    rows = (targets != data.IGNORE).nonzero().flatten()
    return model.mlm_logits(h[rows]), targets[rows]


def cross_entropy(logits, targets):  # [N, V], [N] -> []
    """F.cross_entropy from softmax, whose backward pass is ten times as fast in PyTorch 1.13."""
    probability = torch.softmax(logits, -1).gather(1, targets[:, None])  # [N, 1]
    return -probability.clamp_min(1e-30).log().mean()


@torch.no_grad()
def validate(model, corpus, recipe):
    """Mean loss and accuracy over the masked tokens of the whole validation part."""
    config = model.config
    sequences = data.pack(corpus, config.max_positions, VALIDATION_SEED, 0)
    batches = data.batch_sequences(sequences, recipe.batch_tokens, VALIDATION_SEED, 0)
    loss = correct = count = 0
    for index, batch in enumerate(batches):
        masked = data.mask(batch, config.vocab_size, VALIDATION_SEED, 0, index)
        logits, targets = masked_rows(model, *masked)
        loss += cross_entropy(logits, targets).item() * len(targets)
        correct += (logits.argmax(-1) == targets).sum().item()
        count += len(targets)
    return loss / count, correct / count


class Run:
    """A model, its optimizer, and how far they are; all of it is in the checkpoint."""

    def __init__(self, config, recipe, checkpoint, log):
        self.config, self.recipe, self.checkpoint, self.log = config, recipe, checkpoint, log
        self.model = Encoder(config, recipe.seed)
        self.optimizer = new_optimizer(self.model, recipe)
        self.step = self.tokens = self.epoch = self.batch = 0
        self.seconds = 0.0
        if os.path.exists(checkpoint):
            self._resume()
        else:
            with open(log, "w", newline="") as out:
                csv.writer(out).writerow(FIELDS)

    def _resume(self):
        state = torch.load(self.checkpoint)
        if Config(**state["config"]) != self.config or state["recipe"]["seed"] != self.recipe.seed:
            raise ValueError(
                f"{self.checkpoint} is of another run: {state['config']}, {state['recipe']}"
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in ("step", "tokens", "epoch", "batch", "seconds"):
            setattr(self, name, state[name])
        with open(self.log, newline="") as rows:  # forget what was logged after the checkpoint
            whole = [row for row in csv.reader(rows) if len(row) == len(FIELDS)]
        kept = [row for row in whole if row[0] == "step" or int(row[0]) <= self.step]
        with open(self.log + ".tmp", "w", newline="") as out:
            csv.writer(out).writerows(kept)
        os.replace(self.log + ".tmp", self.log)

    def save(self):
        names = ("step", "tokens", "epoch", "batch", "seconds")
        state = {name: getattr(self, name) for name in names}
        state["config"] = dataclasses.asdict(self.config)
        state["recipe"] = dataclasses.asdict(self.recipe)
        state["model"] = self.model.state_dict()
        state["optimizer"] = self.optimizer.state_dict()
        with open(self.checkpoint + ".tmp", "wb") as out:
            torch.save(state, out)
            out.flush()
            os.fsync(out.fileno())  # before it takes the place of the old one
        os.replace(self.checkpoint + ".tmp", self.checkpoint)

    def train_step(self, token_ids, targets):
        learning_rate = self.recipe.learning_rate_at(self.tokens)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate * group["scale"]
        logits, targets = masked_rows(self.model, token_ids, targets)
        loss = cross_entropy(logits, targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.step += 1
        self.tokens += int((token_ids != tok.PAD).sum())
        return loss.item(), learning_rate

    def batches(self, corpus):
        """Masked batches from where the run is, epoch after epoch."""
        config, recipe = self.config, self.recipe
        while True:
            sequences = data.pack(corpus, config.max_positions, recipe.seed, self.epoch)
            batches = data.batch_sequences(sequences, recipe.batch_tokens, recipe.seed, self.epoch)
            while self.batch < len(batches):
                index, self.batch = self.batch, self.batch + 1
                batch = batches[index]
                yield data.mask(batch, config.vocab_size, recipe.seed, self.epoch, index)
            self.epoch, self.batch = self.epoch + 1, 0

    def train(self, corpus, valid, log_every=100, valid_every=1000, save_seconds=180):
        losses, saved, started = [], time.time(), time.time() - self.seconds
        if self.tokens >= self.recipe.tokens:
            return
        for batch in self.batches(corpus):
            loss, learning_rate = self.train_step(*batch)
            losses.append(loss)
            done = self.tokens >= self.recipe.tokens
            self.seconds = time.time() - started
            if done or self.step % log_every == 0:
                row = [self.step, self.tokens, f"{learning_rate:.3g}", f"{np.mean(losses):.4f}"]
                if done or self.step % valid_every == 0:
                    row += [f"{value:.4f}" for value in validate(self.model, valid, self.recipe)]
                else:
                    row += ["", ""]
                with open(self.log, "a", newline="") as out:
                    csv.writer(out).writerow(row + [f"{self.seconds:.0f}"])
                losses = []
                # The mean of a row must not depend on where a run was cut: save at a row's end.
                if done or time.time() - saved > save_seconds:
                    self.save()
                    saved = time.time()
            if done:
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", help="the folder with tokenizer.model, train.npz and valid.npz")
    parser.add_argument("--position", choices=POSITIONS, required=True)
    parser.add_argument("--norm", choices=NORM_ORDERS, default=Config.norm_order)
    parser.add_argument("--layers", type=int, default=Config.num_layers)
    parser.add_argument("--embedding-norm", action="store_true")
    parser.add_argument("--added-before", type=int, nargs="+", default=Config.added_before, metavar="BLOCK")
    parser.add_argument(
        "--name", help="of the checkpoint and the log (default: the position, and what is unusual)"
    )
    parser.add_argument("--learned-std", type=float, default=Config.learned_std)
    for field in dataclasses.fields(Recipe):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=type(field.default), default=field.default)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    before = tuple(arguments.added_before)
    name = arguments.name or "-".join(
        [arguments.position]
        + (["pre"] if arguments.norm == "pre" else [])
        + ([f"{arguments.layers}layers"] if arguments.layers != Config.num_layers else [])
        + (["normed"] if arguments.embedding_norm else [])
        + (["before" + "".join(map(str, before))] if before != Config.added_before else [])
        + ([f"seed{arguments.seed}"] if arguments.seed != Recipe.seed else [])
    )
    path = os.path.join(arguments.work, name)
    tokenizer = tok.load(os.path.join(arguments.work, "tokenizer.model"))
    config = Config(
        position=arguments.position,
        vocab_size=tokenizer.get_piece_size(),
        learned_std=arguments.learned_std,
        norm_order=arguments.norm,
        num_layers=arguments.layers,
        embedding_norm=arguments.embedding_norm,
        added_before=before,
    )
    recipe = Recipe(**{f.name: getattr(arguments, f.name) for f in dataclasses.fields(Recipe)})
    Run(config, recipe, path + ".pt", path + ".csv").train(
        data.Corpus.load(os.path.join(arguments.work, "train.npz")),
        data.Corpus.load(os.path.join(arguments.work, "valid.npz")),
    )


if __name__ == "__main__":
    main()
