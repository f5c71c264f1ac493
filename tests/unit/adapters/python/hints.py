# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Type hints, as mypy reads them: the package itself, and programs that use it rightly and wrongly."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import SOURCE

PACKAGE = os.path.join(SOURCE, "src/adapters/python")

RIGHT = """
from typing import List, Optional
import quire

device: quire.Device = quire.open_host()
memory: quire.Memory = device.create_memory("frames", host_read=True, host_write=True,
                                            fit=quire.FitOptions(quire.Fit.BUDDY))
with memory.buffer(1 << 20, name="frame") as frame:
    page: int = frame.info.page
    data: bytes = frame.read(0, 4)
stream: quire.Stream = device.create_stream("uploads")
part: quire.Allocation = memory.allocate(64, alignment=256, stream=stream)
part.record_use(stream)
lazy: quire.Allocation = memory.allocate(1 << 20, lazy=True)
lazy.back(0, 4096)
memory.unback_ranges([(lazy, 0, 0)])
backed: int = lazy.info.backed
movable: quire.Allocation = memory.allocate(64, movable=True)
with memory.compaction() as compaction:
    moves: int = compaction.step(moves=10, bytes=1 << 20).moves
done: quire.CompactionStatistics = memory.compact()
memory.compact(largest_free=1 << 20)
most: quire.CompactionStatistics = memory.estimate_compaction()
view: memoryview = memory.array("float32", (2, 3)).view()
names: List[str] = [r.name for r in memory.ranges() if not r.is_free]
live: int = memory.statistics.live_bytes
plan: quire.Plan = quire.plan([64, 64], [0, 1], [1, 2], alignments=[16, 16])
with quire.record(memory) as recorder:
    trace: quire.Trace = recorder.trace()
"""

# each line is an error, after the three that define what it uses
WRONG = """import quire
device = quire.open_host()
memory = device.create_memory()
device.create_memory(7)
memory.allocate("64")
memory.buffer(64, stream=memory)
memory.allocate(64).read("0")
memory.no_such_method()
quire.FitOptions("buddy")
name: str = memory.statistics.live_bytes
quire.plan([64], [0])
"""


def mypy_command():
    """The command of mypy, of this Python or of another, or None."""
    trial = subprocess.run([sys.executable, "-c", "import mypy"], capture_output=True, check=False)
    program = shutil.which("mypy")
    return [sys.executable, "-m", "mypy"] if trial.returncode == 0 else [program] if program else None


class Hints(unittest.TestCase):
    def mypy(self, *arguments, cwd, **more):
        command = mypy_command()
        if command is None:
            self.skipTest("mypy is not installed")
        # mypy has no sanitizers, whose runtime would slow it down
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        return subprocess.run([*command, "--strict", "--no-warn-unused-ignores", "--allow-untyped-decorators",
                               "--python-version", "3.9", "--cache-dir", os.devnull, *arguments],
                              text=True, capture_output=True, check=False, cwd=cwd, env={**env, **more})

    def program(self, text):
        """What mypy says of a program outside the sources, which sees the package as a user's does."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "program.py").write_text(text, encoding="utf-8")
            return self.mypy("program.py", cwd=folder, MYPYPATH=PACKAGE)

    def test_package(self):
        """mypy accepts the package in its strict mode."""
        done = self.mypy("--ignore-missing-imports", "-p", "quire", cwd=PACKAGE)  # NumPy need not be there
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_right_program(self):
        done = self.program(RIGHT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_wrong_program(self):
        done = self.program(WRONG)
        found = {int(line.split(":")[1]) for line in done.stdout.splitlines()
                 if line.startswith("program.py:") and ": error:" in line}
        self.assertEqual(found, set(range(4, len(WRONG.splitlines()) + 1)), done.stdout + done.stderr)
