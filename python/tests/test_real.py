"""all-MiniLM-L6-v2 itself, through Python, the program and HTTP.

tests/real/reference.py wrote what transformers and sentence-transformers make of the texts.
"""

import json
import re
import subprocess
import urllib.request

import numpy as np
import pytest

import phasor
from conftest import ROOT, infer
from phasor import _library

REAL = ROOT / "tests" / "real"
LINES = [json.loads(line) for line in (REAL / "minilm.jsonl").read_text("ascii").splitlines()]
TEXTS = [line["text"] for line in LINES]
IDS = [line["ids"] for line in LINES]
SPECIAL_IDS = [line.get("special_ids", line["ids"]) for line in LINES]
# Of each number of a vector, as docs/reliability.md promises.
BOUNDS = [("f32", 1e-6), ("bf16", 0.003), ("int8", 0.07)]
PRECISIONS = pytest.mark.parametrize("precision, allowed", BOUNDS)


@pytest.fixture(scope="module")
def model():
    done = subprocess.run([REAL / "fetch", "minilm"], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def server(model, request):
    """A function that posts a body to a route of ``infer serve``."""
    command = [_library.PREFIX / "bin" / "infer", "serve", "-m", model, "--port", "0"]
    command += ["--max-texts", str(len(TEXTS))]
    if "precision" in request.fixturenames:
        command += ["--precision", request.getfixturevalue("precision")]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as running:
        address = re.search(r"http://\S+:\d+", running.stderr.readline())[0]

        def post(route, **body):
            data = json.dumps(body).encode()
            with urllib.request.urlopen(address + route, data, timeout=600) as answer:
                return json.load(answer)

        yield post
        running.terminate()
        running.stderr.read()
    assert running.returncode == 0


def numbers(accepted):
    """Of the texts that a way in takes."""
    return [i for i, text in enumerate(TEXTS) if accepted(text)]


def argument(text):
    return "\0" not in text


def check(vectors, which, allowed):
    """Every 12th number of a vector was recorded, beginning with another one in each line."""
    assert len(vectors) == len(which) > 190
    found = np.array([vector[i % 12 :: 12] for i, vector in zip(which, np.asarray(vectors))])
    worst = np.abs(found - np.array([LINES[i]["vector"] for i in which])).max(1)
    assert np.all(worst <= allowed), (worst.max(), TEXTS[which[worst.argmax()]])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_ids(model, server):
    with phasor.Encoder(model) as encoder:
        for special, wanted in ((False, IDS), (True, SPECIAL_IDS)):
            for tokens, ids in zip(encoder.tokenize(TEXTS, parse_special=special), wanted):
                assert tokens.ids.tolist() == ids, tokens.pieces
    which = numbers(argument)
    texts = [TEXTS[i] for i in which]
    for options, wanted in (([], IDS), (["--special"], SPECIAL_IDS)):
        found = infer("tokenize", "--json", "-m", model, *options, "--", *texts)
        assert [line["ids"] for line in found] == [wanted[i] for i in which]
    which = numbers(len)  # the server refuses an empty text
    found = server("/tokenize", inputs=[TEXTS[i] for i in which])
    assert [[token["id"] for token in tokens] for tokens in found] == [IDS[i] for i in which]


@PRECISIONS
def test_python(model, precision, allowed):
    with phasor.Encoder(model, precision=precision) as encoder:
        check(encoder.encode(TEXTS), numbers(lambda text: True), allowed)


@PRECISIONS
def test_program(model, precision, allowed):
    which = numbers(argument)
    texts = [TEXTS[i] for i in which]
    found = infer("embed", "-m", model, "--precision", precision, "--", *texts)
    check([line["embedding"] for line in found], which, allowed)


@PRECISIONS
def test_server(server, precision, allowed):
    which = numbers(len)
    texts = [TEXTS[i] for i in which]
    check(server("/embed", inputs=texts), which, allowed)
    found = server("/v1/embeddings", input=texts)["data"]
    check([item["embedding"] for item in found], which, allowed)


def test_the_readmes_search_finds_the_answer(model):
    """The command of README.md, and the sentence that it says is found."""
    readme = (ROOT / "README.md").read_text("utf-8")
    query = re.search(r'--nearest 1 "(.+)"', readme)[1]
    answer = re.search(r"The search .*?finds \*(.+?)\*", readme, re.S)[1].replace("\n", " ")
    texts = str(ROOT / "examples" / "sentences.txt")
    search = ["embed", "-q", "-m", model, "-i", texts, "--nearest", "1"]
    assert infer(*search, "--json", query)[0]["nearest"][0]["text"] == answer
