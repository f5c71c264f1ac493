# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the table of docs/adapters/onnxruntime.md: peak memory, and processor time of a session's creation
and of a run, with the allocators of ONNX Runtime, of the C library, tcmalloc, jemalloc and quire.

usage: onnxruntime_figures.py CLIENT [ROUNDS]

A round runs every allocator once, in turn, so that a busy machine disturbs all of them. Each figure is the
least of the rounds. QUIRE_NPM is as for onnxruntime.py.
"""

import glob
import sys
import tempfile

import onnx_runs

RUNS = 20


def preload(name):
    found = glob.glob(f"/usr/lib/*/lib{name}.so.*")
    return {"LD_PRELOAD": sorted(found)[0]} if found else None


# name: how the client is called; the malloc of the process serves the model where the arena is off
ALLOCATORS = {
    "arena of ONNX Runtime": ("arena", {}),
    "glibc": ("malloc", {}),
    "tcmalloc": ("malloc", preload("tcmalloc_minimal")),
    "jemalloc": ("malloc", preload("jemalloc")),
    "quire": ("quire", {}),
    "quire, `keep_heap`": ("quire", {"ONNX_CLIENT_KEEP_HEAP": "1"}),
}


def measure(client, model, rounds):
    """Returns allocator -> peak in MiB, creation in ms, run in ms; leaves out what is not installed."""
    least = {}
    for _ in range(rounds):
        for name, (allocator, variables) in ALLOCATORS.items():
            if variables is None:
                continue
            answer, error = client.run(model, allocator, runs=RUNS, **variables)
            if not answer:
                sys.exit(f"{model.name}, {name}: {error}")
            figures = (answer["peak_rss_kib"] / 1024, answer["create_us"] / 1000, answer["run_us"] / 1000)
            least[name] = tuple(map(min, least.get(name, figures), figures))
    return answer["version"], least


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"Least of {rounds} processes with {RUNS} runs each, of which the median counts; one thread.\n")
    print("| runtime | model | allocator | peak, MiB | session, ms | run, ms |\n|---|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        models = onnx_runs.write_models(folder)
        for library, _ in onnx_runs.runtimes().values():
            if not library:
                continue
            client = onnx_runs.Client(sys.argv[1], library, folder)
            for model in models:
                version, least = measure(client, model, rounds)
                label = model.name
                for name, figures in least.items():
                    print(f"| {version} | {label} | {name} | " + " | ".join(f"{value:.1f}" for value in figures) + " |")
                    version = label = ""


main()
