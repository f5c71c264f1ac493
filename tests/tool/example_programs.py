# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example programs compute what they say, on a device of the tests.

usage: example_programs.py pool|vulkan|renderer|cuda PROGRAM [DRIVER_FOLDER]
       example_programs.py cache|models PROGRAM ROOT [DRIVER_FOLDER]

vulkan, renderer: with the driver that the loader finds, under the validation layer where it is installed.
cache, models: prints the lines of ROOT/docs/cookbook.md, on the host backend and with DRIVER_FOLDER also on CUDA.
cuda: DRIVER_FOLDER has the libcuda.so.1 of the tests, which does not run the kernel.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import ptx
from tap import Tap

NO_DEVICE = 77
VALIDATION = pathlib.Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json")
COUNT = 1 << 20
BYTES = 4 * COUNT


def run(program, *arguments, **variables):
    done = subprocess.run([program, *arguments], text=True, capture_output=True, env={**os.environ, **variables})
    return done, [] if not done.returncode and not done.stderr else [
        f"exit status {done.returncode}", done.stdout, done.stderr]


def expect(output, *patterns):
    """Patterns that no line of the output matches as a whole."""
    return [f"no line is {pattern!r} in:\n{output}" for pattern in patterns
            if not any(re.fullmatch(pattern, line) for line in output.splitlines())]


def places(output, *names):
    """{name: (page, offset, size)} of the printed placements."""
    found = dict()
    for name in names:
        match = re.search(rf"^(?:buffer )?{name}: page (\d+), offset (\d+), size (\d+)", output, re.M)
        found[name] = tuple(int(word) for word in match.groups()) if match else None
    return found


def check_places(found):
    """Every placement was printed, is large enough, and shares no byte with another."""
    problems = [f"{name} is not printed" for name, place in found.items() if not place]
    problems += [f"{name} has {place[2]} bytes" for name, place in found.items() if place and place[2] < BYTES]
    if problems:
        return problems
    (a, b) = sorted(found.values())
    return [f"{found} overlap"] if a[0] == b[0] and a[1] + a[2] > b[1] else []


def check_pool(tap, program):
    done, problems = run(program)
    tap.case("framework_pool: threads allocate and free by address", problems or expect(
        done.stdout, r"byte 1000 of the allocation in page \d+ at offset \d+",
        r"80001 allocations by 4 threads, 0 live, peak \d+ bytes, reserved \d+ bytes"))


def without_driver(program, *arguments):
    """What a CUDA example does on a machine without a driver; returns the problems."""
    with tempfile.TemporaryDirectory() as empty:
        # a file that is no library hides a driver that the machine may have
        (pathlib.Path(empty) / "libcuda.so.1").write_text("no driver\n")
        done, _ = run(program, *arguments, LD_LIBRARY_PATH=empty)
    return [] if done.returncode == NO_DEVICE and "CUDA driver not found" in done.stderr else [
        f"exit status {done.returncode}", done.stderr]


def printed_lines(root, first):
    """The lines of a program that the cookbook shows; `first` begins the first one."""
    text = (pathlib.Path(root) / "docs/cookbook.md").read_text()
    return re.search(rf"```text\n({first}.*?)```", text, re.S)[1]


def check_on_hosts(tap, program, root, first, folder):
    """The program prints the lines of the cookbook on the host backend and on CUDA. Returns what it printed."""
    name = pathlib.Path(program).name
    done, problems = run(program)
    shown = printed_lines(root, first)
    tap.case(f"{name}: the host backend prints what the cookbook shows", problems or (
        [] if done.stdout.endswith(shown) else [f"the cookbook has:\n{shown}", f"printed:\n{done.stdout}"]))
    if folder:
        cuda, problems = run(program, "--cuda", LD_LIBRARY_PATH=folder)
        tap.case(f"{name}: CUDA prints what the host backend does", problems or (
            [] if cuda.stdout == done.stdout else [cuda.stdout, done.stdout]))
        tap.case(f"{name}: without a driver the exit status says so", without_driver(program, "--cuda"))
    refused, _ = run(program, "--vulkan")
    usage = re.fullmatch(r"usage: \S+ \[--cuda\]\n", refused.stderr)
    tap.case(f"{name}: another argument prints the usage",
             [] if refused.returncode == 2 and usage and not refused.stdout
             else [f"exit status {refused.returncode}", refused.stdout, refused.stderr])
    return done.stdout


def check_cache(tap, program, root, folder=None):
    """The program fails if more is reserved than the tokens and a chunk for each cache."""
    output = check_on_hosts(tap, program, root, "most tokens: ", folder)
    tap.case("kv_cache: a report every 100 steps", expect(output, *(
        rf"step {step:4}: \d\d sequences, tokens \d+\.\d MiB, reserved \d+\.\d MiB"
        for step in range(100, 501, 100))))


def check_models(tap, program, root, folder=None):
    """The program fails if bytes or addresses changed, or if more is reserved than the model that is awake."""
    output = check_on_hosts(tap, program, root, "model a is loaded ", folder)
    tap.case("two_models: a report for every turn", expect(output, *(
        rf"turn {turn}: \d requests? for model {'ba'[turn % 2]} +reserved +\d+\.\d MiB, asleep +\d+\.\d MiB"
        for turn in range(1, 9))))


def check_validation(tap, program, output):
    """The program prints the same under the validation layer, whose messages are lines of the standard output."""
    layer = {"VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation",
             "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"}
    name = f"{pathlib.Path(program).name}: the validation layer is silent"
    if not VALIDATION.exists():
        tap.skip(name, "the layer is not installed")
        return
    # the loader names the layers it loads
    checked, _ = run(program, VK_LOADER_DEBUG="layer", **layer)
    problems = [] if checked.stdout == output and not checked.returncode else [checked.stdout]
    if not re.search(r"VK_LAYER_KHRONOS_validation", checked.stderr):
        problems.append("the loader did not load the layer: " + checked.stderr)
    tap.case(name, problems)


def check_on_device(tap, program, name, problems_of):
    done, problems = run(program)
    if done.returncode == NO_DEVICE:
        tap.skip(name, f"no Vulkan device: {done.stderr.strip()}")
        return
    tap.case(name, problems or problems_of(done.stdout))
    check_validation(tap, program, done.stdout)


def check_vulkan(tap, program):
    check_on_device(tap, program, "vulkan_compute: the device computes y = a * x + y", lambda output: [
        *check_places(places(output, "x", "y")),
        *expect(output, rf"y = 2 \* x \+ y is right for {COUNT} floats",
                r"live \d+ bytes, reserved \d+ bytes, pages \d+, backend calls \d+")])


def check_renderer(tap, program):
    """The fake driver has several queue families, and reports a wrong use of them."""
    families = "two queue families" if "QUIRE_FAKE_LAYOUT" in os.environ else "(one|two) queue famil(y|ies)"
    check_on_device(tap, program, "vulkan_renderer: the pixels are right", lambda output: expect(
        output, r"atlas: page \d+, offset \d+, size \d+", r"output: page \d+, offset \d+, size \d+",
        f"256 x 256 pixels are right, drawn by {families}"))


def check_cuda(tap, program, folder):
    done, problems = run(program, LD_LIBRARY_PATH=folder)
    tap.case("cuda_saxpy: a stream allocates, copies, reuses and frees", problems or
             check_places(places(done.stdout, "x", "y")) + expect(
                 done.stdout, "scratch reuses the range of x",
                 f"this driver runs no kernels: {COUNT} floats were copied there and back",
                 r"live 0 bytes, peak \d+ bytes, reserved \d+ bytes, pages \d+, backend calls \d+"))
    ptx.check(tap, "cuda_saxpy: the kernel can be assembled", "docs/examples/cuda_saxpy.c")
    tap.case("cuda_saxpy: without a driver the exit status says so", without_driver(program))


def main():
    kind, program = sys.argv[1], os.path.abspath(sys.argv[2])
    tap = Tap()
    check = {"pool": check_pool, "cache": check_cache, "models": check_models, "vulkan": check_vulkan,
             "renderer": check_renderer, "cuda": check_cuda}[kind]
    check(tap, program, *sys.argv[3:])
    tap.end()


main()
