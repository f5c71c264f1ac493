# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the tool is called: outputs on standard output, help, devices, words of errors, widths.

usage: interface.py PATH_TO_QUIRE SOURCE_ROOT
"""

import fcntl
import os
import pathlib
import re
import shlex
import struct
import subprocess
import termios

from tool_run import (
    COMMANDS, QUIRE, ROOT, WITHOUT_DEVICE, SMALL, TRACES, here, open_terminal, read_terminal, refused, run, run_all,
    succeeds, write,
)


def case_standard_output():
    """The output "-" is standard output, as the trace "-" is standard input."""
    text = SMALL.read_text()
    for command, option in (("replay", "--svg"), ("replay", "--html"), ("map", "--svg")):
        done = run(command, SMALL, option, "-")
        run(command, SMALL, option, "file")
        if done.code or done.err or not done.out or (here() / "-").exists():
            yield f"{command} {option} -: exit {done.code}: {done.err}; {os.listdir(here())}"
        expected = (here() / "file").read_text()
        if option == "--svg" and done.out != expected:
            yield f"{command} {option} -: {done.out[:200]!r}, not {expected[:200]!r}"
        if option == "--html" and not (done.out.startswith("<!doctype html>") and done.out.endswith("</html>\n")):
            yield f"{command} {option} -: {done.out[:200]!r}"
        piped = run(command, "-", option, "-", stdin=text.encode())
        if piped.code or len(piped.out) < 1000:
            yield f"{command} - {option} -: exit {piped.code}: {piped.err}"
        yield from refused([command, SMALL, option, "-", "--json"], 2, "standard output takes one of")
        full = subprocess.run([QUIRE, command, SMALL, option, "-"], stderr=subprocess.PIPE,
                              stdout=open("/dev/full", "w"), cwd=here())
        if full.returncode != 1 or full.stderr != b"quire: standard output cannot be written\n":
            yield f"{command} {option} - to a full disk: {full.returncode}, {full.stderr}"
    yield from refused(["replay", SMALL, "--svg", "-", "--html", "-"], 2, "standard output takes one of")
    both = run("replay", SMALL, "--svg", "-", "--html", "page")
    if both.code or "<svg" not in both.out or not (here() / "page").stat().st_size:
        yield f"--svg - --html page: {both.code}, {both.err}"


def case_standard_input():
    """An options file can be standard input if the trace is not."""
    piped = run("replay", SMALL, "--options", "-", "--json", stdin=b'{"pages.page_size": "2M"}')
    if piped.code or '"pages.page_size":2097152' not in piped.out:
        yield f"--options -: {piped.code}, {piped.out[:200]}, {piped.err}"
    yield from refused(["replay", "-", "--options", "-"], 2, "standard input is either")


def case_unreadable_trace():
    """A trace that cannot be read does not empty the picture."""
    kept = write("kept", "kept")
    yield from refused(["replay", "none.csv", "--svg", "kept"], 1, "none.csv")
    if kept.read_text() != "kept":
        yield "an unreadable trace emptied the picture"


def case_help():
    """quire help COMMAND is quire COMMAND --help. Both fit 80 columns and name --device."""
    listed = re.findall(r"^  (\w+) +\S", run("--help").out, re.M)
    if listed != list(COMMANDS):
        yield f"--help lists {listed}, the tests {COMMANDS}"
    for command in COMMANDS:
        done, same = run("help", command), run(command, "--help")
        if done.code or done.err or done.out != same.out:
            yield f"help {command}: exit {done.code}, {done.out[:100]!r}, {done.err}"
        if f"usage: quire {command} " not in done.out:
            yield f"help {command}: {done.out[:100]!r}"
        if command not in WITHOUT_DEVICE and not all(word in done.out for word in (
                "--device D", "QUIRE_VULKAN_DEVICE", "QUIRE_CUDA_DEVICE")):
            yield f"{command} --help: no --device"
        yield from (f"{command} --help: {line!r}" for line in same.out.splitlines() if len(line) > 80)
    yield from refused(["help", "frob"], 2, "unknown command 'frob'")
    yield from refused(["help", "replay", "map"], 2, "unexpected argument 'map'")


def examples_of(command):
    """The example command lines that the help of a command prints, each with its purpose."""
    text = run(command, "--help").out.split("Examples, in the folder of the sources:\n")
    return re.findall(r"^  (quire .+)\n      (\S.*)$", text[1], re.M) if len(text) == 2 else []


def case_examples():
    """Every example of --help succeeds in the folder of the sources."""
    (here() / "docs").symlink_to(ROOT / "docs")  # the examples write files beside it
    for command in COMMANDS:
        examples = examples_of(command)
        if not 2 <= len(examples) <= 3:
            yield f"{command} --help: {len(examples)} examples"
        for line, _ in examples:
            words = shlex.split(line)[1:]
            if words[0] != command:
                yield f"{command} --help: {line!r} is of another command"
            path = f"{pathlib.Path(QUIRE).parent}:{os.environ['PATH']}"  # quire record runs quire
            done = run(*words, env={**os.environ, "PATH": path})
            if command == "record":
                if done.code or not done.out or not re.fullmatch(r"quire: .+: \d+ events, peak .+\n", done.err):
                    yield f"{line}: exit {done.code}, {done.err!r}"
            elif command != "import":
                yield from succeeds(done)
            elif done.code or "allocations" not in done.err:  # import sums up what it read on standard error
                yield f"{line}: exit {done.code}, {done.err!r}"


def case_manual():
    """Each command has a man page, with the summary, the options and the names of values of --help."""
    overview = (ROOT / "docs/quire.1.scd").read_text()
    built = re.search(r"foreach command : \[(.*?)\]", (ROOT / "docs/meson.build").read_text(), re.S)[1]
    pages = sorted(path.name for path in (ROOT / "docs/man").iterdir())
    if pages != sorted(f"quire-{command}.1.scd" for command in COMMANDS):
        yield f"docs/man has {pages}"
    if sorted(re.findall(r"'(\w+)'", built)) != sorted(COMMANDS):
        yield f"docs/meson.build builds the pages of {built}"
    for command in COMMANDS:
        text = run(command, "--help").out.split("\nExamples")[0]
        page = (ROOT / f"docs/man/quire-{command}.1.scd").read_text().replace("\\_", "_")
        if f"\nquire-{command} - {text.splitlines()[2]}\n" not in page:
            yield f"quire-{command}.1.scd has another summary"
        if not page.startswith(f"quire-{command}(1)\n") or f"*quire-{command}*(1)" not in overview:
            yield f"quire-{command}.1.scd has another title, or quire.1.scd does not name it"
        listed = re.findall(r"^  --([\w-]+)(?: ([A-Z|%]+) )?", text, re.M)
        described = re.findall(r"^\*--([\w-]+)\*(?: _([A-Z|%]+)_)?\n\t\S", page, re.M)
        if listed != described:
            yield f"quire-{command}.1.scd: {set(listed) ^ set(described)}, or another order"


def case_workloads():
    """bench --help has a meaning for each workload (their names: terminal.py)."""
    text = run("bench", "--help").out.split("Workloads")[1]
    for line in text.splitlines()[1:]:
        if not re.match(r"  .{22} \S", line) or len(line) > 80:
            yield f"no meaning in two columns: {line!r}"


def case_device():
    """--device requires a backend with several devices."""
    for command in (["devices"], ["tour"], ["tune", SMALL], ["replay", SMALL]):
        for backend in ([], ["--backend", "host"], ["--backend", "plugin", "--plugin", "x"]):
            yield from refused([*command, *backend, "--device", "0"], 2,
                               "--device requires --backend vulkan or cuda")


def on_terminal(columns, *args):
    """The lines that the tool prints on a terminal of that width."""
    leader, follower = open_terminal()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    child = subprocess.Popen([QUIRE, *map(str, args)], stdout=follower, stderr=subprocess.DEVNULL,
                             cwd=here(), env={**os.environ, "LC_ALL": "C.UTF-8"})
    os.close(follower)
    text = read_terminal(leader)
    child.wait()
    return text.decode().splitlines()


def case_width():
    """map and tune fit the terminal, or 80 columns; a wide terminal shows more."""
    write("t.csv", (TRACES / "recorded-imagemagick.csv").read_text())
    write("small.csv", SMALL.read_text())
    for args in (["map", "t.csv"], ["map", "t.csv", "--page-size", "3000K"], ["tune", "small.csv"],
                 ["tune", "small.csv", "--fit", "linear", "--all"]):
        lines = run(*args, env={**os.environ, "LC_ALL": "C.UTF-8"}).out.splitlines()
        yield from (f"{args}: {line!r}" for line in lines if len(line) > 80)
        narrow, wide = on_terminal(80, *args), on_terminal(140, *args)
        yield from (f"{args} at 80: {line!r}" for line in narrow if len(line) > 80)
        yield from (f"{args} at 140: {line!r}" for line in wide if len(line) > 140)
        if max(map(len, wide)) <= 100:
            yield f"{args} does not use 140 columns"


def case_character_set():
    """Without UTF-8 in the locale the map is ASCII, with as many cells."""
    shown = {name: run("map", SMALL, env={**os.environ, "LC_ALL": name}).out for name in ("C", "POSIX", "C.UTF-8")}
    if not shown["C"].isascii() or shown["C"] != shown["POSIX"] or shown["C.UTF-8"].isascii():
        yield f"{shown}"
    if [len(line) for line in shown["C"].splitlines()] != [len(line) for line in shown["C.UTF-8"].splitlines()]:
        yield f"{shown}"


run_all(globals())
