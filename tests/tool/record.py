# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire record: the trace of a program, and a run of it that is as without the command.

usage: record.py PATH_TO_QUIRE SOURCE_ROOT [VULKAN_PROGRAM MANIFEST_OF_A_DRIVER]
"""

import os
import re
import signal
import subprocess
import sys
import time

from tool_run import QUIRE, SMALL, Figures, Skipped, execute, fails, here, refused, result, run, run_all, usage, write

NOTHING = r"^quire: nothing was recorded: the program made no device of quire, and .+\n$"
EVENTS = r"^quire: (\S+): (\d+) events?, peak (.+)$"


def record(*args, **more):
    return run("record", *args, **more)


def case_quire():
    """A program that uses the library leaves a trace with what it allocated; its output is unchanged."""
    plain, done = run("tour", "--json"), record(QUIRE, "tour", "--json")
    trace = here() / "quire.trace"
    if done.code or done.out != plain.out:
        yield f"{done.code}: {done.out[:200]!r}, not {plain.out[:200]!r}"
    if done.err != f"quire: {trace}: 3 events, peak 4 KiB\n":
        yield done.err
    found = result("replay", trace)
    if (found["allocations"], found["operations"], found["peak_requested_bytes"]) != (3, 3, 4096):
        yield f"{found}"
    figures = Figures(SMALL)
    done = record("--no-layer", "--output", "sub.trace", QUIRE, "replay", SMALL)
    found = result("replay", "sub.trace")
    if (found["allocations"], found["peak_requested_bytes"]) != (figures.allocations, figures.peak):
        yield f"{found}"
    if not re.fullmatch(EVENTS, done.err.strip()) or f"{found['operations']} events" not in done.err:
        yield done.err


def case_several_devices():
    """The trace of a second device is reported too; older files with such names are not."""
    for name in ("two.trace.3", "two.trace.x", "other"):
        os.utime(write(name, "old"), (1, 1))
    write("two.trace.x", "new")
    done = record("--output", "two.trace", QUIRE, "compare", SMALL, SMALL, "--json")
    paths = [re.match(EVENTS, line)[1] for line in done.err.splitlines()]
    if done.code or paths != [str(here() / "two.trace"), str(here() / "two.trace.2")]:
        yield f"{done.code}: {done.err}"


def case_ends():
    """The exit status is that of the program, or 128 and the number of its signal."""
    for words, code in ((["sh", "-c", "exit 3"], 3), (["true"], 0), (["false"], 1), (["sh", "-c", "kill -9 $$"], 137),
                        (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -INT $$"], 130)):
        done = record(*words)
        if done.code != code or done.out or not re.search(NOTHING, done.err):
            yield f"{words}: {done.code}, {done.out!r}, {done.err!r}"
    yield from refused(["record", "./none"], 127, "cannot run './none': No such file or directory")
    plain = write("plain", "")
    plain.chmod(0o644)
    yield from refused(["record", plain], 126, "': Permission denied")
    if list(here().glob("*.trace*")):
        yield f"{list(here().iterdir())}"


def case_nothing():
    """A program that uses neither leaves an older trace as it is, and a sentence says so."""
    old = write("old.trace", "old")
    os.utime(old, (1, 1))
    done = record("--no-layer", "--output", "old.trace", "true")
    if done.code or "and --no-layer leaves out Vulkan\n" not in done.err or old.read_text() != "old":
        yield f"{done.code}: {done.err}"


def case_arguments():
    """Everything after the program belongs to it, with dashes too; the streams pass through."""
    script = 'printf "%s\\n" "$0" "$@"; cat; echo problem >&2'
    words = ["--output", "x", "--", "-h", "--json", "", "a b"]
    for dashes in ([], ["--"]):
        done = execute("record", *dashes, "sh", "-c", script, *words, stdin=b"in\0put")
        if done.returncode or done.stdout != "".join(w + "\n" for w in words).encode() + b"in\0put":
            yield f"{dashes}: {done.returncode}, {done.stdout}"
        if not done.stderr.startswith(b"problem\nquire: nothing"):
            yield f"{done.stderr}"
    done = record("--output", "n/../t", "sh", "-c", "echo $QUIRE_TRACE")
    if done.code != 1 or (here() / "n").exists():
        yield f"a folder that does not exist: {done.code}, {done.err}"
    (here() / "n").mkdir()
    done = record("--output", "n/t", "sh", "-c", f"cd / && '{QUIRE}' tour")
    if done.code or not (here() / "n/t").exists() or f"{here()}/n/t: 3 events" not in done.err:
        yield f"another working directory: {done.err}"


def case_signals():
    """SIGTERM is passed on; SIGINT ends the program and not the report."""
    script = "trap 'echo got; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    child = subprocess.Popen([QUIRE, "record", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             cwd=here())
    ready = child.stdout.readline()
    child.send_signal(signal.SIGINT)
    time.sleep(0.1)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=60)
    if (ready, child.returncode, out) != (b"ready\n", 7, b"got\n") or b"nothing was recorded" not in err:
        yield f"{ready} {child.returncode} {out} {err}"
    child = subprocess.Popen([QUIRE, "record", "sh", "-c", "echo ready; exec sleep 60"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, cwd=here(), start_new_session=True)
    child.stdout.readline()
    os.killpg(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=60)
    if child.returncode != 130 or b"nothing was recorded" not in err:
        yield f"SIGINT to both: {child.returncode} {err}"


def case_killed():
    """The trace of a program that is killed is reported up to its last complete block."""
    done = record("--output", "k", "sh", "-c", f"'{QUIRE}' tour; kill -9 $$")
    if done.code != 137 or "3 events" not in done.err:
        yield f"{done.code}: {done.err}"
    done = record("--output", "k", "sh", "-c", "printf damaged >k; : >k.2")
    if done.code or "/k:1:" not in done.err or "/k.2: 0 events, peak 0 B\n" not in done.err:
        yield f"damaged: {done.code}: {done.err}"


def case_usage():
    yield from usage("record", pattern=r"missing argument: quire record \[options\] PROGRAM")
    yield from usage("record", "--output", "x", pattern="missing argument")
    for path in ("", "-"):
        yield from refused(["record", "--output", path, "true"], 2, f"--output takes a file, not '{path}'")
    yield from refused(["record", "--frob", "true"], 2, "unknown option --frob")
    yield from fails(record("--output", "/", "true"), 1, "Is a directory")
    yield from fails(record("--output", "none/t", "true"), 1, "none/t: No such file or directory")
    yield from fails(record("--output", "x" * 5000, "true"), 1, "the path of the trace is too long")


def case_vulkan():
    """A program that uses Vulkan leaves the trace of the layer."""
    if len(sys.argv) < 5:
        raise Skipped("the build has no Vulkan layer or no loader")
    manifest = os.path.abspath(sys.argv[4])
    environment = {**os.environ, "VK_DRIVER_FILES": manifest, "VK_ICD_FILENAMES": manifest}
    for variable in ("VK_LAYER_PATH", "VK_ADD_LAYER_PATH", "VK_INSTANCE_LAYERS"):
        environment.pop(variable, None)
    for more in ({}, {"VK_LAYER_PATH": "/nonexistent"}):
        done = record("--output", "v", os.path.abspath(sys.argv[3]), env={**environment, **more})
        events = {path: int(count) for path, count, _ in re.findall(EVENTS, done.err, re.M)}
        layer_only = all(path.startswith(str(here() / "v.vulkan")) for path in events)
        if done.code or len(events) != len(done.err.splitlines()) or not events or not layer_only:
            yield f"{more}: {done.code}, {done.err}"
        for path in events:
            os.unlink(path)
    done = record("--no-layer", "--output", "v", os.path.abspath(sys.argv[3]), env=environment)
    if done.code or "--no-layer leaves out Vulkan" not in done.err:
        yield f"--no-layer: {done.code}, {done.err}"


run_all(globals())
