"""A program outside the project: installs quire to a prefix, compiles the README's example and the
examples against it with pkg-config, shared and static, and runs them.

usage: consumer.py SOURCE_ROOT BUILD_ROOT C_COMPILER MESON [MESON ARGUMENTS]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tap import Tap


def readme_example(root):
    """The first C block of README.md."""
    return re.search(r"```c\n(.*?)```", (root / "README.md").read_text(), re.S).group(1)


def run(command, **options):
    done = subprocess.run(command, text=True, capture_output=True, **options)
    problems = [] if done.returncode == 0 else [
        " ".join(map(str, command)) + f" ends with {done.returncode}", done.stdout, done.stderr]
    return done.stdout, problems


def main():
    root, build, compiler = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3].split()
    meson = sys.argv[4:]
    tap = Tap()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        _, problems = run([*meson, "install", "-C", build, "--no-rebuild", "--destdir",
                           str(place / "root")])
        found = sorted((place / "root").rglob("quire.pc"))
        tap.case("the library installs with its pkg-config file",
                 problems or ([] if found else ["there is no quire.pc"]))
        if problems or not found:
            tap.end()
        if not shutil.which("pkg-config"):
            tap.skip("programs compile against the prefix", "there is no pkg-config")
            tap.end()
        environment = dict(os.environ, PKG_CONFIG_PATH=str(found[0].parent))
        # the file names the prefix it was configured for; this one lies in a folder of its own
        prefix = re.search(r"^prefix=(.*)$", found[0].read_text(), re.M).group(1)
        flags, problems = run(["pkg-config", f"--define-variable=prefix={place / 'root'}{prefix}",
                               "--cflags", "--libs", "quire"], env=environment)
        tap.case("pkg-config answers", problems)
        library = str(found[0].parent.parent)
        include = [f for f in flags.split() if f.startswith("-I")]
        programs = {"README": readme_example(root)}
        for name in ("backend.c", "upload_ring.c"):
            programs[name] = (root / "docs/examples" / name).read_text()
        archive = sorted((place / "root").rglob("libquire.a"))
        for name, text in programs.items():
            source = place / "program.c"
            source.write_text(text)
            warnings = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
            ways = {"shared": flags.split() + [f"-Wl,-rpath,{library}"]}
            if archive:
                ways["static"] = include + [str(archive[0]), "-pthread"]
            for way, arguments in ways.items():
                program = place / "program"
                _, problems = run([*compiler, *warnings, str(source), "-o", str(program),
                                   *arguments])
                output = ""
                if not problems:
                    output, problems = run([str(program)])
                if not problems and not output.strip():
                    problems = ["the program printed nothing"]
                tap.case(f"the program of {name} compiles and runs, {way}", problems)
        lines = len(readme_example(root).splitlines())
        tap.case("the README's example is at most 45 lines",
                 [] if lines <= 45 else [f"{lines} lines"])
    tap.end()


main()
