# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python package as pip installs it: a wheel from the sources in an environment of its own, without a network,
and from there a program, the tool and mypy. A source archive builds the same files, and a wheel with a manylinux tag
needs the libraries of its policy alone.

usage: wheel.py SOURCE_ROOT C_COMPILER

The sources are built twice, the second time with less.
"""

import base64
import hashlib
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

from tap import Skipped, Tap

SMALL = "-Doptimization=0 -Dvulkan=disabled -Dcuda=disabled -Dplugin=disabled"
DROPPED = ("CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME",
           "VIRTUAL_ENV")

PROGRAM = """
import os
import quire
device = quire.open_host()
memory = device.create_memory("frames", host_read=True, host_write=True)
with memory.buffer(4096, name="frame") as buffer:
    buffer.write(b"pixels", offset=16)
    assert buffer.read(16, 6) == b"pixels"
    assert buffer.info.page == 0 and buffer.info.requested == 4096
folder = os.path.dirname(quire.__file__)
assert quire._native.library_name() == os.path.join(folder, "libquire.so.0"), quire._native.library_name()
print(quire.__version__, folder)
"""


def environment():
    """Without the flags and settings of the tests, and without files of settings of pip."""
    kept = {name: value for name, value in os.environ.items()
            if name not in DROPPED and not name.startswith(("PIP_", "QUIRE_", "ASAN_", "UBSAN_", "TSAN_"))}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Wheels:
    """The folder of the test: an environment in `venv`, the wheels in `wheels` and `again`."""

    def __init__(self, root, compiler, folder):
        self.root, self.folder = root, folder
        self.sources = root / "packaging/python"
        self.environment = {**environment(), "CC": compiler}
        self.python = folder / "venv/bin/python"
        sys.path.insert(0, str(self.sources))
        sys.dont_write_bytecode = True
        self.backend = importlib.import_module("build_quire")
        self.elf = importlib.import_module("quire_elf")

    def run(self, *command, **more):
        return subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False,
                              cwd=self.folder, env={**self.environment, **more})

    def problems(self, *command, **more):
        """Why a command failed."""
        done = self.run(*command, **more)
        return [f"{command[0]} ends with {done.returncode}", done.stdout[-3000:], done.stderr[-3000:]] \
            if done.returncode else []

    def wheel(self, folder):
        return next((self.folder / folder).glob("*.whl"))

    def missing(self):
        """What the machine lacks, or None."""
        for program in ("meson", "ninja", "pkg-config"):
            if not shutil.which(program):
                return f"{program} is missing"
        if self.run("pkg-config", "--exists", "jansson").returncode:
            return "jansson is missing"
        done = self.run(sys.executable, "-m", "venv", self.folder / "venv")
        if done.returncode:
            return "python3 -m venv makes no environment: " + (done.stdout + done.stderr).strip().splitlines()[0]
        return None


def install(wheels):
    """pip builds the wheel, and installs what it built."""
    return wheels.problems(wheels.python, "-m", "pip", "wheel", "--no-deps", "-w", "wheels", wheels.sources) or \
        wheels.problems(wheels.python, "-m", "pip", "install", "--no-deps", *wheels.folder.glob("wheels/*.whl"))


def program(wheels):
    done = wheels.run(wheels.python, "-I", "-c", PROGRAM)
    expected = [wheels.backend.version(), str(wheels.folder / "venv")]
    return [] if done.returncode == 0 and all(word in done.stdout for word in expected) else \
        [done.stdout, done.stderr]


def tool(wheels):
    """python -m quire and the script quire are the tool, with its exit status."""
    problems, script = [], wheels.folder / "venv/bin/quire"
    for command in ([wheels.python, "-I", "-m", "quire"], [script]):
        version, wrong = wheels.run(*command, "--version"), wheels.run(*command, "replay", "no such file")
        replayed = wheels.run(*command, "replay", wheels.root / "docs/traces/dawn.csv")
        if version.stdout != f"quire {wheels.backend.version()}\n":
            problems.append(f"{command} --version: {version.stdout}{version.stderr}")
        if replayed.returncode or not re.search(r"events +416:", replayed.stdout):
            problems.append(f"{command} replay: {replayed.stdout}{replayed.stderr}")
        if wrong.returncode != 1 or not wrong.stderr.startswith("quire"):
            problems.append(f"{command} of no file ends with {wrong.returncode}: {wrong.stderr}")
    return problems


def without_tool(wheels):
    """The package of the sources, which has no tool, says so."""
    library = next(wheels.folder.glob("venv/lib/*/site-packages/quire/libquire.so.0"))
    done = wheels.run(wheels.python, "-m", "quire", "--version", QUIRE_LIBRARY=str(library),
                      PYTHONPATH=str(wheels.root / "src/adapters/python"))
    return [] if done.returncode == 1 and "installed without the tool" in done.stderr else [done.stdout, done.stderr]


def contents(wheels):
    """The wheel has the files that meson installs, whose modes and digests are right, at one fixed time."""
    build = (wheels.root / "src/adapters/python/meson.build").read_text()
    expected = set(re.findall(r"'(quire/\S+?)'", build)) | {f"quire/{name}" for name in
                                                           ("_installed.py", "libquire.so.0", "quire")}
    problems = []
    with zipfile.ZipFile(wheels.wheel("wheels")) as archive:
        names = {name for name in archive.namelist() if name.startswith("quire/")}
        problems += [f"{name} is in one of wheel and meson.build" for name in sorted(names ^ expected)]
        info = next(name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name)
        lines = [line.rsplit(",", 2) for line in archive.read(f"{info}/RECORD").decode().splitlines()]
        if sorted(line[0] for line in lines) != sorted(archive.namelist()):
            problems.append("RECORD has other files than the wheel")
        for name, digest, size in lines:
            data = archive.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            if not name.endswith("/RECORD") and (digest, size) != (f"sha256={found}", str(len(data))):
                problems.append(f"RECORD is wrong about {name}")
        for entry in archive.infolist():
            wanted = 0o755 if entry.filename in ("quire/quire", "quire/libquire.so.0") else 0o644
            if entry.external_attr >> 16 & 0o777 != wanted or entry.date_time != (1980, 1, 1, 0, 0, 0):
                problems.append(f"{entry.filename} has {entry.external_attr >> 16:o} and {entry.date_time}")
        head = archive.read(f"{info}/METADATA").decode().partition("\n\n")[0].splitlines()
    wanted = ["Name: quire", f"Version: {wheels.backend.version()}", "Requires-Python: >=3.9",
              "License-File: LICENSE"]
    return problems + [f"METADATA lacks {line}" for line in wanted if line not in head]


def source_archive(wheels):
    """pip builds from the archive a wheel with the same files; it has less in its programs, and the tag asked for."""
    for name in ("archive", "archive_again"):
        (wheels.folder / name).mkdir()
        wheels.backend.build_sdist(wheels.folder / name)
    first, again = (next((wheels.folder / name).iterdir()) for name in ("archive", "archive_again"))
    problems = [] if first.read_bytes() == again.read_bytes() else ["two archives of the same sources differ"]
    with tarfile.open(first) as archive:
        if not all(name.startswith(f"quire-{wheels.backend.version()}/") for name in archive.getnames()):
            problems.append("the archive has more than one folder")
    problems += wheels.problems(wheels.python, "-m", "pip", "wheel", "--no-deps", "-w", "again", first,
                                QUIRE_SETUP_ARGS=SMALL, QUIRE_WHEEL_TAG="manylinux")
    if problems:
        return problems
    with zipfile.ZipFile(wheels.wheel("wheels")) as one, zipfile.ZipFile(wheels.wheel("again")) as two:
        if one.namelist() != two.namelist():
            problems.append(f"{sorted(set(one.namelist()) ^ set(two.namelist()))} are in one wheel only")
        problems += [f"{name} differs" for name in set(one.namelist()) & set(two.namelist())
                     if not re.search(r"/(quire|libquire\.so\.0|RECORD|WHEEL)$", name)
                     and one.read(name) != two.read(name)]
    return problems


def manylinux(wheels):
    """The tag of the wheel of the archive, and the tag that the programs of the first wheel would have."""
    found = re.search(r"-py3-none-manylinux_2_(\d+)_(\w+)\.whl$", wheels.wheel("again").name)
    if not found:
        return [f"the wheel is {wheels.wheel('again').name}"]
    with zipfile.ZipFile(wheels.wheel("wheels")) as archive:
        archive.extractall(wheels.folder / "files")
    programs = {name: wheels.folder / "files/quire" / name for name in ("quire", "libquire.so.0")}
    tag = wheels.elf.manylinux_tag(programs, found[2])
    labels = [label for path in programs.values() for label in wheels.elf.versions(path)]
    newest = max(int(label.split(".")[1]) for label in labels if re.match(r"GLIBC_2\.", label))
    return [] if tag == f"manylinux_2_{newest}_{found[2]}" and newest > 5 else [f"{tag} for {sorted(labels)}"]


def refused_library(wheels):
    """A program with another library has no manylinux tag, and the reason names it."""
    source = wheels.folder / "other.c"
    source.write_text("int other(void) { return 0; }\n")
    program = wheels.folder / "program.c"
    program.write_text("int other(void);\nint main(void) { return other(); }\n")
    compiler = wheels.environment["CC"].split()
    shared = ["-shared", "-fPIC", "-Wl,-soname,libother.so.7", "-o", "libother.so"]
    problems = wheels.problems(*compiler, source, *shared) or \
        wheels.problems(*compiler, program, "-o", "program", "-L.", "-lother")
    if problems:
        return problems
    try:
        return [f"it got {wheels.elf.manylinux_tag({'program': wheels.folder / 'program'}, 'x86_64')}"]
    except wheels.elf.Refused as reason:
        return [] if "program needs libother.so.7" in str(reason) else [str(reason)]


def reasons(wheels):
    """A build that cannot be made ends with one sentence, which no trace of calls hides."""
    call, empty = "import build_quire; build_quire.build_wheel('.')", str(wheels.folder / "empty")
    os.mkdir(empty)
    tried = {"meson is missing": {"PATH": empty},
             "there is no C compiler that works": {"CC": "/nonexistent/cc"},
             "jansson is missing": {"PKG_CONFIG_LIBDIR": empty},
             "the tag 'musl' is unknown": {"QUIRE_WHEEL_TAG": "musl"},
             "SOURCE_DATE_EPOCH is 'now'": {"SOURCE_DATE_EPOCH": "now"}}
    problems = []
    for sentence, more in tried.items():
        done = wheels.run(sys.executable, "-c", call, PYTHONPATH=str(wheels.sources), **more)
        if not done.returncode or not done.stderr.startswith(f"quire: {sentence}") or "Traceback" in done.stderr:
            problems.append(f"{sentence}: ends with {done.returncode}: {done.stdout}{done.stderr}")
    return problems


def types(wheels):
    """mypy finds the types of the installed package."""
    program = shutil.which("mypy")
    if not program:
        raise Skipped("mypy is not installed")
    wrong = "import quire\nlive: str = quire.open_host().create_memory().allocate(1)\n"
    (wheels.folder / "typed.py").write_text(wrong)
    done = wheels.run(program, "--strict", "--cache-dir", os.devnull, "--python-executable", wheels.python,
                      "typed.py")
    found = 'has type "Allocation"' in done.stdout and "Found 1 error" in done.stdout
    return [] if found else [done.stdout, done.stderr]


CASES = (("pip builds the wheel of the sources and installs it, without a network", install),
         ("a program runs on the installed package and its own library", program),
         ("python -m quire and the script quire run the tool", tool),
         ("python -m quire without the tool says so", without_tool),
         ("mypy finds the types of the installed package", types),
         ("the wheel has the files that meson installs, with modes, digests and metadata", contents),
         ("a source archive is reproducible and builds the same files", source_archive),
         ("the manylinux tag has the glibc that the programs need", manylinux),
         ("a library that manylinux does not list is refused by its name", refused_library),
         ("a build that cannot be made says why in one sentence", reasons))


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="quire-wheel-") as folder:
        wheels = Wheels(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(folder))
        reason = wheels.missing()
        for name, case in CASES:
            if reason:
                tap.skip(name, reason)
                continue
            start = time.monotonic()
            tap.attempt(name, case, wheels)
            print(f"# {time.monotonic() - start:.1f} s")
    tap.end()


main()
