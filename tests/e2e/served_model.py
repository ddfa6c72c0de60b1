"""`octet serve` with the default model, for the end-to-end tests."""
import os
import re
import signal
import subprocess
import time
import urllib.request

SCALE = float(os.environ.get("OCTET_TEST_TIME_SCALE", "1"))


def pull(program):
    """The path of the default model, fetched where it is not there yet."""
    pulled = subprocess.run([program, "pull", "smollm2"], stdout=subprocess.PIPE, text=True, check=True)
    return pulled.stdout.splitlines()[-1]


class Server:
    """`octet serve`, from its first line to its exit status."""

    def __init__(self, program, model, *more):
        command = [program, "serve", model, "--port", "0", "--served-model-name", "smollm2", "default",
                   "--max-model-len", "2048", "--enable-prompt-tokens-details", *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.start_line = self.process.stdout.readline()
        self.curl = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.start_line)
        if not found:
            raise RuntimeError(f"the server did not start: {self.start_line!r}")
        self.url = found.group(0)

    def metrics(self):
        text = urllib.request.urlopen(self.url + "/metrics", timeout=60 * SCALE).read().decode()
        values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name.split("{")[0]] = values.get(name.split("{")[0], 0.0) + float(value)
        return values

    def at_rest(self):
        """Waits until nothing runs and no block is held."""
        deadline = time.monotonic() + 60 * SCALE
        while time.monotonic() < deadline:
            values = self.metrics()
            if not (values["vllm:num_requests_running"] or values["vllm:num_requests_waiting"]
                    or values["vllm:kv_cache_usage_perc"]):
                return True
            time.sleep(0.05)
        return False

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        return self.process.wait(timeout=60 * SCALE)
