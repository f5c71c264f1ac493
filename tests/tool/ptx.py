# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in sources of C: the emulated driver does not read them, but the assembler of the CUDA Toolkit does."""

import pathlib
import re
import shutil
import subprocess
import tempfile


def check(tap, name, source, *options):
    """A case: the kernels of a source can be assembled."""
    usual = sorted(pathlib.Path("/usr/local").glob("cuda*/bin/ptxas"))
    assembler = shutil.which("ptxas") or (usual[-1] if usual else None)
    if not assembler:
        tap.skip(name, "there is no ptxas")
        return
    code = (pathlib.Path(__file__).parents[2] / source).read_text()
    text = re.search(r"char (?:PTX|TEXT)\[\] =(.*?);\n\n", code, re.S).group(1)
    kernels = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace("\\n", "\n")
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place, "kernels.ptx").write_text(kernels)
        done = subprocess.run([assembler, *options, "kernels.ptx", "-o", "kernels.cubin"], text=True, cwd=place,
                              capture_output=True)
    tap.case(name, [done.stdout, done.stderr] if done.returncode or ".entry " not in kernels else [])
