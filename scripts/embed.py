# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A file as an array of C, which a program contains.

usage: embed.py FILE OUTPUT        defines `const char NAME[]` with a 0 after it, NAME from that of FILE
"""

import pathlib
import re
import sys

PER_LINE = 24


def main():
    source, output = map(pathlib.Path, sys.argv[1:])
    data = source.read_bytes() + b"\0"
    if max(data) > 127:
        sys.exit(f"{source}: a character outside ASCII")
    name = re.sub(r"\W", "_", source.name)
    rows = (", ".join(map(str, data[i:i + PER_LINE])) for i in range(0, len(data), PER_LINE))
    text = ",\n    ".join(rows)
    output.write_text(f"/* {source.name}, by scripts/embed.py */\nextern const char {name}[];\n"
                      f"const char {name}[] = {{\n    {text}}};\n")


main()
