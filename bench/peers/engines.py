"""The programs that are compared, and the instruction sets that they are held to."""

import functools
import os
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from typing import NamedTuple

import programs
from programs import Program, Skip, say

HIDE_AVX512 = "hide_avx512.so"  # in the model's folder, where all engines run
HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = ("torch", "transformers")  # PyTorch, and what converts models for the others


class Engine(NamedTuple):
    title: str
    precisions: tuple
    packages: tuple = ()  # of PyPI; the modules have the same names
    converter: str = ""  # of convert.py
    host: str = "Python"  # the program that its library is loaded into


BASE = "phasor"
REFERENCE = "pytorch"
OPENVINO = (("f32", "bf16", "int8"), (*TORCH, "openvino", "nncf"), "openvino")
ENGINES = {
    "phasor": Engine("phasor", ("f32", "bf16", "int8"), host=""),
    "openvino": Engine("OpenVINO", *OPENVINO),
    "openvino-static": Engine("OpenVINO, static", *OPENVINO),
    "onnxruntime": Engine(
        "ONNX Runtime", ("f32", "int8"), (*TORCH, "onnx", "onnxruntime"), "onnxruntime"
    ),
    "pytorch": Engine("PyTorch", ("f32", "bf16"), TORCH),
    "ctranslate2": Engine("CTranslate2", ("f32", "int8"), (*TORCH, "ctranslate2"), "ctranslate2"),
}
PRECISIONS = ENGINES[BASE].precisions


class Isa(NamedTuple):
    title: str
    onednn: str  # ONEDNN_MAX_CPU_ISA
    needs: str  # the flag of /proc/cpuinfo
    keeps: str = ""  # the flag that hide_avx512.c does not hide


ISAS = {
    "native": None,
    "avx2": Isa("AVX2", "AVX2", "avx2"),
    "avx2_vnni": Isa("AVX2 with VNNI", "AVX2_VNNI", "avx_vnni", keeps="avx_vnni"),
}


@functools.cache
def compile_hide_avx512(folder):
    command = ["cc", "-O2", "-shared", "-fPIC", os.path.join(HERE, "hide_avx512.c"), "-o"]
    try:
        subprocess.run([*command, os.path.join(folder, HIDE_AVX512)], check=True)
    except FileNotFoundError:
        raise Skip("there is no cc here to compile hide_avx512.c") from None
    except subprocess.CalledProcessError:
        raise programs.Failed("hide_avx512.c does not compile, see above") from None


def python(*arguments):
    """Runs this Python; Skip with its last line where that fails."""
    command = [sys.executable, *arguments]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()] or ["it fails"]
        raise Skip(lines[-1].strip())


def install(name, allowed):
    """The packages of a peer into this Python's environment; Skip where they cannot be had."""
    lacking = [package for package in ENGINES[name].packages if not find_spec(package)]
    if lacking and not allowed:
        raise Skip(f"not installed: {', '.join(lacking)}")
    if lacking:
        say(f"installing {', '.join(lacking)}")
        python("-m", "pip", "install", "--quiet", *lacking)
        invalidate_caches()


def missing(allowed):
    """{engine: why it cannot be run here}."""
    reasons = {}
    for name in ENGINES:
        try:
            install(name, allowed)
        except Skip as reason:
            reasons[name] = str(reason)
    return reasons


def lacks(isa):
    """Why nothing can be held to the instruction set here, or nothing."""
    if ISAS[isa] and ISAS[isa].needs not in programs.cpu_flags():
        return f"this CPU has no {ISAS[isa].needs}"
    return ""


def environment(name, isa, folder):
    """What holds the engine to the instruction set; Skip where nothing can."""
    if isa is None:
        return {}
    if name == BASE:
        return {"ONEDNN_MAX_CPU_ISA": isa.onednn}
    flags = programs.cpu_flags()
    beyond = {flag for flag in flags if flag.startswith(("avx512", "amx_", "avx_vnni"))}
    if beyond <= {isa.keeps}:
        return {}
    compile_hide_avx512(folder)
    if "cpuid_fault" not in flags:
        raise Skip("AVX-512 and VNNI cannot be hidden: no cpuid_fault in /proc/cpuinfo")
    return {"LD_PRELOAD": f"./{HIDE_AVX512}", "HIDE_AVX512_KEEP": isa.keeps}


def command(name, model, threads, precision):
    """What runs the engine; converts the model for it, once."""
    options = ["--threads", str(threads), "--precision", precision]
    if name == BASE:
        return [os.path.join(model.build, "bin/phasor_peer"), model.checkpoint, *options]
    model.convert(ENGINES[name].converter)
    return [sys.executable, os.path.join(HERE, "peer.py"), name, model.folder, *options]


def start(name, model, isa, threads, precision, *options):
    line = [*command(name, model, threads, precision), *options]
    return Program(line, model.folder, environment(name, isa, model.folder))
