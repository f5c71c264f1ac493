# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For consumer.py: projects of CMake that take quire from a prefix, from a build folder and from its sources."""

import re
import shutil

from code_blocks import blocks, readme_example, run

# a line that uses each component; the languages that it needs
COMPONENTS = {
    "static": ("C", "#include <quire/quire.h>\nint main(void) { return !quire_version(); }\n"),
    "cpp": ("CXX", "#include <quire/quire.hpp>\nint main() { quire::device device; return bool(device); }\n"),
    "vma": ("C", "#include <quire/quire_vma.h>\nint main(void) { return !vmaCreateAllocator; }\n"),
    "nvtx": ("C", "#include <quire/nvtx.h>\nint main(void) { return !quire_version(); }\n"),
    "onnxruntime": ("C", "#include <quire/onnxruntime.h>\nint main(void) { return !quire_version(); }\n"),
}
ALWAYS = ("cpp", "onnxruntime")  # components of every build with adapters


class Projects:
    """Makes a project, builds it and runs its program."""

    def __init__(self, root, place, home, compiler):
        self.root, self.place, self.home, self.compiler, self.count = root, place, home, compiler, 0
        self.environment = dict(home.environment, PKG_CONFIG_PATH=str(home.folder / "quire/lib/pkgconfig"))

    def configure(self, text, where, program, suffix="c"):
        """The folder of the project, and the problems."""
        self.count += 1
        folder = self.place / f"cmake{self.count}"
        folder.mkdir()
        (folder / "quire").symlink_to(self.root)
        (folder / "CMakeLists.txt").write_text(text)
        (folder / f"program.{suffix}").write_text(program)
        return folder, run(["cmake", "-S", folder, "-B", folder / "build", where,
                            f"-DCMAKE_C_COMPILER={self.compiler[-1]}"], env=self.environment)[1]

    def build(self, *project):
        """What the program printed, and the problems."""
        folder, problems = self.configure(*project)
        if not problems:
            _, problems = run(["cmake", "--build", folder / "build"], env=self.environment)
        return ("", problems) if problems else run([folder / "build/program"], env=self.home.environment)


def component_project(name, language, required="REQUIRED"):
    suffix = "cpp" if language == "CXX" else "c"
    return ("cmake_minimum_required(VERSION 3.13)\n"
            f"project(program {language} {'C' if language == 'CXX' else ''})\n"
            f"find_package(quire {required} COMPONENTS {name})\n"
            f"if(NOT quire_{name}_FOUND)\n  message(FATAL_ERROR \"no ${{quire_NOT_FOUND_MESSAGE}}\")\nendif()\n"
            f"add_executable(program program.{suffix})\n"
            f"target_link_libraries(program PRIVATE quire::{name})\n"), suffix


def check_documents(tap, projects, where):
    """Each project of docs/install.md builds and runs."""
    texts = blocks(projects.root, "docs/install.md", "cmake")
    for number, text in enumerate(texts, 1):
        output, problems = projects.build(text, where, readme_example(projects.root))
        if not problems and "page 0, offset" not in output:
            problems = [f"the program printed {output!r}"]
        tap.case(f"CMake builds project {number} of docs/install.md", problems)
    wrong = re.sub(r"quire \d+\.\d+", "quire 9.0", texts[0])
    _, problems = projects.configure(wrong, where, "")
    tap.case("CMake refuses a version that is not installed",
             [] if problems and wrong != texts[0] else ["it accepted 9.0"])


def check_components(tap, projects, place, where):
    for name, (language, program) in COMPONENTS.items():
        text, suffix = component_project(name, language)
        _, problems = projects.build(text, where, program, suffix)
        if name not in ALWAYS and problems and "quire was built without the component" in "".join(problems):
            tap.skip(f"the component {name} of {place}", "the build is without it")
        else:
            tap.case(f"the component {name} of {place}", problems)
    for required in ("REQUIRED", ""):
        text, _ = component_project("frobnicate", "C", required)
        said = "".join(projects.configure(text, where, "")[1])
        expected = "has no component 'frobnicate'" if required else "no "
        tap.case(f"{place} has no unknown component {required}".rstrip(),
                 [] if expected in said else [said or "CMake accepted it"])


def check(tap, root, build, place, home, compiler):
    if not shutil.which("cmake"):
        tap.skip("CMake finds the library", "there is no cmake")
        return
    projects = Projects(root, place, home, compiler)
    prefix = f"-DCMAKE_PREFIX_PATH={home.folder}/quire"
    check_documents(tap, projects, prefix)
    check_components(tap, projects, "the prefix", prefix)
    check_components(tap, projects, "the build folder", f"-Dquire_DIR={build}/src/cmake")
