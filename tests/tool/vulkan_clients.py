"""Other programs with the layer and without: Debian's ffmpeg with its Vulkan filters and libplacebo's
must write the same frames, to the bit, with fewer driver allocations; VkFFT must compute the same.

usage: vulkan_clients.py LAYER_FOLDER NAME=MANIFEST...

A driver on which ffmpeg's frames differ from run to run proves nothing and is skipped. QUIRE_VKFFT is
the folder with VkFFT's headers of 1.3.4; the default is /usr/include.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from layer_run import LAYER, read_statistics, total
from tap import Tap

SOURCE = "testsrc2=size=320x240:rate=10:duration=2"

# name: the filters between upload and download, and the uploaded format
FILTERS = {
    "gblur": ("yuv420p", "gblur_vulkan"),
    "avgblur": ("yuv420p", "avgblur_vulkan"),
    "chromaber and scale": ("yuv420p", "scale_vulkan=160:120,chromaber_vulkan"),
    "flips and transpose": ("rgba", "hflip_vulkan,vflip_vulkan,transpose_vulkan"),
    "libplacebo": ("yuv420p", "libplacebo=w=200:h=152"),
}

# runs without the layer, after one with it that differs: some drivers rarely write other frames
RUNS = 8

# of libplacebo's own objects at least this many are placed in pages
LEAST_IN_PAGES = {"libplacebo": 5, "gblur": 1}

VKFFT_PROGRAM = "support/vkfft_client.c"


def environment(manifest, folder, layered, statistics):
    out = dict(os.environ, VK_ICD_FILENAMES=manifest)
    out.pop("VK_INSTANCE_LAYERS", None)
    if layered:
        out.update(VK_LAYER_PATH=folder, VK_INSTANCE_LAYERS=LAYER, QUIRE_LAYER_STATS="json",
                   QUIRE_LAYER_STATS_FILE=str(statistics))
    return out


def frames(manifest, folder, layered, statistics, filters):
    """Returns the md5 of every frame, or the error."""
    pixels, chain = filters
    command = ["ffmpeg", "-v", "error", "-init_hw_device", "vulkan=v:0", "-filter_hw_device", "v", "-f", "lavfi",
               "-i", SOURCE, "-vf", f"format={pixels},hwupload,{chain},hwdownload,format={pixels}",
               "-f", "framemd5", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                          env=environment(manifest, folder, layered, statistics))
    found = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return (found, "") if not done.returncode and len(found) == 20 else (None, done.stderr or str(done.returncode))


def check_filter(tap, name, manifest, folder, key, place):
    what, statistics = f"{name}: ffmpeg {key}", place / "statistics"
    statistics.unlink(missing_ok=True)
    first, error = frames(manifest, folder, False, statistics, FILTERS[key])
    second, _ = frames(manifest, folder, False, statistics, FILTERS[key])
    if first is None or first != second:
        tap.skip(what, "without the layer: " + (error.strip().splitlines() or ["not twice the same frames"])[-1])
        return
    layered, error = frames(manifest, folder, True, statistics, FILTERS[key])
    if layered not in (None, first) and any(frames(manifest, folder, False, statistics, FILTERS[key])[0] != first
                                            for _ in range(RUNS)):
        tap.skip(what, f"without the layer: not {RUNS} times the same frames")
        return
    problems = [] if layered == first else [error or "other frames than without the layer"]
    devices = read_statistics(statistics)
    asked, made = total(devices, "client_allocations"), total(devices, "driver_allocations")
    in_pages = sum(d["outcomes"]["in_a_page"]["allocations"] for d in devices)
    outside = sum(d["outcomes"]["external"]["allocations"] + d["outcomes"]["dedicated"]["allocations"] +
                  d["outcomes"]["large"]["allocations"] for d in devices)
    if not asked or in_pages + outside != asked or in_pages < LEAST_IN_PAGES.get(key, 0):
        problems.append(f"{asked} allocations, {in_pages} in pages, {outside} dedicated, external or large")
    if in_pages > 1 and made >= asked:
        problems.append(f"{asked} allocations, and {made} of the driver")
    tap.case(f"{what}: the same frames; {asked} allocations are {made} of the driver, {outside} passed on",
             problems)


def find_vkfft():
    for place in (os.environ.get("QUIRE_VKFFT"), "/usr/include"):
        if place and pathlib.Path(place, "vkFFT.h").exists():
            return place
    return None


def build_vkfft(place):
    """Compiles tests/support/vkfft_client.c; returns None and the reason if that is impossible."""
    headers = find_vkfft()
    if not headers:
        return None, "VkFFT's headers are not there (libvkfft-dev of bookworm-backports)"
    version = re.search(r"VkFFTGetVersion\(\) *{\s*return (\d+);", pathlib.Path(headers, "vkFFT.h").read_text())
    if not version or int(version.group(1)) < 10300:
        return None, "VkFFT before 1.3 does not compile with this release's glslang"
    libraries = ["glslang", "MachineIndependent", "OSDependent", "GenericCodeGen", "OGLCompiler", "SPIRV",
                 "SPIRV-Tools-opt", "SPIRV-Tools"]
    there = [f"-l{name}" for name in libraries if list(pathlib.Path("/usr/lib").glob(f"*/lib{name}.a"))]
    program = place / "vkfft"
    source = pathlib.Path(__file__).parents[1] / VKFFT_PROGRAM
    done = subprocess.run(["cc", "-std=gnu11", "-O1", "-w", "-DVKFFT_BACKEND=0", f"-I{headers}",
                           str(source), "-o", str(program),
                           "-lvulkan", "-Wl,--start-group", *there, "-Wl,--end-group", "-lstdc++", "-lm",
                           "-lpthread"],
                          capture_output=True, text=True)
    return (program, "") if not done.returncode else (None, "it does not compile: " + done.stderr.strip()[-300:])


def check_vkfft(tap, name, manifest, folder, program, place):
    statistics = place / "statistics"
    statistics.unlink(missing_ok=True)
    plain = subprocess.run([program], capture_output=True, text=True, timeout=300,
                           env=environment(manifest, folder, False, statistics))
    layered = subprocess.run([program], capture_output=True, text=True, timeout=300,
                             env=environment(manifest, folder, True, statistics))
    problems = [] if plain.returncode == 0 and layered.returncode == 0 else [plain.stderr, layered.stderr]
    problems += [] if plain.stdout == layered.stdout else [plain.stdout, layered.stdout]
    devices = read_statistics(statistics)
    asked, made = total(devices, "client_allocations"), total(devices, "driver_allocations")
    if asked < 6 or made != 1:
        problems.append(f"{asked} allocations, {made} of the driver")
    tap.case(f"{name}: VkFFT has the same errors; {asked} allocations are {made} of the driver", problems)


def main():
    folder = sys.argv[1]
    tap = Tap()
    drivers = [named.split("=", 1) for named in sys.argv[2:]]
    if not drivers:
        tap.skip("programs of others", "there is no Vulkan driver")
    with tempfile.TemporaryDirectory() as where:
        place = pathlib.Path(where)
        vkfft, why_not = build_vkfft(place)
        for name, manifest in drivers:
            if not pathlib.Path(manifest).exists():
                tap.skip(f"{name}: programs of others", f"there is no {manifest}")
                continue
            for key in FILTERS:
                if shutil.which("ffmpeg"):
                    check_filter(tap, name, manifest, folder, key, place)
                else:
                    tap.skip(f"{name}: ffmpeg {key}", "ffmpeg is not there")
            if vkfft:
                check_vkfft(tap, name, manifest, folder, vkfft, place)
            else:
                tap.skip(f"{name}: VkFFT", why_not)
    tap.end()


main()
