"""The programs that are measured: how each is called for a row, and what its output says."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import http_load

BENCH_LIMIT = 900  # seconds that one program may take
PROMPTS, STREAM_PROMPT, GENERATED = {"prefill512": 512, "prefill2048": 2048}, 128, 64
STREAMS = {"streams4": 4, "streams16": 16}
SERVER_ROWS = ("server", "cached")


class Missing(Exception):
    """A program that is not there."""


class Failed(Exception):
    """A program that ended with an error, or said something else than expected."""


def llama_bench_rate(output):
    """llama-bench -o json: tokens per second of its only test."""
    begin, end = output.find("["), output.rfind("]")
    try:
        tests = json.loads(output[begin:end + 1])
        return float(tests[0]["avg_ts"])
    except (ValueError, LookupError, TypeError):
        raise Failed("llama-bench: no rate in its output") from None


def batched_bench_rate(output, streams):
    """llama-batched-bench: the row of its table with so many sequences, the rate of generation."""
    names = None
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "S_TG t/s" in cells:
            names = cells
        elif names and len(cells) == len(names) and cells[names.index("B")] == str(streams):
            return float(cells[names.index("S_TG t/s")])
    raise Failed("llama-batched-bench: no rate in its output")


def octet_rate(output):
    """model_bench --json."""
    try:
        return float(json.loads(output.strip().splitlines()[-1])["rows"][0]["tokens_per_second"])
    except (ValueError, LookupError, TypeError):
        raise Failed("model_bench: no rate in its output") from None


def find_program(folder, name):
    for path in (folder / name, folder / "bin" / name, folder / "benchmarks" / name):
        if os.access(path, os.X_OK) and path.is_file():
            return path.resolve()
    raise Missing(f"{name} is not in {folder}")


def run(command, both=False):
    """Standard output of a program, or all that it says. Runs where the logs that it may leave are thrown away."""
    command = [str(word) for word in command]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace",
                                  timeout=BENCH_LIMIT)
        except subprocess.TimeoutExpired:
            raise Failed(f"{command[0]}: more than {BENCH_LIMIT} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise Failed(f"{command[0]}: status {done.returncode}: {''.join(last)}")
    return done.stdout + (done.stderr if both else "")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(process, url, log):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log.seek(0)
            last = log.read().decode(errors="replace").strip().splitlines()[-1:]
            raise Failed(f"the server ended with status {process.returncode}: {''.join(last)}")
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        time.sleep(0.1)
    raise Failed("the server is not ready after 300 s")


@contextlib.contextmanager
def serving(command, url):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        process = subprocess.Popen([str(word) for word in command], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until_ready(process, url, log)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclasses.dataclass
class System:
    """Octet's build folder, or a peer's; how it is told to repack is part of its name."""

    name: str
    folder: pathlib.Path
    threads: int
    step_rows: int = 512  # of Octet, as llama-bench's --ubatch-size
    repack: bool = False
    servers: bool = True
    model: pathlib.Path | None = None  # in place of the file that the others run
    quantization: str = ""

    @property
    def octet(self):
        return self.name == "octet"

    def command(self, row, model):
        model = self.model or model
        if self.octet:
            what = f"prefill:{PROMPTS[row]}" if row in PROMPTS else f"decode:{GENERATED}"
            if row in STREAMS:
                what = f"streams:{STREAMS[row]}x{STREAM_PROMPT}x{GENERATED}"
            return [find_program(self.folder, "model_bench"), model, "--rows", what, "--threads", self.threads,
                    "--max-num-batched-tokens", self.step_rows, "--json", *self.flags]
        if row in STREAMS:
            made = [find_program(self.folder, "llama-batched-bench"), "-m", model, "-c",
                    STREAMS[row] * (STREAM_PROMPT + GENERATED), "-npp", STREAM_PROMPT, "-ntg", GENERATED, "-npl",
                    STREAMS[row], "-t", self.threads, "-tb", self.threads]
            return made + (["-rtr"] if self.repack else [])
        prompt, generated = (PROMPTS[row], 0) if row in PROMPTS else (0, GENERATED)
        made = [find_program(self.folder, "llama-bench"), "-m", model, "-p", prompt, "-n", generated, "-r", 1, "-t",
                self.threads, "-o", "json"]
        return made + (["-rtr", 1] if self.repack else [])

    @property
    def flags(self):
        return ["--quantization", self.quantization] if self.quantization else []

    def server_command(self, row, model, port):
        model = self.model or model
        if self.octet:
            made = [find_program(self.folder, "octet"), "serve", model, "--port", port, "--threads", self.threads,
                    "--served-model-name", "model", "--max-model-len", 4096, *self.flags]
            return made + (["--no-enable-prefix-caching"] if row == "server" else [])
        slots, context = (16, 16 * 256) if row == "server" else (1, 4096)
        return [find_program(self.folder, "llama-server"), "-m", model, "--host", "127.0.0.1", "--port", port, "-t",
                self.threads, "-tb", self.threads, "-np", slots, "-c", context, "--cache-ram", 0]

    def measure(self, row, model, vocabulary, seed):
        """{"value": ...} and what else a row tells, or {"failed": ...}. Missing and Failed say why there is none."""
        if row in SERVER_ROWS:
            port = free_port()
            api, probe = ("octet", "ready") if self.octet else ("llama", "health")
            with serving(self.server_command(row, model, port), f"http://127.0.0.1:{port}/{probe}"):
                ask = http_load.load if row == "server" else http_load.cached_prefix
                return ask(api, port, vocabulary, seed=seed)
        command = self.command(row, model)
        if self.octet:
            return {"value": octet_rate(run(command))}
        if row in STREAMS:  # the table goes to either stream
            return {"value": batched_bench_rate(run(command, both=True), STREAMS[row])}
        return {"value": llama_bench_rate(run(command))}
