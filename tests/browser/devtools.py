"""Controls headless Chromium through its DevTools pipe. Needs only Python's standard library and Debian's
chromium, no driver and no web socket. Messages are JSON, each ended by a zero byte, on descriptors 3 and 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


# Bits of `modifiers`.
CONTROL, SHIFT = 2, 8


class BrowserError(Exception):
    """The browser is missing, ended, or did not answer in time."""


class Page:
    """A page in a browser of its own; keeps everything that it logs, throws or requests."""

    def __init__(self, width=1280, height=900, dark=False, javascript=True):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if not program:
            raise BrowserError("chromium is missing: scripts/install-packages chromium")
        self.profile = tempfile.mkdtemp(prefix="gammachi-browser-")
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()

        def pipes():
            os.dup2(to_browser, 30)
            os.dup2(from_browser, 40)
            os.dup2(30, 3)
            os.dup2(40, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
             f"--window-size={width},{height}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.media(dark)
        if not javascript:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def media(self, dark=False, kind=""):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def accessible(self):
        """Role and name of everything that a screen reader reads."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        value = lambda node, key: (node.get(key) or {}).get("value", "")
        return [(value(node, "role"), value(node, "name").strip()) for node in nodes if not node.get("ignored")]

    def printed(self):
        """The printed page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def message(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError("the browser did not answer in time")
            piece = os.read(self.back, 1 << 16)
            if not piece:
                raise BrowserError("the browser ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + 120
        while True:
            message = self.message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait_for(self, method, seconds=120):
        deadline = time.monotonic() + seconds
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message(deadline))

    def open(self, path):
        self.events.clear()
        started = time.monotonic()
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        self.wait_for("Page.loadEventFired")
        return time.monotonic() - started

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def settle(self):
        """Waits two frames, so that changes are drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y, **more):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", buttons=1, clickCount=1, **more)
        self.settle()

    def drag(self, start, end, **more):
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1, **more)
        middle = [(a + b) / 2 for a, b in zip(start, end)]
        for at in (middle, end):
            self.mouse("mouseMoved", *at, button="left", buttons=1, **more)
        self.mouse("mouseReleased", *end, button="left", buttons=0, clickCount=1, **more)
        self.settle()

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        if key == "Escape":
            # The browser's own reaction (closing a dialog) depends on the key's code.
            text = {"windowsVirtualKeyCode": 27}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" or key == "Escape" else {}))
        self.settle()

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """Errors and warnings of the console, and exceptions."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"].get("text", "exception"))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
                found.append(str(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self):
        """Requested addresses, except the page itself and its data URLs."""
        urls = [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("data:", "file:"))] + urls[1:][
            :max(0, sum(url.startswith("file:") for url in urls) - 1)]

    def close(self):
        os.close(self.to)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
