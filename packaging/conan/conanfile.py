# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recipe of Conan 2: `conan create packaging/conan`. It exports the sources that it is part of; a copy in a center
has a method `source` that gets the archive of a release."""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

SOURCES = ("LICENSE", "README.md", "backends/*", "bench/*", "docs/*", "include/*", "meson.build", "meson_options.txt",
           "scripts/*", "src/*")


class Quire(ConanFile):
    name = "quire"
    version = "0.2.0"
    description = "Suballocation of GPU memory: pages, placement, insight"
    license = "Apache-2.0 WITH LLVM-exception"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "vulkan": [True, False], "tool": [True, False]}
    default_options = {"shared": False, "vulkan": True, "tool": False}
    generators = "PkgConfigDeps"

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in SOURCES:
            copy(self, pattern, root, self.export_sources_folder)

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("quire is built for Linux")

    def layout(self):
        basic_layout(self, src_folder="src")

    def requirements(self):
        if self.options.vulkan:
            self.requires("vulkan-headers/[>=1.3]")
            self.requires("volk/[>=1.3]")
        if self.options.tool:
            self.requires("jansson/2.14")

    def build_requirements(self):
        self.tool_requires("meson/[>=1.0]")
        self.tool_requires("pkgconf/[>=2]")

    def generate(self):
        toolchain = MesonToolchain(self)
        given = {"vulkan": self.options.vulkan, "adapters": self.options.vulkan, "tool": self.options.tool}
        for name in ("tests", "python", "man", "nvtx", "torch_cpu"):
            given[name] = False
        for name, is_built in given.items():
            toolchain.project_options[name] = "enabled" if is_built else "disabled"
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "quire")
        self.cpp_info.components["quire"].libs = ["quire"]
        self.cpp_info.components["quire"].system_libs = ["pthread", "dl"]
        self.cpp_info.components["quire"].set_property("cmake_target_name", "quire::quire")
        if self.options.vulkan:
            self.cpp_info.components["vma"].libs = ["quire_vma"]
            self.cpp_info.components["vma"].requires = ["quire", "vulkan-headers::vulkan-headers", "volk::volk"]
            self.cpp_info.components["vma"].set_property("cmake_target_name", "quire::vma")
