"""The programs that are compared, and the instruction sets that they are held to."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import programs
from programs import Program, Skip, say

HIDE_AVX512 = "hide_avx512.so"  # in the scratch folder, where all engines run
HERE = os.path.dirname(os.path.abspath(__file__))


def phasor(model, threads, precision):
    program = os.path.join(model.build, "bin/phasor_peer")
    return [program, model.folder, "--threads", str(threads), "--precision", precision]


def onnxruntime(model, threads, precision):
    script = os.path.join(HERE, "onnxruntime.mjs")
    return ["node", script, model.graph(precision == "int8"), "--threads", str(threads)]


def pytorch(model, threads, precision):
    command = [python_with_torch(), os.path.join(HERE, "pytorch.py"), model.folder]
    return [*command, "--threads", str(threads), "--precision", precision]


class Engine(NamedTuple):
    title: str
    command: Callable  # (model, threads, precision): what runs it in the model's scratch folder
    precisions: dict  # of a comparison: the engine's own
    host: str = ""  # the program that its library is loaded into


BASE = "phasor"
REFERENCE = "onnxruntime"
ENGINES = {
    "phasor": Engine("phasor", phasor, {"f32": "f32", "bf16": "bf16", "int8": "int8"}),
    "onnxruntime": Engine(
        "ONNX Runtime", onnxruntime, {"f32": "f32", "bf16": "f32", "int8": "int8"}, "Node"
    ),
    "pytorch": Engine("PyTorch", pytorch, {"f32": "f32", "bf16": "bf16"}, "Python"),
}
PRECISIONS = tuple(ENGINES[BASE].precisions)


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
def python_with_torch():
    """With numpy, which pytorch.py needs, and a BLAS that is not Debian's reference."""
    test = "import sys, numpy, torch; print(sys.executable); print(open('/proc/self/maps').read())"
    for python in filter(shutil.which, ("python3", "/usr/bin/python3", sys.executable)):
        result = subprocess.run([python, "-c", test], capture_output=True, text=True)
        if result.returncode == 0:
            if "/blas/libblas.so" in result.stdout:
                raise Skip("its BLAS is Debian's slow reference; install libopenblas0")
            return result.stdout.splitlines()[0]
    raise Skip("no python3 here imports torch and numpy; install python3-torch and libopenblas0")


def install_onnxruntime(folder):
    """The current onnxruntime-node, which brings its libraries along; kept once it is there."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("there is no node or no npm here")
    if os.path.exists(os.path.join(folder, "node_modules/onnxruntime-node/package.json")):
        return
    say("installing onnxruntime-node")
    command = ["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-save", "--no-audit"]
    command += ["--no-fund", "--fetch-retries=0", "--loglevel=error", "onnxruntime-node"]
    os.makedirs(folder, exist_ok=True)
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        reason = " ".join(result.stderr.split()[:40])
        raise Skip(f"npm cannot install onnxruntime-node: {reason}")


@functools.cache
def compile_hide_avx512(folder):
    command = ["cc", "-O2", "-shared", "-fPIC", os.path.join(HERE, "hide_avx512.c"), "-o"]
    try:
        subprocess.run([*command, os.path.join(folder, HIDE_AVX512)], check=True)
    except FileNotFoundError:
        raise Skip("there is no cc here to compile hide_avx512.c") from None
    except subprocess.CalledProcessError:
        raise programs.Failed("hide_avx512.c does not compile, see above") from None


@functools.cache
def missing():
    """{engine: why it cannot be run here}."""
    try:
        python_with_torch()
    except Skip as reason:
        return {"pytorch": str(reason)}
    return {}


def precisions(precision):
    """{engine: its own precision} of all that take part in a comparison."""
    return {
        name: engine.precisions[precision]
        for name, engine in ENGINES.items()
        if precision in engine.precisions and name not in missing()
    }


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


def start(name, model, isa, threads, precision):
    command = ENGINES[name].command(model, threads, precision)
    return Program(command, model.scratch, environment(name, isa, model.scratch))
