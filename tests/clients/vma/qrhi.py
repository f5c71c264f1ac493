# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Qt's QRhi on quire: Debian's sources of it, with vk_mem_alloc.h replaced by quire/quire_vma.h. A program
draws the same pixels with them as with Debian's Qt, which contains VMA, without a message of the validation
layer.

usage: qrhi.py WORK_FOLDER SOURCE_FOLDER LIBQUIRE LIBQUIRE_VMA NAME=MANIFEST...

QUIRE_SOURCES names the folder with the source archives of Debian's package qt6-base. QRhi reads the number of
heaps out of a class of VMA; here it reads vmaGetMemoryProperties.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import sources
from tap import Tap

HERE = pathlib.Path(__file__).resolve().parent
RHI = ("qrhi", "qrhivulkan", "qrhinull", "qrhigles2") # QRhi::create names all backends
HEAP_COUNT = """
static inline uint32_t heap_count(VmaAllocator allocator)
{
    const VkPhysicalDeviceMemoryProperties *memory;
    vmaGetMemoryProperties(allocator, &memory);
    return memory->memoryHeapCount;
}
"""
SKIPPED = 77


def private_headers():
    """The folders of Qt's private headers, of the version of the sources; or an empty list."""
    found = subprocess.run(["pkg-config", "--modversion", "Qt6Gui"], text=True, capture_output=True)
    version = found.stdout.strip()
    if found.returncode or f"_{version}+" not in sources.archive("qt6-base").name:
        return []
    root = sources.run(["pkg-config", "--variable=includedir", "Qt6Gui"]).strip()
    folders = [pathlib.Path(root, module, version, *more) for module in ("QtGui", "QtCore")
               for more in ((), (module,))]
    return folders if all(folder.exists() for folder in folders) else []


def build(work, root, libraries):
    """Returns the programs on VMA and on quire."""
    qt = sources.unpack("qt6-base", work, ("/src/gui/rhi/",)) / "src/gui/rhi"
    sources.replace(qt / "qrhivulkan.cpp", "toVmaAllocator(allocator)->GetMemoryHeapCount()",
                    "heap_count(toVmaAllocator(allocator))")
    sources.write_header(work / "include/vk_mem_alloc.h", HEAP_COUNT)
    options = ["-std=c++20", "-O0", "-DQT_BUILD_GUI_LIB", f"-I{work}/include", f"-I{qt}",
               *sources.run(["pkg-config", "--cflags", "Qt6Gui"]).split(),
               *(f"-I{folder}" for folder in private_headers()), f"-I{root}", f"-I{root}/include"]
    client, *rhi = sources.compile_all(work, options, [HERE / "qrhi.cpp", *(qt / f"{name}.cpp" for name in RHI)])
    own = sources.link(work / "vma_qrhi", [], [client], [], ("Qt6Gui", "Qt6Core"))
    return own, sources.link(work / "quire_qrhi", [], [client, *rhi], libraries, ("Qt6Gui", "Qt6Core", "vulkan"))


def draw(program, manifest, display):
    """(exit status, the printed hash, problems)"""
    env = dict(os.environ, VK_ICD_FILENAMES=manifest, DISPLAY=display, QT_QPA_PLATFORM="xcb")
    ended = subprocess.run([program], env=env, text=True, capture_output=True, timeout=300)
    problems = [] if ended.returncode == 0 else [f"exit status {ended.returncode}", ended.stdout, ended.stderr]
    return ended.returncode, [line for line in ended.stdout.splitlines() if line.startswith("hash")], problems


def check(tap, driver, programs, display):
    name, _, manifest = driver.partition("=")
    status, own, problems = draw(programs[0], manifest, display)
    if status == SKIPPED:
        tap.skip(f"{name}: QRhi", "there is no driver with the validation layer")
        return
    tap.case(f"{name}: Debian's QRhi", problems)
    _, on_quire, problems = draw(programs[1], manifest, display)
    if own != on_quire or len(own) != 1:
        problems.append(f"{own} with VMA, {on_quire} on quire")
    if "libquire_vma" not in sources.run(["ldd", programs[1]]):
        problems.append("the program is not linked with libquire_vma")
    tap.case(f"{name}: QRhi on quire, with the same pixels", problems)


def main():
    work, root, libraries, drivers = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:5], sys.argv[5:]
    tap = Tap()
    reason = sources.lacks(drivers, "qt6-base", "g++", "pkg-config", "Xvfb")
    if not reason and not private_headers():
        reason = "there are no private headers of Qt, of the version of the source"
    if reason:
        tap.skip("QRhi on quire", reason)
        tap.end()
    programs = build(work, root, libraries)
    tap.case("Qt's sources of QRhi compile on quire/quire_vma.h")
    with tempfile.TemporaryDirectory() as runtime:
        os.environ["XDG_RUNTIME_DIR"] = runtime
        read, write = os.pipe()
        with subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "640x480x24", "-nolisten", "tcp"],
                              pass_fds=[write], stderr=subprocess.DEVNULL) as server:
            os.close(write)
            with os.fdopen(read) as numbers:
                display = ":" + numbers.readline().strip()
            for driver in drivers:
                check(tap, driver, programs, display)
            server.terminate()
    tap.end()


if __name__ == "__main__":
    main()
