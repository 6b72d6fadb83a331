"""Turns prose into masked-LM batches: sentences, sequences of whole sentences, masks.

    python3 models/train/data.py WORK/tokenizer.model CORPUS/train.txt WORK/train.npz

Everything random is drawn from a generator seeded by (seed, what it is for, epoch or batch), never
from a stream that is consumed along the way. So a batch depends on the seed and its number alone:
every twin sees the same batches, and a resumed run needs no generator state.
"""

import argparse
import os
import re

import numpy as np

import tokenizer as tok

IGNORE = -100  # the target of a token that is not asked for
SHORT_PROBABILITY = 0.1  # of the sequences stop at a random shorter length, as in BERT
MASK_PROBABILITY = 0.15
ORDER, PACKING, BATCHES, MASKS = range(4)  # what a generator is for

_SENTENCE_END = re.compile(r"(?<=[.!?])([\"'”’)]*)\s+(?=[\"'“‘(]?[A-Z])")
_TITLE = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Rev|Hon|Capt|Col|Gen|Lieut|Esq|M|Mme)|\b[A-Z])\.$")


def split_sentences(paragraph):
    """The sentences of a paragraph; a title or an initial ("Mr.", "J.") does not end one."""
    sentences, start = [], 0
    for end in _SENTENCE_END.finditer(paragraph):
        sentence = paragraph[start : end.end(1)]
        if not _TITLE.search(sentence):
            sentences.append(sentence)
            start = end.end()
    sentences.append(paragraph[start:])
    return [sentence for sentence in sentences if sentence.strip()]


class Corpus:
    """Token ids of all sentences in a row, where each sentence and each paragraph begins."""

    def __init__(self, token_ids, sentences, paragraphs):
        self.token_ids = token_ids  # [N] uint16
        self.sentences = sentences  # offsets into token_ids, one more than there are sentences
        self.paragraphs = paragraphs  # offsets into sentences, one more than there are paragraphs

    @staticmethod
    def encode(tokenizer, lines):
        token_ids, sentences, paragraphs = [], [0], [0]
        total = 0
        for line in lines:
            for ids in tokenizer.encode(split_sentences(line.strip())):
                if ids:
                    token_ids.append(np.array(ids, dtype=np.uint16))
                    total += len(ids)
                    sentences.append(total)
            if len(sentences) - 1 > paragraphs[-1]:
                paragraphs.append(len(sentences) - 1)
        return Corpus(np.concatenate(token_ids), np.array(sentences), np.array(paragraphs))

    @staticmethod
    def load(file):
        with np.load(file) as arrays:
            return Corpus(arrays["token_ids"], arrays["sentences"], arrays["paragraphs"])

    def save(self, file):
        with open(file + ".tmp", "wb") as out:
            np.savez(
                out,
                token_ids=self.token_ids,
                sentences=self.sentences,
                paragraphs=self.paragraphs,
            )
        os.replace(file + ".tmp", file)


def pack(corpus, max_length, seed, epoch):
    """Sequences `[CLS] s1 s2 … [SEP]` of at most `max_length` tokens, paragraphs in random order.

    Only whole sentences, unless one alone is longer than a sequence: that one is cut. A tenth of
    the sequences stop at a random shorter length (but hold one sentence at least), so that short
    inputs are nothing new to the model.
    """
    order = np.random.default_rng((seed, ORDER, epoch)).permutation(len(corpus.paragraphs) - 1)
    rng = np.random.default_rng((seed, PACKING, epoch))
    room = max_length - 2
    token_ids, sentences, paragraphs = (
        corpus.token_ids,
        corpus.sentences.tolist(),
        corpus.paragraphs.tolist(),
    )

    def draw_target():
        return int(rng.integers(1, room)) if rng.random() < SHORT_PROBABILITY else room

    sequences, parts, length, target = [], [], 0, draw_target()

    def flush():
        sequences.append(np.concatenate([[tok.CLS], *parts, [tok.SEP]]).astype(np.uint16))

    for paragraph in order:
        for s in range(paragraphs[paragraph], paragraphs[paragraph + 1]):
            sentence = token_ids[sentences[s] : sentences[s + 1]][:room]
            if parts and length + len(sentence) > target:
                flush()
                parts, length, target = [], 0, draw_target()
            parts.append(sentence)
            length += len(sentence)
    if parts:
        flush()
    return sequences


def batch_sequences(sequences, batch_tokens, seed, epoch):
    """Lists of sequences of like length, each list at most `batch_tokens` with its padding."""
    rng = np.random.default_rng((seed, BATCHES, epoch))
    order = rng.permutation(len(sequences))
    order = order[np.argsort([len(sequences[i]) for i in order], kind="stable")]
    batches, batch = [], []
    for i in order:
        if batch and (len(batch) + 1) * len(sequences[i]) > batch_tokens:
            batches.append(batch)
            batch = []
        batch.append(sequences[i])
    batches.append(batch)
    return [batches[i] for i in rng.permutation(len(batches))]


def mask(batch, vocab_size, seed, epoch, index):
    """(token_ids, targets), both [B, T]: BERT's 15 %, of which 80/10/10 [MASK]/random/kept."""
    rng = np.random.default_rng((seed, MASKS, epoch, index))
    token_ids = np.full((len(batch), max(map(len, batch))), tok.PAD, dtype=np.int64)
    for row, sequence in zip(token_ids, batch):
        row[: len(sequence)] = sequence
    maskable = (token_ids == tok.UNK) | (token_ids > tok.MASK)
    chosen = maskable & (rng.random(token_ids.shape) < MASK_PROBABILITY)
    if not chosen.any():  # a batch of very few tokens
        chosen.flat[np.flatnonzero(maskable)[0]] = True
    targets = np.where(chosen, token_ids, IGNORE)
    how = rng.random(token_ids.shape)
    random_ids = rng.integers(tok.MASK + 1, vocab_size, token_ids.shape)
    token_ids = np.where(chosen & (how < 0.8), tok.MASK, token_ids)
    token_ids = np.where(chosen & (how >= 0.9), random_ids, token_ids)
    return token_ids, targets


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", help="tokenizer.model")
    parser.add_argument("corpus", help="text, one paragraph a line")
    parser.add_argument("out", help="the .npz to write")
    arguments = parser.parse_args()
    with open(arguments.corpus, encoding="utf-8") as text:
        corpus = Corpus.encode(tok.load(arguments.tokenizer), text)
    corpus.save(arguments.out)
    print(
        f"{arguments.corpus}: {len(corpus.paragraphs) - 1} paragraphs, "
        f"{len(corpus.sentences) - 1} sentences, {len(corpus.token_ids)} tokens"
    )
