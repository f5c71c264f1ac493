# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs need of a system, from readelf: the libraries and the version of glibc."""

import os
import re
import subprocess

# the libraries that PEP 600 lets a program expect on every system with glibc
ALLOWED = re.compile(r"(lib(c|m|dl|pthread|rt)|ld-linux[\w-]*)\.so\.\d+")
# the first versions that pip looks for
FIRST = {"x86_64": (2, 5), "i686": (2, 5)}
FIRST_ELSEWHERE = (2, 17)
# glibc 2.36 and later load programs with packed relocations, which ask for this version
PACKED = {"GLIBC_ABI_DT_RELR": (2, 36)}


class Refused(Exception):
    """A reason why the programs have no tag."""


def describe(path, *options):
    try:
        done = subprocess.run(["readelf", "-W", *options, str(path)], text=True, capture_output=True, check=False,
                              env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError:
        raise Refused("readelf is missing, which says what the programs need; install binutils") from None
    if done.returncode:
        raise Refused(f"readelf cannot read {path}: {done.stderr.strip()}")
    return done.stdout


def libraries(path):
    """The names of the libraries that the loader loads for a program."""
    return re.findall(r"\(NEEDED\).*\[([^\]]+)\]", describe(path, "-d"))


def versions(path):
    """The names of the versions that a program asks of its libraries."""
    needed = describe(path, "-V").partition("Version needs section")[2]
    return sorted(set(re.findall(r"Name: (\S+)\s+Flags:", needed)))


def glibc_of(name, label):
    """The glibc that has a version, as (2, 17)."""
    if label in PACKED:
        return PACKED[label]
    found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", label)
    if not found:
        raise Refused(f"{name} needs {label}, which is no version of glibc, so that it has no manylinux tag")
    return int(found[1]), int(found[2])


def manylinux_tag(programs, machine):
    """The tag for {name: path}: the newest glibc that a symbol of them needs."""
    newest = FIRST.get(machine, FIRST_ELSEWHERE)
    for name, path in programs.items():
        for library in libraries(path):
            if not ALLOWED.fullmatch(library):
                raise Refused(f"{name} needs {library}, which a manylinux wheel must not; link it statically, or "
                              "build without this tag")
        newest = max([newest, *(glibc_of(name, label) for label in versions(path))])
    return f"manylinux_{newest[0]}_{newest[1]}_{machine}"
