"""A page in headless Chromium, driven through the browser's debugging pipe."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
import zlib

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def program():
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Page:
    """One tab; what it logs and throws gathers in `complaints`."""

    def __init__(self, width=1400, height=900, dark=False):
        self.deadline = time.monotonic() + 300
        self.complaints = []
        self.events = []
        self.buffer = b""
        self.count = 0
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self.write = os.pipe()
        self.read, answers = os.pipe()
        command = [program(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--mute-audio",
                   f"--user-data-dir={self.folder.name}", f"--window-size={width},{height}", "about:blank"]
        # The browser reads its commands from descriptor 3 and answers on 4.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]
        plumbing = f"exec 3<&{high[0]} 4>&{high[1]}; exec \"$@\""
        self.process = subprocess.Popen(["bash", "-c", plumbing, "bash", *command], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, pass_fds=high)
        for end in (commands, answers, *high):
            os.close(end)
        try:
            self.attach(dark)
        except BaseException:
            self.__exit__()
            raise

    def attach(self, dark):
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        os.close(self.write)
        os.close(self.read)
        self.folder.cleanup()

    def receive(self):
        while b"\0" not in self.buffer:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise TimeoutError("the browser did not answer in time")
            more = os.read(self.read, 1 << 20)
            if not more:
                raise ConnectionError("the browser is gone")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:2000])
        if method == "Log.entryAdded" and parameters["entry"]["level"] in ("warning", "error"):
            self.complaints.append(parameters["entry"]["text"])
        if method == "Runtime.consoleAPICalled" and parameters["type"] in ("warning", "error", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:2000])
        return message

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer.get("method"))

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.receive().get("method"))

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": key} if len(key) == 1 else {}))

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def pixel(self, x, y):
        """The colour at a place of the page, as in #fbfbfa."""
        clip = {"x": x, "y": y, "width": 1, "height": 1, "scale": 1}
        png = base64.b64decode(self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"])
        rows, at = b"", 8
        while at < len(png):
            size, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
            if kind == b"IDAT":
                rows += png[at + 8:at + 8 + size]
            at += size + 12
        return "#" + zlib.decompress(rows)[1:4].hex()  # after the row's filter, which changes nothing in the first pixel
