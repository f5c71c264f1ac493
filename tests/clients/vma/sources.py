# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sources of Debian's packages, in which vk_mem_alloc.h is replaced by quire/quire_vma.h, and their compiler.

QUIRE_SOURCES names the folder with the archives (download_source in scripts/packages.sh).
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import tarfile


def lacks(drivers, package, *programs):
    """What this machine lacks, or an empty text."""
    if not drivers:
        return "there is no Vulkan driver"
    if not archive(package):
        return f"QUIRE_SOURCES names no folder with the source of {package}"
    return next((f"there is no {program}" for program in programs if not shutil.which(program)), "")


def archive(package):
    """The archive of the package's sources, or None."""
    folder = os.environ.get("QUIRE_SOURCES", "")
    return next(iter(sorted(pathlib.Path(folder).glob(f"{package}_*.orig.tar.xz"))), None) if folder else None


def unpack(package, work, parts):
    """Unpacks the files whose names contain one of the parts into the new folder `work`. Returns the folder of
    the sources."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with tarfile.open(archive(package)) as files:
        chosen = [m for m in files if any(part in m.name for part in parts)]
        files.extractall(work, chosen, filter="data")
    return work / chosen[0].name.split("/")[0]


def replace(path, old, new):
    """Replaces what occurs in the file; a release without it is an error."""
    text = path.read_text()
    if old not in text:
        raise RuntimeError(f"{path.name} has no {old}")
    path.write_text(text.replace(old, new))


def write_header(path, more=""):
    """The header that the sources include as vk_mem_alloc.h."""
    path.parent.mkdir(parents=True)
    path.write_text("#include <quire/quire_vma.h>\n" + more)


def run(command, **more):
    ended = subprocess.run(command, text=True, capture_output=True, **more)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(map(str, command[:8]))}...\n{ended.stdout[-2000:]}{ended.stderr[-3000:]}")
    return ended.stdout


def compile_all(work, options, sources):
    """Returns the object files."""
    def compile_one(numbered):
        number, source = numbered
        target = work / f"{number}.o"
        run(["g++", *options, "-w", "-fPIC", "-c", source, "-o", target])
        return target

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, enumerate(sources)))


def link(target, options, objects, libraries, names):
    """`libraries` are paths, which the target finds at the same place."""
    paths = [pathlib.Path(path).resolve() for path in libraries]
    run(["g++", *options, "-o", target, *objects, *paths, *(f"-l{name}" for name in names),
         *(f"-Wl,-rpath,{path.parent}" for path in paths)])
    return target
