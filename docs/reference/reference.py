# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the API reference into OUTPUT/html, and with --xml also into OUTPUT/xml. Any warning of Doxygen
is a failure.

usage: reference.py DOXYGEN SOURCE_ROOT VERSION OUTPUT [--xml]
"""

import pathlib
import subprocess
import sys

# The order for a reader; the other headers follow by name.
ORDER = ("quire", "base", "device", "memory", "allocation", "resource", "stream", "transfer", "insight",
         "space", "preset", "trace", "host", "vulkan", "cuda", "plugin", "backend")


def headers(folder):
    names = {path.stem for path in folder.glob("*.h")}
    return [folder / f"{name}.h" for name in [n for n in ORDER if n in names] +
            sorted(names.difference(ORDER))]


def settings(root, version, output, xml="NO", options=""):
    """The input of Doxygen. `options` are those of the filter."""
    here = root / "docs/reference"
    values = {
        "version": version,
        "output": output,
        "headers": " ".join(f'"{path}"' for path in headers(root / "include/quire")),
        "python": sys.executable,
        "filter": f"{here / 'filter.py'} {options}".strip(),
        "include": root / "include",
        "xml": xml,
    }
    text = (here / "Doxyfile.in").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def run(doxygen, text):
    """Whether Doxygen had nothing to say; what it says goes to the standard error."""
    done = subprocess.run([doxygen, "-"], input=text, text=True, capture_output=True)
    sys.stderr.write(done.stderr)
    return not done.returncode and not done.stderr.strip()


def main():
    output = pathlib.Path(sys.argv[4]).resolve()
    output.mkdir(parents=True, exist_ok=True)
    text = settings(pathlib.Path(sys.argv[2]).resolve(), sys.argv[3], output, "YES" if "--xml" in sys.argv else "NO")
    sys.exit(0 if run(sys.argv[1], text) else 1)


if __name__ == "__main__":
    main()
