# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the scripts on the Python package share."""

import gc
import importlib
import os
import pathlib
import sys
import time

from tap import Tap

ROOT = pathlib.Path(__file__).resolve().parents[4]
IS_QUICK = os.environ.get("QUIRE_QUICK") == "yes"


def begin(name, *modules):
    """Skip everything unless the framework, the library and a device exist. Return the case printer, the package and
    the modules."""
    tap = Tap()
    library = pathlib.Path(os.environ.get("QUIRE_BUILD", ROOT / "build")) / "libquire.so"
    reason = ""
    if os.environ.get("QUIRE_EMULATED") == "yes":
        reason = f"{name} does not run on the emulated driver"
    elif not library.exists():
        reason = "libquire.so was not built"
    loaded = []
    for module in modules if not reason else ():
        try:
            loaded.append(importlib.import_module(module))
        except ImportError as error:
            reason = f"{name} is not installed: {error}"
            break
    if reason:
        tap.skip(name, reason)
        tap.end()
    os.environ["QUIRE_LIBRARY"] = str(library)
    sys.path.insert(0, str(ROOT / "src/adapters/python"))
    return (tap, importlib.import_module("quire"), *loaded)


def case(tap, name, function):
    """A case that holds if the function raises nothing and yields no problem."""
    try:
        problems = list(function() or ())
    except Exception as error:  # so that the other cases still run
        problems = [f"{type(error).__name__}: {error}"]
    tap.case(name, problems)


def end(tap, memory, request, figures):
    """The last cases of a script: a request that does not fit, the memory of the framework, and figures."""
    def refusal():
        try:
            request()
        except MemoryError:
            return
        yield "no MemoryError"
    case(tap, "a request that does not fit is a MemoryError", refusal)
    case(tap, "memory is consistent", memory.check)
    case(tap, "figures", figures)
    tap.end()


def microseconds(function, count):
    """The time of one call: the minimum of five rounds."""
    best = float("inf")
    for _ in range(1 if IS_QUICK else 5):
        start = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - start) / count)
    return best * 1e6


def settled(memory):
    """The number of allocations of a memory once all freed ones are gone, at most five seconds later."""
    gc.collect()
    end = time.monotonic() + 5
    while memory.statistics.deferred_count and time.monotonic() < end:
        memory.collect()
    return memory.statistics.allocation_count


def leaks(memory, work):
    """Problems if a repetition of some work leaves more allocations than before."""
    before = settled(memory)
    work()
    after = settled(memory)
    return [f"{after - before} allocations are left"] if after > before else []
