# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python declarations are those of the public headers: structures, enumerations, functions, version.

A program of C prints sizes, offsets and values. Functions and lists of enumerators are read from the headers.
tests/static/interface.py compares the fields, which padding can hide from a program.
"""

import ctypes
import enum
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from quire import _native, _tables, enums

from support import COMPILER, SOURCE

HEADERS = pathlib.Path(SOURCE) / "include/quire"
STRUCTS = {name: kind for name, kind in vars(_tables).items()
           if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and name.startswith("quire_")}
# the prefix of the names in C; names that C has and Python leaves out
ENUMS = {
    enums.Result: ("QUIRE_ERROR_", ()),
    enums.LogLevel: ("QUIRE_LOG_", ()),
    enums.MemoryFlags: ("QUIRE_", ()),
    enums.HeapFlags: ("QUIRE_HEAP_", ()),
    enums.ElasticRules: ("QUIRE_ELASTIC_", ()),
    enums.Fit: ("QUIRE_FIT_", ()),
    enums.SleepMode: ("QUIRE_SLEEP_", ()),
    enums.Dedicated: ("QUIRE_DEDICATED_", ()),
    enums.Growth: ("QUIRE_GROWTH_", ()),
    enums.Usage: ("QUIRE_USAGE_", ("SAMPLED",)),  # images only
    enums.HostBacking: ("QUIRE_HOST_", ()),
    enums.HostHugePages: ("QUIRE_HOST_HUGE_", ()),
    enums.CudaPageKind: ("QUIRE_CUDA_", ()),
    enums.CudaWithout: ("QUIRE_CUDA_WITHOUT_", ()),
}
# enumerations of C whose enumerators are read from the headers
LISTS = {enums.LogLevel: "quire_log_level", enums.Fit: "quire_fit", enums.Dedicated: "quire_dedicated",
         enums.SleepMode: "quire_sleep_mode",
         enums.Growth: "quire_growth", enums.HostBacking: "quire_host_backing",
         enums.HostHugePages: "quire_host_huge_pages", enums.CudaPageKind: "quire_cuda_page_kind"}
CONSTANTS = {f"QUIRE_{name}": value for name, value in vars(_tables).items() if isinstance(value, int)}
INTEGERS = {"int8_t": ctypes.c_int8, "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64,
            "uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32, "size_t": ctypes.c_size_t,
            "bool": ctypes.c_bool, "quire_result": ctypes.c_int,
            "quire_memory_flags": ctypes.c_uint32, "quire_elastic_rules": ctypes.c_uint32, "quire_cuda_page_kind": ctypes.c_int,
            "quire_sleep_mode": ctypes.c_int, "void": None}
OPAQUE = ("quire_device", "quire_memory", "quire_stream", "quire_compaction", "quire_recorder", "quire_trace", "void")


def text_of(name):
    """A header without comments."""
    return re.sub(r"/\*.*?\*/", " ", (HEADERS / name).read_text(), flags=re.S)


def headers():
    return sorted(path.name for path in HEADERS.glob("*.h"))


def c_name(kind, member):
    return "QUIRE_SUCCESS" if member.name == "SUCCESS" else ENUMS[kind][0] + member.name


def compile_and_run(folder, lines, with_vulkan):
    """Lines of "NAME VALUE" that a program of C prints, as a dictionary."""
    included = ["quire.h", "host.h", "cuda.h", "trace.h", "plan.h", "backend.h"] + ["vulkan.h"] * with_vulkan
    source = [f"#include <quire/{name}>" for name in included] + [
        "#include <stdio.h>", "#define SHOW(name, value) printf(\"%s %lld\\n\", (name), (long long)(value))",
        "int main(void)", "{", *lines, "return 0;", "}", ""]
    path = pathlib.Path(folder) / "abi.c"
    path.write_text("\n".join(source))
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([*COMPILER, "-std=c11", f"-I{HEADERS.parent}", str(path), "-o", str(path.with_suffix(""))],
                          capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise AssertionError(done.stderr)
    done = subprocess.run([str(path.with_suffix(""))], capture_output=True, text=True, check=True, env=env)
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def has_vulkan():
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return not subprocess.run([*COMPILER, "-fsyntax-only", "-x", "c", "-"], text=True, capture_output=True, env=env,
                              input="#include <vulkan/vulkan_core.h>\n", check=False).returncode


def struct_lines(name, kind):
    yield f'SHOW("{name}", sizeof({name}));'
    for field, *_ in kind._fields_:
        yield f'SHOW("{name}.{field}", offsetof({name}, {field}));'
        yield f'SHOW("{name}.{field}:size", sizeof((({name} *)0)->{field}));'


def struct_values(name, kind):
    yield name, ctypes.sizeof(kind)
    for field, field_kind in kind._fields_:
        yield f"{name}.{field}", getattr(kind, field).offset
        yield f"{name}.{field}:size", ctypes.sizeof(field_kind)


def prototypes():
    """By the name of a function: the texts of its result and of its parameters."""
    found = {}
    for header in headers():
        for result, name, parameters in re.findall(
                r"QUIRE_API (?:QUIRE_MUST_USE )?((?:const )?\w+ ?\*?)\s*(quire_\w+)\(([^;]*)\);", text_of(header)):
            parts = re.split(r",(?![^()]*\))", parameters)
            words = [] if parameters.strip() == "void" else [" ".join(p.split()) for p in parts]
            found[name] = (result.strip(), words)
    return found


def is_same(c_type, declared):
    """Whether a type of C, as text, is the declared type of ctypes."""
    if c_type == "bool (*visit)(void *user, const quire_item *item)":
        return declared is _tables.quire_memory_walk_visit
    plain = re.sub(r"\bconst\b", "", c_type).strip()
    plain = re.sub(r"\b\w+$", "", plain).strip() if len(plain.replace("*", " ").split()) > 1 else plain
    stars, base = plain.count("*"), plain.replace("*", "").strip()
    if base == "quire_sink":
        return declared is _tables.quire_sink
    if stars == 0:
        return declared is (INTEGERS[base] if base in INTEGERS else STRUCTS.get(base))
    if base == "char":
        return declared is ctypes.c_char_p
    if stars == 2:
        return base in OPAQUE and declared is ctypes.POINTER(ctypes.c_void_p)
    if base in OPAQUE:
        return declared is ctypes.c_void_p
    return declared is ctypes.POINTER(STRUCTS[base] if base in STRUCTS else INTEGERS[base])


class Abi(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.with_vulkan = has_vulkan()
        cls.structs = {name: kind for name, kind in STRUCTS.items()
                       if cls.with_vulkan or not name.startswith("quire_vulkan")}
        lines = [line for name, kind in cls.structs.items() for line in struct_lines(name, kind)]
        lines += [f'SHOW("{c_name(kind, member)}", {c_name(kind, member)});' for kind in ENUMS for member in kind]
        lines += [f'SHOW("{name}", {name});' for name in CONSTANTS]
        with tempfile.TemporaryDirectory() as folder:
            cls.values = compile_and_run(folder, lines, cls.with_vulkan)

    def test_structures(self):
        self.assertGreater(len(self.structs), 40)
        for name, kind in self.structs.items():
            expected = {key: self.values[key] for key, _ in struct_values(name, kind)}
            self.assertEqual(expected, dict(struct_values(name, kind)), name)

    def test_enumerations(self):
        for kind in ENUMS:
            self.assertEqual({member.name: self.values[c_name(kind, member)] for member in kind},
                             {member.name: member.value for member in kind})
        self.assertEqual({name: self.values[name] for name in CONSTANTS}, CONSTANTS)

    def test_enumerators(self):
        """No enumerator of the headers is missing."""
        results = re.findall(r"X\((QUIRE_\w+),", (HEADERS / "base.h").read_text().replace("\\\n", ""))
        self.assertEqual(results, [c_name(enums.Result, member) for member in enums.Result])
        everything = "".join(map(text_of, headers()))
        for kind, name in LISTS.items():
            body = re.search(r"typedef enum " + name + r" \{(.*?)\}", everything, re.S)[1]
            self.assertEqual(re.findall(r"QUIRE_\w+", body), [c_name(kind, member) for member in kind])
        for kind in (enums.HeapFlags, enums.ElasticRules, enums.Usage):
            prefix, left_out = ENUMS[kind]
            names = re.findall(r"#define (" + prefix + r"\w+) UINT32_C", everything)
            self.assertEqual(names, [c_name(kind, member) for member in kind] + [prefix + name for name in left_out])
        flags = re.findall(r"#define (QUIRE_(?!HEAP|ELASTIC)\w+) UINT32_C", text_of("device.h"))
        self.assertEqual(flags, [c_name(enums.MemoryFlags, member) for member in enums.MemoryFlags])

    def test_functions(self):
        found = prototypes()
        for name, (result, arguments) in _tables.FUNCTIONS.items():
            with self.subTest(name):
                c_result, c_arguments = found[name]
                self.assertTrue(is_same(c_result, result), c_result)
                self.assertEqual(len(c_arguments), len(arguments), c_arguments)
                for c_argument, argument in zip(c_arguments, arguments):
                    self.assertTrue(is_same(c_argument, argument), f"{c_argument}: {argument}")

    def test_version(self):
        text = text_of("base.h")
        version = ".".join(re.search(rf"QUIRE_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))
        self.assertEqual(_native.VERSION, version)
        build = (pathlib.Path(SOURCE) / "meson.build").read_text()
        self.assertEqual(_native.SONAME, "libquire.so." + re.search(r"soversion = '(\d+)'", build)[1])

    def test_is_checked(self):
        """The comparison notices a header that changes."""
        class quire_heap(ctypes.Structure):
            _fields_ = [("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]
        expected = {key: self.values[key] for key, _ in struct_values("quire_heap", quire_heap)}
        self.assertNotEqual(expected, dict(struct_values("quire_heap", quire_heap)))
        self.assertFalse(is_same("uint32_t count", ctypes.c_uint64))
        self.assertFalse(is_same("quire_memory *memory", ctypes.POINTER(ctypes.c_void_p)))
        self.assertTrue(issubclass(enums.Fit, enum.IntEnum))
