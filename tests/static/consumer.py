# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program outside the project: installs quire to a prefix and does there what the documents say. It
compiles the README's program and the examples against it with pkg-config, shared and static, runs them,
runs the commands of the README, of docs/tutorial.md, of docs/install.md and of docs/adapters/pytorch_cpu.md
word for word, and builds the projects of docs/install.md with CMake and meson.

usage: consumer.py SOURCE_ROOT BUILD_ROOT C_COMPILER CPP_COMPILER|none MESON [MESON ARGUMENTS]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import cmake
from code_blocks import FENCE, blocks, readme_example, run
from tap import Tap


def build_and_run(command, source, place, arguments, **options):
    """A program of one source: how its run ended, or None, and the problems of both."""
    program = place / "program"
    _, problems = run([*command, source, "-o", program, *arguments])
    if problems:
        return None, problems
    done = subprocess.run([program], text=True, capture_output=True, **options)
    if done.returncode:
        problems = [f"{source.name} ends with {done.returncode}", done.stdout, done.stderr]
    elif not done.stdout.strip():
        problems = ["the program printed nothing"]
    return done, problems


def check_cpp(tap, root, place, compiler, arguments):
    """The README's program is C++20 to the letter."""
    if compiler == ["none"]:
        tap.skip("the README's program is C++20, and that of docs/cpp.md runs", "there is no C++ compiler")
        return
    source = place / "program.cpp"
    source.write_text(readme_example(root))
    strict = ["-std=c++20", "-Wall", "-Wpedantic", "-pedantic-errors", "-Werror"]
    tap.case("the README's program is C++20", build_and_run([*compiler, *strict], source, place, arguments)[1])
    source.write_text(blocks(root, "docs/cpp.md", "cpp")[0])
    done, problems = build_and_run([*compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror"], source, place, arguments)
    expected = blocks(root, "docs/cpp.md", "text")[0]
    tap.case("the program of docs/cpp.md compiles with the installed quire.hpp, and runs",
             problems or ([] if done.stdout == expected else [f"it printed {done.stdout!r}"]))


def check_vma(tap, root, place, compilers, arguments, way=""):
    """The program of docs/adapters/vma.md is C11 and C++17 against the installed headers."""
    expected = blocks(root, "docs/adapters/vma.md", "text")[0]
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    problems = []
    for compiler, standard, name in zip(compilers, ("c11", "c++17"), ("vma.c", "vma.cpp")):
        if problems or compiler == ["none"]:
            continue
        source = place / name
        source.write_text(blocks(root, "docs/adapters/vma.md", "c")[0])
        warnings = ["-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]
        done, problems = build_and_run([*compiler, f"-std={standard}", *warnings], source, place, arguments,
                                       env=environment)
        problems = problems or ([] if done.stdout == expected else [f"it printed {done.stdout!r}"])
    tap.case(f"the program of docs/adapters/vma.md compiles with the installed quire_vma.h, and runs{way}", problems)


def move_prefix(installed, prefix, home):
    """What the README's first two commands would have made in a home: the same files under quire."""
    shutil.copytree(installed / prefix.lstrip("/"), home / "quire", symlinks=True)
    library = next(path.parent.parent for path in (home / "quire").rglob("quire.pc"))
    wanted = home / "quire/lib"
    if library != wanted:
        wanted.mkdir(exist_ok=True)
        for path in list(library.iterdir()):
            path.rename(wanted / path.name)
    for module in (home / "quire").rglob("_installed.py"):  # where the Python package finds the library
        path = os.path.relpath(wanted, module.parent)
        module.write_text(re.sub(r'^LIBRARY = ".*/', f'LIBRARY = "{path}/', module.read_text(), flags=re.M))
    for record in (home / "quire/lib/pkgconfig").glob("*.pc"):
        text = re.sub(r"^prefix=.*$", f"prefix={home}/quire", record.read_text(), flags=re.M)
        record.write_text(re.sub(r"^libdir=.*$", "libdir=${prefix}/lib", text, flags=re.M))


class Home:
    """A home folder with the installation in its folder `quire`, and an environment without others."""

    def __init__(self, place, installed, prefix):
        self.folder = place / "home"
        self.folder.mkdir()
        move_prefix(installed, prefix, self.folder)
        self.has_tool = (self.folder / "quire/bin/quire").exists()
        self.environment = {k: v for k, v in os.environ.items()
                            if k not in ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "LD_RUN_PATH")}
        self.environment["HOME"] = str(self.folder)

    def run(self, commands, more=()):
        """Runs the lines of shell that do not build or install quire itself, nor need its absent tool."""
        lines = [line for line in commands.splitlines() if not line.startswith("meson ")]
        if not self.has_tool:
            lines = [line for line in lines if not re.match(r'quire |python3 -m quire |"\$HOME/quire/bin/quire"', line)]
        return run(["sh", "-ec", "\n".join([*more, *lines])], cwd=self.folder, env=self.environment)


def check_prefix(tap, root, home):
    """A new user pastes the README's commands: all but the two that build and install."""
    commands = readme_example(root, "sh")
    built = [line for line in commands.splitlines() if line.startswith("meson ")]
    problems = [] if len(built) == 2 else [f"the commands are {commands}"]
    if not all(word in commands for word in ('--prefix="$HOME/quire"', "--libdir=lib")):
        problems.append(f"the prefix is not $HOME/quire: {commands}")
    (home.folder / "program.c").write_text(readme_example(root))
    output, more = home.run(commands)
    if not more and "page 0, offset" not in output:
        more = [f"the program printed {output!r}"]
    tap.case("the README's commands for a prefix do what they say", problems + more)


EXAMPLES = ("backend.c", "upload_ring.c", "plan_tensors.c", "framework_pool.c", "kv_cache.c", "two_models.c",
            "vulkan_compute.c", "vulkan_renderer.c", "cuda_saxpy.c")
NO_DEVICE = 77


def check_program(tap, name, source, place, compiler, ways):
    """Compiles a program in each way and runs it."""
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    for way, arguments in ways.items():
        done, problems = build_and_run([*compiler, *strict], source, place, arguments)
        if done and done.returncode == NO_DEVICE and done.stderr.strip():
            tap.case(f"the program of {name} compiles, {way}")
            tap.skip(f"the program of {name} runs, {way}", done.stderr.strip().splitlines()[-1])
        else:
            tap.case(f"the program of {name} compiles and runs, {way}", problems)


def check_programs(tap, root, place, compiler, ways):
    source = place / "readme.c"
    source.write_text(readme_example(root))
    check_program(tap, "README", source, place, compiler, ways)
    for name in EXAMPLES:
        more = []
        if name.startswith("vulkan"):
            more, missing = run(["pkg-config", "--libs", "vulkan"])
            if missing:
                tap.skip(f"the program of {name} compiles", "there is no vulkan.pc")
                continue
            more = more.split()
        check_program(tap, name, root / "docs/examples" / name, place, compiler,
                      {way: arguments + more for way, arguments in ways.items()})


def check_vulkan(tap, root, place, compiler, arguments):
    """The README says which lines change for Vulkan."""
    text = readme_example(root)
    changed = text.replace("quire/host.h", "quire/vulkan.h").replace("quire_host_open", "quire_vulkan_open")
    source = place / "vulkan.c"
    source.write_text("#include <vulkan/vulkan.h>\n")
    if run([*compiler, "-fsyntax-only", str(source)])[1]:
        tap.skip("the README's program runs on Vulkan", "there are no Vulkan headers")
        return
    source.write_text(changed)
    done, problems = build_and_run([*compiler, "-std=c11"], source, place, arguments)
    if done and done.returncode and re.search("has no Vulkan|VK_ERROR_INCOMPATIBLE_DRIVER", done.stderr):
        tap.skip("the README's program runs on Vulkan", done.stderr.strip())
        return
    if not problems and "page 0, offset" not in done.stdout:
        problems = [done.stdout, done.stderr]
    tap.case("the README's program runs on Vulkan", problems)


def check_install(tap, root, home):
    """The commands of docs/install.md, on the README's program."""
    problems = []
    (home.folder / "scripts").symlink_to(root / "scripts")  # as in the folder of the sources
    for commands in blocks(root, "docs/install.md", "sh"):
        commands = commands.replace("cc -O2", "cc")  # which takes half a minute
        settings = ['export PKG_CONFIG_PATH="$HOME/quire/lib/pkgconfig"']
        if "libquire.a" in commands and not (home.folder / "quire/lib/libquire.a").exists():
            continue
        problems += home.run(commands, settings)[1]
    tap.case("the commands of docs/install.md work", problems)


def check_tutorial(tap, root, home, has_cpp):
    """A new user saves the programs of docs/tutorial.md and pastes its commands."""
    text = (root / "docs/tutorial.md").read_text()
    names = re.findall(r"[Ss]ave\s+(?:this\s+program|it)\s+as\s+`(\w+\.c(?:pp)?)`", text)
    programs = [m[2] for m in FENCE.finditer(text) if m[1] in ("c", "cpp")]
    problems = [] if len(names) == len(programs) > 2 else [f"{names} name {len(programs)} programs"]
    for name, program in zip(names, programs):
        (home.folder / name).write_text(program)
    commands = "\n".join(block for block in blocks(root, "docs/tutorial.md", "sh")
                         if has_cpp or not block.startswith("c++ "))
    if not problems:
        problems = home.run(commands)[1]
    files = ["pages.svg", "model.trace"] + (["model.html", "peak.svg"] if home.has_tool else [])
    problems = problems or [f"there is no {name}" for name in files if not (home.folder / name).exists()]
    tap.case("the commands of docs/tutorial.md do what they say", problems)


TORCH_CPU_C = """#include <quire/torch_cpu.h>
int main(void) { return !quire_torch_cpu_is_active(); }
"""


def check_torch_cpu(tap, root, home):
    """The lines of docs/adapters/pytorch_cpu.md with the installed library."""
    page, case = "docs/adapters/pytorch_cpu.md", "the lines of docs/adapters/pytorch_cpu.md work"
    if not list((home.folder / "quire/lib").glob("libquire_torch_cpu.so*")):
        tap.skip(case, "the build has no libquire_torch_cpu")
        return
    settings = ['export PKG_CONFIG_PATH="$HOME/quire/lib/pkgconfig"', 'export LD_LIBRARY_PATH="$HOME/quire/lib"']
    (home.folder / "program.c").write_text(TORCH_CPU_C)
    has_torch = not home.run("python3 -c 'import torch'")[1]
    commands = [block for block in blocks(root, page, "sh") if has_torch or not block.startswith("python3 ")]
    tap.case(case + ", with pkg-config",
             [line for block in commands for line in home.run(block, settings)[1]] if commands else ["no lines"])
    if not has_torch:
        tap.skip(case + ", in Python", "python3 has no torch")
        return
    # the tensor of the last line is quire's, as the page says
    lines = [*blocks(root, page, "python"), "kept = torch.ones(1 << 20)", "assert quire.is_active()",
             "assert json.loads(quire.stats())['requested_bytes'] >= 4 << 20"]
    (home.folder / "torch_cpu.py").write_text("\n".join(lines))
    tap.case(case + ", in Python", home.run("python3 torch_cpu.py", settings)[1])


def check_meson(tap, root, place, meson):
    """The project of docs/install.md takes quire as a subproject: the library, with its headers, and no more."""
    folder = place / "meson"
    (folder / "subprojects").mkdir(parents=True)
    (folder / "subprojects/quire").symlink_to(root)
    shutil.copy(root / "packaging/meson/quire.wrap", folder / "subprojects")
    (folder / "meson.build").write_text(blocks(root, "docs/install.md", "meson")[0])
    (folder / "program.c").write_text(readme_example(root))
    output, problems = run([*meson, "setup", "--wrap-mode=forcefallback", str(folder / "build"), str(folder)])
    if not problems and "Subproject quire finished." not in output:
        problems = [output]
    if not problems:
        output, problems = run([*meson, "introspect", "--installed", "--targets", str(folder / "build")])
    if not problems:
        found = json.loads(output)
        built = {target["name"] for target in found["targets"] if target["build_by_default"]}
        installed = [path for path in found["installed"].values()
                     if not re.search(r"/include/quire/|/libquire\.(so[.0-9]*|a)$|/quire\.pc$|/cmake/quire/", path)]
        problems = [f"built: {built}"] * (not built <= {"program", "quire", "quire-objects", "volk_names"}) + installed
    tap.case("meson takes the library alone as a subproject", problems)


def main():
    root, build, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3].split()
    cpp_compiler, meson = sys.argv[4].split(), sys.argv[5:]
    tap = Tap()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        _, problems = run([*meson, "install", "-C", build, "--no-rebuild", "--destdir", str(place / "root")])
        found = sorted((place / "root").rglob("quire.pc"))
        tap.case("the library installs with its pkg-config file",
                 problems or ([] if found else ["there is no quire.pc"]))
        if problems or not found:
            tap.end()
        if not shutil.which("pkg-config"):
            tap.skip("programs compile against the prefix", "there is no pkg-config")
            tap.end()
        # the file names the prefix it was configured for; this one lies in a folder of its own
        prefix = re.search(r"^prefix=(.*)$", found[0].read_text(), re.M).group(1)

        def flags_of(package):
            flags, problems = run(["pkg-config", f"--define-variable=prefix={place / 'root'}{prefix}", "--cflags",
                                   "--libs", package], env=dict(os.environ, PKG_CONFIG_PATH=str(found[0].parent)))
            tap.case(f"pkg-config knows {package}", problems)
            return flags.split() + [f"-Wl,-rpath,{found[0].parent.parent}"]

        shared = flags_of("quire")
        archive = sorted((place / "root").rglob("libquire.a"))
        ways = {"shared": shared}
        if archive:
            ways["static"] = [f for f in shared if f.startswith("-I")] + [str(archive[0]), "-pthread"]
        check_programs(tap, root, place, compiler, ways)
        check_cpp(tap, root, place, cpp_compiler, shared)
        check_vulkan(tap, root, place, compiler, shared)
        if (found[0].parent / "quire_vma.pc").exists():
            arguments = flags_of("quire_vma")
            check_vma(tap, root, place, (compiler, cpp_compiler), arguments)
            # the path of the program is not for the libraries of its libraries: libquire_vma has its own
            check_vma(tap, root, place, (compiler, cpp_compiler), ["-Wl,--as-needed", *arguments],
                      " with libquire_vma as its only library")
        home = Home(place, place / "root", prefix)
        check_prefix(tap, root, home)
        check_install(tap, root, home)
        check_tutorial(tap, root, home, cpp_compiler != ["none"])
        check_torch_cpu(tap, root, home)
        cmake.check(tap, root, build, place, home, compiler)
        check_meson(tap, root, place, meson)
        lines = len(readme_example(root).splitlines())
        tap.case("the README's example is at most 45 lines", [] if lines <= 45 else [f"{lines} lines"])
    tap.end()


if __name__ == "__main__":
    main()
