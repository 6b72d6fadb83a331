"""The bundled models, as a wheel of their own beside phasor's."""

import re

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", "any"


class BesidePhasor(Distribution):
    """Is installed where phasor is; pure packages go to another folder on some systems."""

    def has_ext_modules(self):
        return True


with open("../phasor/_install/include/phasor/version.h") as header:
    version = re.search(r'PHASOR_VERSION "(.*)"', header.read()).group(1)

setup(
    name="phasor-models",
    version=version,
    description="The models that phasor finds by name",
    long_description="`phasor.Encoder(name)` loads one of these: sinusoidal, learned, none, rotary, relative or alibi. "
    "They differ in how they encode positions, and are trained to show that, not meaning. The README.md of each folder "
    "says how.\n",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=["phasor_models"],
    package_data={"phasor_models": ["*/*"]},
    distclass=BesidePhasor,
    cmdclass={"bdist_wheel": Wheel},
)
