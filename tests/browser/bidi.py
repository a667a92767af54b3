"""Headless Firefox over WebDriver BiDi, which it speaks by itself: no driver is needed, only a small web socket.

Colours and the accessibility tree are no part of BiDi: these come from Firefox's own window, to which
`--remote-allow-system-access` gives access.
"""

import base64
import json
import os
import socket
import struct
import subprocess
import time

from browser import CONTROL, PAPER, SHIFT, BrowserError, Page

# Keys with a name: https://www.w3.org/TR/webdriver2/#keyboard-actions
KEYS = {"Backspace": "\ue003", "Tab": "\ue004", "Enter": "\ue007", "Shift": "\ue008", "Control": "\ue009", "Escape": "\ue00c", "End": "\ue010",
        "Home": "\ue011", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
# Firefox builds the tree once the service is asked for; until then there is no document in it, or a busy one.
TREE = """(async () => {
  const service = Cc["@mozilla.org/accessibilityService;1"].getService(Ci.nsIAccessibilityService);
  const isBusy = node => {
    const state = {};
    node.getState(state, {});
    return state.value & Ci.nsIAccessibleStates.STATE_BUSY;
  };
  let page = null;
  for (let wait = 0; wait < 200 && (!page || isBusy(page)); wait++) {
    await new Promise(done => setTimeout(done, 50));
    page = service.getAccessibleFor(gBrowser.selectedBrowser)?.firstChild;
  }
  const found = [], visit = node => {
    found.push([node.computedARIARole || service.getStringRole(node.role), node.name ?? ""]);
    for (let child = node.firstChild; child; child = child.nextSibling) visit(child);
  };
  visit(page);
  return found;
})()"""


class WebSocket:
    """The client's side of RFC 6455, as far as text messages need it."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port))
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self.read(time.monotonic() + 30)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise BrowserError(f"no web socket: {head!r}")

    def read(self, deadline):
        self.socket.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            piece = self.socket.recv(1 << 16)
        except TimeoutError:
            raise BrowserError("the browser did not answer in time") from None
        if not piece:
            raise BrowserError("the browser went away")
        self.buffer += piece

    def take(self, size, deadline):
        while len(self.buffer) < size:
            self.read(deadline)
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = (struct.pack(">BB", 0x81, 0x80 | size) if size < 126 else struct.pack(">BBH", 0x81, 0xfe, size)
                if size < 1 << 16 else struct.pack(">BBQ", 0x81, 0xff, size))
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.socket.settimeout(60)
        self.socket.sendall(head + mask + masked)

    def receive(self, deadline):
        text = b""
        while True:
            first, size = self.take(2, deadline)
            if size == 126:
                size, = struct.unpack(">H", self.take(2, deadline))
            elif size == 127:
                size, = struct.unpack(">Q", self.take(8, deadline))
            data = self.take(size, deadline)
            if first & 0x0f == 8:
                raise BrowserError("the browser went away")
            if first & 0x0f in (0, 1):
                text += data
                if first & 0x80:
                    return text.decode()


class Firefox(Page):
    def start(self, width, height, javascript):
        program = self.program("firefox-esr", "firefox", package="firefox-esr")
        self.log = open(os.path.join(self.profile, "log"), "w")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-remote", "--profile", self.profile, "--remote-debugging-port", "0",
             "--remote-allow-system-access", "about:blank"], stdout=self.log, stderr=self.log)
        self.socket = WebSocket(*self.server(), "/session")
        self.call("session.new", capabilities={})
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.window = self.call("browsingContext.getTree", **{"moz:scope": "chrome"})["contexts"][0]["context"]
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        if not javascript:
            self.evaluate(self.window, "gBrowser.selectedBrowser.browsingContext.allowJavascript = false")

    def server(self):
        """Host and port of the web socket, which Firefox writes into the profile."""
        path, deadline = os.path.join(self.profile, "WebDriverBiDiServer.json"), time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with open(path) as file:
                    server = json.load(file)
                return server["ws_host"], server["ws_port"]
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.05)
        with open(os.path.join(self.profile, "log")) as log:
            raise BrowserError(f"firefox did not start: {log.read()}")

    def send(self, message):
        self.socket.send(json.dumps(message))

    def receive(self, deadline):
        return json.loads(self.socket.receive(deadline))

    def end(self):
        if getattr(self, "process", None):
            try:
                self.call("browser.close")
            except (AttributeError, BrowserError, OSError):
                self.process.terminate()
        if getattr(self, "log", None):
            self.log.close()

    def navigate(self, url):
        self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")
        # At first the address bar has the focus.
        self.evaluate(self.window, "gBrowser.selectedBrowser.focus()")

    def evaluate(self, context, expression):
        result = self.call("script.evaluate", expression=expression, target={"context": context}, awaitPromise=True)
        if result["type"] == "exception":
            raise BrowserError(f"{expression}: {result['exceptionDetails']['text']}")
        return plain(result["result"])

    def value(self, expression):
        return self.evaluate(self.context, expression)

    def html(self):
        return self.value("document.documentElement.outerHTML")

    def resize(self, width, height):
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height},
                  devicePixelRatio=1)

    def colours(self, dark):
        scheme = "dark" if dark else "light"
        self.evaluate(self.window, f"gBrowser.selectedBrowser.browsingContext.prefersColorSchemeOverride = '{scheme}'")

    def accessible(self):
        """Role and name of everything that a screen reader meets."""
        return [(role, name.strip()) for role, name in self.evaluate(self.window, TREE)]

    def printed(self):
        """The page as a printer gets it, a PDF."""
        width, height = PAPER
        return base64.b64decode(self.call("browsingContext.print", context=self.context, background=True,
                                          page={"width": width, "height": height})["data"])

    def picture(self, whole):
        return base64.b64decode(self.call("browsingContext.captureScreenshot", context=self.context,
                                          origin="document" if whole else "viewport")["data"])

    def act(self, *sources):
        self.call("input.performActions", context=self.context, actions=list(sources))

    def pointer(self, actions, modifiers):
        """Actions of the mouse while keys are held: the keys go down one step before and up one step after."""
        held = [KEYS[name] for bit, name in ((CONTROL, "Control"), (SHIFT, "Shift")) if modifiers & bit]
        keys = [{"type": "key", "id": f"held-{key}", "actions": [
            {"type": "keyDown", "value": key}, *[{"type": "pause"}] * len(actions), {"type": "keyUp", "value": key}]}
            for key in held]
        self.act(*keys, {"type": "pointer", "id": "mouse", "actions": [{"type": "pause"}, *actions, {"type": "pause"}]})
        self.settle()

    def wheel(self, x, y, delta):
        scroll = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": delta}
        self.act({"type": "wheel", "id": "wheel", "actions": [scroll]})

    def click(self, x, y, modifiers=0):
        self.drag((x, y), None, modifiers)

    def drag(self, start, end, modifiers=0):
        move = lambda at: {"type": "pointerMove", "x": round(at[0]), "y": round(at[1])}
        moves = [move([(a + b) / 2 for a, b in zip(start, end)]), move(end)] if end else []
        self.pointer([move(start), {"type": "pointerDown", "button": 0}, *moves, {"type": "pointerUp", "button": 0}], modifiers)

    def key(self, key):
        self.type([KEYS.get(key, key)])

    def type(self, text):
        actions = [{"type": kind, "value": letter} for letter in text for kind in ("keyDown", "keyUp")]
        self.act({"type": "key", "id": "keyboard", "actions": actions})
        self.settle()

    def errors(self):
        """Errors and warnings of the console, and exceptions."""
        entries = [event["params"] for event in self.events if event.get("method") == "log.entryAdded"]
        return [entry["text"] for entry in entries if entry["level"] in ("error", "warn")]

    def requested(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "network.beforeRequestSent"]


def plain(value):
    """A value of BiDi as Python has it; of objects that JSON does not know, nothing."""
    kind, content = value["type"], value.get("value")
    if kind == "array":
        return [plain(item) for item in content]
    if kind == "object":
        return {name: plain(item) for name, item in content}
    return float(content) if kind == "number" and isinstance(content, str) else content
