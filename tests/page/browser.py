"""A headless Chromium that is told what to do over a pipe; needs nothing but Python and Chromium."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import unittest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def load_tests(_loader, tests, _pattern):
    """The part of a module's tests that GoogleTest would run with these variables."""
    parts, part = (int(os.environ.get("GTEST_" + name, start)) for name, start in (("TOTAL_SHARDS", 1), ("SHARD_INDEX", 0)))
    return unittest.TestSuite([test for of_class in tests for test in of_class][part::parts])


def program():
    """Chromium's path, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page of a Chromium of its own; as a context manager it is closed at the end.

    `requests` and `problems` hold what the page has asked the network for and complained about.
    """

    def __init__(self, seconds=1000):
        self.seconds = seconds  # for one answer, which takes a few
        self.folder = tempfile.TemporaryDirectory(prefix="phasor-chromium-", ignore_cleanup_errors=True)
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # The protocol's pipes are file descriptors 3 and 4. Root has no sandbox.
        command = ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", program(),
                   "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                   "--disable-background-networking", "--disable-component-update",
                   "--disable-frame-rate-limit", "--disable-gpu-vsync",  # frames come as fast as they are drawn
                   f"--user-data-dir={self.folder.name}", "--no-startup-window"]
        self.process = subprocess.Popen(command, pass_fds=(to_browser, from_browser),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session = b"", 0, None
        self.requests, self.problems, self.events = [], [], []
        page = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.write_end)
        os.close(self.read_end)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.folder.cleanup()

    def send(self, method, **parameters):
        """A command of the DevTools protocol; returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path, **viewport):
        """Opens a file or an http: address and waits until it is drawn; viewport: width, height, dark."""
        self.resize(**viewport)
        self.events.clear()
        path = str(path)
        self.send("Page.navigate", url=path if path.startswith("http:") else "file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.events:
            self._read()
        self.wait_for_frame()

    def resize(self, width=1200, height=900, dark=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def wait_for_frame(self):
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def wait_for_answer(self):
        """Waits until infer serve's page shows what the server says of what was typed."""
        self.evaluate("""new Promise(done => {
            const busy = () => document.querySelector("main").hasAttribute("aria-busy");
            const look = () => busy() ? setTimeout(look, 10) : done();
            look();
        })""")
        self.wait_for_frame()

    def evaluate(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def saved(self, figure):
        """The SVG that a figure's button saves."""
        return self.evaluate("""(() => {
            const [url, click] = [URL.createObjectURL, HTMLAnchorElement.prototype.click];
            let saved;
            URL.createObjectURL = (blob) => { saved = blob.text(); return "data:,"; };
            HTMLAnchorElement.prototype.click = () => {};
            document.querySelector("#%s .save").click();
            [URL.createObjectURL, HTMLAnchorElement.prototype.click] = [url, click];
            return saved;
        })()""" % figure)

    def point_at(self, figure, row, column, rows, columns):
        """Moves the mouse to a cell of a figure's first matrix."""
        self.evaluate("""((share) => {
            const {x, y, width, height} = document.querySelector("#%s image").getBoundingClientRect();
            document.querySelector("#%s .panels > svg").dispatchEvent(new PointerEvent("pointermove", {
                clientX: x + width * share[0], clientY: y + height * share[1], bubbles: true}));
        })([%f, %f])""" % (figure, figure, (column + 0.5) / columns, (row + 0.5) / rows))

    def screenshot(self, figure=None, rim=12):
        """A figure as it is on the screen, or all that is on it, as PNG."""
        if figure is None:
            return base64.b64decode(self.send("Page.captureScreenshot")["data"])
        x, y, width, height = self.evaluate(
            f"(({{x, y, width, height}}) => [x, y + scrollY, width, height])"
            f"(document.getElementById('{figure}').getBoundingClientRect())")
        clip = {"x": x - rim, "y": y - rim, "width": width + 2 * rim, "height": height + 2 * rim, "scale": 1}
        return base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=True,
                                          clip=clip)["data"])

    def pixels(self, image):
        """Width and height of an image's data: URL, and its red, green, blue and opacity values."""
        return self.evaluate("""(async (url) => {
            const image = Object.assign(new Image(), {src: url});
            await image.decode();
            const {width, height} = image, context = new OffscreenCanvas(width, height).getContext("2d");
            context.drawImage(image, 0, 0);
            return [width, height, ...context.getImageData(0, 0, width, height).data];
        })(%s)""" % json.dumps(image))

    def press(self, key, wait=True):
        """A key by its name, like ArrowDown."""
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=codes[key])
        if wait:
            self.wait_for_frame()

    def _read(self):
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], self.seconds)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method, event):
        if method is None:
            return
        self.events.append(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(event["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.problems.append(event["args"])
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.problems.append(event["entry"]["text"])


class PageTest(unittest.TestCase):
    """A test whose class has a `browser`."""

    def js(self, expression):
        return self.browser.evaluate(expression)

    def texts(self, selector):
        return self.js(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")
