# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tool on the test plugin, on quire's own runtime above it, and on a file that is no plugin.

usage: plugin.py TOOL SOURCE_ROOT TEST_PLUGIN NO_PLUGIN PADDLE_RUNTIME
"""

import sys

from backend_run import PROFILE, Backend, refusal_problems, run
from tap import Tap

PLUGIN, NO_PLUGIN, RUNTIME = sys.argv[3:6]


def device_problems(backend):
    device = backend.device()
    if (device["backend"], device["name"]) != ("plugin", "test_device 3"):
        yield f"{device}"
    if device["choices"] != {"device": 0, "upload": 1, "readback": 1, "both": 1, "shared": 2}:
        yield f"choices: {device['choices']}"


def tour_problems(backend):
    return [f"{a['name']}: {a}" for a in backend.tour() if a["page"] or a["size"] < 1024]


def check_unknown():
    """The runtime works, and says once what it ignores."""
    done = run("devices", "--backend", "plugin", "--plugin", RUNTIME, "--json",
               QUIRE_PADDLE_PLUGIN=PLUGIN, QUIRE_PADDLE_PLUGINS="/opt/vendor.so")
    expected = ("quire_paddle_runtime: QUIRE_PADDLE_PLUGINS is unknown and has no effect; "
                "is QUIRE_PADDLE_PLUGIN meant?\n")
    return [] if done.returncode == 0 and done.stderr == expected else [done.stdout, done.stderr]


def refused():
    plugin = Backend("plugin", "--plugin", PLUGIN)
    return refusal_problems(
        (2, "requires --plugin FILE", run("devices", "--backend", "plugin")),
        (2, "require --backend plugin", run("devices", "--plugin", PLUGIN)),
        (2, "require --backend plugin", run("tour", "--backend", "host", "--plugin-device", "1")),
        (2, "no plugin has a device", plugin.run("tour", "--plugin-device", str(1 << 32))),
        (2, "--profile requires the host", plugin.run("devices", "--profile", PROFILE)),
        (1, "has 1 device, there is no device 1", plugin.run("devices", "--plugin-device", "1")),
        (1, "has no InitPlugin", run("devices", "--backend", "plugin", "--plugin", NO_PLUGIN)),
        (1, "cannot be loaded", run("tour", "--backend", "plugin", "--plugin", "/nonexistent.so")))


def main():
    tap = Tap()
    for where, backend in (
            ("a plugin", Backend("plugin", "--plugin", PLUGIN)),
            ("quire's runtime", Backend("plugin", "--plugin", RUNTIME, QUIRE_PADDLE_PLUGIN=PLUGIN))):
        tap.attempt(f"devices of {where}", device_problems, backend)
        tap.attempt(f"tour on {where}", tour_problems, backend)
        tap.attempt(f"replay on {where}", backend.replay_problems)
    tap.attempt("quire's runtime reports an unknown variable", check_unknown)
    tap.attempt("errors", refused)
    tap.end()


main()
