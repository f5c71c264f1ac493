# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The renderer and the compute program of this folder, each built on quire and on VMA with one include
changed: both must end without a message of the validation layer and print the same hashes.

usage: port.py QUIRE_RENDERER QUIRE_COMPUTE VMA_RENDERER|none VMA_COMPUTE|none NAME=MANIFEST...
"""

import os
import subprocess
import sys

from tap import Tap

PROGRAMS = ("renderer", "compute")
SKIPPED = 77


def run(program, manifest):
    """(exit status, standard output, problems)"""
    ended = subprocess.run([program], env=dict(os.environ, VK_ICD_FILENAMES=manifest), text=True,
                           capture_output=True, timeout=240)
    problems = [] if ended.returncode == 0 else [f"exit status {ended.returncode}", ended.stderr]
    return ended.returncode, ended.stdout, problems


def compare(tap, name, quire_program, vma_program, manifest):
    status, printed, problems = run(quire_program, manifest)
    if status == SKIPPED:
        tap.skip(f"{name} on quire", printed.strip())
        return
    tap.case(f"{name} on quire", problems)
    if vma_program == "none":
        tap.skip(f"{name} on VMA", "there is no vk_mem_alloc.h")
        return
    _, expected, problems = run(vma_program, manifest)
    if printed != expected:
        problems.append(f"on quire {printed!r}, on VMA {expected!r}")
    tap.case(f"{name} on VMA, with the same output", problems)


def main():
    programs, drivers = sys.argv[1:5], sys.argv[5:]
    tap = Tap()
    if not drivers:
        tap.skip("programs of VMA on quire", "there is no Vulkan driver")
    for driver in drivers:
        name, _, manifest = driver.partition("=")
        for i, program in enumerate(PROGRAMS):
            compare(tap, f"{name}: {program}", programs[i], programs[2 + i], manifest)
    tap.end()


if __name__ == "__main__":
    main()
