"""One wheel for every Python: the package calls libphasor_c.so through ctypes.

Without phasor/_install, which python/build makes, the package uses the system's library, program and models.
"""

import glob
import os
import platform
import re
import subprocess

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel


WITH_LIBRARY = os.path.isdir("phasor/_install")


def glibc():
    """The oldest that the binaries run with; this machine's, if they need libstdc++, which may be as new."""
    files = glob.glob("phasor/_install/bin/*") + glob.glob("phasor/_install/lib/*")
    symbols = files and subprocess.run(["objdump", "-T", *files], stdout=subprocess.PIPE, text=True, check=True).stdout
    if not files or "GLIBCXX_" in symbols:
        return os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    return max(re.findall(r"GLIBC_(2\.\d+)", symbols), key=lambda version: int(version[2:]))


class Wheel(bdist_wheel):
    """Needs a glibc, and no Python's ABI."""

    def get_tag(self):
        return "py3", "none", f"manylinux_{glibc().replace('.', '_')}_{platform.machine()}"


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return WITH_LIBRARY


include = "phasor/_install/include" if WITH_LIBRARY else "../include"
with open(f"{include}/phasor/version.h") as header:
    version = re.search(r'PHASOR_VERSION "(.*)"', header.read()).group(1)

setup(
    version=version,
    install_requires=["numpy>=1.21"] + [f"phasor-models=={version}"] * WITH_LIBRARY,
    packages=["phasor"],
    package_data={"phasor": ["py.typed", "_install/**/*"]},
    distclass=BinaryDistribution,
    cmdclass={"bdist_wheel": Wheel},
)
