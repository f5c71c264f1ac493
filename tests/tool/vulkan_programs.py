# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with the layer and without: vkmark, mpv, GStreamer, GTK, OpenGL programs through zink, Dawn and
llama.cpp of npm, Debian's ffmpeg with its Vulkan filters and libplacebo's, and VkFFT. Each must have the same
result, to the bit, and fewer driver allocations; most must have no new message of the validation layer.

usage: vulkan_programs.py LAYER_FOLDER NAME=MANIFEST...

QUIRE_NPM names the folder in which npm has installed webgpu and node-llama-cpp, and QUIRE_VKFFT the folder with
VkFFT's headers of 1.3.4; the default is /usr/include.

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

TIMEOUT = 300
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


def lines(pattern, least=1):
    """Reads what the program prints about each part of its work, without times. Fewer lines are no result."""
    def read(_, output):
        found = re.findall(pattern, output, re.M)
        return found if len(found) >= least else None
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
    """A command and what reads its result; `prepare` returns further words of the command. `reason` is why a program
    that needs no screen cannot run, or an empty text. At least `least` allocations are placed in pages, and at most
    `most` are made by the driver. With `is_plain` its messages are not compared, but all that the layer may pass on
    is exported, imported, dedicated or large."""

    def __init__(self, name, command, read, files=None, prepare=lambda environment: [], reason=None, least=1,
                 most=None, is_plain=False, **environment):
        self.name, self.command, self.read, self.prepare = name, command, read, prepare
        self.files, self.reason, self.environment = files or {}, reason, environment
        self.least, self.most, self.is_plain = least, most, is_plain

    def missing(self, display):
        """Returns the reason why the program cannot run, or nothing."""
        if self.reason:
            return self.reason
        if not shutil.which(self.command[0]):
            return f"{self.command[0]} is not installed"
        return "" if display or self.reason is not None else "Xvfb is not installed, or does not start"


def npm_program(name, script, file, **options):
    package = NPM / file
    reason = "" if package.exists() else f"npm has not installed {package} (QUIRE_NPM)"
    return Program(name, ["node", str(CLIENTS / script), str(package)], lines(r"^result (.*)"), reason=reason,
                   **options)


def ffmpeg_program(name, pixels, filters, least=0):
    """The md5 of every frame, after filters between upload and download."""
    command = ["ffmpeg", "-v", "error", "-init_hw_device", "vulkan=v:0", "-filter_hw_device", "v", "-f", "lavfi",
               "-i", "testsrc2=size=320x240:rate=10:duration=2", "-vf",
               f"format={pixels},hwupload,{filters},hwdownload,format={pixels}", "-f", "framemd5", "-"]
    return Program(f"ffmpeg {name}", command, lines(r"^0, .*", 20), reason="", least=least, is_plain=True)


def vkfft_program(place):
    """Compiles tests/support/vkfft_client.c, if VkFFT's headers are there."""
    headers = [folder for folder in (os.environ.get("QUIRE_VKFFT"), "/usr/include")
               if folder and pathlib.Path(folder, "vkFFT.h").exists()]
    program, reason = str(place / "vkfft"), ""
    text = pathlib.Path(headers[0], "vkFFT.h").read_text() if headers else ""
    version = re.search(r"VkFFTGetVersion\(\) *{\s*return (\d+);", text)
    if not headers:
        reason = "VkFFT's headers are not there (libvkfft-dev of bookworm-backports)"
    elif not version or int(version.group(1)) < 10300:
        reason = "VkFFT before 1.3 does not compile with this release's glslang"
    else:
        libraries = [f"-l{name}" for name in ("glslang", "MachineIndependent", "OSDependent", "GenericCodeGen",
                                              "OGLCompiler", "SPIRV", "SPIRV-Tools-opt", "SPIRV-Tools")
                     if list(pathlib.Path("/usr/lib").glob(f"*/lib{name}.a"))]
        done = subprocess.run(["cc", "-std=gnu11", "-O1", "-w", "-DVKFFT_BACKEND=0", f"-I{headers[0]}",
                               CLIENTS.parent / "support/vkfft_client.c", "-o", program, "-lvulkan",
                               "-Wl,--start-group", *libraries, "-Wl,--end-group", "-lstdc++", "-lm", "-lpthread"],
                              capture_output=True, text=True)
        reason = "it does not compile: " + done.stderr.strip()[-300:] if done.returncode else ""
    return Program("VkFFT", [program], lines("^.+"), reason=reason, least=6, most=1, is_plain=True)


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
    ffmpeg_program("gblur", "yuv420p", "gblur_vulkan", least=1),
    ffmpeg_program("avgblur", "yuv420p", "avgblur_vulkan"),
    ffmpeg_program("chromaber and scale", "yuv420p", "scale_vulkan=160:120,chromaber_vulkan"),
    ffmpeg_program("flips and transpose", "rgba", "hflip_vulkan,vflip_vulkan,transpose_vulkan"),
    ffmpeg_program("libplacebo", "yuv420p", "libplacebo=w=200:h=152", least=5),
]


class Outcome:
    """What a run left: its result or None, the ids of validation messages, the layer's statistics."""

    def __init__(self, result, error, messages=(), devices=(), is_validated=False):
        self.result, self.error, self.messages, self.devices = result, error, set(messages), devices
        self.is_validated = is_validated

    def count(self, *outcomes):
        return sum(device["outcomes"][outcome]["allocations"] for device in self.devices for outcome in outcomes)


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
    in_pages, passed_on = layered.count("in_a_page"), layered.count("external", "dedicated", "large")
    if not asked or in_pages < program.least or made > asked or (made == asked and in_pages > 1) or \
            (program.is_plain and in_pages + passed_on != asked) or (program.most and made > program.most):
        problems.append(f"{asked} allocations, {in_pages} of them in pages, {passed_on} dedicated, external or large, "
                        f"{made} of the driver")
    tap.case(f"{what}: the same result; {asked} allocations are {made} of the driver", problems)
    if program.is_plain:
        return
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
        tap.skip("programs of others", "there is no Vulkan driver")
    with screen() as display, tempfile.TemporaryDirectory() as cache:
        os.environ["MESA_SHADER_CACHE_DIR"] = cache  # compiling the shaders of llama.cpp takes half a minute
        programs = [*PROGRAMS, vkfft_program(pathlib.Path(cache))] if drivers else []
        for name, manifest in drivers:
            for program in programs:
                what = f"{name}: {program.name}"
                if not pathlib.Path(manifest).exists():
                    tap.skip(what, f"there is no {manifest}")
                elif program.missing(display):
                    tap.skip(what, program.missing(display))
                else:
                    check(tap, what, program, manifest, folder, display)
    tap.end()


main()
