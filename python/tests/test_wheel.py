"""The wheel's tag promises no more than what is in it holds, and the models' wheel and the sdist are complete."""

import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import phasor
from conftest import infer
from phasor import _library

# What PEP 600 lets a wheel expect, and the loader.
EXPECTED = r"(ld-linux.*|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+)\.so\.\d+"


@pytest.fixture(scope="module")
def binaries():
    if _library.PREFIX.name != "_install":
        pytest.skip("the package is not from a wheel")
    return [file for folder in ("bin", "lib") for file in (_library.PREFIX / folder).iterdir()]


def objdump(option, files):
    run = ["objdump", option, *map(str, files)]
    return subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_no_symbol_is_of_a_later_glibc_than_the_tag(binaries):
    wheel = importlib.metadata.distribution("phasor").read_text("WHEEL")
    promised = int(re.search(r"^Tag: py3-none-manylinux_2_(\d+)_", wheel, re.M).group(1))
    symbols = objdump("-T", binaries)
    assert max(map(int, re.findall(r"GLIBC_2\.(\d+)", symbols))) <= promised
    if promised < 34:
        assert "GLIBCXX_" not in symbols  # libstdc++ is as old as glibc there, and C++20's is not


def test_libraries_are_in_the_wheel_with_their_licences(binaries):
    inside = {file.name for file in binaries}
    needed = set(re.findall(r"NEEDED +(\S+)", objdump("-p", binaries)))
    assert [name for name in needed - inside if not re.fullmatch(EXPECTED, name)] == []
    licences = {file.name for file in (_library.PREFIX / "licenses").iterdir()}
    others = {name for name in inside if name.startswith("lib") and "phasor" not in name}
    assert len(licences) > len(others)
    assert any("boost" in name for name in licences)  # of the headers that are compiled in


def test_models_are_a_wheel_of_their_own(binaries):
    models = _library.PREFIX.parent.parent / "phasor_models"
    files = importlib.metadata.distribution("phasor-models").files
    folders = {file.parts[1] for file in files if file.parts[0] == models.name}
    assert folders == {"sinusoidal", "learned", "none", "rotary", "relative", "alibi"}
    with phasor.Encoder("alibi") as encoder:
        assert encoder.info["folder"] == str(models / "alibi")
    assert infer("info", "--json", "-m", "alibi")[0]["folder"] == str(models / "alibi")

    wheel = importlib.metadata.distribution("phasor")
    needed = [re.sub("[ ()]", "", each) for each in wheel.requires]
    assert f"phasor-models=={phasor.__version__}" in needed
    assert not [file for file in wheel.files if file.suffix == ".safetensors"]


def built(pattern):
    files = list(pathlib.Path(sys.prefix).parent.glob(pattern))
    return files or pytest.skip("not the environment of ./dev python")


def test_the_portable_wheel_has_onednn_once(binaries):
    if {file.name for file in binaries} != {"infer", "libphasor_c.so.2"}:
        pytest.skip("not the environment of ./dev python --portable")
    assert built("phasor-*.whl")[0].stat().st_size < 10e6
    assert (_library.PREFIX / "bin" / "infer").stat().st_size < 1e5  # its code is in the library


def test_an_index_takes_what_was_built(binaries):
    pytest.importorskip("twine")
    files = built("phasor*.whl") + built("phasor-*.tar.gz")
    assert len(files) == 3
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], check=True)


# Runs with the package that is in the folder.
def run_in(folder, program):
    run = [sys.executable, "-c", "import phasor\n" + program]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(run, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def test_without_the_models_the_message_says_what_to_install(binaries, tmp_path):
    shutil.copytree(_library.PREFIX.parent, tmp_path / "phasor", copy_function=os.symlink)
    done = run_in(tmp_path, "phasor.Encoder('sinusoidal')")
    assert "phasor.NotFound: no model 'sinusoidal'" in done.stderr.replace("_library.", "")
    assert "install phasor-models" in done.stderr


def test_the_sdist_builds(binaries, tmp_path):
    if "PHASOR_THOROUGH" not in os.environ:
        pytest.skip("takes minutes: PHASOR_THOROUGH=1")
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path]
    without_optimisation = {**os.environ, "CMAKE_BUILD_TYPE": "Debug", "CXXFLAGS": "-g0"}
    command = [sys.executable, "-m", "pip", "wheel", *options, *built("phasor-*.tar.gz")]
    subprocess.run(command, env=without_optimisation, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("phasor-*-linux_*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    (tmp_path / "phasor_models").symlink_to(_library.PREFIX.parent.parent / "phasor_models")
    infer = tmp_path / "phasor" / "_install" / "bin" / "infer"
    infer.chmod(0o755)  # which pip does
    done = run_in(tmp_path, "print(phasor.__file__, phasor.Encoder('none').encode('Tom bit a dog.').shape)")
    assert (done.stdout, done.stderr) == (f"{tmp_path}/phasor/__init__.py (128,)\n", "")
    assert "Tom" in subprocess.run([infer, "Tom bit a dog."], stdout=subprocess.PIPE, text=True, check=True).stdout
