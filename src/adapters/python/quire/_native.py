# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C library: where it is found, its version, and calls that raise errors.

The library is the first of these:

1. the file that the environment variable QUIRE_LIBRARY names;
2. the library that was installed together with this package, if the file exists;
3. ``libquire.so.0``, as the loader of the system finds it.
"""

import ctypes
import importlib
import os
from typing import Any

from ._tables import FUNCTIONS

VERSION = "0.2.0"
SONAME = "libquire.so.0"


def installed(what: str) -> str:
    """The path that the build wrote down for LIBRARY or TOOL, or "" if there is no file, as in a source folder."""
    try:
        path: str = getattr(importlib.import_module(__package__ + "._installed"), what)
    except ImportError:
        return ""
    path = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), path))
    return path if os.path.exists(path) else ""


def library_name() -> str:
    """The name of the library that the package loads."""
    return os.environ.get("QUIRE_LIBRARY") or installed("LIBRARY") or SONAME


def check_version(name: str, found: str) -> None:
    """Raise ImportError unless the package can use a library of this version."""
    if found.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"quire: {name} has version {found}; this package is for {VERSION}")


def load(name: str) -> ctypes.CDLL:
    """Load a library and declare its functions."""
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"quire: the library cannot be loaded: {error}; set QUIRE_LIBRARY to its path, or "
                          "LD_LIBRARY_PATH to its folder") from error
    try:
        library.quire_version.restype = ctypes.c_char_p
        found = (library.quire_version() or b"").decode()
        check_version(name, found)
        for function, (result, arguments) in FUNCTIONS.items():
            native = getattr(library, function)
            native.restype, native.argtypes = result, arguments
    except AttributeError as error:
        raise ImportError(f"quire: {name} is not a library of quire {VERSION}: {error}") from error
    return library


lib: Any = load(library_name())
