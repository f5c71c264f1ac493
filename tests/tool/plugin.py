"""The tool on the test plugin, on quire's own runtime above it, and on a file that is no plugin.

usage: plugin.py TOOL SOURCE_ROOT TEST_PLUGIN NO_PLUGIN PADDLE_RUNTIME
"""

import json
import os
import pathlib
import subprocess
import sys

from tap import Tap


def run(tool, *args, **env):
    return subprocess.run([tool, *args], text=True, capture_output=True, env={**os.environ, **env})


def check_devices(tool, arguments, env):
    done = run(tool, "devices", *arguments, "--json", **env)
    if done.returncode:
        return [done.stderr]
    device = json.loads(done.stdout)["devices"][0]
    problems = [] if device["backend"] == "plugin" else [f"backend {device['backend']}"]
    if device["name"] != "test_device 3":
        problems.append(f"name {device['name']}")
    if device["choices"] != {"device": 0, "upload": 1, "readback": 1, "both": 1, "shared": 2}:
        problems.append(f"choices: {device['choices']}")
    return problems + ([] if not done.stderr else [done.stderr])


def check_tour(tool, arguments, env):
    done = run(tool, "tour", *arguments, "--json", **env)
    if done.returncode:
        return [done.stderr]
    return [f"{a['name']}: {a}" for a in json.loads(done.stdout)["allocations"]
            if a["page"] or a["size"] < 1024]


def check_replay(tool, arguments, env, root):
    trace = root / "docs/traces/ncnn-mobilenet_v2.csv"
    done = run(tool, "replay", str(trace), *arguments, "--json", **env)
    if done.returncode:
        return [done.stderr]
    value = json.loads(done.stdout)
    host = json.loads(run(tool, "replay", str(trace), "--json").stdout)
    return [f"{key}: {value[key]}, on the host backend {host[key]}"
            for key in ("operations", "allocations", "frees", "failures", "peak_requested_bytes")
            if value[key] != host[key]] + ([] if value["backend"] == "plugin" else [value["backend"]])


def check_unknown(tool, plugin, runtime):
    """The runtime works, and says once what it ignores."""
    done = run(tool, "devices", "--backend", "plugin", "--plugin", runtime, "--json",
               QUIRE_PADDLE_PLUGIN=plugin, QUIRE_PADDLE_PLUGINS="/opt/vendor.so")
    expected = ("quire_paddle_runtime: QUIRE_PADDLE_PLUGINS is unknown and has no effect; "
                "is QUIRE_PADDLE_PLUGIN meant?\n")
    return [] if done.returncode == 0 and done.stderr == expected else [done.stdout, done.stderr]


def check_refusals(tool, root, plugin, no_plugin):
    profile = str(root / "docs/profiles/raspberrypi-v3dv-mesa-25.0.json")
    cases = [
        (2, "requires --plugin FILE", run(tool, "devices", "--backend", "plugin")),
        (2, "require --backend plugin", run(tool, "devices", "--plugin", plugin)),
        (2, "require --backend plugin", run(tool, "tour", "--backend", "host", "--plugin-device", "1")),
        (2, "no plugin has a device", run(tool, "tour", "--backend", "plugin", "--plugin", plugin,
                                      "--plugin-device", str(1 << 32))),
        (2, "--profile requires the host", run(tool, "devices", "--backend", "plugin", "--plugin", plugin,
                                             "--profile", profile)),
        (1, "has 1 device, there is no device 1", run(tool, "devices", "--backend", "plugin", "--plugin",
                                                       plugin, "--plugin-device", "1")),
        (1, "has no InitPlugin", run(tool, "devices", "--backend", "plugin", "--plugin", no_plugin)),
        (1, "cannot be loaded", run(tool, "tour", "--backend", "plugin", "--plugin", "/nonexistent.so")),
    ]
    return [f"{done.returncode}: {done.stderr}" for code, part, done in cases
            if done.returncode != code or part not in done.stderr or done.stdout]


def main():
    tool, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    plugin, no_plugin, runtime = sys.argv[3:6]
    tap = Tap()
    for where, path, env in (("a plugin", plugin, {}),
                             ("quire's runtime", runtime, {"QUIRE_PADDLE_PLUGIN": plugin})):
        arguments = ("--backend", "plugin", "--plugin", path)
        tap.case(f"devices of {where}", check_devices(tool, arguments, env))
        tap.case(f"tour on {where}", check_tour(tool, arguments, env))
        tap.case(f"replay on {where}", check_replay(tool, arguments, env, root))
    tap.case("quire's runtime reports an unknown variable", check_unknown(tool, plugin, runtime))
    tap.case("errors", check_refusals(tool, root, plugin, no_plugin))
    tap.end()


main()
