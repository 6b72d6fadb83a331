"""Token ids and offsets beside those of Hugging Face's tokenizers, over many odd texts; skips where it is not installed."""

import json
import random
import shutil

import pytest
from conftest import SHARED, infer, script

import phasor

made = script("tests/fixtures/added_tokens.py")
TEXTS = 10_000
FOLDERS = [
    "golden3/eurobert", "golden3/qwen3-embedding", "golden3/granite-o200k", "golden3/modernbert-gpt4",
    "golden3/mmbert", "golden3/embeddinggemma", "golden3/t5gemma", "golden3/token-roberta", "golden3/token-bert",
    "golden3/token-deberta-v2", "golden3/bge-m3",
]
# Of every kind that an expression of a tokenizer tells apart, with some that are easily taken for another.
ODD = [*"aeZ\u00e9\u01c5\u02b0\u65e5\u0431\u0661\u2167\u00bd9 \t\n\r\u00a0\u3000\u2028\u0085'\u2019\u017f\u212a", *"._-/!?\u2014\u2026"]
ODD += ["\u0301", "\u0f71\u0f80", "\u200d", "\U0001f642", "\U0001f1fa\U0001f1f8", "\u2581", "\ufeff", "'S", "'ll", "  ", "\r\n", "123", "Tom", " dog"]


def odd_text(draw):
    return "".join(draw.choice(ODD) for _ in range(draw.randint(1, 24)))


def expect_no_id_differs(tokenizers, folder, seed):
    other = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    draw = random.Random(seed)
    texts = [odd_text(draw) for _ in range(TEXTS)]
    with phasor.Encoder(folder) as encoder:
        ours = encoder.tokenize(texts, parse_special=True)
    answers = [
        (text, (mine.ids.tolist(), list(map(tuple, mine.offset_mapping.tolist()))), (theirs.ids, theirs.offsets))
        for text, mine, theirs in zip(texts, ours, other.encode_batch(texts))
    ]
    assert [(text, a, b) for text, a, b in answers if a != b][:3] == []


def beside_repository(folder):
    if not (SHARED / folder).is_dir():
        pytest.skip(f"{folder} is not beside the repository")
    return SHARED / folder


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_id_differs(folder):
    expect_no_id_differs(pytest.importorskip("tokenizers"), beside_repository(folder), folder)


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("before", [[], [{"type": "WhitespaceSplit"}]])
def test_no_id_of_bpe_after_metaspace_differs(scheme, split, before, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path / "model"
    shutil.copytree(beside_repository("golden3/mmbert"), folder, copy_function=shutil.copyfile)
    root = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    root["normalizer"] = None
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}
    root["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*before, metaspace]}
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(root), encoding="utf-8")
    expect_no_id_differs(tokenizers, folder, scheme)


def expect_answers(tokenizers, root, texts, folder):
    """phasor's ids and offsets are those of tokenizers, and its ids where special tokens do not count."""
    rows = made.answers(tokenizers, root, texts)
    (folder / "tokenizer.json").write_text(json.dumps(root), encoding="utf-8")
    if not rows:
        return 0
    command = ["tokenize", "-m", folder, "--json", "--offsets"]
    texts = ["--", *(row[0] for row in rows)]
    for row, counted, plain in zip(rows, infer(*command, "--special", *texts), infer(*command, *texts)):
        assert [row[0], counted["ids"], counted["offsets"], plain["ids"]] == row, root
    return len(rows)


@pytest.mark.parametrize("kind", made.KINDS, ids=lambda kind: kind.__name__)
def test_added_tokens_are_those_of_tokenizers(kind, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    draw = random.Random(kind.__name__)
    texts = 0
    for _ in range(40):
        root = made.random_tokenizer(draw, kind)
        texts += expect_answers(tokenizers, root, [made.random_text(draw, root) for _ in range(25)], tmp_path)
    assert texts > 600


@pytest.mark.parametrize("form", made.FORMS)
def test_marks_that_change_places_keep_them(form, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    draw = random.Random(form)
    root = made.marks_tokenizer(draw, form)
    assert expect_answers(tokenizers, root, [made.marked_text(draw) for _ in range(2000)], tmp_path) == 2000
