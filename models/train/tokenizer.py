"""Trains the SentencePiece Unigram tokenizer that the three twins share.

    python3 models/train/tokenizer.py CORPUS/train.txt WORK/tokenizer.model
"""

import argparse
import os

import sentencepiece

PAD, UNK, CLS, SEP, MASK = range(5)
# [CLS], [SEP] and [MASK] are control symbols: no text is ever tokenized to them, so the five
# letters "[MASK]" in a sentence are plain text until the caller says otherwise.
CONTROL_SYMBOLS = ["[CLS]", "[SEP]", "[MASK]"]


def train(corpus, model_file, vocab_size=8192, num_threads=2):
    """Writes `model_file`: ids <pad>=0, <unk>=1, [CLS]=2, [SEP]=3, [MASK]=4, then pieces."""
    model = model_file + ".tmp"
    with open(corpus, encoding="utf-8") as lines, open(model, "wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line.rstrip("\n") for line in lines),
            model_writer=out,
            model_type="unigram",
            vocab_size=vocab_size,
            normalization_rule_name="nfkc",
            pad_id=PAD,
            unk_id=UNK,
            bos_id=-1,
            eos_id=-1,
            pad_piece="<pad>",
            unk_piece="<unk>",
            control_symbols=CONTROL_SYMBOLS,
            byte_fallback=False,
            num_threads=num_threads,
            minloglevel=1,
        )
    os.replace(model, model_file)


def load(model_file):
    """The tokenizer, after checking that its special ids are where the recipe puts them."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=model_file)
    pieces = [tokenizer.id_to_piece(i) for i in range(5)]
    if pieces != ["<pad>", "<unk>"] + CONTROL_SYMBOLS:
        raise ValueError(f"{model_file}: the first five pieces are {pieces}")
    return tokenizer


def encode(tokenizer, text):
    """`[CLS] text [SEP]` as ids; everything in the text is plain text, "[MASK]" too."""
    return [CLS, *tokenizer.encode(text), SEP]


def encode_fill_in(tokenizer, text):
    """As `encode`, but "[MASK]" in the text asks for one piece, its leading space included."""
    hole = "\ue000"  # in no vocabulary: always <unk>, and never part of another piece
    space = tokenizer.piece_to_id("\u2581")
    token_ids = []
    for piece in tokenizer.encode(text.replace("[MASK]", hole), out_type=str):
        if piece != hole:
            token_ids.append(tokenizer.piece_to_id(piece))
            continue
        if token_ids and token_ids[-1] == space:  # the space belongs to the missing piece
            token_ids.pop()
        token_ids.append(MASK)
    return [CLS, *token_ids, SEP]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", help="text, one paragraph a line")
    parser.add_argument("model", help="the tokenizer.model to write")
    parser.add_argument("--vocab-size", type=int, default=8192)
    arguments = parser.parse_args()
    train(arguments.corpus, arguments.model, arguments.vocab_size)
