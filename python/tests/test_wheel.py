"""The wheel's tag promises no more than what is in it holds."""

import importlib.metadata
import re
import subprocess

import pytest

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
