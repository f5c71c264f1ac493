# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the client of ONNX Runtime: finds the runtimes, writes and finds the models, starts the program."""

import collections
import glob
import json
import os
import pathlib
import platform
import shutil
import subprocess

import onnx_models

Model = collections.namedtuple("Model", "name path shapes")

# each run uses every shape, so that an allocator serves different sizes in turn
SHAPES = {
    "perceptron": ["1x784", "64x784", "8x784"],
    "residual": ["1x3x224x224", "4x3x224x224", "2x3x160x160"],
    "transformer": ["1x16x256", "4x128x256", "2x64x256"],
}
# known networks whose weights are constants, of Debian's libonnx-testdata
KNOWN = "/usr/lib/python3/dist-packages/onnx/backend/test/data/light/light_*.onnx"
RUNS = 5
TIMEOUT = 300


def runtimes():
    """Returns name -> library or the reason why there is none."""
    debian = glob.glob("/usr/lib/*/libonnxruntime.so")
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    npm = os.environ.get("QUIRE_NPM", "")
    package = glob.glob(f"{npm}/node_modules/onnxruntime-node/bin/*/linux/{machine}/libonnxruntime.so.1")
    return {
        "Debian": (debian[0], "") if debian else (None, "libonnxruntime-dev is not installed"),
        "npm": (package[0], "") if package else
               (None, "QUIRE_NPM names no folder with onnxruntime-node for this machine"),
    }


def write_models(folder):
    for model in (onnx_models.perceptron(), onnx_models.residual(), onnx_models.transformer()):
        model.write(folder)
    return [Model(name, pathlib.Path(folder) / f"{name}.onnx", shapes) for name, shapes in SHAPES.items()]


def known_models():
    return [Model(pathlib.Path(path).stem.removeprefix("light_"), path, ["1x3x224x224"])
            for path in sorted(glob.glob(KNOWN))]


def offline():
    """The words before a command that cannot reach a network: 1.30 reports its use to its maker."""
    command = ["unshare", "--net"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
        return []
    return command


class Client:
    def __init__(self, program, library, folder):
        self.program, self.library, self.folder = pathlib.Path(program).resolve(), library, pathlib.Path(folder)
        self.prefix = offline()

    def run(self, model, allocator, runs=RUNS, **variables):
        """Returns the program's answer, or None and the error."""
        environment = dict(os.environ, ORT_DISABLE_TELEMETRY="1", HOME=str(self.folder), **variables)
        environment.pop("MALLOC_PERTURB_", None)  # of meson: it touches memory that the runtime does not use
        done = subprocess.run([*self.prefix, self.program, self.library, str(model.path), allocator,
                               str(runs), *model.shapes], cwd=self.folder, env=environment,
                              capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
        if done.returncode:
            # Debian's runtime registers its operators twice and says so
            lines = [line for line in done.stderr.splitlines() if line and not line.startswith("Schema error")]
            return None, f"exit status {done.returncode}: " + " ".join(lines[-3:])
        try:
            return json.loads(done.stdout), ""
        except ValueError:
            return None, done.stdout
