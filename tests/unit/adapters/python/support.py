# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests share."""

import ctypes
import os
import subprocess
import sys
import threading
import unittest

import quire
from quire import dlpack

CUDA_DRIVER = os.environ.get("QUIRE_TEST_CUDA", "")
SOURCE = os.environ["QUIRE_SOURCE"]
COMPILER = os.environ.get("QUIRE_TEST_CC", "cc").split()

try:
    import numpy
except ImportError:
    numpy = None

needs_numpy = unittest.skipUnless(numpy, "numpy is not installed")
needs_cuda = unittest.skipUnless(CUDA_DRIVER, "the build has no emulated CUDA driver")


def host_memory(**options):
    """A memory that the host can reach, on a device of its own."""
    return quire.open_host().create_memory(host_read=True, host_write=True, **options)


def in_threads(work, count):
    """Run a function with the numbers from 0 to count - 1, each in a thread, until all have ended."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_python(code, **env):
    """The output of a program of Python that uses the package; its exit status must be 0."""
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False, timeout=60,
                          env={**os.environ, **env})
    assert done.returncode == 0 and not done.stderr, f"{done.returncode}: {done.stdout} {done.stderr}"
    return done.stdout


def in_child(work):
    """Run a function in a forked child; it must return without an exception."""
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


CAPSULE_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
CAPSULE_RENAME = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi))
USED = b"used_dltensor"


def consume(capsule, name=b"dltensor", kind=dlpack._Managed):
    """What a consumer does: take the tensor and rename the capsule. Returns the tensor."""
    tensor = kind.from_address(CAPSULE_POINTER(capsule, name))
    assert CAPSULE_RENAME(capsule, USED) == 0
    return tensor
