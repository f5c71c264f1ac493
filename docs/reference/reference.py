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


def main():
    doxygen, version, output = sys.argv[1], sys.argv[3], pathlib.Path(sys.argv[4]).resolve()
    root = pathlib.Path(sys.argv[2]).resolve()
    here = root / "docs/reference"
    output.mkdir(parents=True, exist_ok=True)
    values = {
        "version": version,
        "output": output,
        "headers": " ".join(f'"{path}"' for path in headers(root / "include/quire")),
        "python": sys.executable,
        "filter": here / "filter.py",
        "include": root / "include",
        "xml": "YES" if "--xml" in sys.argv else "NO",
    }
    text = (here / "Doxyfile.in").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    done = subprocess.run([doxygen, "-"], input=text, text=True, capture_output=True)
    sys.stderr.write(done.stderr)
    sys.exit(1 if done.returncode or done.stderr.strip() else 0)


main()
