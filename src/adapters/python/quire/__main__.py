# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``python -m quire``: runs the tool ``quire`` that was installed together with this package."""

import os
import signal
import sys

from ._native import installed


def main() -> int:
    """Become the tool, with the arguments of this process. Return only if that fails."""
    path = installed("TOOL")
    if not path:
        print("quire: this package was installed without the tool; build it with -Dtool=enabled, or install the "
              "package by pip", file=sys.stderr)
        return 1
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the tool would too
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(path, ["quire", *sys.argv[1:]])
    except OSError as error:
        print(f"quire: {path} cannot be run: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
