# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the unit tests of the Python package, and the examples of its docstrings and of its page, and prints TAP.

usage: run.py SOURCE_ROOT LIBRARY CUDA_DRIVER|none SANITIZERS C_COMPILER [FILTER]

LIBRARY is the libquire.so of the build. A sanitized one needs its runtime in the process, so that the tests then
run in a process with LD_PRELOAD. FILTER selects the tests whose names contain it.
"""

import doctest
import importlib.util
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# modules whose frameworks the machine may not have; their tests are in frameworks.py
FRAMEWORKS = {"cupy", "numba", "cuda_core"}


def runtime_of(sanitizers, compiler):
    """The libraries that a process without sanitizers needs to load a sanitized one, or None."""
    # clang finds the runtime of gcc as well
    names = ["libclang_rt.asan-x86_64.so", "libclang_rt.asan.so", "libasan.so"]
    for name in names:
        found = subprocess.run([*compiler.split(), f"-print-file-name={name}"], capture_output=True, text=True,
                               check=False).stdout.strip()
        if "address" in sanitizers and os.path.isabs(found):
            return os.path.realpath(found)
    return None


def sanitized(words, sanitizers, compiler, env):
    """Run this file again with the runtime of the sanitizers. Return its exit status."""
    runtime = runtime_of(sanitizers, compiler)
    if runtime is None:
        print(f"ok 1 - the Python package # SKIP {compiler} has no library with the runtime of {sanitizers}\n1..1")
        return 0
    env["LD_PRELOAD"] = runtime
    # Python keeps memory until the process ends
    env["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:intercept_strstr=0"
    env["QUIRE_PYTHON_SANITIZED"] = "1"
    code = "import ctypes, os; ctypes.CDLL(os.environ['QUIRE_LIBRARY'])"
    trial = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    if trial.returncode:
        print(f"ok 1 - the Python package # SKIP Python cannot load the library with {os.path.basename(runtime)}: "
              f"{trial.stderr.strip().splitlines()[-1]}\n1..1")
        return 0
    return subprocess.run([sys.executable, __file__, *words], env=env, check=False).returncode


class TapResult(unittest.TestResult):
    """Prints one line for each test."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def _line(self, test, is_ok, comment=""):
        self.count += 1
        name = test.id().replace("python.", "", 1).replace("#", "")
        print(f"{'ok' if is_ok else 'not ok'} {self.count} - {name}{comment}")
        sys.stdout.flush()

    def _problem(self, test, error):
        self._line(test, False)
        for line in self._exc_info_to_string(error, test).splitlines():
            print(f"# {line}")

    def addSuccess(self, test):
        self._line(test, True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._problem(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._problem(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._problem(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(test, True, f" # SKIP {reason}")


def load(name):
    """A file of this folder, which is not on the path: its names are those of other modules."""
    spec = importlib.util.spec_from_file_location(f"python.{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_test(path):
    """The examples of a page, in the order of the page; the end of a block is the end of an output."""
    text = re.sub(r"^```.*$", "", path.read_text(encoding="utf-8"), flags=re.M)
    example = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
    return doctest.DocTestCase(example, optionflags=OPTIONS)


def tests(root, words):
    """The tests of every file, and the examples."""
    loader, suite = unittest.TestLoader(), unittest.TestSuite()
    sys.modules["support"] = load("support")
    for path in sorted(HERE.glob("*.py")):
        if path.stem not in ("run", "support"):
            suite.addTest(loader.loadTestsFromModule(load(path.stem)))
    package = importlib.import_module("quire")
    for module in [package.__name__] + [f"quire.{m.name}" for m in pkgutil.iter_modules(package.__path__)
                                        if m.name not in FRAMEWORKS]:
        try:
            suite.addTest(doctest.DocTestSuite(importlib.import_module(module), optionflags=OPTIONS))
        except ValueError:
            pass  # without docstrings
    suite.addTest(page_test(root / "docs/adapters/python.md"))
    return [test for test in flat(suite) if not words or words[0] in test.id()]


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def main():
    root, library, driver, sanitizers, compiler = sys.argv[1:6]
    library = str(pathlib.Path(library).resolve())
    env = {**os.environ, "QUIRE_LIBRARY": library, "QUIRE_SOURCE": root, "QUIRE_TEST_CC": compiler,
           "QUIRE_TEST_CUDA": "" if driver == "none" else driver, "PYTHONDONTWRITEBYTECODE": "1",
           "PYTHONPATH": os.pathsep.join([f"{root}/src/adapters/python", os.environ.get("PYTHONPATH", "")]),
           "PYTHONFAULTHANDLER": "1",
           # streams of the tests live until the process ends, which the emulated driver would report
           "QUIRE_FAKE_CUDA_FLAGS": "quiet"}
    if sanitizers != "none" and "QUIRE_PYTHON_SANITIZED" not in os.environ:
        sys.exit(sanitized(sys.argv[1:], sanitizers, compiler, env))
    os.environ.update(env)
    sys.path[0] = str(pathlib.Path(root) / "src/adapters/python")
    sys.dont_write_bytecode = True
    result, start = TapResult(), time.process_time()
    unittest.TestSuite(tests(pathlib.Path(root), sys.argv[6:])).run(result)
    print(f"# Python {sys.version.split()[0]}, {time.process_time() - start:.1f} s of processor time")
    print(f"1..{result.count}")
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
