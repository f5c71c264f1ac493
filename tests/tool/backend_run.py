# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tool on one backend: its runs, and the checks that hold for every backend.

The first arguments of each test are the tool and the folder of the sources.
"""

import json
import os
import pathlib
import subprocess
import sys

TOOL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
PROFILE = str(ROOT / "docs/profiles/raspberrypi-v3dv-mesa-25.0.json")
SAME = ("operations", "allocations", "frees", "failures", "peak_requested_bytes")


def run(*args, **env):
    return subprocess.run([TOOL, *args], text=True, capture_output=True, env={**os.environ, **env})


def document(done):
    """The JSON of a run that succeeds."""
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


class Backend:
    """A backend with the further arguments and variables that it takes."""

    def __init__(self, name, *arguments, **env):
        self.name, self.arguments, self.env = name, ("--backend", name, *arguments), env

    def run(self, command, *args, **env):
        return run(command, *args, *self.arguments, **{**self.env, **env})

    def result(self, command, *args, **env):
        return document(self.run(command, *args, "--json", **env))

    def device(self):
        done = self.run("devices", "--json")
        if done.stderr:
            raise RuntimeError(done.stderr)
        return document(done)["devices"][0]

    def tour(self, **env):
        return self.result("tour", **env)["allocations"]

    def replay_problems(self):
        """The requests are those on the host backend."""
        trace = str(ROOT / "docs/traces/ncnn-mobilenet_v2.csv")
        value, host = self.result("replay", trace), document(run("replay", trace, "--json"))
        yield from (f"{key}: {value[key]}, on the host backend {host[key]}" for key in SAME
                    if value[key] != host[key])
        if value["backend"] != self.name:
            yield value["backend"]

    def copy_problems(self, paths, least):
        """Every pair of kinds has a copy path. The tool fails if the received bytes differ."""
        copies = self.result("copy", "--size", "1000001", "--repeats", "1")["copies"]
        yield from (f"{copy}" for copy in copies if copy["path"] not in paths)
        if len(copies) < least:
            yield f"{copies}"


def refusal_problems(*rows):
    """Each finished run has the exit status, the words in its message, and no output."""
    return [f"{done.returncode}: {done.stderr}" for code, words, done in rows
            if done.returncode != code or words not in done.stderr or not done.stderr or done.stdout]
