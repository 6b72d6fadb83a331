"""The libraries of phasor: C++ (phasor::phasor, phasor::phasor_lens) and C (phasor::phasor_c), and the bundled models.

Conan Center has no sentencepiece, and of oneDNN a version that is too old: both are the system's, found
by pkg-config and CMake (Debian: libsentencepiece-dev, libdnnl-dev).
"""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy
from conan.tools.gnu import PkgConfigDeps

required_conan_version = ">=2.1"


class PhasorConan(ConanFile):
    name = "phasor"
    version = "0.2.0"
    description = "Transformer encoders on oneDNN, with every hidden state observable"
    license = "Apache-2.0"
    topics = ("transformer", "encoder", "inference", "embeddings", "interpretability")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}

    def export_sources(self):
        checkout = os.path.join(self.recipe_folder, "..", "..")
        folders = [f"{name}/*" for name in ("capi", "engine", "files", "include", "lens", "models", "outputs",
                                              "tokenizer")]
        for pattern in ["CMakeLists.txt", "LICENSE", *folders]:
            copy(self, pattern, checkout, self.export_sources_folder)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("fmt/[>=9 <12]")
        self.requires("utf8proc/[>=2.8 <3]")
        self.requires("eigen/[>=3.4 <6]")
        self.requires("nlohmann_json/[>=3.11 <4]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("phasor runs on Linux")

    def generate(self):
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for name in ("INFER", "TESTS", "BENCH"):
            toolchain.cache_variables[f"PHASOR_BUILD_{name}"] = False
        toolchain.cache_variables["PHASOR_COMPILE_BY_FOLDER"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # phasorConfig.cmake, which defines phasor::phasor, phasor_lens, phasor_c and phasor_MODELS_DIR.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "phasor")]
        self.cpp_info.libs = ["phasor_lens", "phasor"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["sentencepiece", "dnnl", "dl", "pthread"]
        models = os.path.join(self.package_folder, "share", "phasor", "models")
        self.cpp_info.defines = [f'PHASOR_MODELS_DIR="{models}"']
