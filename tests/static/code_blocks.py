# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code in the documents for users compiles and runs.

A fenced block of C or C++ with a main function is a program: it is compiled and run, and its standard
output is compared with the block ```text that follows it, if one does, at most with commands between
them; "..." there stands for any text within a line. Every other block of C is a fragment: it becomes a
function of one file for each page (tests/static/frame.h) and is run on the host backend. Paragraphs of
a fragment that begin with `static`, `typedef` or `#include` are placed outside the function.

A comment on the line before a block changes that:
    <!-- code: compile only -->   the fragment needs a device that the tests may not have
    <!-- code: a call fails -->   the fragment shows a refusal; the last error must be set

The fragments of the reference pages (streams, copies, backends) are compiled only.

usage: code_blocks.py SOURCE_ROOT LIBRARY SANITIZERS|none C_COMPILER CPP_COMPILER|none
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from tap import Tap

PAGES = ("README.md", "docs/guide.md", "docs/tutorial.md", "docs/cookbook.md", "docs/patterns.md", "docs/cpp.md",
         "docs/install.md",
         "docs/faq.md", "docs/migrate-vma.md", "docs/migrate-rmm.md")
# Their fragments are compiled with the names of frame_devices.h. (docs/backends.md shows a part of
# docs/examples/backend.c, which tests/static/consumer.py builds.)
REFERENCE_PAGES = ("docs/streams.md", "docs/transfers.md", "docs/host.md", "docs/vulkan.md",
                   "docs/cuda.md", "docs/plugin.md")
MARKS = ("compile only", "a call fails")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
FRAGMENT = WARNINGS + ["-Wno-unused-result", "-Wno-unused-parameter", "-Wno-unused-variable",
                       "-Wno-unused-but-set-variable", "-Wno-unused-function",
                       "-Wno-missing-field-initializers"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


class Block:
    def __init__(self, page, text, match):
        self.language, self.code = match[1], match[2]
        self.line = text.count("\n", 0, match.start(2)) + 1
        self.place = f"{page}:{self.line}"
        before = text[:match.start()].rstrip("\n").rsplit("\n", 1)[-1]
        mark = re.fullmatch(r"<!-- code: (.*) -->", before)
        self.mark = mark[1] if mark else ""
        self.output = None  # of a program: the text block that follows it
        self.is_program = self.language in ("c", "cpp") and bool(re.search(r"\bint main\(", self.code))
        self.is_fragment = self.language in ("c", "cpp") and not self.is_program


def read_blocks(root, page):
    text = (root / page).read_text()
    matches = list(FENCE.finditer(text))
    blocks = [Block(page, text, m) for m in matches]
    for number, block in enumerate(blocks):
        following = [b for b in blocks[number + 1:number + 3] if b.language != "sh"]
        if block.is_program and following and following[0].language == "text":
            block.output = following[0].code
    return blocks


def outer_parts(code):
    """(first line, text, is outside) of each paragraph; a paragraph ends where no brace is open."""
    parts, lines, start, depth = [], [], 0, 0
    for number, line in enumerate(code.splitlines() + [""]):
        if not line.strip() and depth == 0:
            if lines:
                outside = re.match(r"(static|typedef|#include)\b", lines[0].lstrip("/* "))
                parts.append((start, "\n".join(lines), bool(outside)))
            lines = []
            continue
        if not lines:
            start = number
        lines.append(line)
        depth += line.count("{") - line.count("}")
    return parts


def page_source(page, fragments, headers):
    """One C file with a function for each fragment."""
    lines = [f'#include "{h}"' for h in headers]
    for number, block in enumerate(fragments):
        parts = outer_parts(block.code)
        for start, text, outside in parts:
            if outside:
                lines += [f'#line {block.line + start} "{page}"', text]
        lines.append(f"static void fragment_{number}(frame_objects *f, quire_device *device, quire_memory *memory, "
                     "quire_memory *upload, quire_stream *stream, quire_allocation allocation, char *data)")
        lines.append("{ {")  # the inner block may declare the names of the parameters anew
        for start, text, outside in parts:
            if not outside:
                lines += [f'#line {block.line + start} "{page}"', text]
        lines.append("} }")
    lines.append("static const fragment fragments[] = {")
    for number, block in enumerate(fragments):
        fails = "true" if block.mark == "a call fails" else "false"
        lines.append(f'    {{"{block.place}", fragment_{number}, {fails}}},')
    lines += ["};", "int main(int count, char **arguments)", "{",
              f"    return frame_main(count, arguments, fragments, {len(fragments)});", "}", ""]
    return "\n".join(lines)


def blocks(root, page, language):
    """The fenced blocks of a language on a page, in order."""
    return [m[2] for m in FENCE.finditer((root / page).read_text()) if m[1] == language]


def readme_example(root, language="c"):
    """The first block of a language in README.md."""
    return blocks(root, "README.md", language)[0]


def run(command, timeout=120, **options):
    done = subprocess.run(command, text=True, capture_output=True, timeout=timeout, **options)
    problems = [] if done.returncode == 0 else [
        " ".join(map(str, command)) + f" ends with {done.returncode}", done.stdout, done.stderr]
    return done.stdout, problems


def compare(expected, output):
    """Lines that differ; `...` in an expected line stands for any text."""
    wanted, got = expected.splitlines(), output.splitlines()
    problems = [f"expected {w!r}, printed {g!r}" for w, g in zip(wanted, got)
                if not re.fullmatch(re.escape(w).replace(r"\.\.\.", ".*"), g)]
    if len(wanted) != len(got):
        problems.append(f"{len(wanted)} lines expected, {len(got)} printed:")
        problems.append(output)
    return problems


class Builder:
    def __init__(self, root, library, sanitizers, compiler, place):
        self.root, self.compiler, self.place = root, compiler, place
        # rpath before the library, so that an installed quire of the machine does not take its place
        self.link = [str(library), f"-Wl,-rpath,{library.parent}", "-pthread", "-lm"]
        self.flags = [f"-I{root}/include", f"-I{root}/tests/static"]
        if sanitizers != "none":
            self.flags += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]

    def build(self, source_name, text, options):
        source, program = self.place / source_name, self.place / "program"
        source.write_text(text)
        _, problems = run([*self.compiler, *options, *self.flags, str(source), "-o", str(program), *self.link])
        return program, problems

    def check(self, source_name, text, options):
        source = self.place / source_name
        source.write_text(text)
        return run([*self.compiler, *options, *self.flags, "-fsyntax-only", str(source)])[1]

    def has_header(self, name):
        return not self.check("header.c", f"#include <{name}>\n", [])


def check_program(tap, builder, block, standard):
    options = [f"-std={standard}", *WARNINGS]
    name = "program.c" if standard == "c11" else "program.cpp"
    program, problems = builder.build(name, block.code, options)
    output = ""
    if not problems:
        output, problems = run([str(program)], cwd=builder.place)
    if not problems:
        problems = compare(block.output, output) if block.output else [] if output.strip() else [
            "the program printed nothing"]
    tap.case(f"the program at {block.place} runs as {standard}", problems)


def check_fragments(tap, builder, page, fragments):
    if not fragments:
        return
    program, problems = builder.build("page.c", page_source(page, fragments, ["frame.h"]), ["-std=c11", *FRAGMENT])
    if not problems:
        for number in range(len(fragments)):
            problems += run([str(program), str(number)], cwd=builder.place)[1]
    tap.case(f"{len(fragments)} fragments of {page} run", problems)


def check_device_fragments(tap, builder, page, fragments):
    """Fragments for devices that the tests may not have: these are compiled."""
    if not fragments:
        return
    if not builder.has_header("vulkan/vulkan.h"):
        tap.skip(f"fragments for devices of {page} compile", "there is no vulkan/vulkan.h")
        return
    source = page_source(page, fragments, ["frame.h", "frame_devices.h"])
    tap.case(f"{len(fragments)} fragments for devices of {page} compile",
             builder.check("page.c", source, ["-std=c11", *FRAGMENT]))


def check_page(tap, page, blocks, c, cpp):
    wrong = [b.place for b in blocks if b.mark and (b.mark not in MARKS or not b.is_fragment)]
    tap.case(f"marks of code in {page} are known", wrong)
    for block in blocks:
        if block.is_program and block.language == "c":
            check_program(tap, c, block, "c11")
        if block.is_program and cpp:
            for standard in ["c++17", "c++20"] if block.language == "cpp" else []:
                check_program(tap, cpp, block, standard)
    ours = [b for b in blocks if b.is_fragment and b.language == "c"]
    tap.case(f"fragments of {page} are C", [b.place for b in blocks if b.is_fragment and b not in ours])
    check_fragments(tap, c, page, [b for b in ours if b.mark != "compile only"])
    check_device_fragments(tap, c, page, [b for b in ours if b.mark == "compile only"])


def main():
    root, library = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    sanitizers, c_compiler, cpp_compiler = sys.argv[3], sys.argv[4].split(), sys.argv[5].split()
    tap = Tap()
    with tempfile.TemporaryDirectory() as place:
        c = Builder(root, library, sanitizers, c_compiler, pathlib.Path(place))
        cpp = None
        if cpp_compiler != ["none"]:
            cpp = Builder(root, library, sanitizers, cpp_compiler, pathlib.Path(place))
        count = 0
        for page in PAGES:
            blocks = read_blocks(root, page)
            count += sum(b.is_program or b.is_fragment for b in blocks)
            check_page(tap, page, blocks, c, cpp)
        for page in REFERENCE_PAGES:
            fragments = [b for b in read_blocks(root, page) if b.is_fragment]
            check_device_fragments(tap, c, page, fragments)
            count += len(fragments)
        tap.case("the documents have code", [] if count > 20 else [f"{count} blocks"])
    tap.end()


if __name__ == "__main__":
    main()
