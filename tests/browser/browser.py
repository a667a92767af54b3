"""A page in a headless browser: what the checks need of one, whichever browser it is.

`launch("chromium")` and `launch("firefox")` start a browser with an empty profile. Both take JSON messages of one form
(an id, a method, parameters), Chromium through a pipe (`devtools.py`), Firefox through a web socket (`bidi.py`), so that
Python's standard library and the distribution's packages are enough.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time

BROWSERS = ("chromium", "firefox")
# Bits of `modifiers`.
CONTROL, SHIFT = 2, 8
# A4, in centimetres.
PAPER = (21.0, 29.7)


class BrowserError(Exception):
    """The browser is missing, went away, or did not answer in time."""


def launch(browser="chromium", **options):
    """A page of a new browser; options are those of `Page`."""
    if browser == "firefox":
        from bidi import Firefox
        return Firefox(**options)
    from devtools import Chromium
    return Chromium(**options)


class Page:
    """One page of one browser. Events are kept, so that a check can ask for errors and requests at the end.

    A back end defines: `start`, `send`, `receive` and `end` for the process and its messages; `navigate`, `value`,
    `html`, `resize`, `colours`, `accessible`, `printed`, `picture` for the page; `wheel`, `click`, `drag`, `key` and
    `type` for a reader's hands; `errors` and `requested` for the events.
    """

    def __init__(self, width=1280, height=900, dark=False, javascript=True):
        self.profile = tempfile.mkdtemp(prefix="gammachi-browser-")
        self.number, self.events, self.opened = 0, [], []
        try:
            self.start(width, height, javascript)
            self.resize(width, height)
            self.colours(dark)
        except BaseException:
            self.close()
            raise

    def program(self, *names, package):
        found = next(filter(None, map(shutil.which, names)), None)
        if not found:
            raise BrowserError(f"{names[0]} is missing: scripts/install-packages {package}")
        return found

    def call(self, method, **parameters):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": parameters})
        deadline = time.monotonic() + 120
        while True:
            message = self.receive(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message.get('message', message['error'])}")
                return message["result"]
            self.events.append(message)

    def open(self, address):
        """Opens a file or an address; returns the seconds until it was loaded."""
        address = str(address)
        url = address if re.match("[a-z]+:", address) else f"file://{os.path.abspath(address)}"
        self.opened.append(url.split("#")[0])
        started = time.monotonic()
        self.navigate(url)
        return time.monotonic() - started

    def settle(self):
        """Waits for two frames, so that what was asked for is drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def screenshot(self, path, whole=False):
        with open(path, "wb") as file:
            file.write(self.picture(whole))

    def requests(self):
        """Addresses that the page asked for: neither those that were opened nor data in the page."""
        opened, found = list(self.opened), []
        for url in self.requested():
            if url in opened:
                opened.remove(url)
            elif not url.startswith("data:"):
                found.append(url)
        return found

    def close(self):
        self.end()
        process = getattr(self, "process", None)
        if process:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
