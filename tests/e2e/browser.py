"""Headless Chromium over its DevTools protocol, for tests of the chat page."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

import websocket

SCALE = float(os.environ.get("OCTET_TEST_TIME_SCALE", "1"))
PATIENCE = 60 * SCALE


class Browser:
    """One tab. `page` is left as a new browser has it: nothing stored."""

    def __init__(self, program="chromium"):
        self.profile = tempfile.mkdtemp(prefix="octet-browser-")
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-extensions", "--disable-background-networking", "--no-first-run", "--mute-audio",
                   "--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={self.profile}",
                   "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = None
        self.number = 0
        self.events = []
        try:
            self.socket = websocket.create_connection(self.page_address(), timeout=PATIENCE, suppress_origin=True)
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def page_address(self):
        """The tab's socket. The browser writes its port to a file once it listens."""
        path = os.path.join(self.profile, "DevToolsActivePort")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the browser ended with status {self.process.returncode}")
            lines = []
            if os.path.exists(path):
                with open(path) as file:
                    lines = file.read().split("\n")
            if len(lines) >= 2:
                browser = websocket.create_connection(f"ws://127.0.0.1:{lines[0]}{lines[1]}", timeout=PATIENCE,
                                                      suppress_origin=True)
                browser.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
                answer = json.loads(browser.recv())
                browser.close()
                for target in answer.get("result", {}).get("targetInfos", []):
                    if target["type"] == "page":
                        return f"ws://127.0.0.1:{lines[0]}/devtools/page/{target['targetId']}"
            time.sleep(0.05)
        raise RuntimeError("the browser does not listen")

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.events.append(message)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        """Until the expression is true; what it was last, where it never is."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            value = self.evaluate(expression)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}; the page: {self.evaluate('document.body.innerText')!r}")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def size(self, width, height, scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=mobile)

    def prefer(self, **features):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, code=None, modifiers=0):
        numbers = {"Enter": 13, "Escape": 27, "Tab": 9}
        event = dict(key=key, code=code or key, modifiers=modifiers,
                     windowsVirtualKeyCode=numbers.get(key, ord(key.upper()[0])))
        if key == "Enter":
            event["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        event.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def complaints(self):
        """Errors of scripts, of the console and of the content policy so far."""
        self.evaluate("0")
        found = [e["params"]["exceptionDetails"].get("exception", {}).get("description", "exception")
                 for e in self.events if e["method"] == "Runtime.exceptionThrown"]
        found += [e["params"]["entry"]["text"] for e in self.events
                  if e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"]
        return found

    def requested(self):
        self.evaluate("0")
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path):
        image = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))

    def close(self):
        if self.socket:
            self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
