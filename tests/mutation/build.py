# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds a copy of the tree, in which mutate.py changes sources and runs tests.

The build enables assertions. It uses -O1 and no debug information, so that it links quickly. After a
change it links only the programs that run.
"""

import hashlib
import json
import os
import pathlib
import re
import resource
import selectors
import shutil
import signal
import subprocess
import time

OPTIONS = ["-Dbuildtype=plain", "-Doptimization=1", "-Ddebug=false", "-Db_ndebug=false", "-Dwarning_level=0",
           "-Dtests=enabled", "-Dtest_factor=0", "-Dstatic_tests=false", "-Dtool=disabled", "-Dman=disabled",
           "-Dmutants=0", "-Dc_args=-DNVALGRIND"]
# Suites that cannot detect a change of the core, or that use installed drivers.
EXCLUDED_SUITES = {"driver", "static", "tool", "guard"}
# Memory limit of a test in bytes, because a mutant may allocate endlessly. Tests that reserve more have none.
MAX_DATA = 4 << 30
LIBRARIES = ["libquire-objects.a", "tests/support/libquire-objects-checked.a"]
TIMEOUT = "timeout"
# Criterion runs each case in a separate process and sometimes crashes itself. A crash counts only if every
# run crashes.
CRASHED, RUNS = "terminated by signal", 3


class Failed(Exception):
    """The build of the unchanged sources fails."""


def files_of(root):
    """The files of the tree that git does not ignore."""
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=root, capture_output=True)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if not path.relative_to(root).parts[0].startswith("build")]
    return sorted(n for n in names if n and (root / n).is_file())


def copy_tree(root, tree):
    """Makes `tree` a copy of `root`. Unchanged files keep their times, so that ninja rebuilds little."""
    names = set(files_of(root))
    for path in list(tree.rglob("*")):
        if path.is_file() and str(path.relative_to(tree)) not in names:
            path.unlink()
    for name in names:
        source, copy = root / name, tree / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)


def disable_core_dumps():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_memory():
    disable_core_dumps()
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_DATA, MAX_DATA))


class Test:
    """A test of the build: a command and the targets that it needs. Each file of a unit test program is
    one test, which Criterion selects by the name of its suite."""

    def __init__(self, described, targets, folder, suite=None):
        self.name = suite or described["name"]
        self.targets = targets
        self.seconds = 1.0  # on the unchanged sources
        self.is_limited = True
        self.sources = set()  # file names; empty if unknown
        self._command = described["cmd"] + ([f"--filter={suite}/*"] if suite else [])
        self._folder = described.get("workdir") or folder
        self._environment = {**os.environ, **described.get("env", {})}

    def has_any(self, objects):
        """Whether one of these object files may be linked into it."""
        return not self.sources or any(name.endswith(f"_{source}.o") for name in objects for source in self.sources)

    def run(self, seconds):
        """The first failure, or None. Stops at the first failure and after `seconds`."""
        for _ in range(RUNS):
            failure = self._run_once(seconds)
            if not failure or not failure.startswith(CRASHED):
                break
        return failure

    def _run_once(self, seconds):
        child = subprocess.Popen(self._command, cwd=self._folder, env=self._environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, start_new_session=True,
                                 preexec_fn=limit_memory if self.is_limited else disable_core_dumps)
        deadline = time.monotonic() + seconds
        failure = first_failure(child.stdout, deadline)
        if failure is None and not has_ended(child, deadline):
            failure = TIMEOUT
        os.killpg(child.pid, signal.SIGKILL)  # with its children; the id stays valid until wait()
        child.stdout.close()
        code = child.wait()
        if failure or not code:
            return failure
        return f"{CRASHED} {-code}" if code < 0 else f"exit status {code}"


def first_failure(stream, deadline):
    """Reads TAP until a case fails, the stream ends, or the deadline passes."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while selector.select(max(0, deadline - time.monotonic())):
            part = os.read(stream.fileno(), 1 << 16)
            if not part:
                return None
            lines = (rest + part).split(b"\n")
            rest = lines.pop()[-4096:]
            for line in lines:
                if line.startswith((b"not ok", b"Bail out!")) and b"# TODO" not in line:
                    return line.decode(errors="replace").replace("not ok", "").strip(" -")
    return TIMEOUT


def has_ended(child, deadline):
    while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Build:
    """The copy and its build. Raises Failed if the unchanged sources do not build."""

    def __init__(self, root, work, jobs):
        self.tree, self.jobs = work / "tree", jobs
        self._folder = work / "build"
        self.tree.mkdir(parents=True, exist_ok=True)
        copy_tree(root, self.tree)
        command = ["meson", "setup", str(self._folder), str(self.tree), *OPTIONS]
        if (self._folder / "build.ninja").exists():
            command.append("--reconfigure")
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode:
            raise Failed(made.stdout[-2000:] + made.stderr[-2000:])
        self.tests = list(self._read_tests())
        problem = self.make_tests(self.tests) or self.make_libraries()
        if problem:
            raise Failed(problem)
        self._note_sources()

    def _introspect(self, what):
        done = subprocess.run(["meson", "introspect", what, str(self._folder)], capture_output=True,
                              text=True, check=True)
        return json.loads(done.stdout)

    def _read_tests(self):
        targets = {target["id"]: target for target in self._introspect("--targets")}
        for described in self._introspect("--tests"):
            suites = {suite.split(":")[-1] for suite in described["suite"]}
            if not suites & EXCLUDED_SUITES:
                needed = [targets[name] for name in described["depends"] if name in targets]
                files = {os.path.relpath(name, self._folder) for target in needed for name in target["filename"]}
                for suite in self._suites_of(needed) if "unit" in suites else [None]:
                    yield Test(described, files, str(self._folder), suite)

    @staticmethod
    def _suites_of(targets):
        """The file names of a unit test program, which are also the names of its suites."""
        paths = {pathlib.Path(source) for target in targets for part in target["target_sources"]
                 for source in part.get("sources", [])}
        return sorted(path.stem for path in paths if path.suffix == ".c" and "unit" in path.parts)

    def _make(self, targets):
        """None, or the output of the failed build."""
        done = subprocess.run(["ninja", "-C", str(self._folder), f"-j{self.jobs}", *sorted(targets)],
                              capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout[-3000:] + done.stderr[-500:]

    def make_libraries(self):
        return self._make(LIBRARIES)

    def make_tests(self, tests):
        return self._make({target for test in tests for target in test.targets})

    def object_code(self):
        """{object file: digest} for the object files of the library."""
        return {path.name: hashlib.sha256(path.read_bytes()).digest()
                for library in LIBRARIES for path in (self._folder / f"{library}.p").rglob("*.o")}

    def _note_sources(self):
        """Records for each test the linked sources, from the file symbols of its programs."""
        for test in self.tests:
            paths = [str(self._folder / target) for target in test.targets]
            done = subprocess.run(["nm", "-a", *paths], capture_output=True, text=True)
            test.sources = set(re.findall(r"^[0-9a-f]+ a (\S+\.c)$", done.stdout, re.M))
