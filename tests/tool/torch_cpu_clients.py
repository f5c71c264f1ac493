# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch on the CPU with libquire_torch_cpu and without: same outputs to the bit, reserved bytes, times
beside other allocators, data loaders that fork, and threads.

usage: torch_cpu_clients.py LIBRARY THREADS_PROGRAM QUIRE_TOOL|none SOURCE_ROOT [--rounds N]
       [--save-traces FOLDER]

Without arguments it is skipped: the build has no library. The programs of tests/clients do the work, each
in a process of its own. Times are the least of several processes that take turns, because other programs
of the machine disturb them. An allocator that is not installed is left out, with the reason. The folder
gets the trace of each model.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tap import Tap

MODELS = ("gpt", "resnet", "serving")
TRAINED = ("gpt", "resnet")
MOST_RESERVED = 1.10  # times the peak of requested bytes
SIZES = {"neg": (1024, 16384, 262144), "expression": (1 << 20, 4 << 20, 16 << 20)}
TURNS = 8
SMALL_FACTOR = 1.05   # of glibc's time, for an operation on 1 KiB
LARGE_FACTOR = 0.5    # of glibc's time, from 1 MiB on
PEER_FACTOR = 1.10    # of tcmalloc's time, from 1 MiB on: equal, as far as times on such a machine repeat
THREADS, STEPS = 6, 20000
PRELOADS = {"tcmalloc": "libtcmalloc_minimal.so.4", "jemalloc": "libjemalloc.so.2"}
PRELOAD_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib")
TIMEOUT = 1500


def run(command, preload=None, **variables):
    environment = {name: text for name, text in os.environ.items() if not name.startswith("QUIRE_TORCH_CPU")}
    environment.update(variables, OMP_NUM_THREADS="1")
    if preload:
        environment["LD_PRELOAD"] = preload
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ends with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Clients:
    """The programs, and the allocators that they run with."""

    def __init__(self, library, threads, root):
        self.library, self.threads = library, threads
        self.folder = pathlib.Path(root) / "tests" / "clients"
        self.allocators = {"glibc": ("-", None), "quire": (library, None)}
        self.lacking = []
        for name, file in PRELOADS.items():
            found = [f"{folder}/{file}" for folder in PRELOAD_FOLDERS if os.path.exists(f"{folder}/{file}")]
            if found:
                self.allocators[name] = ("-", found[0])
            else:
                self.lacking.append(name)

    def python(self, program, library, *words, **options):
        return run([sys.executable, str(self.folder / program), library, *map(str, words)], **options)


def operators(tap, clients):
    try:
        found = [clients.python("torch_cpu_operators.py", clients.library, QUIRE_TORCH_CPU_LIMIT="64m").strip()]
    except RuntimeError as error:
        found = [error]
    tap.case("operators, refusals, and tensors from before", [] if found == ["done"] else found)
    code = f"import torch; torch.ops.load_library({clients.library!r}); print(torch.ops.quire_cpu.is_active())"
    for name, variable, text, active, message in (
            ("a wrong setting leaves PyTorch's allocator", "SHARDS", "many", "False", "QUIRE_TORCH_CPU_SHARDS"),
            ("an unknown setting is reported", "PAGESIZE", "8m", "True", "is QUIRE_TORCH_CPU_PAGE_SIZE meant?")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT,
                              env={**os.environ, f"QUIRE_TORCH_CPU_{variable}": text})
        tap.case(name, [] if done.stdout == f"{active}\n" and message in done.stderr else [done.stdout, done.stderr])


def peak_requested(path):
    """The highest sum of requested bytes in a trace."""
    sizes, live, peak = {}, 0, 0
    with open(path, encoding="ascii") as file:
        next(file)
        for line in file:
            op, number, size = line.split(",")[:3]
            if op == "alloc":
                sizes[number] = int(size)
                live += sizes[number]
                peak = max(peak, live)
            else:
                live -= sizes.pop(number)
    return peak


def model(tap, clients, name, tool, traces):
    own = json.loads(clients.python("torch_cpu_models.py", "-", name))
    with_quire = json.loads(clients.python("torch_cpu_models.py", clients.library, name))
    trace = traces / f"torch-cpu-{name}.csv"
    traced = json.loads(clients.python("torch_cpu_models.py", clients.library, name, trace))
    stats = with_quire["stats"]
    tap.case(f"{name}: the same outputs to the bit",
             [f"{run['hash']}, not {own['hash']}" for run in (with_quire, traced) if run["hash"] != own["hash"]])
    tap.case(f"{name}: every tensor is freed, and the counts agree",
             [f"{key} is {stats[key]}" for key in ("requested_bytes", "allocation_count") if stats[key]] +
             (["frees differ from allocations"] if stats["frees"] != stats["allocations"] else []))
    peak, reserved = peak_requested(trace), stats["memory"]["peak_reserved_bytes"]
    print(f"# {name}: peak requested {peak}, reserved {reserved}, {reserved / peak:.4f} times as much; "
          f"{stats['allocations']} allocations, {stats['cache_hits']} from caches; "
          f"CPU time {own['seconds']:.1f} s without quire, {with_quire['seconds']:.1f} s with it")
    if name in TRAINED:
        tap.case(f"{name}: reserves at most {MOST_RESERVED} of the peak requested",
                 [f"{reserved / peak:.4f}"] if reserved > MOST_RESERVED * peak else [])
    if tool != "none":
        report = json.loads(run([tool, "replay", str(trace), "--json"]))
        tap.case(f"{name}: the recorded trace replays", [] if report else ["no report"])


def times(tap, clients):
    """One operation, and an expression with temporaries, in turns so that all see the same machine."""
    least = {name: {} for name in clients.allocators}
    for _ in range(TURNS):
        for name, (library, preload) in clients.allocators.items():
            for operation, sizes in SIZES.items():
                found = json.loads(clients.python("torch_cpu_timing.py", library, operation, *sizes,
                                                  preload=preload))
                for size, nanoseconds in found.items():
                    key = int(size)
                    least[name][key] = min(nanoseconds, least[name].get(key, nanoseconds))
    for size in least["quire"]:
        print(f"# {size} bytes, nanoseconds: " +
              ", ".join(f"{name} {found[size]:.0f}" for name, found in least.items()))
    for name in clients.lacking:
        print(f"# {name} is not installed")

    def slower(size, peer, factor):
        ratio = least["quire"][size] / least[peer][size]
        return [f"{size} bytes: {ratio:.3f} of {peer}'s time"] if ratio > factor else []
    tap.case(f"1 KiB takes at most {SMALL_FACTOR} of glibc's time", slower(1024, "glibc", SMALL_FACTOR))
    tap.case(f"from 1 MiB on an expression takes at most {LARGE_FACTOR} of glibc's time",
             [line for size in SIZES["expression"] for line in slower(size, "glibc", LARGE_FACTOR)])
    if "tcmalloc" in least:
        tap.case(f"from 1 MiB on an expression takes at most {PEER_FACTOR} of tcmalloc's time",
                 [line for size in SIZES["expression"] for line in slower(size, "tcmalloc", PEER_FACTOR)])
    else:
        tap.skip("from 1 MiB on an expression takes no longer than with tcmalloc", "tcmalloc is not installed")


def threads(tap, clients):
    least, sums = {}, set()
    for _ in range(TURNS):
        for name, (library, preload) in clients.allocators.items():
            found = json.loads(run([clients.threads, library, str(THREADS), str(STEPS)], preload=preload))
            least[name] = min(found["cpu_seconds"], least.get(name, found["cpu_seconds"]))
            sums.add(found["sum"])
    print(f"# {THREADS} threads, CPU seconds: " + ", ".join(f"{name} {found}" for name, found in least.items()))
    tap.case(f"{THREADS} threads that free tensors of others compute the same", sums - {min(sums)})
    tap.case(f"{THREADS} threads take at most the CPU time of glibc",
             [f"{least['quire']} s"] if least["quire"] > least["glibc"] else [])


def main():
    tap = Tap()
    if len(sys.argv) == 1:
        tap.skip("PyTorch", "the headers and libraries of PyTorch are not installed")
        tap.end()
    library, program, tool, root, *options = sys.argv[1:]
    rounds = int(options[options.index("--rounds") + 1]) if "--rounds" in options else 20
    try:
        run([sys.executable, "-c", "import torch"])
    except RuntimeError as error:
        tap.skip("PyTorch", "python3 cannot import torch: " + str(error).strip().splitlines()[-1])
        tap.end()
    clients = Clients(library, program, root)
    operators(tap, clients)
    with tempfile.TemporaryDirectory() as folder:
        traces = pathlib.Path(options[options.index("--save-traces") + 1] if "--save-traces" in options else folder)
        traces.mkdir(parents=True, exist_ok=True)
        for name in MODELS:
            model(tap, clients, name, tool, traces)
    times(tap, clients)
    threads(tap, clients)
    forks = clients.python("torch_cpu_forks.py", library, rounds)
    tap.case(f"{rounds} rounds of a data loader with forked workers",
             [] if forks == f"{rounds} rounds\n" else [forks])
    tap.end()


if __name__ == "__main__":
    main()
