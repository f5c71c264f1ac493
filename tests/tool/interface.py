"""How the tool is called: outputs on standard output, help, devices, words of errors, widths.

usage: interface.py QUIRE SOURCE_ROOT
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios

from tap import Skipped, run_cases

QUIRE = os.path.abspath(sys.argv[1])
TRACES = pathlib.Path(sys.argv[2]).resolve() / "docs/traces"
SMALL = TRACES / "ncnn-resnet50.csv"
TMP = pathlib.Path()  # set in main


def run(*args, **more):
    return subprocess.run([QUIRE, *map(str, args)], capture_output=True, timeout=100, cwd=TMP,
                          encoding="utf-8", **more)


def fails(args, code, message, **more):
    """Expects the exit status, no standard output, and one line of standard error with the message."""
    done = run(*args, **more)
    if (done.returncode, done.stdout, len(done.stderr.splitlines())) != (code, "", 1):
        yield f"{args}: exit {done.returncode}, {done.stdout[:80]!r}, {done.stderr[:300]!r}"
    if message not in done.stderr:
        yield f"{args}: {done.stderr[:300]!r} without {message!r}"


def case_standard_output():
    """The output "-" is standard output, as the trace "-" is standard input."""
    text = SMALL.read_text()
    for command, option in (("replay", "--svg"), ("replay", "--html"), ("map", "--svg")):
        done = run(command, SMALL, option, "-")
        run(command, SMALL, option, "file")
        if done.returncode or done.stderr or not done.stdout or (TMP / "-").exists():
            yield f"{command} {option} -: exit {done.returncode}: {done.stderr}; {os.listdir(TMP)}"
        expected = (TMP / "file").read_text()
        if option == "--svg" and done.stdout != expected:
            yield f"{command} {option} -: {done.stdout[:200]!r}, not {expected[:200]!r}"
        if option == "--html" and not (done.stdout.startswith("<!doctype html>")
                                       and done.stdout.endswith("</html>\n")):
            yield f"{command} {option} -: {done.stdout[:200]!r}"
        piped = run(command, "-", option, "-", input=text)
        if piped.returncode or len(piped.stdout) < 1000:
            yield f"{command} - {option} -: exit {piped.returncode}: {piped.stderr}"
        yield from fails([command, SMALL, option, "-", "--json"], 2, "standard output takes one of")
        full = subprocess.run([QUIRE, command, SMALL, option, "-"], stderr=subprocess.PIPE,
                              stdout=open("/dev/full", "w"), cwd=TMP)
        if full.returncode != 1 or full.stderr != b"quire: standard output cannot be written\n":
            yield f"{command} {option} - to a full disk: {full.returncode}, {full.stderr}"
    yield from fails(["replay", SMALL, "--svg", "-", "--html", "-"], 2, "standard output takes one of")
    both = run("replay", SMALL, "--svg", "-", "--html", "page")
    if both.returncode or "<svg" not in both.stdout or not (TMP / "page").stat().st_size:
        yield f"--svg - --html page: {both.returncode}, {both.stderr}"


def case_standard_input():
    """An options file can be standard input if the trace is not."""
    piped = run("replay", SMALL, "--options", "-", "--json", input='{"pages.page_size": "2M"}')
    if piped.returncode or '"pages.page_size":2097152' not in piped.stdout:
        yield f"--options -: {piped.returncode}, {piped.stdout[:200]}, {piped.stderr}"
    yield from fails(["replay", "-", "--options", "-"], 2, "standard input is either")


def case_early_error():
    """An output that cannot be opened ends the command before the replay, without a report."""
    for command, option in (("replay", "--svg"), ("replay", "--html"), ("map", "--svg")):
        yield from fails([command, SMALL, option, "none/x"], 1, "quire: none/x: No such file")
        yield from fails([command, SMALL, option, "."], 1, "quire: .: ")
    (TMP / "kept").write_text("kept")
    yield from fails(["replay", "none.csv", "--svg", "kept"], 1, "none.csv")
    if (TMP / "kept").read_text() != "kept":
        yield "an unreadable trace emptied the picture"


def case_help():
    """quire help COMMAND is quire COMMAND --help. Both fit 80 columns and name --device."""
    for command in ("devices", "tour", "replay", "map", "tune", "bench", "copy"):
        done, same = run("help", command), run(command, "--help")
        if done.returncode or done.stderr or done.stdout != same.stdout:
            yield f"help {command}: exit {done.returncode}, {done.stdout[:100]!r}, {done.stderr}"
        if f"usage: quire {command} " not in done.stdout:
            yield f"help {command}: {done.stdout[:100]!r}"
        if command != "bench" and not all(word in done.stdout for word in (
                "--device D", "QUIRE_VULKAN_DEVICE", "QUIRE_CUDA_DEVICE")):
            yield f"{command} --help: no --device"
        yield from (f"{command} --help: {line!r}" for line in same.stdout.splitlines()
                    if len(line) > 80)
    yield from fails(["help", "frob"], 2, "unknown command 'frob'")
    yield from fails(["help", "replay", "map"], 2, "unexpected argument 'map'")


def case_workloads():
    """bench --help has a meaning for each workload, and bench runs each name of a list."""
    text = run("bench", "--help").stdout.split("Workloads")[1]
    names = re.findall(r"(?:^  |(?<=\w) )((?:[abcd]\d+[km](?:_raw)?|[em]_\w+|(?:ramp|fill)-[a-z2]+)\b)",
                       text, re.M)
    if len(set(names)) != 29:
        yield f"{len(set(names))} names: {names}"
    for line in text.splitlines()[1:]:
        if not re.match(r"  .{22} \S", line) or len(line) > 80:
            yield f"no meaning in two columns: {line!r}"


def case_device():
    """--device requires a backend with several devices."""
    for command in (["devices"], ["tour"], ["tune", SMALL], ["replay", SMALL]):
        for backend in ([], ["--backend", "host"], ["--backend", "plugin", "--plugin", "x"]):
            yield from fails([*command, *backend, "--device", "0"], 2,
                             "--device requires --backend vulkan or cuda")


def on_terminal(columns, *args):
    """The lines that the tool prints on a terminal of that width."""
    try:
        leader, follower = pty.openpty()
    except OSError as error:
        raise Skipped(f"no pseudo-terminal: {error}") from None
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    child = subprocess.Popen([QUIRE, *map(str, args)], stdout=follower, stderr=subprocess.DEVNULL,
                             cwd=TMP, env={**os.environ, "LC_ALL": "C.UTF-8"})
    os.close(follower)
    text = b""
    try:
        while part := os.read(leader, 65536):
            text += part
    except OSError:  # the child has closed its end
        pass
    child.wait()
    os.close(leader)
    return text.decode().splitlines()


def case_width():
    """map and tune fit the terminal, or 80 columns; a wide terminal shows more."""
    (TMP / "t.csv").write_text((TRACES / "recorded-imagemagick.csv").read_text())
    for args in (["map", "t.csv"], ["map", "t.csv", "--page-size", "3000K"], ["tune", "t.csv"],
                 ["tune", "t.csv", "--fit", "linear", "--all"]):
        lines = run(*args, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.splitlines()
        yield from (f"{args}: {line!r}" for line in lines if len(line) > 80)
        narrow, wide = on_terminal(80, *args), on_terminal(140, *args)
        yield from (f"{args} at 80: {line!r}" for line in narrow if len(line) > 80)
        yield from (f"{args} at 140: {line!r}" for line in wide if len(line) > 140)
        if max(map(len, wide)) <= 100:
            yield f"{args} does not use 140 columns"


def case_character_set():
    """Without UTF-8 in the locale the map is ASCII, with as many cells."""
    shown = {name: run("map", SMALL, env={**os.environ, "LC_ALL": name}).stdout
             for name in ("C", "POSIX", "C.UTF-8")}
    if not shown["C"].isascii() or shown["C"] != shown["POSIX"] or shown["C.UTF-8"].isascii():
        yield f"{shown}"
    if [len(line) for line in shown["C"].splitlines()] != [
            len(line) for line in shown["C.UTF-8"].splitlines()]:
        yield f"{shown}"


CASES = (("width", case_width), ("character set", case_character_set), ("help", case_help),
         ("workloads", case_workloads), ("--device", case_device),
         ("outputs on standard output", case_standard_output),
         ("an options file on standard input", case_standard_input),
         ("outputs that cannot be opened", case_early_error))


def enter(folder):
    global TMP
    TMP = folder


run_cases(CASES, "quire-interface-", enter)
