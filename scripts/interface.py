# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What repeats the public headers: the tables of the Python package, and the functions of a backend that is not built.

usage: interface.py FOLDER_OF_HEADERS python PACKAGE        writes the structures and functions that the package uses
       interface.py FOLDER_OF_HEADERS absent BACKEND        writes functions that answer UNSUPPORTED

FOLDER_OF_HEADERS has base.h. The lines go to standard output. The headers are read as text, in the form that the tests
of format and documents keep: a type that is not known here ends the program.
"""

import pathlib
import re
import sys

# in the order of their dependencies
HEADERS = ("base.h", "device.h", "space.h", "page_policy.h", "memory.h", "default_memory.h", "allocation.h",
           "resource.h", "stream.h", "elastic.h", "compact.h", "evict.h", "transfer.h", "insight.h", "export.h", "record.h", "trace.h", "plan.h",
           "backend_core.h", "host.h", "cuda.h", "cuda_array.h", "cuda_pool.h", "cuda_share.h", "plugin.h",
           "vulkan_device.h", "vulkan.h", "vulkan_share.h", "vulkan_sparse.h", "lluvia.h")
# what a build without the backend lacks, and where its functions are declared
BACKENDS = {
    "vulkan": ("Vulkan backend: its build needs the Vulkan headers and volk",
               ("vulkan_device.h", "vulkan.h", "vulkan_share.h", "vulkan_sparse.h", "lluvia.h")),
    "cuda": ("CUDA backend", ("cuda.h", "cuda_array.h", "cuda_pool.h", "cuda_share.h")),
    "plugin": ("plugin backend", ("plugin.h",)),
}
WIDTH = 118


class Declared:
    """A type and a name: a member, a parameter or a result."""

    def __init__(self, text):
        self.text = " ".join(text.split())
        text = re.sub(r"\bstruct ", "", self.text)
        pointer = re.fullmatch(r"(.*?)\(\*(\w*)\)\((.*)\)", text)
        self.of_function = pointer and (Declared(pointer[1] + " result"), parameters(pointer[3]))
        if pointer:
            self.name, self.base, self.stars, self.bound, self.is_const = pointer[2], "", 0, "", False
            return
        self.is_const = "const " in text  # what a pointer points to
        found = re.fullmatch(r"(\w+) ?((?:\* ?)*)(\w+)(?:\[(\w*)\])?", re.sub(r"\bconst\b ?", "", text))
        if not found:
            raise SystemExit(f"interface.py: '{text}' is not understood")
        self.base, self.name, self.bound = found[1], found[3], found[4]
        self.stars = found[2].count("*") + (self.bound == "")  # [] is a pointer


def parameters(text):
    parts = re.split(r",(?![^()]*\))", text)
    return [] if text.strip() == "void" else [Declared(part) for part in parts]


def members(text):
    """`a, b` after one type are two members. A union is left out: the package uses none."""
    for declaration in re.sub(r"union \{.*?\} \w+;", "", text, flags=re.S).split(";"):
        if "(*" in declaration:
            yield Declared(declaration)
            continue
        first, *others = declaration.split(",")
        if first.strip():
            yield Declared(first)
            kind = re.match(r"\s*((?:const |struct )*\w+)", first)[1]
            yield from (Declared(f"{kind} {other}") for other in others)


class Headers:
    def __init__(self, folder, names):
        self.functions, self.structs, self.enums, self.aliases, self.constants = {}, {}, set(), {}, {}
        self.callbacks = {}  # typedefs of function pointers
        self.of_header = {}  # the functions that each declares
        for name in names:
            before = set(self.functions)
            self.read(re.sub(r"/\*.*?\*/|, \.\.\.\)\s*QUIRE_PRINTF\([^)]*(?=\))", " ", (folder / name).read_text(),
                             flags=re.S))
            self.of_header[name] = [function for function in self.functions if function not in before]

    def read(self, text):
        for result, name, given in re.findall(r"QUIRE_API (?:QUIRE_MUST_USE )?([^;()]*?)\b(quire_\w+)\((.*?)\);",
                                              text, re.S):
            self.functions[name] = Declared(result + " result"), parameters(given)
        for name, body in re.findall(r"^(?:typedef )?struct (quire_\w+) \{(.*?)^\}", text, re.S | re.M):
            self.structs[name] = list(members(body))
        self.enums.update(re.findall(r"typedef enum (quire_\w+)", text))
        self.aliases.update((name, base) for base, name in re.findall(r"typedef (u?int\d+_t) (quire_\w+);", text))
        self.constants.update(re.findall(r"#define (QUIRE_\w+) (\d+)\n", text))
        for line in re.findall(r"typedef ([^;{}]*\(\*quire_\w+\)\([^;]*\));", text):
            callback = Declared(line)
            self.callbacks[callback.name] = callback


# ---- Python -----------------------------------------------------------------------------------------------------

PLAIN = {"uint64_t": "c_uint64", "int64_t": "c_int64", "uint32_t": "c_uint32", "int32_t": "c_int32",
         "uint8_t": "c_uint8", "int8_t": "c_int8", "size_t": "c_size_t", "bool": "c_bool", "float": "c_float",
         "double": "c_double",
         "int": "c_int", "char": "c_char"}


class Tables:
    """The declarations that functions need, each before its use."""

    def __init__(self, headers):
        self.headers, self.known, self.names, self.constants, self.lines = headers, set(), set(), [], []

    def use(self, name):
        self.names.add(name)
        return name

    def callback(self, name, declared):
        """The name of a type of function pointers."""
        if name not in self.known:
            self.known.add(name)
            result, given = declared.of_function
            kinds = [self.of(part, name) for part in (result, *given)]
            for i, part in enumerate(given[1:], 1):  # text with a size does not end with a 0
                if part.base == "size_t" and given[i - 1].base == "char":
                    kinds[i] = self.use("c_void_p")
            self.lines += ["", "", *wrap(f"{name} = {self.use('CFUNCTYPE')}(", kinds, ")")]
        return name

    def struct(self, name):
        if name not in self.known:
            self.known.add(name)
            fields = []
            for member in self.headers.structs[name]:
                kind = self.of(member, name)
                if member.bound:
                    kind += f" * {self.bound(member.bound)}"
                fields.append(f'("{member.name}", {kind})')
            self.lines += ["", "", f"class {name}(Structure):",
                           *wrap("    _fields_: ClassVar[Fields] = [", fields, "]", 8)]
        return name

    def bound(self, name):
        if name.isdigit():
            return name
        name, value = name.replace("QUIRE_", ""), self.headers.constants[name]
        if name not in self.known:
            self.known.add(name)
            self.constants.append(f"{name} = {value}")
        return name

    def of(self, declared, owner):
        """The expression of a type. `owner` names the function pointers in it."""
        if declared.of_function:
            return self.callback(f"{owner}_{declared.name}", declared)
        base, stars = self.headers.aliases.get(declared.base, declared.base), declared.stars
        if base in self.headers.callbacks:
            return self.callback(base, self.headers.callbacks[base])
        if base == "char" and stars:
            return self.pointer(self.use("c_char_p"), stars - 1)
        if base in self.headers.enums:
            return self.pointer(self.use("c_int"), stars)
        if base in PLAIN:
            return self.pointer(self.use(PLAIN[base]), stars)
        if base in self.headers.structs:
            return self.pointer(self.struct(base), stars)
        if base == "void" and not stars:
            return "None"
        if stars:  # of a handle, or of a type of Vulkan
            return self.pointer(self.use("c_void_p"), stars - 1)
        if base.startswith("PFN_"):
            return self.use("c_void_p")
        if re.fullmatch(r"Vk\w+Flags", base):
            return self.use("c_uint32")
        raise SystemExit(f"interface.py: the type {base} is not known")

    def pointer(self, kind, stars):
        return kind if not stars else self.pointer(f"{self.use('POINTER')}({kind})", stars - 1)


def wrap(begin, parts, end, indent=4):
    """`begin` and the parts, separated by commas, in lines of at most WIDTH columns."""
    whole = begin + ", ".join(parts) + end
    if len(whole) <= WIDTH:
        return [whole]
    lines, line = [begin], " " * indent
    for i, part in enumerate(parts):
        part += end if i + 1 == len(parts) else ","
        if len(line) + len(part) + 1 > WIDTH:
            lines, line = [*lines, line.rstrip()], " " * indent
        line += part + " "
    return [*lines, line.rstrip()]


def write_python(headers, package):
    words = {word for path in package.glob("*.py") if path.name != "_tables.py"
             for word in re.findall(r"\bquire_\w+", path.read_text())}
    used = [name for name in headers.functions if name in words]
    tables, lines = Tables(headers), []
    for name in used:
        result, given = headers.functions[name]
        kinds = [tables.of(part, name) for part in given]
        lines += wrap(f'    "{name}": ({tables.of(result, name)}, [', kinds, "]),", 8)
    imported = wrap("from ctypes import (", ["Structure", *sorted(tables.names)], ")")
    return ["# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception",
            '"""The structures and functions of the public headers that the package uses. A name is that of C.', "",
            "Written by scripts/interface.py. The test abi.py compares it with a program of C.", '"""', "",
            *imported, "from typing import Any, ClassVar, Dict, List, Tuple", "",
            "Fields = List[Tuple[str, Any]]", *tables.constants, *tables.lines, "", "",
            "# name, result, arguments", "FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {", *lines, "}"]


# ---- backends that are not built --------------------------------------------------------------------------------

def outputs(headers, name):
    """The names of the parameters that a failure zeroes: pointers to what is not constant, except handles, what the
    caller fills in as well, and what a call destroys."""
    for parameter in headers.functions[name][1]:
        is_opaque = parameter.base == "void" or parameter.base.startswith("quire_") and not (
            parameter.base in headers.structs or parameter.base in headers.enums or parameter.base in headers.aliases)
        is_input = parameter.base.endswith(("_options", "_access")) or name.endswith("_destroy")
        if not parameter.is_const and parameter.stars > is_opaque and not is_input:
            yield parameter.name


def absent_function(headers, name):
    result, given = headers.functions[name]
    yield ""
    yield re.sub("result$", name, result.text) + f"({', '.join(part.text for part in given) or 'void'})"
    yield "{"
    zeroed = set(outputs(headers, name))
    for parameter in given:
        if parameter.name in zeroed:
            yield f"    if ({parameter.name})"
            yield f"        memset({parameter.name}, 0, sizeof *{parameter.name});"
        else:
            yield f"    (void){parameter.name};"
    yield "    return refuse();" if result.base == "quire_result" else "    qi_ignore(refuse());\n    return 0;"
    yield "}"


def write_absent(headers, backend):
    hint, names = BACKENDS[backend]
    return ["/* Written by scripts/interface.py. */", "#include <string.h>", "",
            *(f'#include "quire/{name}"' for name in names), '#include "src/base/result.h"', "",
            "static quire_result refuse(void)", "{",
            f'    return qi_fail(QUIRE_ERROR_UNSUPPORTED, "this build of quire has no {hint}");', "}",
            *(line for name in names for function in headers.of_header[name]
              for line in absent_function(headers, function))]


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in ("python", "absent") or (
            sys.argv[2] == "absent" and sys.argv[3] not in BACKENDS):
        print(__doc__, file=sys.stderr)
        return 2
    headers = Headers(pathlib.Path(sys.argv[1]), HEADERS)
    if sys.argv[2] == "python":
        lines = write_python(headers, pathlib.Path(sys.argv[3]))
    else:
        lines = write_absent(headers, sys.argv[3])
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
