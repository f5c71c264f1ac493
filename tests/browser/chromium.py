# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chromium without a window, with one page, for the tests beside this file.

The program reads commands from file descriptor 3 and writes answers and events to 4: JSON texts that end with a
byte 0 (--remote-debugging-pipe, the Chrome DevTools Protocol). Every wait has a limit in seconds. The program has a
folder and a process group of its own, which end with the Browser.
"""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
LIMIT = 60
FLAGS = ("--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--no-default-browser-check", "--disable-breakpad", "--disable-extensions", "--disable-sync",
         "--disable-default-apps", "--disable-component-update", "--disable-background-networking",
         "--disable-domain-reliability", "--host-resolver-rules=MAP * ~NOTFOUND", "--password-store=basic")
SHIFT = 8
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "End": (35, ""), "Home": (36, ""), "ArrowLeft": (37, ""),
        "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, ""), "0": (48, "0"), "+": (187, "+")}


class BrowserError(Exception):
    """The program refused a command, ended, or took longer than the limit."""


def find_program():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def high(descriptor):
    """The descriptor with a number that none of those of the program can have."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def remove(folder):
    """Removes a folder, in which killed processes may have been writing."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.1)
    shutil.rmtree(folder)


class Browser:
    """A program with a page. It runs inside a with statement."""

    def __init__(self, program):
        self.program = program
        self.folder = self.process = self.session = self.file = None
        self.unread, self.number, self.problems, self.seen = b"", 0, [], []

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quire-chromium-"))
        try:
            self.start()
            self.attach()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    # ---- the process ----

    def start(self):
        commands, self.output = map(high, os.pipe())
        self.input, answers = map(high, os.pipe())
        flags = [*FLAGS, f"--user-data-dir={self.folder / 'profile'}"]
        if os.geteuid() == 0:  # whose processes have no sandbox
            flags.append("--no-sandbox")
        places = {**os.environ, "HOME": str(self.folder), "TMPDIR": str(self.folder),
                  "XDG_CONFIG_HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder)}
        log = str(self.folder / "log")
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                   (os.POSIX_SPAWN_DUP2, 1, 2),
                   (os.POSIX_SPAWN_DUP2, commands, 3), (os.POSIX_SPAWN_DUP2, answers, 4)]
        try:
            self.process = os.posix_spawn(self.program, [self.program, *flags, "about:blank"], places,
                                          file_actions=actions, setpgroup=0)
        finally:
            os.close(commands)
            os.close(answers)

    def close(self):
        if self.process:
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            os.close(self.input)
            os.close(self.output)
            self.process = None
        remove(self.folder)

    def log(self):
        return (self.folder / "log").read_text("utf-8", "replace")[-2000:]

    # ---- messages ----

    def read(self, end):
        """The next message, or None at the end."""
        while b"\0" not in self.unread:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.input], [], [], left)[0]:
                return None
            piece = os.read(self.input, 1 << 20)
            if not piece:
                raise BrowserError(f"Chromium ended: {self.log()}")
            self.unread += piece
        text, _, self.unread = self.unread.partition(b"\0")
        return json.loads(text)

    def send(self, method, limit=LIMIT, **params):
        """Sends a command and returns its answer. Events that come before it are noted."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        try:
            os.write(self.output, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise BrowserError(f"Chromium ended: {self.log()}") from None
        end = time.monotonic() + limit
        while answer := self.read(end):
            if answer.get("id") != self.number:
                self.note(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            else:
                return answer["result"]
        raise BrowserError(f"{method}: no answer in {limit} s")

    def wait_for(self, event, limit=LIMIT):
        """Waits until the page has sent the event after the last call of open()."""
        end = time.monotonic() + limit
        while event not in self.seen:
            message = self.read(end)
            if not message:
                raise BrowserError(f"{event}: not within {limit} s")
            self.note(message)

    def note(self, event):
        method, params = event.get("method"), event.get("params", {})
        self.seen.append(method)
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            words = [str(one.get("value", one.get("description"))) for one in params["args"]]
            self.problems.append(f"console {params['type']}: {' '.join(words)}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log {params['entry']['level']}: {params['entry']['text']}")
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(f"exception: {details.get('exception', {}).get('description', details['text'])}")
        elif method == "Network.requestWillBeSent" and params["request"]["url"] != self.file:
            self.problems.append(f"request of {params['request']['url'][:200]}")
        elif method == "Inspector.targetCrashed":
            raise BrowserError("the page crashed")

    def take_problems(self):
        """What the page reported since the last call: errors and warnings, exceptions, requests of other files."""
        self.evaluate("0")  # the events of what ran before come before the answer
        problems, self.problems = self.problems, []
        return problems

    # ---- the page ----

    def attach(self):
        """Makes the first page the one that the further commands are for."""
        pages = [one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self.session = self.send("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network", "Inspector", "Accessibility", "Performance"):
            self.send(f"{part}.enable")

    def open(self, path, limit=LIMIT):
        """Opens a file, and waits until it is loaded and a frame is drawn. Returns the seconds that this took."""
        self.file = pathlib.Path(path).resolve().as_uri()
        self.seen = []
        begin = time.monotonic()
        answer = self.send("Page.navigate", limit, url=self.file)
        if "errorText" in answer:
            raise BrowserError(f"{self.file}: {answer['errorText']}")
        self.wait_for("Page.loadEventFired", limit)
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))", limit)
        return time.monotonic() - begin

    def evaluate(self, expression, limit=LIMIT):
        """The value of an expression of JavaScript, of a promise the value that it gets."""
        answer = self.send("Runtime.evaluate", limit, expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(f"{expression[:100]}: {details.get('exception', {}).get('description', details)}")
        return answer["result"].get("value")

    def processor_time(self):
        """The seconds that the main thread of the page was on a processor since the last call of open()."""
        metrics = self.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "ThreadTime")

    def press(self, key, shift=False):
        code, text = KEYS[key]
        one = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code,
               "modifiers": SHIFT if shift else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **one)
        self.send("Input.dispatchKeyEvent", type="keyUp", **one)

    def type(self, text):
        """Types into the element that has the focus."""
        self.send("Input.insertText", text=text)

    def move_mouse(self, x, y):
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        self.move_mouse(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def turn_wheel(self, x, y, down):
        self.send("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=down)

    def set_size(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def set_scheme(self, scheme):
        """Which colours the user prefers: light or dark."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def accessible(self):
        """(role, name) of each element that is there for assistive technology."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                if not node["ignored"]]

    def screenshot(self):
        """The window as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def print(self):
        """The page as PDF."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])
