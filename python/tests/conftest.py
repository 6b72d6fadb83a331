import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import phasor
from phasor import _library

ROOT = pathlib.Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
CORES = len(os.sched_getaffinity(0))


# SIGINT is ignored in programs that a shell started in the background.
INTERRUPTIBLE = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
exec(INTERRUPTIBLE)


@pytest.fixture(scope="session")
def encoder():
    with phasor.Encoder("sinusoidal") as made:
        yield made


@pytest.fixture(scope="session")
def texts():
    return ["Tom bit a dog.", "A dog bit Tom.", "", "The cat, which nobody had seen, slept.", "x"]


@pytest.fixture(scope="session")
def weights(encoder):
    """The tensors of the bundled model, read without phasor."""
    data = (pathlib.Path(encoder.info["folder"]) / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F16"
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[start + begin : start + end], np.float16)
        tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
    return tensors


@pytest.fixture
def model_folder(encoder, tmp_path):
    """Makes a folder of the bundled model with further files: name → JSON or text."""

    def make(**files):
        folder = tmp_path / "model"
        shutil.copytree(encoder.info["folder"], folder)
        for name, content in files.items():
            file = folder / (name.replace("__", "/") + ".json")
            file.parent.mkdir(exist_ok=True)
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        return folder

    return make


@pytest.fixture(scope="session")
def golden():
    """The folder of a checkpoint that is not part of the sources."""

    def find(name):
        for folder in (SHARED / each / name for each in ("golden", "golden2", "golden3")):
            if folder.is_dir():
                return folder
        pytest.skip(f"there is no {SHARED}/golden*/{name}")

    return find


@pytest.fixture
def run_python(tmp_path):
    """Runs a program in a process of its own, and gives what it prints. It must end well, in
    time, and say nothing on stderr."""

    def run(source, status=0):
        file = tmp_path / "program.py"
        file.write_text(INTERRUPTIBLE + "import os, sys, threading, time\nimport phasor\n" + source)
        # Python 3.12 and later warn of fork() beside threads, which is what some programs try.
        command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert (done.returncode, done.stderr) == (status, "")
        return done.stdout

    return run


def script(path):
    """A program of the repository as a module."""
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, ROOT / path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def infer(*arguments):
    """What the program of the package prints: JSON, line by line."""
    command = [_library.PREFIX / "bin" / "infer", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", errors="surrogateescape", check=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def cosine(a, b):
    return np.sum(a * b, -1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
