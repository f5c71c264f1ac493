"""A copy of the tree with a build of its own, in which sources are changed and tests run.

The build is a debug build, so that assertions hold, at -O1 and without symbols, so that it links
quickly. Only the programs that run are linked after a change.
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
# Tests that cannot see a change of the core, or that run on drivers of others.
LEFT_OUT = {"driver", "static", "tool", "guard"}
# Bytes of memory for a test, as a mutant may allocate without end; some reserve more on purpose.
MAX_DATA = 4 << 30
LIBRARIES = ["libquire-objects.a", "tests/support/libquire-objects-checked.a"]
NO_END = "no end within its time"
# Criterion runs each case in a process of its own, and now and then dies itself: such an end counts
# when it comes again.
DIED, RUNS = "ended by signal", 3


class Failed(Exception):
    """The build does not work, whatever is changed."""


def files_of(root):
    """What belongs to the tree, without what git ignores."""
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=root, capture_output=True)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if not path.relative_to(root).parts[0].startswith("build")]
    return sorted(n for n in names if n and (root / n).is_file())


def copy_tree(root, tree):
    """Makes `tree` what `root` is; files that are the same keep their times, so that little is built anew."""
    names = set(files_of(root))
    for path in list(tree.rglob("*")):
        if path.is_file() and str(path.relative_to(tree)) not in names:
            path.unlink()
    for name in names:
        source, copy = root / name, tree / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)


def limit_nothing_but_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit():
    limit_nothing_but_cores()
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_DATA, MAX_DATA))


class Test:
    """A test of the build: a command, and what has to be built for it. Of a unit test program each file
    is a test, which Criterion selects by the name of its suite."""

    def __init__(self, described, targets, folder, suite=None):
        self.name = suite or described["name"]
        self.targets = targets
        self.seconds = 1.0  # on the unchanged sources
        self.is_limited = True
        self.sources = set()  # names of files; none: not known
        self._command = described["cmd"] + ([f"--filter={suite}/*"] if suite else [])
        self._folder = described.get("workdir") or folder
        self._environment = {**os.environ, **described.get("env", {})}

    def has_any(self, objects):
        """Whether one of these object files may be linked into it."""
        return not self.sources or any(name.endswith(f"_{source}.o") for name in objects for source in self.sources)

    def run(self, seconds):
        """What failed first, or None. Stops at the first failure and at the end of the time."""
        for _ in range(RUNS):
            failure = self._run_once(seconds)
            if not failure or not failure.startswith(DIED):
                break
        return failure

    def _run_once(self, seconds):
        child = subprocess.Popen(self._command, cwd=self._folder, env=self._environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, start_new_session=True,
                                 preexec_fn=limit if self.is_limited else limit_nothing_but_cores)
        deadline = time.monotonic() + seconds
        failure = first_failure(child.stdout, deadline)
        if failure is None and not has_ended(child, deadline):
            failure = NO_END
        os.killpg(child.pid, signal.SIGKILL)  # and what it started; its number is taken until wait()
        child.stdout.close()
        code = child.wait()
        if failure or not code:
            return failure
        return f"{DIED} {-code}" if code < 0 else f"exit status {code}"


def first_failure(stream, deadline):
    """Reads TAP until a line says that a case failed, the end, or the deadline."""
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
    return NO_END


def has_ended(child, deadline):
    while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Build:
    """The copy and its build. Raises Failed when that does not work on the unchanged sources."""

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
            if not suites & LEFT_OUT:
                needed = [targets[name] for name in described["depends"] if name in targets]
                files = {os.path.relpath(name, self._folder) for target in needed for name in target["filename"]}
                for suite in self._suites_of(needed) if "unit" in suites else [None]:
                    yield Test(described, files, str(self._folder), suite)

    @staticmethod
    def _suites_of(targets):
        """The files of a unit test program, which are named as their suites."""
        paths = {pathlib.Path(source) for target in targets for part in target["target_sources"]
                 for source in part.get("sources", [])}
        return sorted(path.stem for path in paths if path.suffix == ".c" and "unit" in path.parts)

    def _make(self, targets):
        """None, or what the compiler said."""
        done = subprocess.run(["ninja", "-C", str(self._folder), f"-j{self.jobs}", *sorted(targets)],
                              capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout[-3000:] + done.stderr[-500:]

    def make_libraries(self):
        return self._make(LIBRARIES)

    def make_tests(self, tests):
        return self._make({target for test in tests for target in test.targets})

    def object_code(self):
        """{object file: digest} of what the compiler made of the library."""
        return {path.name: hashlib.sha256(path.read_bytes()).digest()
                for library in LIBRARIES for path in (self._folder / f"{library}.p").rglob("*.o")}

    def _note_sources(self):
        """Tells each test what sources are linked into it, by the symbols that name files."""
        for test in self.tests:
            paths = [str(self._folder / target) for target in test.targets]
            done = subprocess.run(["nm", "-a", *paths], capture_output=True, text=True)
            test.sources = set(re.findall(r"^[0-9a-f]+ a (\S+\.c)$", done.stdout, re.M))
