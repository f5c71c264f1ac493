# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each public header compiles alone, as C11 and as C++17, with the strictest warnings as errors.
quire.hpp is C++14, C++17, also without exceptions, and C++20, for each compiler that is there.

usage: headers.py SOURCE_ROOT C_COMPILER CXX_COMPILER-or-none
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from tap import Tap

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
CPP_WARNINGS = ["-Wold-style-cast", "-Wmissing-field-initializers", "-Wsign-conversion"]
PLAIN = ["-fno-exceptions", "-fno-rtti"]


def compile_text(compiler, options, root, text, output=("-fsyntax-only",)):
    """What the compiler says of a text that it refuses."""
    done = subprocess.run([*compiler.split(), *WARNINGS, *options, *output, "-I", str(root / "include"), "-"],
                          input=text, text=True, capture_output=True)
    return [done.stderr] if done.returncode else []


def compile_alone(compiler, language, standard, root, header, options=()):
    """Compiles a header that is included twice: its guard must hold."""
    return compile_text(compiler, [f"-std={standard}", *options, "-x", language], root,
                        f'#include "quire/{header}"\n' * 2)


def headers_text(root, without=()):
    """The public headers as one text without comments."""
    return "".join(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
                   for path in sorted((root / "include/quire").glob("*.h")) if path.name not in without)


def cpp_compilers(compiler):
    """The names of the C++ compilers that are there."""
    names = [compiler.split()[-1], "g++", "clang++"]
    known = {pathlib.Path(found).resolve(): name for name in reversed(names) if (found := shutil.which(name))}
    return list(known.values())


def check_vma(tap, compiler, root):
    """quire_vma.h as C++11, also for a program that was written for VMA and loads Vulkan itself."""
    strict = CPP_WARNINGS + ["-Wzero-as-null-pointer-constant"]
    macros = ["-DVK_NO_PROTOTYPES", "-DVMA_IMPLEMENTATION", "-DVMA_STATS_STRING_ENABLED=0", "-DVMA_NULLABLE=bad"]
    for name in cpp_compilers(compiler):
        for options in [], macros:
            tap.case(" ".join(["quire_vma.h as C++11", *options, "by", name]),
                     compile_alone(name, "c++", "c++11", root, "quire_vma.h", strict + options))


# What programs that contain VMA's implementation take from it besides its functions.
IMPLEMENTATION = """
#include "quire/quire_vma.h" /* by another header, before the macro */
#define VMA_IMPLEMENTATION
#include "quire/quire_vma.h"
#include "quire/quire_vma.h"
VkDeviceMemory memory_of(VmaAllocation a);
VkDeviceMemory memory_of(VmaAllocation a) { return a->GetMemory(); }
VkDeviceSize end_of(VmaAllocation a);
VkDeviceSize end_of(VmaAllocation a) { return a->GetMappedData() ? 0 : a->GetOffset() + a->GetSize(); }
int main()
{
    int numbers[] = {3, 1, 2};
    std::mutex mutex;
    std::lock_guard<std::mutex> hold(mutex);
    std::sort(numbers, numbers + 3);
    return std::numeric_limits<int>::max() == numbers[0];
}
"""

# All macros of VMA that say what its header has. The version is no number for the preprocessor.
FEATURES = """
#include "quire/quire_vma.h"
#if VMA_VULKAN_VERSION < 1001000 || !VMA_DEDICATED_ALLOCATION || !VMA_BIND_MEMORY2 || \\
    !VMA_GET_PHYSICAL_DEVICE_PROPERTIES2 || !VMA_MEMORY_BUDGET || !VMA_BUFFER_DEVICE_ADDRESS || \\
    !VMA_MEMORY_PRIORITY || !VMA_KHR_MAINTENANCE4 || !VMA_EXTERNAL_MEMORY || !VMA_STATS_STRING_ENABLED
#error missing
#endif
#if VMA_EXTERNAL_MEMORY_WIN32 || VMA_KHR_MAINTENANCE5 + 0 != VMA_KHR_MAINTENANCE5
#error not true
#endif
VMA_CALL_PRE int VMA_CALL_POST f(int *VMA_NOT_NULL a, int *VMA_NULLABLE b, VkBuffer VMA_NULLABLE_NON_DISPATCHABLE c,
    VkBuffer VMA_NOT_NULL_NON_DISPATCHABLE d, void *VMA_EXTENDS_VK_STRUCT(VkMemoryAllocateInfo) e,
    int *VMA_LEN_IF_NOT_NULL("g") f, int g);
extern int check[VMA_VERSION >= VK_MAKE_VERSION(3, 4, 0) ? 1 : -1];
"""


def check_vma_programs(tap, c_compiler, cpp_compiler, root):
    """What programs expect of VMA's header besides its functions."""
    tap.case("quire_vma.h defines the macros of VMA's header", compile_text(
        c_compiler, ["-std=c11", "-Wundef", "-x", "c"], root, FEATURES))
    for name in [] if cpp_compiler == "none" else cpp_compilers(cpp_compiler):
        for standard in "c++11", "c++20":
            tap.case(f"VMA_IMPLEMENTATION in {standard} by {name} has the headers and the class of VMA", compile_text(
                name, [f"-std={standard}", *CPP_WARNINGS, "-x", "c++"], root, IMPLEMENTATION))


# a function whose result tells only whether the call was right
MAY_BE_IGNORED = re.compile(r"quire_\w*(free\w*|unmap|flush\w*|destroy|unlock|abort|release\w*|pop_stats|nvtx_end|decline|memory_frame)$|"
                            "quire_last_result$|quire_backend_fail$")


def check_results(tap, root, compilers):
    """What can fail for a reason that the program must handle says so; a free does not."""
    declared = re.findall(r"QUIRE_API (QUIRE_MUST_USE )?quire_result\s+(quire_\w+)\(", headers_text(root))
    problems = [f"{name}: {must}" for must, name in declared if bool(must) == bool(MAY_BE_IGNORED.match(name))]
    ignored = [name for must, name in declared if not must]
    tap.case("only results that tell no more than whether the call was right may be ignored",
             problems if len(ignored) >= 20 else [f"{len(ignored)} of {len(declared)}"])
    program = "#include <quire/quire.h>\nvoid use(quire_memory *memory, quire_allocation range, quire_device *device);\n" \
        "void use(quire_memory *memory, quire_allocation range, quire_device *device)\n{{\n{}\n}}\n"
    right = program.format("quire_unmap(memory, range);\nquire_free(memory, range);\nquire_memory_destroy(&memory);\n"
                           "quire_device_destroy(&device);")
    wrong = program.format("quire_map(memory, range, 0);\n(void)device;")
    for compiler, language, standard in compilers:
        options, output = [f"-std={standard}", "-x", language], ("-c", "-o", os.devnull)
        tap.case(f"the result of a free may be ignored in {standard}, and that of a map not",
                 compile_text(compiler, options, root, right, output) +
                 ([] if compile_text(compiler, options, root, wrong, output) else ["an ignored map is accepted"]))


# a function that tells something of its first argument and changes nothing of it
QUERIES = re.compile(r"quire_\w*(get_\w+|find|find_kind|walk|check|choose_kind|write_(report|report_json|json|svg)|"
                     r"range_options|stream_get)$")


def check_queries(tap, root):
    """A program that only asks needs no right to change."""
    declared = re.findall(r"QUIRE_API (?:QUIRE_MUST_USE )?[\w ]+?\*?(quire_\w+)\(\s*([^,)]*)", headers_text(root))
    queries = [(name, first) for name, first in declared if QUERIES.match(name) and "*" in first]
    tap.case("queries take their object const", [f"{name}({first}" for name, first in queries if "const " not in first]
             if len(queries) >= 50 else [f"{len(queries)} of {len(declared)}"])


# Values and items of lists stay small; they are passed by value, nested, or many at once. Callbacks and what the
# program compiles into its own structs are complete. All other structs can grow.
VALUES = """allocation buffer image range view point placement lluvia_view
    heap kind page_class fragmentation item space_item trace_event latency write_item read_item page_range page_copy span
    vulkan_queue vulkan_aspect cuda_access copy_end image_region page_extra native_page
    plan_arena plan_item plan_place plan_separation
    log host_memory clock on_out_of_memory progress attachment""".split()


def check_growth(tap, root):
    """Options and infos have words for later fields: four at first."""
    structs = dict(re.findall(r"struct quire_(\w+) \{(.*?)\n\}", headers_text(root, ["quire_vma.h"]), flags=re.S))
    del structs["backend"]  # begins with its size
    grows = {name for name, body in structs.items() if re.search(r"uint64_t unused\[[1-4]\];", body)}
    tap.case("options and infos have unused words, values and items of lists none",
             sorted(grows & set(VALUES)) + sorted(structs.keys() - grows - set(VALUES)) +
             sorted(set(VALUES) - structs.keys()) if len(grows) >= 60 else [f"{len(grows)} structs can grow"])


def check_cpp(tap, compiler, root, has_vulkan):
    """quire.hpp with its parts, and vulkan.hpp, for each compiler that is there."""
    if compiler == "none":
        tap.skip("quire.hpp", "there is no C++ compiler")
        return
    for name in cpp_compilers(compiler):
        for header in ["quire.hpp"] + ["vulkan.hpp"] * has_vulkan:
            for standard, options in ("c++14", []), ("c++17", PLAIN), ("c++20", []):
                problems = compile_alone(name, "c++", standard, root, header, CPP_WARNINGS + options)
                tap.case(" ".join([header, "as", standard, *options, "by", name]), problems)
    parts = {f"quire/hpp/{p.name}" for p in (root / "include/quire/hpp").iterdir()}
    included = set(re.findall(r'#include "(.*)"', (root / "include/quire/quire.hpp").read_text()))
    installed = (root / "include/meson.build").read_text()
    tap.case("quire.hpp includes all its parts, which are installed",
             sorted(parts ^ included) + [p for p in sorted(parts) if f"'{p}'" not in installed])


def main():
    root, c_compiler, cxx_compiler = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    tap = Tap()
    headers = sorted(p.name for p in (root / "include/quire").glob("*.h"))
    has_vulkan = not compile_text(c_compiler, ["-x", "c"], root, "#include <vulkan/vulkan_core.h>\n")
    for header in headers:
        if header.startswith(("vulkan", "lluvia", "quire_vma")) and not has_vulkan:
            tap.skip(f"{header} alone", "there are no Vulkan headers")
            continue
        tap.case(f"{header} alone as C11", compile_alone(c_compiler, "c", "c11", root, header))
        if cxx_compiler == "none":
            tap.skip(f"{header} alone as C++17", "there is no C++ compiler")
        else:
            tap.case(f"{header} alone as C++17", compile_alone(cxx_compiler, "c++", "c++17", root, header))
    if has_vulkan:
        check_vma_programs(tap, c_compiler, cxx_compiler, root)
    if has_vulkan and cxx_compiler != "none":
        check_vma(tap, cxx_compiler, root)
    check_results(tap, root, [(c_compiler, "c", "c11")] +
                  ([] if cxx_compiler == "none" else [(cxx_compiler, "c++", "c++17")]))
    check_queries(tap, root)
    check_growth(tap, root)
    check_cpp(tap, cxx_compiler, root, has_vulkan)
    tap.end()


main()
