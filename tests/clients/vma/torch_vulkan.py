# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's Vulkan device on quire: Debian's sources of it, with vk_mem_alloc.h replaced by
quire/quire_vma.h, as a library that replaces the Vulkan kernels of Debian's libtorch. Its results must be
those of libtorch with VMA to the bit, without a message of the validation layer.

usage: torch_vulkan.py WORK_FOLDER SOURCE_FOLDER LIBQUIRE LIBQUIRE_VMA NAME=MANIFEST...

QUIRE_SOURCES names the folder with the source archives of Debian's package pytorch. PyTorch asks for
Vulkan 1.0; this asks for 1.1, which quire needs.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import sources
from tap import Tap

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = ("Batchnorm BinaryOp Clamp Clone Concat Convolution Copy Expand Factory Mean Mm Padding Permute Pool "
           "QuantizedTensor Repeat Scalar Select Shape Slice Softmax Sum Tile Transpose UnaryOp Unsqueeze "
           "Upsample Utils Zero").split()
ASKS_FOR_1_0 = ("api/Runtime.cpp", "api/Resource.cpp")
# PyTorch 2.6 gives vkCreateDevice priorities of queues from memory that it has freed.
OWN_FAULT = "VUID-VkDeviceQueueCreateInfo-pQueuePriorities-00383"


def lacks(drivers):
    """What this machine lacks, or an empty text."""
    reason = sources.lacks(drivers, "pytorch", "g++", "glslc")
    modules = [name for name in ("torch", "yaml") if not importlib.util.find_spec(name)]
    if not reason and modules:
        reason = f"Python has no {modules[0]}"
    if not reason and not pathlib.Path("/usr/include/torch/library.h").exists():
        reason = "there are no headers of PyTorch"
    return reason


def make_shaders(root, work):
    for name in ("shaders", "spirv"):
        (work / name).mkdir()
    sources.run([sys.executable, root / "tools/gen_vulkan_spv.py", "--glsl-path",
                 root / "aten/src/ATen/native/vulkan/glsl", "--output-path", work / "shaders", "--glslc-path",
                 shutil.which("glslc"), "--tmp-dir-path", work / "spirv", "--env", "FLOAT_IMAGE_FORMAT=rgba32f"])
    return work / "shaders/spv.cpp"


def build(work, source, libraries):
    """Returns the library of PyTorch's Vulkan sources on quire."""
    root = sources.unpack("pytorch", work, ("aten/src/ATen/native/vulkan/", "aten/src/ATen/vulkan/",
                                            "tools/gen_vulkan_spv.py"))
    vulkan = root / "aten/src/ATen/native/vulkan"
    for name in ASKS_FOR_1_0:
        sources.replace(vulkan / name, "VK_API_VERSION_1_0", "VK_API_VERSION_1_1")
    sources.write_header(work / "include/include/vk_mem_alloc.h")
    # one of the sources uses std::for_each without its header
    options = ["-std=c++17", "-O0", "-include", "algorithm", "-DUSE_VULKAN", "-DUSE_VULKAN_API",
               f"-I{work}/include", f"-I{root}/aten/src", f"-I{source}/include"]
    objects = sources.compile_all(work, options, [
        make_shaders(root, work), HERE / "torch_vulkan.cpp", *sorted(vulkan.glob("api/*.cpp")),
        *sorted(vulkan.glob("impl/*.cpp")), *(vulkan / f"ops/{name}.cpp" for name in KERNELS)])
    return sources.link(work / "libtorch_vulkan_quire.so", ["-shared"], objects, libraries,
                        ("torch_cpu", "c10", "vulkan"))


def run_operators(library, manifest):
    """(what torch_operators.py found, problems)"""
    env = dict(os.environ, VK_ICD_FILENAMES=manifest, VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation")
    ended = subprocess.run([sys.executable, HERE / "torch_operators.py", library], env=env, text=True,
                           capture_output=True, timeout=600)
    lines = ended.stdout.splitlines()
    if ended.returncode or not lines:
        return {}, [f"exit status {ended.returncode}", ended.stdout[-2000:], ended.stderr[-2000:]]
    found = json.loads(lines[-1])
    messages = re.split("(?=Validation Error: )", "\n".join(lines[:-1]))
    problems = [message for message in messages if message.strip() and OWN_FAULT not in message]
    problems += [f"{name} differs from the CPU" for name in found["wrong"]]
    if not found["layer"]:
        problems.append("the validation layer is not loaded")
    if found["quire"] != (library != "none") or bool(found["blocks"]) != (library != "none"):
        problems.append(f"the allocator of {library} is not in use: {found}")
    return found, problems


def main():
    work, source, libraries, drivers = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:5], sys.argv[5:]
    tap = Tap()
    reason = lacks(drivers)
    if reason:
        tap.skip("PyTorch's Vulkan device on quire", reason)
        tap.end()
    library = build(work, source, libraries)
    tap.case("PyTorch's Vulkan sources compile on quire/quire_vma.h")
    for driver in drivers:
        name, _, manifest = driver.partition("=")
        own, problems = run_operators("none", manifest)
        tap.case(f"{name}: Debian's PyTorch", problems)
        with_quire, problems = run_operators(library, manifest)
        if own.get("hash") != with_quire.get("hash"):
            problems.append(f"{own} with VMA, {with_quire} on quire")
        tap.case(f"{name}: PyTorch on quire, with the same results to the bit", problems)
    tap.end()


if __name__ == "__main__":
    main()
