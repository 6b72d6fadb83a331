"""One wheel for every Python: the package calls libphasor_c.so through ctypes.

phasor/_install is made by python/build, or here, from the sources of an sdist. Without both, the package
uses the system's library, program and models.
"""

import glob
import os
import platform
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel


SDIST = os.path.isdir("sources")
WITH_LIBRARY = SDIST or os.path.isdir("phasor/_install")


def glibc():
    """The oldest that the binaries run with; this machine's, if they need libstdc++, which may be as new."""
    files = glob.glob("phasor/_install/bin/*") + glob.glob("phasor/_install/lib/*")
    symbols = files and subprocess.run(["objdump", "-T", *files], stdout=subprocess.PIPE, text=True, check=True).stdout
    if not files or "GLIBCXX_" in symbols:
        return os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    return max(re.findall(r"GLIBC_(2\.\d+)", symbols), key=lambda version: int(version[2:]))


class Build(build_py):
    """Compiles what an sdist has. The libraries that it needs remain the system's."""

    def run(self):
        if SDIST:
            cmake = ["cmake", "-S", "sources", "-B", "compiled", "-DPHASOR_COMPILE_BY_FOLDER=ON"]
            cmake += ["-DPHASOR_BUILD_TESTS=OFF", "-DPHASOR_BUILD_BENCH=OFF"]
            subprocess.run(cmake, check=True)
            make = ["cmake", "--build", "compiled", f"-j{os.cpu_count()}", "--target", "phasor_c", "infer"]
            subprocess.run(make, check=True)
            for source, target in {
                "compiled/bin/infer": "bin/infer", "compiled/libphasor_c.so.2": "lib/libphasor_c.so.2",
                "sources/include/phasor/phasor_c.h": "include/phasor/phasor_c.h",
                "sources/include/phasor/version.h": "include/phasor/version.h",
                "sources/infer/page/report.html": "share/phasor/page.html",
                "sources/infer/page/NOTICE": "share/doc/phasor/NOTICE",
            }.items():
                os.makedirs(os.path.dirname(f"phasor/_install/{target}"), exist_ok=True)
                shutil.copy(source, f"phasor/_install/{target}")
        super().run()


class Wheel(bdist_wheel):
    """Needs a glibc, and no Python's ABI."""

    def get_tag(self):
        if SDIST:
            return "py3", "none", super().get_tag()[2]
        return "py3", "none", f"manylinux_{glibc().replace('.', '_')}_{platform.machine()}"


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return WITH_LIBRARY


root = "sources" if SDIST else "phasor/_install" if WITH_LIBRARY else ".."
with open(f"{root}/include/phasor/version.h") as header:
    version = re.search(r'PHASOR_VERSION "(.*)"', header.read()).group(1)

setup(
    version=version, install_requires=["numpy>=1.21"] + [f"phasor-models=={version}"] * WITH_LIBRARY,
    packages=["phasor"], package_data={"phasor": ["py.typed", "_install/**/*"]}, distclass=BinaryDistribution,
    cmdclass={"bdist_wheel": Wheel, "build_py": Build},
)
