"""Headless Chromium over its DevTools pipe: messages are JSON, each ended by a zero byte, on descriptors 3 and 4."""

import base64
import json
import os
import select
import subprocess
import time

from browser import PAPER, BrowserError, Page

# What the browser itself does at a key (moving the focus, closing a dialog) depends on the key's code.
KEY_CODES = {"Escape": 27, "Tab": 9}


class Chromium(Page):
    def start(self, width, height, javascript):
        program = self.program("chromium", "chromium-browser", package="chromium")
        self.buffer, self.session = b"", None
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
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        if not javascript:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def send(self, message):
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]

    def receive(self, deadline):
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

    def end(self):
        if getattr(self, "process", None):
            os.close(self.to)
            os.close(self.back)

    def navigate(self, url):
        seen = len(self.events)
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 120
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events[seen:]):
            self.events.append(self.receive(deadline))

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def html(self):
        root = self.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        return self.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def colours(self, dark):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def accessible(self):
        """Role and name of everything that a screen reader meets."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        value = lambda node, key: (node.get(key) or {}).get("value", "")
        return [(value(node, "role"), value(node, "name").strip()) for node in nodes if not node.get("ignored")]

    def printed(self):
        """The page as a printer gets it, a PDF."""
        width, height = (length / 2.54 for length in PAPER)
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, paperWidth=width, paperHeight=height)["data"])

    def picture(self, whole):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def wheel(self, x, y, delta):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta)

    def click(self, x, y, modifiers=0):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", buttons=1, clickCount=1, modifiers=modifiers)
        self.settle()

    def drag(self, start, end, modifiers=0):
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1, modifiers=modifiers)
        middle = [(a + b) / 2 for a, b in zip(start, end)]
        for at in (middle, end):
            self.mouse("mouseMoved", *at, button="left", buttons=1, modifiers=modifiers)
        self.mouse("mouseReleased", *end, button="left", buttons=0, clickCount=1, modifiers=modifiers)
        self.settle()

    def key(self, key):
        code = {"windowsVirtualKeyCode": KEY_CODES[key]} if key in KEY_CODES else {}
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=key, **code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def errors(self):
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

    def requested(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]
