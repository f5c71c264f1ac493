"""A program outside the project: installs quire to a prefix, compiles the README's example and the
examples against it with pkg-config, shared and static, and runs them; the README's programs as C++,
too, and the README's commands for a prefix word for word.

usage: consumer.py SOURCE_ROOT BUILD_ROOT C_COMPILER CPP_COMPILER|none MESON [MESON ARGUMENTS]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tap import Tap


def readme_example(root, language="c"):
    """The first block of a language in README.md."""
    return re.search(rf"```{language}\n(.*?)```", (root / "README.md").read_text(), re.S).group(1)


def run(command, **options):
    done = subprocess.run(command, text=True, capture_output=True, **options)
    problems = [] if done.returncode == 0 else [
        " ".join(map(str, command)) + f" ends with {done.returncode}", done.stdout, done.stderr]
    return done.stdout, problems


def check_cpp(tap, root, place, compiler, arguments):
    """The README's program is C++20; its C++17 program is that to the letter."""
    if compiler == ["none"]:
        tap.skip("the README's programs are C++", "there is no C++ compiler")
        return
    for language, standard in (("c", "c++20"), ("cpp", "c++17"), ("cpp", "c++20")):
        source, program = place / "program.cpp", place / "program"
        source.write_text(readme_example(root, language))
        _, problems = run([*compiler, f"-std={standard}", "-Wall", "-Wpedantic", "-pedantic-errors",
                           "-Werror", str(source), "-o", str(program), *arguments])
        output = ""
        if not problems:
            output, problems = run([str(program)])
        if not problems and not output.strip():
            problems = ["the program printed nothing"]
        tap.case(f"the README's {language} program is {standard}", problems)


def move_prefix(installed, prefix, home):
    """What the README's first two commands would have made in a home: the same files under quire."""
    shutil.copytree(installed / prefix.lstrip("/"), home / "quire", symlinks=True)
    library = next(path.parent.parent for path in (home / "quire").rglob("quire.pc"))
    wanted = home / "quire/lib"
    if library != wanted:
        wanted.mkdir(exist_ok=True)
        for path in list(library.iterdir()):
            path.rename(wanted / path.name)
    record = home / "quire/lib/pkgconfig/quire.pc"
    text = re.sub(r"^prefix=.*$", f"prefix={home}/quire", record.read_text(), flags=re.M)
    record.write_text(re.sub(r"^libdir=.*$", "libdir=${prefix}/lib", text, flags=re.M))


def check_prefix(tap, root, place, installed, prefix):
    """A new user pastes the README's commands: all but the two that build and install."""
    commands = readme_example(root, "sh").splitlines()
    rest = [line for line in commands if not line.startswith("meson ")]
    problems = [] if len(rest) == len(commands) - 2 else [f"the commands are {commands}"]
    if not all(word in commands[0] for word in ('--prefix="$HOME/quire"', "--libdir=lib")):
        problems.append(f"the prefix is not $HOME/quire: {commands[0]}")
    home = place / "home"
    home.mkdir()
    move_prefix(installed, prefix, home)
    if not (home / "quire/bin/quire").exists():  # a build without the tool
        rest = [line for line in rest if "/bin/quire" not in line]
    (home / "program.c").write_text(readme_example(root))
    environment = {k: v for k, v in os.environ.items()
                   if k not in ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "LD_RUN_PATH")}
    output, more = run(["sh", "-ec", "\n".join(rest)], cwd=home, env=dict(environment, HOME=str(home)))
    if not more and "page 0 offset" not in output:
        more = [f"the program printed {output!r}"]
    tap.case("the README's commands for a prefix do what they say", problems + more)


def main():
    root, build, compiler = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3].split()
    cpp_compiler, meson = sys.argv[4].split(), sys.argv[5:]
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
        check_cpp(tap, root, place, cpp_compiler, flags.split() + [f"-Wl,-rpath,{library}"])
        check_prefix(tap, root, place, place / "root", prefix)
        lines = len(readme_example(root).splitlines())
        tap.case("the README's example is at most 45 lines",
                 [] if lines <= 45 else [f"{lines} lines"])
    tap.end()


main()
