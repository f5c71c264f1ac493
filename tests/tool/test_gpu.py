# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/test-gpu on the emulated driver, on a machine with a C compiler alone, and on programs that end
badly. The figures are meaningless.

usage: test_gpu.py SOURCE_ROOT BUILD_FOLDER DRIVER_FOLDER

DRIVER_FOLDER has the libcuda.so.1 of the tests.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

from tap import Tap, under_valgrind

ROOT, BUILD, DRIVER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
FILES = {"summary.txt", "results.tsv", "facts.txt", "codes.md", "costs.md", "costs.json", "logs.tar.gz"}
PARTS = {"build", "facts", "contract", "codes", "cost", "sanitizer", "frameworks"}
CHUNK_MIB = (2, 8, 32, 64, 512)
# A row of the table of chunks: who has access, the size, and seven figures
CHUNK_ROW = re.compile(r"^(device 0 [a-z ]+?) +(\d+)(?: +\d+\.\d){7}$", re.MULTILINE)
FAMILIES = {"pairs", "calls", "pages", "growth", "host", "peaks", "chunks"}
TOOLS = """bash sh as ld timeout date mkdir rm cat sed grep awk tar gzip tr sort xargs nproc ls head tail wc
    realpath dirname basename uname env id mktemp cp ln""".split()

# Cases of other processes and of memory pools, which the default device of the emulated driver has
CORNERS = {"another process shares a page", "another process opens a legacy handle",
           "multicast of one device binds pages and addresses", "another process imports a multicast object",
           "streams use pages of a memory pool", "a memory pool is shared with the program",
           "a memory pool is refused where the device has none", "a lost device is torn down"}

# A program whose items end the process in every way.
STUB = """#!/bin/bash
[ "$1" != --device ] || { echo "device: a stub"; echo "driver: none"; exit 0; }
from=$2
item() { number=$1; [ "$from" -le "$1" ] && echo "# item $1 $2"; }
item 0 first && echo "ok 1 - first"
item 1 crashing && kill -SEGV $$
item 2 failing && { echo "not ok 1 - failing"; exit 1; }
item 3 hanging && kill -ALRM $$
item 4 renewing && { echo "ok 1 - renewing"; exit 75; }
item 5 last && echo "ok 1 - last"
exit 0
"""
STUB_RESULTS = {("passed", "first", ""), ("failed", "crashing", "signal 11 ended it"), ("failed", "failing", ""),
                ("failed", "hanging", "it took more than its limit"), ("passed", "renewing", ""),
                ("passed", "last", "")}


def command(*words):
    return ["bash", str(ROOT / "scripts/test-gpu"), *map(str, words)]


def run(*words, **env):
    return subprocess.run(command(*words), capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": "", **env})


def results_of(folder):
    """(kind, part, name, reason) of each line"""
    return [tuple(line.split("\t")) for line in (folder / "results.tsv").read_text().splitlines()]


def file_problems(out, wanted=frozenset(FILES)):
    found = {path.name for path in out.iterdir()} - {"frameworks.md"}  # where a script ran
    if found != set(wanted):
        yield f"files: {sorted(found)}"


def complete_problems(out, done, has_bench):
    """Everything ran, nothing failed, and the files have what they are to have."""
    rows = results_of(out)
    bad = [row for row in rows if row[0] == "failed"]
    if done.returncode or bad or {row[1] for row in rows} != PARTS:
        yield f"{done.returncode} {bad[:5]} {done.stdout[-800:]} {done.stderr[-800:]}"
    passed = {part: sum(row[:2] == ("passed", part) for row in rows) for part in PARTS}
    if passed["contract"] < 200 or passed["codes"] < 3 or passed["cost"] != (9 if has_bench else 0):
        yield str(passed)
    missing = CORNERS - {row[2] for row in rows if row[:2] == ("passed", "contract")}
    if missing:
        yield f"no result: {sorted(missing)}"
    if any(row[0] == "skipped" and not row[3] for row in rows):
        yield "a skip has no reason"
    last = (out / "summary.txt").read_text().splitlines()[-1]
    if not last.startswith(f"{sum(passed.values())} passed, 0 failed, "):
        yield last


def content_problems(out):
    if not (out / "codes.md").exists():
        yield "codes.md is missing"
        return
    codes, _, captures = (out / "codes.md").read_text().partition("\n## Which calls are legal during a capture\n")
    misuse, _, answers = codes.partition("\n## ")
    if misuse.count("\n| ") < 34 or "emulated" not in misuse or "**" in misuse:
        yield misuse[:300]
    rows = [line for line in answers.splitlines() if line.startswith("| ")]
    if len(rows) < 122 or any("**" in row for row in rows):
        yield str([len(rows)] + [row for row in rows if "**" in row])
    if captures.count("thread") < 4 * 40 or "| cuMemCreate | other thread, relaxed |" not in captures:
        yield captures[:300]
    facts = (out / "facts.txt").read_text()
    steps = facts.count("\n== ")
    if steps < 18 or "# " in facts or "HOST_NUMA 0, 32 MiB" not in facts or "cuMemcpyDtoD of 256 MiB" not in facts:
        yield f"{steps} steps of facts: {[line for line in facts.splitlines() if line.startswith('#')]}"
    if "== chunks, 2048 MiB in a run" not in facts or len(CHUNK_ROW.findall(facts)) != 5:
        yield f"the chunks of facts: {facts[-800:]}"
    with tarfile.open(out / "logs.tar.gz") as archive:
        names = {pathlib.Path(name).name for name in archive.getnames()}
    if not {"contract.txt", "corners.txt", "codes.txt", "answers.txt", "captures.txt", "device.txt"} <= names:
        yield str(names)


def figure_problems(out):
    if not (out / "costs.json").exists():
        yield "there are no costs"
        return
    documents = json.loads((out / "costs.json").read_text())
    found = {key for document in documents for key in document if document[key] != []}
    if not FAMILIES <= found or "peaks: bytes of the device" not in (out / "costs.md").read_text():
        yield str(sorted(found))
    rows = [row for document in documents for row in document.get("peaks", [])]
    if {row["trace"] for row in rows} < {"transformer-training.csv", "llm-serving.csv"}:
        yield str(rows)[:300]


def stub_folder(folder, **bodies):
    """A build folder of programs whose text is given by the last word of their name."""
    for name in ("tests/contract/contract-cuda", "tests/plain/plain-cuda_codes", "tests/plain/plain-cuda_answers",
                 "tests/gpu/facts", "tests/gpu/chunks", "tests/gpu/corners", "tests/gpu/captures",
                 "bench/bench_cuda"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(bodies.get(path.name.replace("contract-", "").replace("plain-", ""), STUB))
        path.chmod(0o755)
    return folder


def failure_problems(folder):
    """Each item has its result, whatever happened to those before, and so has each part."""
    out = folder / "out"
    done = run("--build", stub_folder(folder / "stubs", bench_cuda="#!/bin/bash\necho text; exit 3\n"), "--out", out)
    rows = results_of(out)
    if done.returncode != 1:
        yield f"exit status {done.returncode}"
    contract = {(kind, name, reason) for kind, part, name, reason in rows if part == "contract"}
    if not STUB_RESULTS <= contract:
        yield str(sorted(STUB_RESULTS - contract))
    if sum(row[:2] == ("failed", "cost") and row[3] == "exit status 3" for row in rows) != 9:
        yield str([row for row in rows if row[1] == "cost"])
    if "frameworks" not in {row[1] for row in rows}:
        yield "the last part did not run"
    yield from file_problems(out)


def cut_problems(folder):
    """A run that is ended in a part keeps the results of the parts before."""
    out = folder / "out"
    stubs = stub_folder(folder / "stubs", bench_cuda="#!/bin/bash\necho begun\nexec sleep 100\n")
    with subprocess.Popen(command("--build", stubs, "--out", out), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as process:
        until = time.monotonic() + 60
        while not (out / "costs.md").exists() and time.monotonic() < until:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
    names = {row[2] for row in results_of(out)}
    if not {"first", "crashing", "last"} <= names or "contract" not in (out / "summary.txt").read_text():
        yield str(sorted(names))
    if not (out / "logs.tar.gz").exists():
        yield "there is no archive"


def plain_driver(folder):
    """The folder of a driver that programs without sanitizers can load."""
    if "QUIRE_SANITIZED" not in os.environ:
        return DRIVER
    sources = [path for path in (ROOT / "tests/support/cuda").glob("*.c") if path.name != "fixture.c"]
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-fvisibility=hidden", "-fPIC", "-shared", "-pthread", "-I",
                    ROOT, "-I", ROOT / "include", *sources, ROOT / "tests/support/settings.c", "-o",
                    folder / "libcuda.so.1"], check=True)
    return folder


def bare_problems(folder):
    """A C compiler, bash and the usual tools: no meson, Python, pkg-config or make."""
    tools, out = folder / "tools", folder / "out"
    tools.mkdir(parents=True)
    compiler = shutil.which("gcc") or shutil.which("clang")
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool))
    (tools / "cc").symlink_to(compiler)
    done = subprocess.run(command("--driver", plain_driver(folder), "--quick", "--out", out), text=True,
                          capture_output=True, check=False,
                          env={"PATH": str(tools), "HOME": str(folder), "TMPDIR": str(folder)})
    yield from complete_problems(out, done, True)
    yield from content_problems(out)
    yield from figure_problems(out)
    yield from file_problems(out)
    if ("skipped", "build", "the build with meson", "meson is missing") not in results_of(out):
        yield "it does not say that meson is missing"


def items(program, first, seconds, *words, **env):
    """The exit status, and the names of the items that began."""
    done = subprocess.run([BUILD / program, "--items", str(first), str(seconds), *words], capture_output=True,
                          text=True, check=False, env={**os.environ, "LD_LIBRARY_PATH": str(DRIVER), **env})
    return done.returncode, [line.split(" ", 3)[3] for line in done.stdout.splitlines() if line.startswith("# item")]


def item_problems():
    """What a program of items does by itself: omits, limits and renews."""
    captures, answers, table = "tests/gpu/captures", "tests/plain/plain-cuda_answers", ("--table", "libcuda.so.1")
    for what, status, count, arguments, slow in (
            ("the last two cells", 0, 2, (captures, 526, 10), ""),
            ("a cell that hangs", -signal.SIGALRM, 1, (captures, 0, 1), "cuMemAlloc 20000000"),
            ("the rows before cuInit", 75, 17, (answers, 0, 10, *table), ""),
            ("a row whose process hangs", -signal.SIGALRM, 1, (answers, 0, 1, *table), "cuInit 20000000")):
        found, names = items(*arguments, **({"QUIRE_FAKE_CUDA_SLOW": slow} if slow else {}))
        if found != status or len(names) != count:
            yield f"{what}: {found} {names}"
    status, names = items("tests/plain/plain-cuda_codes", 0, 10, *table)
    if status != 75 or not names or any(not name.startswith("reserve") for name in names):
        yield f"the first chapter: {status} {names}"
    status, names = items("tests/contract/contract-cuda", 10, 100, "cuda, this machine's driver, all kinds")
    if status or len(names) < 60:
        yield f"the contract: {status} {len(names)}"


def corner_problems():
    """The corners on devices that lack exports, multicast, legacy handles, pools or peers, and with large granules."""
    for model, skipped, words in (("a100", 2, "'fake a100' has no multicast"), ("orin", 5, "no legacy handles"),
                                  ("vgpu", 6, "no memory pools"), ("gh200", 2, "1..15"), ("h200,h200", 0, "1..15")):
        done = subprocess.run([BUILD / "tests/gpu/corners"], capture_output=True, text=True, check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": str(DRIVER), "QUIRE_FAKE_CUDA_MODELS": model,
                                   "QUIRE_FAKE_CUDA_FLAGS": "quiet,peers"})
        if done.returncode or words not in done.stdout or done.stdout.count("# SKIP") != skipped:
            yield f"{model}: {done.returncode} {done.stdout} {done.stderr}"


def chunks(folder, *words, **env):
    """The exit status, standard output, and the report of the driver when the process has ended."""
    report = folder / "report"
    report.unlink(missing_ok=True)
    done = subprocess.run([BUILD / "tests/gpu/chunks", DRIVER / "libcuda.so.1", *words], capture_output=True, text=True,
                          check=False, env={**os.environ, "QUIRE_FAKE_CUDA_FLAGS": "quiet",
                                            "QUIRE_FAKE_CUDA_REPORT": str(report), **env})
    return done.returncode, done.stdout, report.read_text().splitlines() if report.exists() else []


def left_over(report):
    """What the driver reports as alive or as misuse"""
    return [line for line in report if line.startswith(("live ", "message "))]


def chunk_problems(folder):
    """Each size of chunks has its line and its row for each set of devices, and what is not measured a reason."""
    peers = {"QUIRE_FAKE_CUDA_MODELS": "h200,h200,h200", "QUIRE_FAKE_CUDA_FLAGS": "quiet,peers"}
    status, text, report = chunks(folder, "512", **peers)
    names = ("device 0 alone", "device 0 and one peer", "device 0 and all peers")
    lines = [f"chunks of {mib} MiB, {name}, mean of {512 // mib}, us: " for name in names for mib in CHUNK_MIB]
    rows = [(name, str(mib)) for name in names for mib in CHUNK_MIB]
    if status or [line for line in lines if text.count(line) != 1] or CHUNK_ROW.findall(text) != rows:
        yield f"three devices: {status} {text}"
    made = 3 * 3 * sum(512 // mib for mib in CHUNK_MIB)
    wanted = {f"calls {name} {made}" for name in ("cuMemCreate", "cuMemRelease", "cuMemMap")}
    wanted |= {f"calls {name} {made * 2 // 3 + 15}" for name in ("cuMemSetAccess", "cuMemUnmap")}
    if wanted - set(report) or left_over(report):
        yield f"three devices: {report}"
    for models, flags, mib, skipped in (
            ("h200", "quiet", "512", ("one peer: skipped: one GPU", "all peers: skipped: one GPU")),
            ("h200,h200", "quiet", "512", ("one peer: skipped: no other device reaches device 0",
                                           "all peers: skipped: no other device reaches device 0")),
            ("h200,h200", "quiet,peers", "512", ("all peers: skipped: one device reaches device 0",)),
            ("vgpu", "quiet", "512", ("chunks: skipped: the device has no virtual memory management",)),
            ("orin", "quiet", "16384", ("chunks: skipped: 30720 MiB are free, and a run takes half of them at most",))):
        status, text, report = chunks(folder, mib, QUIRE_FAKE_CUDA_MODELS=models, QUIRE_FAKE_CUDA_FLAGS=flags)
        if status or text.count("skipped") != len(skipped) or left_over(report) or any(s not in text for s in skipped):
            yield f"{models} {mib}: {status} {text} {left_over(report)}"


def chunk_failure_problems(folder):
    """A refused call costs the size of its chunks, and what that had is given back."""
    for call, words in (("cuMemAddressReserve 1", "cuMemAddressReserve, all chunks: 2 CUDA_ERROR_OUT_OF_MEMORY"),
                        ("cuMemCreate 100", "cuMemCreate, chunk 100 of 256: 2 CUDA_ERROR_OUT_OF_MEMORY"),
                        ("cuMemMap 300", "cuMemMap, chunk 44 of 256: 2 "),
                        ("cuMemSetAccess 3", "cuMemSetAccess, chunk 3 of 256: 1 "),
                        ("cuMemSetAccess 513", "cuMemSetAccess, all chunks: 1 "),
                        ("cuMemsetD8 1", "cuMemsetD8, chunk 256 of 256: 1 "),
                        ("cuCtxSynchronize 1", "cuMemsetD8, chunk 256 of 256: 201 "),
                        ("cuMemUnmap 5", "cuMemUnmap, chunk 252 of 256: 1 "),
                        ("cuMemUnmap 513", "cuMemUnmap, all chunks: 1 "),
                        ("cuMemRelease 5", "cuMemRelease, chunk 252 of 256: 1 ")):
        status, text, report = chunks(folder, "512", QUIRE_FAKE_CUDA_FAIL=call)
        if status or f"chunks of 2 MiB, device 0 alone: no result: {words}" not in text:
            yield f"{call}: {status} {text}"
        if len(CHUNK_ROW.findall(text)) != 4 or text.count("no result") != 1 or left_over(report):
            yield f"{call}: {text} {left_over(report)}"
    status, text, report = chunks(folder, "512", QUIRE_FAKE_CUDA_FAIL="cuMemAddressFree 1")
    if status != 1 or "not ok 1 - chunks" not in text:
        yield f"addresses that are not freed: {status} {text}"
    for words in (("0",), ("100",), ("512x",), ("",), ("-512",), ("1049088",), ("512", "more")):
        status, text, report = chunks(folder, *words)
        if status != 2 or text or report:
            yield f"{words}: {status} {text}"


def usage_problems():
    for words in (("--part", "none"), ("--out",), ("--nothing",), ("stray",)):
        done = run(*words)
        if done.returncode != 2 or "--part NAME" not in done.stderr:
            yield f"{words}: {done.returncode}"


def absence_problems(folder):
    """Without a driver everything is skipped with its reason."""
    (folder / "libcuda.so.1").write_text("no driver\n")
    done = run("--build", BUILD, "--driver", folder, "--out", folder / "out")
    rows = [row for row in results_of(folder / "out") if row[1] != "build"]
    if done.returncode or any(row[0] != "skipped" or "no GPU: CUDA driver not found" not in row[3] for row in rows):
        yield f"{done.returncode} {rows}"
    if len(rows) != 6:
        yield str(rows)


def crash_problems(folder):
    """A driver that crashes at memory of a host node costs what asks for such memory, and nothing else."""
    out = folder / "out"
    done = run("--build", BUILD, "--driver", DRIVER, "--quick", "--out", out, QUIRE_FAKE_CUDA_FLAGS="crashes-at-node")
    rows = results_of(out)
    passed = {part: sum(row[:2] == ("passed", part) for row in rows) for part in PARTS}
    if passed["contract"] < 150 or passed["codes"] < 2 or passed["facts"] < 1:
        yield f"{passed} {done.stdout[-500:]}"
    if (BUILD / "bench/bench_cuda").exists() and passed["cost"] != 8:  # all but the costs of host memory
        yield str([row for row in rows if row[1] == "cost"])
    if "signal 11 ended the step" not in (out / "facts.txt").read_text():
        yield "no step of the facts ended"


# Scripts that end in every way, and what is recorded of them.
SCRIPTS = {
    "a_whole": "print('ok 1 - a loss'); print('12 ms beside 15 ms'); print('ok 2 - graphs # SKIP too old')\n"
               "print('not ok 3 - a peak'); print('# 3 GiB'); print('1..3'); raise SystemExit(1)",
    "b_crash": "import os; print('ok 1 - before', flush=True); os.abort()",
    "c_silent": "pass",
    "d_early": "print('ok 1 - first'); raise SystemExit(0)",
    "e_slow": "import time; print('ok 1 - quick', flush=True); time.sleep(100)",
    "f_world": "import os, tap; t = tap.Tap(); t.case('world', [e for e in (os.environ['QUIRE_BUILD'] != '/',\n"
               " os.environ['QUIRE_EMULATED'] != 'yes', os.environ['QUIRE_QUICK'] != 'no') if e]); t.end()",
}
SCRIPT_RESULTS = {
    ("passed", "a loss", ""), ("skipped", "graphs", "too old"), ("failed", "a peak", ""),
    ("failed", "a_whole with plain pages", "exit status 1"), ("failed", "b_crash with plain pages", "signal 6 ended it"),
    ("passed", "before", ""), ("failed", "b_crash", "signal 6 ended it"), ("failed", "c_silent", "it printed no plan"),
    ("passed", "first", ""), ("failed", "d_early", "it printed no plan"),
    ("passed", "quick", ""), ("skipped", "e_slow, the rest", "no time was left"), ("passed", "world", ""),
}
FRAMEWORKS = """set -u
out=$1 logs=$1/logs programs=/ emulated=yes quick=no part=frameworks deadline=8
device=none driver=none builder=none
. tests/gpu/results.sh
. tests/gpu/parts.sh
frameworks_in "$2"
"""


def script_problems(folder):
    """What is recorded of the scripts of frameworks, and their figures."""
    (folder / "logs").mkdir()
    (folder / "scripts").mkdir()
    for name, text in SCRIPTS.items():
        (folder / "scripts" / f"{name}.py").write_text(text)
    done = subprocess.run(["bash", "-c", FRAMEWORKS, "bash", folder, folder / "scripts"], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    found = {(kind, name, reason) for kind, _, name, reason in results_of(folder)}
    if found != SCRIPT_RESULTS:
        yield f"{sorted(found ^ SCRIPT_RESULTS)} {done.stderr[-500:]}"
    figures = (folder / "frameworks.md").read_text()
    if figures.count("```") != 2 or "a_whole:\n\n```\n12 ms beside 15 ms\n```" not in figures:
        yield figures


TORCH = """
from types import SimpleNamespace
__version__ = "of the test"
OutOfMemoryError = MemoryError
blocks, used, peak = {}, 0, 0
def alloc(size):
    global used, peak
    if size > 1 << 30:
        raise MemoryError
    pointer = len(blocks) + 1
    blocks[pointer] = size
    used += size
    peak = max(peak, used)
    return pointer
def delete(pointer):
    global used
    used -= blocks[pointer]
    blocks[pointer] = 0
def reset():
    global peak
    peak = used
cuda = SimpleNamespace(init=lambda: None, empty_cache=lambda: None, reset_peak_memory_stats=reset,
                       caching_allocator_alloc=alloc, caching_allocator_delete=delete,
                       memory_stats=lambda: {"reserved_bytes.all.peak": peak})
"""
TRACE = """op,id,size,alignment,time_ns,stream,label
alloc,1,1048576,512,0,0,a
alloc,2,2097152,512,1,0,b
free,1,,,2,0,
alloc,3,4294967296,512,3,0,refused
free,3,,,4,0,
"""


def torch_problems(folder):
    """The replay of PyTorch's part, on a module that stands in for it."""
    (folder / "torch.py").write_text(TORCH)
    (folder / "trace.csv").write_text(TRACE)
    done = subprocess.run([sys.executable, ROOT / "tests/gpu/torch_native.py", folder / "trace.csv"], text=True,
                          capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(folder)})
    row = done.stdout.splitlines()[-1].split() if done.stdout else []
    if done.returncode or row[:6] != ["trace.csv", "PyTorch", "4098.0", "3.0", "0.001", "1"]:
        yield f"{done.returncode} {done.stdout} {done.stderr}"


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def inside(what):
            (folder / what).mkdir()
            return folder / what

        tap.case("items are omitted, limited and renewed", item_problems())
        tap.case("corners of other devices", corner_problems())
        tap.case("chunks for any set of devices", chunk_problems(folder))
        tap.case("chunks whose calls are refused", chunk_failure_problems(folder))
        if under_valgrind():
            tap.skip("scripts/test-gpu", "valgrind finds what bash, sed and compilers leak")
            tap.end()
        tap.case("bad usage is rejected", usage_problems())
        out = inside("quick")
        done = run("--build", BUILD, "--driver", DRIVER, "--quick", "--out", out)
        has_bench = (BUILD / "bench/bench_cuda").exists()
        tap.case("all parts run on the emulated driver", complete_problems(out, done, has_bench))
        tap.case("the tables and the logs are complete", content_problems(out))
        if has_bench:
            tap.case("there are at most 8 files", file_problems(out))
        else:
            tap.case("there are no files of costs", file_problems(out, FILES - {"costs.md", "costs.json"}))
        tap.case("a machine with a C compiler alone", bare_problems(inside("bare")))
        tap.case("no failure ends another item", failure_problems(inside("failure")))
        tap.case("a run that is ended keeps its results", cut_problems(inside("cut")))
        tap.case("scripts of frameworks", script_problems(inside("scripts")))
        tap.case("a driver that crashes", crash_problems(inside("crash")))
        tap.case("no driver", absence_problems(inside("absence")))
        tap.case("the part of PyTorch", torch_problems(inside("torch")))
    tap.end()


main()
