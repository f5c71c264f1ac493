"""Programs with a window or a pipeline, with the layer and without: vkmark, mpv, GStreamer, GTK, OpenGL
programs through zink, and Dawn and llama.cpp of npm. Each must have the same result, no new message of
the validation layer, and fewer driver allocations.

usage: vulkan_programs.py LAYER_FOLDER NAME=MANIFEST...

QUIRE_NPM names the folder in which npm has installed webgpu and node-llama-cpp.

A program that is not installed, fails without the layer, or has other results each time, is skipped
with the reason.
"""

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from layer_run import LAYER, VALIDATION, has_validation, layer_path, read_statistics, total
from tap import Tap

TIMEOUT = 120
CLIENTS = pathlib.Path(__file__).resolve().parents[1] / "clients"
NPM = pathlib.Path(os.environ.get("QUIRE_NPM", ""), "node_modules").resolve()
RUNS = 8  # without the layer, after one with it that differs

MESSAGES = """\
khronos_validation.report_flags = error,warn
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.log_filename = {log}
"""
MESSAGE_ID = re.compile(r"(?:VUID|UNASSIGNED|SYNC|BestPractices|WARNING)-[\w.-]+")

# a frame of a clip, written when it is on the screen
SCREENSHOT = """\
mp.register_event("playback-restart", function()
  mp.add_timeout(0.3, function()
    mp.commandv("screenshot-to-file", "out.png", "window")
    mp.command("quit")
  end)
end)
"""

DRAWING = """\
linear-gradient { bounds: 0 0 200 150; start: 0 0; end: 200 150;
  stops: 0 rgb(255,0,0), 0.5 rgb(0,255,0), 1 rgb(0,0,255); }
rounded-clip { clip: 20 20 100 80 / 10; child: color { bounds: 0 0 200 150; color: rgba(10,20,30,0.5); } }
blur { blur: 4; child: color { bounds: 50 50 40 40; color: yellow; } }
"""


def file_hash(name):
    def read(place, _):
        path = place / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
    return read


def lines(pattern):
    """Reads what the program prints about each part of its work, without times."""
    def read(_, output):
        return re.findall(pattern, output, re.M) or None
    return read


def mpv_device(environment):
    """Older versions of mpv use a driver without hardware only if its device is named."""
    done = subprocess.run(["mpv", "--no-config", "--vulkan-device=help"], capture_output=True, text=True,
                          env=environment, timeout=TIMEOUT)
    found = re.search(r"^  '(.*)' \(", done.stdout, re.M)
    return [f"--vulkan-device={found.group(1)}"] if found else []


def random_model(environment):
    """Writes the model of llama.cpp into the folder of the run."""
    path = pathlib.Path(environment["HOME"]) / "random.gguf"
    subprocess.run([sys.executable, CLIENTS / "gguf_model.py", path], check=True)
    return [str(path)]


class Program:
    """A command and what reads its result; `prepare` returns further words of the command. `package` is a
    file of npm that the program needs, instead of a screen."""

    def __init__(self, name, command, read, files=None, prepare=lambda environment: [], package=None, **environment):
        self.name, self.command, self.read, self.prepare = name, command, read, prepare
        self.files, self.package, self.environment = files or {}, package, environment

    def missing(self, display):
        """Returns the reason why the program cannot run, or nothing."""
        if not shutil.which(self.command[0]):
            return f"{self.command[0]} is not installed"
        if self.package:
            return "" if self.package.exists() else f"npm has not installed {self.package} (QUIRE_NPM)"
        return "" if display else "Xvfb is not installed, or does not start"


def npm_program(name, script, file, **options):
    package = NPM / file
    return Program(name, ["node", str(CLIENTS / script), str(package)], lines(r"^result (.*)"), package=package,
                   **options)


PROGRAMS = [
    Program("vkmark", ["vkmark", "--winsys", "xcb", "--size", "200x150"] +
            [part for scene in ("vertex", "texture", "shading", "effect2d", "desktop", "cube", "clear")
             for part in ("-b", f"{scene}:duration=0.3")],
            lines(r"(\[\w+\]) duration=0.3: FPS: [1-9]")),
    Program("glmark2 on zink", ["glmark2", "--off-screen", "--validate"] +
            [part for scene in ("build", "texture", "shading", "bump", "buffer", "effect2d", "function", "loop")
             for part in ("-b", scene)],
            lines(r"(GL_RENDERER: +zink|\[.*\].*: Validation: \w+)"),
            MESA_LOADER_DRIVER_OVERRIDE="zink", LIBGL_ALWAYS_SOFTWARE="1"),
    Program("mpv with gpu-next",
            ["mpv", "--no-config", "--msg-level=all=warn", "--vo=gpu-next", "--gpu-api=vulkan",
             "--gpu-context=x11vk", "--geometry=320x240", "--dither=no", "--pause",
             "--no-audio", "--script=screenshot.lua",
             "av://lavfi:testsrc2=size=320x240:rate=10:duration=2"],
            file_hash("out.png"), files={"screenshot.lua": SCREENSHOT}, prepare=mpv_device),
    Program("GStreamer",
            ["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=30", "!",
             "video/x-raw,format=RGBA,width=320,height=240", "!", "vulkanupload", "!",
             "vulkancolorconvert", "!", "video/x-raw(memory:VulkanImage),format=BGRA", "!",
             "vulkandownload", "!", "filesink", "location=out.raw"],
            file_hash("out.raw")),
    Program("GTK 4", ["gtk4-rendernode-tool", "render", "--renderer=vulkan", "drawing.node", "out.png"],
            file_hash("out.png"), files={"drawing.node": DRAWING}),
    npm_program("Dawn", "dawn_client.mjs", "webgpu/index.js"),
    # which otherwise looks for a device that is not a processor
    npm_program("llama.cpp", "llama_client.mjs", "node-llama-cpp/dist/index.js", prepare=random_model,
                GGML_VK_VISIBLE_DEVICES="0"),
]


class Outcome:
    """What a run left: its result or None, the ids of validation messages, the layer's statistics."""

    def __init__(self, result, error, messages=(), devices=(), is_validated=False):
        self.result, self.error, self.messages, self.devices = result, error, set(messages), devices
        self.is_validated = is_validated

    def in_pages(self):
        return sum(device["outcomes"]["in_a_page"]["allocations"] for device in self.devices)


def run(program, manifest, folder, display, layers):
    with tempfile.TemporaryDirectory() as where:
        place = pathlib.Path(where)
        for name, text in program.files.items():
            (place / name).write_text(text)
        (place / "vk_layer_settings.txt").write_text(MESSAGES.format(log=place / "messages"))
        environment = dict(os.environ, **program.environment, **display, VK_ICD_FILENAMES=manifest,
                           VK_DRIVER_FILES=manifest, VK_LAYER_PATH=layer_path(folder, layers),
                           VK_INSTANCE_LAYERS=":".join(layers), VK_LAYER_SETTINGS_PATH=where,
                           QUIRE_LAYER_STATS="json", QUIRE_LAYER_STATS_FILE=str(place / "statistics"),
                           XDG_RUNTIME_DIR=where, HOME=where)
        try:
            bare = {name: value for name, value in environment.items() if name != "VK_INSTANCE_LAYERS"}
            done = subprocess.run(program.command + program.prepare(bare), cwd=place, env=environment,
                                  capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return Outcome(None, f"it runs longer than {TIMEOUT} s")
        log = place / "messages"
        output = done.stdout + done.stderr
        messages = MESSAGE_ID.findall((log.read_text(errors="replace") if log.exists() else "") + output)
        result = program.read(place, output) if not done.returncode else None
        why = (done.stderr.strip().splitlines() or done.stdout.strip().splitlines()[-1:] or [""])[0]
        # of a process that ended early: statistics.*.partial
        devices = read_statistics(*sorted(place.glob("statistics*")))
        return Outcome(result, f"exit status {done.returncode}: {why}", messages, devices, log.exists())


def check_messages(tap, what, program, manifest, folder, display):
    plain = run(program, manifest, folder, display, [VALIDATION])
    if plain.result is None:
        tap.skip(f"{what}: validation", f"without the layer: {plain.error}")
        return
    if not plain.is_validated:
        tap.skip(f"{what}: validation", "the validation layer writes no log")
        return
    problems = []
    for layers in ([LAYER, VALIDATION], [VALIDATION, LAYER]):
        layered = run(program, manifest, folder, display, layers)
        if layered.result is None:
            problems.append(f"{' over '.join(layers)}: {layered.error}")
        problems += sorted(layered.messages - plain.messages)
    tap.case(f"{what}: no message beyond the program's own {len(plain.messages)}", problems)


def check(tap, what, program, manifest, folder, display):
    first, second = (run(program, manifest, folder, display, []) for _ in range(2))
    if first.result is None or first.result != second.result:
        tap.skip(what, "without the layer: " + (first.error if first.result is None else "not twice the same"))
        return
    layered = run(program, manifest, folder, display, [LAYER])
    if layered.result not in (None, first.result) and any(
            run(program, manifest, folder, display, []).result != first.result for _ in range(RUNS)):
        tap.skip(what, f"without the layer: not {RUNS} times the same")
        return
    problems = []
    if layered.result != first.result:
        problems += [f"the result is {layered.result} instead of {first.result}", layered.error]
    asked, made = (total(layered.devices, key) for key in ("client_allocations", "driver_allocations"))
    if not layered.in_pages() or made > asked or (made == asked and layered.in_pages() > 1):
        problems.append(f"{asked} allocations, {layered.in_pages()} of them in pages, {made} of the driver")
    tap.case(f"{what}: the same result; {asked} allocations are {made} of the driver", problems)
    if has_validation():
        check_messages(tap, what, program, manifest, folder, display)
    else:
        tap.skip(f"{what}: validation", "there is no validation layer")


@contextlib.contextmanager
def screen():
    """An X server without a display device; {} if there is no such server."""
    if not shutil.which("Xvfb"):
        yield {}
        return
    read, write = os.pipe()
    with subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24", "-nolisten", "tcp"],
                          pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        os.close(write)
        with os.fdopen(read) as numbers:
            number = numbers.readline().strip()
        try:
            yield {"DISPLAY": f":{number}"} if number else {}
        finally:
            server.terminate()


def main():
    folder, tap = sys.argv[1], Tap()
    drivers = [named.split("=", 1) for named in sys.argv[2:]]
    if not drivers:
        tap.skip("programs with windows", "there is no Vulkan driver")
    with screen() as display, tempfile.TemporaryDirectory() as cache:
        os.environ["MESA_SHADER_CACHE_DIR"] = cache  # compiling the shaders of llama.cpp takes half a minute
        for name, manifest in drivers:
            for program in PROGRAMS:
                what = f"{name}: {program.name}"
                if not pathlib.Path(manifest).exists():
                    tap.skip(what, f"there is no {manifest}")
                elif program.missing(display):
                    tap.skip(what, program.missing(display))
                else:
                    check(tap, what, program, manifest, folder, display)
    tap.end()


main()
