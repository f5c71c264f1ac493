# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of docs/tutorial.md with the quire that is installed in the system. scripts/package-debian runs it.

usage: tutorial.py SOURCE_ROOT
"""

import os
import pathlib
import shutil
import sys
import tempfile

from code_blocks import run
from consumer import check_tutorial
from tap import Tap


class System:
    """A home folder without an installation of its own."""

    has_tool = True

    def __init__(self, folder):
        self.folder = folder

    def run(self, commands):
        """Leaves out the lines that build quire, install it, and name its folder."""
        lines = [line for line in commands.splitlines() if not line.startswith(("meson ", "export "))]
        return run(["sh", "-ec", "\n".join(lines)], cwd=self.folder, env={**os.environ, "HOME": str(self.folder)})


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="quire-tutorial-") as folder:
        check_tutorial(tap, pathlib.Path(sys.argv[1]).resolve(), System(pathlib.Path(folder)), shutil.which("c++"))
    tap.end()


main()
