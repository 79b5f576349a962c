"""A real browser for tests: headless Chromium, through its debugging pipe."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time

import pytest

_NAMES = (
    "chromium",
    "chromium-browser",
    "chromium-headless-shell",
    "google-chrome",
)
PROGRAM = next(filter(None, map(shutil.which, _NAMES)), None)
needs_chromium = pytest.mark.skipif(
    PROGRAM is None, reason="needs Chromium (Debian: apt install chromium)"
)
_SECONDS = 60
_CONNECT = """
import os
import sys

os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page in a browser of its own.

    Everything that the page says on its console, that ends a script of it or
    that it wanted to load lands in `complaints` and `requests`.

    Args:
        profile: an empty folder.
    """

    def __init__(self, profile):
        self.complaints = []
        self.requests = []
        self._events = []
        self._rest = b""
        self._next = 0
        self._read, write_there = os.pipe()
        read_there, self._write = os.pipe()
        # Chromium listens at 3 and answers at 4: no pipe may lie there.
        ends = [
            fcntl.fcntl(e, fcntl.F_DUPFD, 10) for e in (read_there, write_there)
        ]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _CONNECT,
                *map(str, ends),
                PROGRAM,
                "--headless=new",
                "--remote-debugging-pipe",
                # Tests in containers run as root.
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (read_there, write_there, *ends):
            os.close(end)
        self._session = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self._session = self.send(
            "Target.attachToTarget", targetId=page["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._write)
        os.close(self._read)
        self._process.terminate()
        self._process.wait()

    def send(self, method, **parameters):
        """Calls a method of the protocol, and returns its result."""
        self._next += 1
        number = self._next
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer)

    def open(self, path):
        """Opens a file, and waits until it is loaded."""
        self._events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._note(self._receive())
        self.wait_for_drawing()

    def evaluate(self, expression):
        """Returns what JavaScript, or the promise that it makes, comes to."""
        answer = self.send(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def resize(self, width, height=900):
        """Gives the page the size of a screen, in pixels of CSS."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        self.wait_for_drawing()

    def wait_for_drawing(self):
        """Waits until what was to be drawn, and drawn again, is."""
        frame = "new Promise(requestAnimationFrame)"
        self.evaluate(f"{frame}.then(() => {frame}).then(() => 0)")

    def prefer(self, scheme):
        """Asks for "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def press(self, key):
        """Presses a key, such as "Tab" or "ArrowLeft"."""
        codes = {
            "Tab": 9,
            " ": 32,
            "End": 35,
            "Home": 36,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
        }
        event = {
            "key": key,
            "code": "Space" if key == " " else key,
            "windowsVirtualKeyCode": codes[key],
        }
        text = {"text": " "} if key == " " else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def point(self, selector, x=0.5, y=0.5, click=False):
        """Moves the mouse to a place in an element, given as fractions."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r});"
            "e.scrollIntoView({block: 'center'});"
            "const {left, top, width, height} = e.getBoundingClientRect();"
            "return [left, top, width, height]; })()"
        )
        event = {"x": box[0] + x * box[2], "y": box[1] + y * box[3]}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", **event)
        if click:
            event.update(button="left", clickCount=1)
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=kind, **event)

    def screenshot(self, path):
        """Writes a picture of the whole page."""
        answer = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _receive(self):
        limit = time.monotonic() + _SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select(
                [self._read], [], [], max(0.0, limit - time.monotonic())
            )
            assert ready, f"Chromium did not answer in {_SECONDS} seconds."
            data = os.read(self._read, 1 << 20)
            assert data, "Chromium ended."
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        method = event.get("method", "")
        self._events.append(method)
        if method in (
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        ):
            self.complaints.append(event["params"])
        if method == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])
