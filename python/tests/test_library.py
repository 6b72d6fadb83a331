"""The ctypes declarations are those of the header."""

import ctypes
import re
import shutil
import subprocess

import pytest

import phasor
from phasor import _library

HEADER = _library.PREFIX / "include" / "phasor" / "phasor_c.h"
LEFT_OUT = {"phasor_add_models_folder"}
#: By the names of C.
STRUCTS = {
    "phasor" + re.sub("([A-Z])", r"_\1", name).lower(): struct
    for name, struct in vars(_library).items()
    if hasattr(struct, "_fields_") and struct.__module__ == _library.__name__
}


def test_every_function_of_the_header_is_declared_or_left_out():
    declared = set(re.findall(r"^PHASOR_API [^(]*?\b(phasor_\w+)\(", HEADER.read_text(), re.M))
    assert len(declared) > 20
    assert set(_library.FUNCTIONS) == declared - LEFT_OUT


def test_functions_take_as_many_arguments_as_in_the_header():
    text = re.sub(r"//.*", "", HEADER.read_text())
    for name, parameters in re.findall(r"^PHASOR_API [^(]*?\b(phasor_\w+)\(([^)]*)\)", text, re.M):
        if name not in LEFT_OUT:
            count = 0 if parameters.strip() == "void" else parameters.count(",") + 1
            assert len(_library.FUNCTIONS[name][1]) == count, name


def test_structs_have_the_layout_of_the_header(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    lines = []
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));' for field, *_ in struct._fields_]
    source = tmp_path / "layout.c"
    source.write_text(
        '#include <stdio.h>\n#include "phasor/phasor_c.h"\nint main(void) {\n'
        + "\n".join(lines)
        + "\nreturn 0;\n}\n"
    )
    program = tmp_path / "layout"
    compile = ["cc", "-std=c99", "-I", str(HEADER.parents[1]), str(source), "-o", str(program)]
    subprocess.run(compile, check=True)
    printed = subprocess.run([str(program)], stdout=subprocess.PIPE, text=True, check=True).stdout
    expected = []
    for name, struct in STRUCTS.items():
        expected.append(f"{name} {ctypes.sizeof(struct)}")
        expected += [f"{name}.{f} {getattr(struct, f).offset}" for f, *_ in struct._fields_]
    assert printed.splitlines() == expected


def test_structs_have_the_fields_of_the_header():
    text = re.sub(r"//.*", "", HEADER.read_text())
    structs = dict(re.findall(r"^typedef struct (phasor_\w+) \{(.*?)^\}", text, re.M | re.S))
    assert set(structs) == set(STRUCTS)
    for name, body in structs.items():
        fields = re.findall(r"(\w+)(?:\[\d+\])?;", body)
        assert fields == [field for field, *_ in STRUCTS[name]._fields_], name


def test_version_and_errors():
    assert phasor.__version__.count(".") == 2
    for kind in ("InvalidArgument", "Cancelled", "ModelError", "NotFound", "BackendError"):
        assert issubclass(getattr(phasor, kind), phasor.Error)
    assert issubclass(phasor.InvalidArgument, ValueError)
    assert issubclass(phasor.NotFound, (phasor.ModelError, FileNotFoundError))


def test_the_module_is_the_program(run_python):
    printed = run_python(
        "import subprocess\n"
        "subprocess.run([sys.executable, '-m', 'phasor', '--version'], check=True)"
    )
    assert phasor.__version__ in printed


def test_numbers_do_not_depend_on_the_locale(run_python, tmp_path):
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
    if shutil.which("localedef") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("install the package locales")
    run_python(f"""
import locale
def said():
    encoder = phasor.Encoder("sinusoidal")
    observed = encoder.observe("Tom bit a dog.", positions="rotary:10000.5", edit="scale=0.5")
    return encoder.info, repr(observed), encoder.encode("a").tolist()
before = said()
os.environ["LOCPATH"] = {str(tmp_path)!r}
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.str(0.5) == "0,5"
assert said() == before
""")
