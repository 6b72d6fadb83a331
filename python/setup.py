"""One wheel for every Python: the package calls libphasor_c.so through ctypes."""

import os
import platform
import re

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    """Needs the glibc of this machine or a later one, and no Python's ABI."""

    def get_tag(self):
        glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
        return "py3", "none", f"manylinux_{glibc}_{platform.machine()}"


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


with open("phasor/_install/include/phasor/version.h") as header:
    version = re.search(r'PHASOR_VERSION "(.*)"', header.read()).group(1)

setup(
    version=version,
    packages=["phasor"],
    package_data={"phasor": ["py.typed", "_install/**/*"]},
    distclass=BinaryDistribution,
    cmdclass={"bdist_wheel": Wheel},
)
