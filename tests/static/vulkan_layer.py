# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Vulkan layer knows every function that takes a memory object, and its manifest says so. Its document
explains every key of its statistics.

The compiler's own headers are read: each function with a VkDeviceMemory among its parameters, or in the
structs that they point to, is intercepted by the layer or is an export, which accepts only memory that
the layer passes on.

usage: vulkan_layer.py SOURCE_ROOT C_COMPILER MANIFEST CHECKED_VERSION
"""

import json
import pathlib
import re
import subprocess
import sys

from tap import Tap

LIST = "src/adapters/vulkan_layer/functions.h"

# They accept only memory that was created for export, which is the driver's.
EXPORTS = {"vkGetMemoryFdKHR", "vkGetMemoryRemoteAddressNV"}

# Private data and names give the object as a number.
BY_NUMBER = {"vkSetPrivateData", "vkGetPrivateData", "vkSetDebugUtilsObjectNameEXT",
             "vkSetDebugUtilsObjectTagEXT", "vkDebugMarkerSetObjectNameEXT", "vkDebugMarkerSetObjectTagEXT"}

STRUCT = re.compile(r"typedef (?:struct|union) (Vk\w+) \{(.*?)\} \1;", re.S)
FUNCTION = re.compile(r"typedef [\w* ]+\( ?\*PFN_(vk\w+)\)\((.*?)\);", re.S)
WORD = re.compile(r"\bVk\w+")


def preprocessed(compiler):
    done = subprocess.run([*compiler.split(), "-E", "-P", "-x", "c", "-"],
                          input="#include <vulkan/vulkan_core.h>\nversion VK_HEADER_VERSION_COMPLETE;\n",
                          capture_output=True, text=True, check=True)
    return done.stdout


def carriers(text):
    """The types that contain or point to a memory object."""
    structs = {name: set(WORD.findall(body)) for name, body in STRUCT.findall(text)}
    found = {"VkDeviceMemory"}
    while True:
        more = {name for name, types in structs.items() if types & found} - found
        if not more:
            return found
        found |= more


def functions(text, types):
    return {name: set(WORD.findall(body)) & types for name, body in FUNCTION.findall(text)
            if set(WORD.findall(body)) & types}


def header_version(text):
    """Major, minor and patch of an expression such as ((uint32_t)(1) << 22) | ((uint32_t)(239))."""
    line = text[text.rindex("version ") + len("version "):].split(";")[0].replace("uint32_t", "")
    variant, major, minor, patch = (int(number) for number in re.findall(r"\((\d+)U?\)", line))
    return (major, minor, patch) if variant == 0 else ()


def check_keys(tap, root):
    """Every key that report.c writes has a row in the document, and no other has."""
    folder = pathlib.Path(root, "src/adapters/vulkan_layer")
    keys = set(re.findall(r'qi_json_\w+\(json, "(\w+)"', (folder / "report.c").read_text()))
    outcomes = set(re.findall(r'X\([A-Z_]+, "(\w+)", "', (folder / "layer.h").read_text()))
    document = pathlib.Path(root, "docs/vulkan_layer.md").read_text()
    section = document.partition("\n### The statistics as JSON\n")[2].partition("\n## ")[0]
    rows = {key for row in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", section, re.M) for key in re.findall(r"\w+", row)}
    # the two counts of each outcome have no row: the row of the outcomes explains them
    problems = sorted((keys | outcomes) - {"bytes"} ^ rows) if keys and outcomes else ["no keys were found"]
    tap.case("docs/vulkan_layer.md explains every key of the statistics", problems)


def main():
    root, compiler, manifest, checked = sys.argv[1:5]
    tap = Tap()
    text = preprocessed(compiler)
    listed = set(re.findall(r"[XY]\((\w+), \w+\)", pathlib.Path(root, LIST).read_text()))
    known = {f"vk{name}" for name in listed}
    types = carriers(text)
    need = functions(text, types)
    problems = [f"{name} takes {', '.join(sorted(taken))}" for name, taken in sorted(need.items())
                if name not in known | EXPORTS]
    problems += [f"{name} is not intercepted" for name in sorted(BY_NUMBER - known)]
    if len(need) < 15:
        problems.append(f"only {len(need)} functions with memory were found: the headers were not read")
    tap.case("every function that takes a memory object is intercepted", problems)
    reached = set().union(*need.values())
    for _ in types:
        reached |= {inner for name, body in STRUCT.findall(text) if name in reached for inner in WORD.findall(body)}
    tap.case("every struct with a memory object is a parameter of such a function",
             sorted(types - reached - {"VkDeviceMemory"}))
    has = header_version(text)
    wanted = max(tuple(int(part) for part in checked.split(".")), has)
    found = tuple(int(part) for part in json.loads(pathlib.Path(manifest).read_text())["layer"]["api_version"].split("."))
    tap.case("the manifest has the version of the headers, or the later one that was checked",
             [] if len(has) == 3 and found == wanted else [f"it has {found}; the headers have {has}; checked: {checked}"])
    check_keys(tap, root)
    tap.end()


main()
