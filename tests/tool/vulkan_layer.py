# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program that does not use quire, with the layer and without, through the Vulkan loader: the same
results, few driver allocations, and no message of the validation layer above or below the layer.

usage: vulkan_layer.py CLIENT LAYER_FOLDER FAKE_MANIFEST QUIRE [NAME=MANIFEST...]

The drivers are the fake one in several layouts and the named ones.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from layer_run import LAYER, VALIDATION, has_validation, layer_path, read_statistics, total
from tap import Tap, under_valgrind

LAYOUTS = ("amd-bar", "nvidia-11", "intel-2017", "adreno", "incoherent", "swiftshader")

# of about 2250 allocations of the program, including dedicated and external ones and two devices; pages
# of a memory type start at 1 MiB and grow with it
MAX_DRIVER_ALLOCATIONS = 80

# Prints every best-practices message about small memory objects, each time.
BEST_PRACTICES = """\
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT
khronos_validation.report_flags = error,warn,perf
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.log_filename = stdout
khronos_validation.enable_message_limit = false
khronos_validation.duplicate_message_limit = 1000000
"""
# Ends of ids; for binds, newer layers include what is bound.
SMALL = ("vkAllocateMemory-small-allocation", "vkBind(Buffer|Image)?Memory-small-dedicated-allocation")


class Driver:
    def __init__(self, name, manifest, layout=None):
        self.name, self.manifest, self.layout = name, manifest, layout

    def environment(self, place, folder, layers, more):
        out = dict(os.environ, VK_ICD_FILENAMES=self.manifest, VK_LAYER_PATH=layer_path(folder, layers),
                   VK_INSTANCE_LAYERS=":".join(layers))
        if self.layout:
            out.update(QUIRE_FAKE_LAYOUT=self.layout, QUIRE_FAKE_FLAGS="stale,dirty",
                       QUIRE_FAKE_REPORT=str(place / "fake"))
        out.update(more)
        return out


class Bench:
    def __init__(self, client, folder, quire, place):
        self.client, self.folder, self.quire, self.place = client, folder, quire, place

    def run(self, driver, *layers, options=(), **more):
        """Returns its output, its exit status, and the counts of the fake driver."""
        report = self.place / "fake"
        report.unlink(missing_ok=True)
        done = subprocess.run([self.client, *options], capture_output=True, text=True,
                              env=driver.environment(self.place, self.folder, layers, more))
        counted = None
        if report.exists():
            counts = [line.split() for line in report.read_text().splitlines()]
            counted = sum(int(words[2]) for words in counts if words[:2] == ["calls", "vkAllocateMemory"])
        return done, counted


def failures(done, expected=0):
    return [] if done.returncode == expected else [f"exit status {done.returncode}", done.stderr[-2000:]]


def differences(plain, *others):
    """Failed runs, and outputs that differ from that of the first."""
    problems = [problem for done in (plain, *others) for problem in failures(done)]
    if any(done.stdout != plain.stdout for done in others):
        problems += [done.stdout for done in (plain, *others)]
    return problems


def silence(done):
    """Whether the program ended well, and the validation layer had nothing to say."""
    return failures(done) + ([] if "messages 0\n" in done.stdout else [done.stdout, done.stderr[:2000]])


def check_results(tap, bench, driver):
    statistics = bench.place / "statistics"
    statistics.unlink(missing_ok=True)
    plain, without = bench.run(driver)
    if plain.returncode == 77:
        tap.skip(f"{driver.name}", plain.stderr.strip())
        return False
    layered, with_layer = bench.run(driver, LAYER, QUIRE_LAYER_STATS="json", QUIRE_LAYER_STATS_FILE=str(statistics))
    tap.case(f"{driver.name}: a program computes the same with the layer", differences(plain, layered))
    devices = read_statistics(statistics)
    asked, made = total(devices, "client_allocations"), total(devices, "driver_allocations")
    problems = [] if len(devices) == 2 else [f"{len(devices)} devices"]
    if not 2000 < asked or made > MAX_DRIVER_ALLOCATIONS:
        problems.append(f"{asked} allocations of the program, {made} of the driver")
    if without is not None and (without, with_layer) != (asked, made):
        problems.append(f"the driver counts {without} and {with_layer}, the layer {asked} and {made}")
    if any(d["never_freed"] or d["failed"] for d in devices):
        problems.append("ranges were not freed or not made")
    tap.case(f"{driver.name}: {asked} allocations of the program are {made} of the driver", problems)
    return True


def check_validation(tap, bench, driver):
    for layers in ((LAYER, VALIDATION), (VALIDATION, LAYER), (VALIDATION, LAYER, VALIDATION)):
        done, _ = bench.run(driver, *layers)
        words = " over ".join("validation" if layer == VALIDATION else "the layer" for layer in layers)
        tap.case(f"{driver.name}: nothing to say: {words}", silence(done))


def small_warnings(bench, driver, layers):
    (bench.place / "vk_layer_settings.txt").write_text(BEST_PRACTICES)
    done, _ = bench.run(driver, *layers, VALIDATION, options=["--plain"], VK_LAYER_SETTINGS_PATH=str(bench.place))
    return [sum(bool(re.search(kind, line)) and "MessageID" in line for line in done.stdout.splitlines()) for kind in SMALL]


def check_best_practices(tap, bench, driver):
    without, with_layer = small_warnings(bench, driver, ()), small_warnings(bench, driver, (LAYER,))
    problems = [] if min(without) >= 10 and max(with_layer) == 0 else [f"{without} without, {with_layer} with"]
    tap.case(f"{driver.name}: warnings of small allocations, {without[0]} and {without[1]}, become none", problems)


def check_abandoned(tap, bench, driver):
    done, _ = bench.run(driver, LAYER, options=["--abandon"], QUIRE_LAYER_STATS="text")
    problems = failures(done)
    if " 1 range never freed" not in done.stderr:
        problems.append(done.stderr)
    tap.case(f"{driver.name}: a program that never destroys its device gets its statistics", problems)


def check_ends(tap, bench, driver):
    """What the statistics and the trace of a program have that ends without notice."""
    for way, status in (("_exit", 0), ("TERM", -signal.SIGTERM), ("KILL", -signal.SIGKILL)):
        for old in bench.place.glob("ended*"):
            old.unlink()
        done, _ = bench.run(driver, LAYER, options=["--end", way], QUIRE_LAYER_STATS="json",
                            QUIRE_LAYER_STATS_FILE=str(bench.place / "ended"),
                            QUIRE_LAYER_TRACE=str(bench.place / "ended.csv"))
        problems = failures(done, status)
        partial = list(bench.place.glob("ended.*.partial"))
        found = read_statistics(*partial)
        rows = (bench.place / "ended.csv").read_text().splitlines()
        made, freed = (sum(row.startswith(kind) for row in rows) for kind in ("alloc,", "free,"))
        if made - freed != 1:
            problems.append(f"the trace has {made} allocations and {freed} frees")
        # of 2004 calls at most a 64th is missing
        if len(partial) != 1 or len(found) != 1 or not 970 <= found[0]["client_allocations"] <= 1002:
            problems.append(f"{partial}: {found}")
        tap.case(f"{driver.name}: a program that ends by {way} leaves its statistics and its trace", problems)


def check_versions(tap, bench, driver, validates):
    """Programs of Vulkan 1.0, without VkApplicationInfo, and of 1.4."""
    plain, _ = bench.run(driver, options=["--plain"])
    for option, words in (("--bare", "1.0"), ("--later", "1.4")):
        without, _ = bench.run(driver, options=[option])
        layered, _ = bench.run(driver, LAYER, options=[option], QUIRE_LAYER_STATS="text",
                               VK_LOADER_DEBUG="error,warn")
        problems = differences(plain, without, layered)
        if validates and option == "--bare":
            for layers in ((VALIDATION, LAYER), (LAYER, VALIDATION)):
                problems += silence(bench.run(driver, *layers, options=[option])[0])
        problems += [line for line in layered.stderr.splitlines() if LAYER in line and "older than" in line]
        if " passed on\n" not in layered.stderr or " and 0 passed on\n" not in layered.stderr:
            problems.append(layered.stderr)
        tap.case(f"{driver.name}: a program of Vulkan {words} runs in pages, without a warning", problems)


def check_map2(tap, bench, driver):
    plain, _ = bench.run(driver, options=["--map2"])
    layered, _ = bench.run(driver, LAYER, options=["--map2"])
    if "map2" not in plain.stdout:
        return False
    tap.case(f"{driver.name}: vkMapMemory2KHR", differences(plain, layered))
    return True


def check_settings(tap, bench, driver):
    done, _ = bench.run(driver, LAYER, QUIRE_LAYER_FIT="linear")
    tap.case("a setting that cannot be read is refused, not ignored",
             [] if done.returncode == 1 and "QUIRE_LAYER_FIT is 'linear'" in done.stderr else
             [done.returncode, done.stderr])
    plain, _ = bench.run(driver)
    for fit in ("first", "buddy"):
        done, made = bench.run(driver, LAYER, QUIRE_LAYER_FIT=fit, QUIRE_LAYER_PAGE_SIZE="8M",
                               QUIRE_LAYER_DEDICATED="suballocate")
        tap.case(f"fit {fit}, other pages, dedicated ones in them: the same ({made} allocations)",
                 differences(plain, done))
    done, _ = bench.run(driver, LAYER, QUIRE_LAYER_ZERO="on", QUIRE_LAYER_STATS="text")
    problems = differences(plain, done)
    problems += [] if "passed on: to be zeroed, but not host-visible" in done.stderr else [done.stderr]
    tap.case("zeroed memory: the same", problems)


def check_lines(tap, bench, driver):
    """What the layer writes without being asked: nothing, but to a terminal (unit tests)."""
    plain, _ = bench.run(driver)
    quiet, _ = bench.run(driver, LAYER)
    problems = failures(quiet) + [line for line in quiet.stderr.splitlines() if LAYER in line]
    tap.case("nothing is announced in a file or pipe", problems)
    done, _ = bench.run(driver, LAYER, QUIRE_LAYER_INFO="on", QUIRE_LAYER_FIT="buddy", QUIRE_LAYER_PAGESIZE="8M")
    problems = differences(plain, done)
    said = [line.removeprefix(f"{LAYER}: ") for line in done.stderr.splitlines() if line.startswith(LAYER)]
    name = re.escape(driver.name)
    expected = ["QUIRE_LAYER_PAGESIZE is unknown and has no effect; is QUIRE_LAYER_PAGE_SIZE meant[?]",
                f"active on device 1 '{name}', QUIRE_LAYER_FIT=buddy", f"active on device 2 '{name}', QUIRE_LAYER_FIT=buddy"]
    if len(said) != len(expected) or not all(re.fullmatch(e, s) for e, s in zip(expected, said)):
        problems += said
    tap.case("on request each device is announced, an unknown variable once, and stdout is the same", problems)


def check_added_folder(tap, bench, driver):
    """The loader finds the folder of the layer, and the system's layers beside it."""
    environment = driver.environment(bench.place, bench.folder, (LAYER, VALIDATION),
                                     {"VK_ADD_LAYER_PATH": bench.folder, "VK_LOADER_DEBUG": "layer"})
    del environment["VK_LAYER_PATH"]
    done = subprocess.run([bench.client], capture_output=True, text=True, env=environment)
    problems = failures(done)
    for layer in (LAYER, VALIDATION):
        if not re.search(f"Insert instance layer \"?{layer}", done.stderr):
            problems.append(f"{layer} is not loaded")
    tap.case("VK_ADD_LAYER_PATH: both layers are loaded", problems)


def check_symbols(tap, folder):
    library = pathlib.Path(folder, "libVkLayer_quire_suballocate.so")
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True)
    names = [line.split()[-1].split("@")[0] for line in done.stdout.splitlines()]
    tap.case("the library exports only what the loader needs",
             [] if names == ["vkNegotiateLoaderLayerInterfaceVersion"] else [names, done.stderr])


def check_trace(tap, bench, driver):
    trace = bench.place / "trace.csv"
    done, _ = bench.run(driver, LAYER, QUIRE_LAYER_TRACE=str(trace))
    problems = failures(done)
    if bench.quire != "none":
        replayed = subprocess.run([bench.quire, "replay", str(trace), "--json"], capture_output=True, text=True)
        problems += failures(replayed)
        if not problems and json.loads(replayed.stdout)["allocations"] < 2000:
            problems.append(replayed.stdout)
    tap.case("the trace of a program replays", problems)
    problems = [] if (bench.place / "trace.csv.2").exists() else ["the second device has no trace"]
    tap.case("a second device has a trace of its own", problems)


def main():
    client, folder, fake, quire = sys.argv[1:5]
    tap = Tap()
    if under_valgrind():
        tap.skip("programs through the loader", "under valgrind: loader, layers and drivers keep memory")
        tap.end()
    drivers = [Driver(f"fake {layout}", fake, layout) for layout in LAYOUTS]
    drivers += [Driver(*named.split("=", 1)) for named in sys.argv[5:]]
    validates = has_validation()
    with tempfile.TemporaryDirectory() as place:
        bench, has_map2 = Bench(client, folder, quire, pathlib.Path(place)), False
        for driver in drivers:
            if not pathlib.Path(driver.manifest).exists():
                tap.skip(driver.name, f"there is no {driver.manifest}")
                continue
            if not check_results(tap, bench, driver):
                continue
            if validates:
                check_validation(tap, bench, driver)
                check_best_practices(tap, bench, driver)
            else:
                tap.skip(f"{driver.name}: validation", "there is no validation layer")
            check_abandoned(tap, bench, driver)
            check_ends(tap, bench, driver)
            check_versions(tap, bench, driver, validates)
            has_map2 |= check_map2(tap, bench, driver)
        if not has_map2:
            tap.skip("vkMapMemory2KHR", "no driver has it")
        check_settings(tap, bench, drivers[0])
        check_lines(tap, bench, drivers[0])
        if validates:
            check_added_folder(tap, bench, drivers[0])
        else:
            tap.skip("VK_ADD_LAYER_PATH", "there is no validation layer")
        check_trace(tap, bench, drivers[0])
    if shutil.which("nm"):
        check_symbols(tap, folder)
    else:
        tap.skip("symbols of the library", "nm is not there")
    tap.end()


main()
