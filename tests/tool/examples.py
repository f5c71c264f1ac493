# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example programs: the generator writes the shipped traces to the byte, and the recorder's
recordings of unmodified programs can be replayed.

usage: examples.py GENERATOR RECORDER QUIRE SOURCE_ROOT
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tap import Tap

MODELS = ("transformer-training", "llm-serving")

PROGRAMS = {
    "one thread": [sys.executable, "-c", "print(sum(len(str(i)) for i in range(1000)))"],
    "threads": [sys.executable, "-c",
                "import threading as t\n"
                "a = [t.Thread(target=lambda: [bytearray(i) for i in range(1, 3000, 7)])"
                " for _ in range(4)]\n"
                "[x.start() for x in a]; [x.join() for x in a]; print(len(a))"],
    "children": ["sh", "-c", "ls / | sort | head -3"],
}


def check_generator(tap, generator, root):
    for model in MODELS:
        done = subprocess.run([generator, model], capture_output=True)
        shipped = (root / f"docs/traces/{model}.csv").read_bytes()
        tap.case(f"the generator writes docs/traces/{model}.csv to the byte",
                 [] if done.returncode == 0 and done.stdout == shipped else
                 [f"exit status {done.returncode}, {len(done.stdout)} bytes, shipped {len(shipped)}"])
    bad = subprocess.run([generator, "no-such-model"], capture_output=True, text=True)
    tap.case("the generator rejects an unknown model",
             [] if bad.returncode == 2 and "usage" in bad.stderr else [bad.returncode, bad.stderr])


def replay(quire, trace):
    done = subprocess.run([quire, "replay", str(trace), "--json"], capture_output=True, text=True)
    if done.returncode:
        return [f"replay of {trace.name} ends with {done.returncode}", done.stderr]
    report = json.loads(done.stdout)
    return [] if report["allocations"] else [f"{trace.name} has no allocations"]


def check_recorder(tap, recorder, quire):
    for name, command in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as place:
            place = pathlib.Path(place)
            environment = dict(os.environ, LD_PRELOAD=recorder, QUIRE_RECORD=str(place / "run-%p.csv"))
            plain = subprocess.run(command, capture_output=True)
            recorded = subprocess.run(command, capture_output=True, env=environment)
            problems = [] if (plain.returncode, plain.stdout) == (
                recorded.returncode, recorded.stdout) else ["the program behaves differently",
                                                           recorded.stderr]
            traces = sorted(place.glob("run-*.csv"))
            problems += [] if traces else ["nothing was recorded"]
            for trace in traces:
                problems += replay(quire, trace)
            tap.case(f"a recording replays: {name}", problems)


def main():
    generator, recorder, quire, root = sys.argv[1:5]
    tap = Tap()
    check_generator(tap, generator, pathlib.Path(root))
    if "QUIRE_SANITIZED" in os.environ:
        tap.skip("a recording replays", "a sanitized library cannot be preloaded into other programs")
    else:
        check_recorder(tap, os.path.abspath(recorder), quire)
    tap.end()


main()
