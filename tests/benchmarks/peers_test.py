#!/usr/bin/env python3
"""benchmarks/peers.py without its programs: what it reads from their outputs, what it makes of the figures.
   tests/benchmarks/peers_test.py [unittest's options]"""
import http.server
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import http_load  # noqa: E402
import peer_programs  # noqa: E402
import peers  # noqa: E402
from gguf_header import Header, Tensor, read_header  # noqa: E402

# As printed, some fields left out.
LLAMA_BENCH = """[
  {
    "build_commit": "unknown",
    "backends": "CPU",
    "model_type": "llama 256M Q4_0",
    "n_prompt": 0,
    "n_gen": 8,
    "avg_ns": 38448000000,
    "stddev_ns": 0,
    "avg_ts": 225.222016,
    "stddev_ts": 0.000000,
    "samples_ns": [ 38448000000 ],
    "samples_ts": [ 225.222 ]
  }
]
"""
BATCHED_BENCH = """
llama_batched_bench: n_kv_max = 1024, n_batch = 2048, n_ubatch = 512, flash_attn = -1, is_pp_shared = 0, n_threads = 2

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|    16 |      8 |    4 |     96 |   25.608 |     2.50 |    1.948 |   109.37 |   27.556 |     3.48 |
|    16 |      8 |   16 |    384 |   25.608 |    10.00 |    1.948 |   154.01 |   27.556 |    13.93 |

"""


class Outputs(unittest.TestCase):
    def test_llama_bench(self):
        self.assertEqual(peer_programs.llama_bench_rate("warning: unused\n" + LLAMA_BENCH), 225.222016)
        for output in ("", "[]", "[{}]", "error: failed to load model"):
            with self.assertRaises(peer_programs.Failed):
                peer_programs.llama_bench_rate(output)

    def test_batched_bench(self):
        self.assertEqual(peer_programs.batched_bench_rate(BATCHED_BENCH, 4), 109.37)
        self.assertEqual(peer_programs.batched_bench_rate(BATCHED_BENCH, 16), 154.01)
        with self.assertRaises(peer_programs.Failed):
            peer_programs.batched_bench_rate(BATCHED_BENCH, 8)

    def test_octet(self):
        line = '{"step_rows":512,"rows":[{"row":"decode:64","tokens_per_second":121.5,"rates":[121.5]}]}'
        self.assertEqual(peer_programs.octet_rate("a note\n" + line + "\n"), 121.5)
        with self.assertRaises(peer_programs.Failed):
            peer_programs.octet_rate("")


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def make(self, name, script):
        path = pathlib.Path(self.folder.name) / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + script, encoding="utf-8")
        path.chmod(0o755)

    def system(self, **more):
        return peer_programs.System(more.pop("name", "llama.cpp"), pathlib.Path(self.folder.name), 2, **more)

    def test_commands(self):
        for name in ("llama-bench", "llama-batched-bench", "llama-server", "model_bench", "octet"):
            self.make(name, "")
        words = lambda system, row: [str(word) for word in system.command(row, "m.gguf")[1:]]
        self.assertEqual(words(self.system(), "decode"), "-m m.gguf -p 0 -n 64 -r 1 -t 2 -o json".split())
        self.assertEqual(words(self.system(repack=True), "prefill512"),
                         "-m m.gguf -p 512 -n 0 -r 1 -t 2 -o json -rtr 1".split())
        self.assertEqual(words(self.system(repack=True), "streams16"),
                         "-m m.gguf -c 3072 -npp 128 -ntg 64 -npl 16 -t 2 -tb 2 -rtr".split())
        self.assertEqual(words(self.system(name="octet"), "streams4"),
                         "m.gguf --rows streams:4x128x64 --threads 2 --max-num-batched-tokens 512 --json".split())
        server = self.system(name="octet").server_command("server", "m.gguf", 5)
        self.assertIn("--no-enable-prefix-caching", server)
        self.assertNotIn("--no-enable-prefix-caching", self.system(name="octet").server_command("cached", "m.gguf", 5))

    def test_missing_and_failing(self):
        with self.assertRaisesRegex(peer_programs.Missing, "llama-bench is not in"):
            self.system().measure("decode", "m.gguf", 100, 0)
        self.make("llama-bench", "echo 'no such model' >&2; exit 3")
        with self.assertRaisesRegex(peer_programs.Failed, "status 3: no such model"):
            self.system().measure("decode", "m.gguf", 100, 0)

    def test_tables_on_either_stream(self):
        for stream in (1, 2):
            self.make("llama-batched-bench", f"cat >&{stream} <<'EOF'\n{BATCHED_BENCH}\nEOF\n")
            self.assertEqual(self.system().measure("streams16", "m.gguf", 100, 0), {"value": 154.01})

    def test_rounds_take_turns(self):
        log = pathlib.Path(self.folder.name) / "log"
        self.make("llama-bench", f"echo theirs >> {log}\ncat <<'EOF'\n{LLAMA_BENCH}\nEOF\n")
        self.make("model_bench", f"echo ours >> {log}\n" + """echo '{"rows":[{"tokens_per_second":450}]}'\n""")
        systems = [self.system(name="octet"), self.system(),
                   peer_programs.System("ik_llama.cpp", pathlib.Path(self.folder.name) / "nowhere", 2)]
        stderr, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")
        try:
            found = peers.measure_row("decode", "m.gguf", Header({}, []), systems, 3)
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        self.assertEqual(log.read_text(encoding="utf-8").split(), ["ours", "theirs"] * 3)
        self.assertEqual(found["octet"]["values"], [450] * 3)
        self.assertTrue(all(0 <= told["neighbours"] <= 1 for told in found["octet"]["rounds"]))
        self.assertEqual(found["llama.cpp"]["values"], [225.222016] * 3)
        self.assertEqual(found["ik_llama.cpp"]["values"], [None] * 3)
        self.assertIn("missing: llama-bench is not in", found["ik_llama.cpp"]["why"])
        self.assertEqual(peers.cell(found["ik_llama.cpp"]), "missing")

    def test_command_line(self):
        run = lambda *words: subprocess.run([sys.executable, ROOT / "benchmarks/peers.py", *words], capture_output=True,
                                            text=True)
        self.assertIn("llama-batched-bench -npp 128 -ntg 64", run("--help").stdout)
        self.assertIn("--rows decod: one of prefill512", run("--rows", "decod").stderr)
        self.assertIn("peers: octet is not in", run("--octet", self.folder.name).stderr)


class Figures(unittest.TestCase):
    def test_spread_and_ratio(self):
        self.assertEqual(peers.spread([3, 1, 9, 2, 4]), (3, 1, 9))
        self.assertEqual(peers.ratio([10, 20, 30], [10, 10, 10]), 2)
        self.assertEqual(peers.ratio([10, None, 30], [10, 1, 10]), 2)
        self.assertIsNone(peers.ratio([None], [1]))

    def test_better_peer(self):
        rounds = {"octet": [9, 9, 9], "llama.cpp": [1, 5, 2], "ik_llama.cpp": [3, 3, 3],
                  "ik_llama.cpp -rtr": [None] * 3}
        self.assertEqual(peers.better_peer(rounds), "ik_llama.cpp")
        self.assertIsNone(peers.better_peer({"octet": [9]}))

    def test_limit(self):
        header = Header({}, [Tensor("token_embd.weight", "Q8_0", 1000, 1000),
                             Tensor("blk.0.ffn_up.weight", "Q8_0", 1000, 1000)])
        limits = {"read_gbs": 2e-6, "arithmetic": [{"integer": True, "gops": 1e-4}, {"integer": False, "gops": 1}]}
        self.assertEqual(peers.limit("decode", header, limits), {"rate": 1.0, "of": "reads"})  # 2,000 bytes, tied
        self.assertEqual(peers.limit("streams16", header, limits), {"rate": 16.0, "of": "reads"})
        prompt = peers.limit("prefill512", header, limits)  # the vocabulary's matrix runs for one row of 512
        self.assertEqual(prompt["of"], "arithmetic")
        self.assertAlmostEqual(prompt["rate"], 1e5 / (2000 + 2000 / 512))
        self.assertIsNone(peers.limit("server", header, limits))

    def test_experts(self):
        header = Header({"general.architecture": "a", "a.expert_count": 4, "a.expert_used_count": 1},
                        [Tensor("output.weight", "F32", 1, 4), Tensor("token_embd.weight", "F32", 1, 4),
                         Tensor("blk.0.ffn_up_exps.weight", "F32", 400, 1600)])
        self.assertEqual(header.token_cost(1, 1), (404.0, 202.0))
        self.assertEqual(header.token_cost(2, 2), (4 + 1600 * 0.4375, 202.0))
        self.assertFalse(header.integer)

    def test_table(self):
        row = {"systems": {"octet": {"values": [1.5, 1.0, 2.0], "why": "", "more": {"ttft_p90": 0.25}},
                           "llama.cpp": {"values": [None], "why": "missing: x", "more": {}}},
               "ratio": 1.25, "better": "llama.cpp", "limit": {"rate": 3.0, "of": "reads"}, "share": 0.5}
        text = peers.table("m", {"decode": row}, ["octet", "llama.cpp"]).splitlines()[2]
        self.assertEqual(
            text, "| decode | 1.5 (1 to 2), p90 TTFT 0.25 s | missing | 1.25 (llama.cpp) | 3 (reads) | 50 % |")

    def test_gguf(self):
        string = lambda text: struct.pack("<Q", len(text)) + text.encode()
        data = b"GGUF" + struct.pack("<IQQ", 3, 1, 2)
        data += string("general.architecture") + struct.pack("<I", 8) + string("llama")
        data += string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 3) + string("a") + string("b") + string("c")
        data += string("blk.0.w") + struct.pack("<IQQIQ", 2, 64, 10, 2, 0)
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            header = read_header(file.name)
            self.assertEqual(header.vocabulary, 3)
            self.assertEqual(header.tensors, [Tensor("blk.0.w", "Q4_0", 640, 360)])
            self.assertTrue(header.integer)
            file.seek(0)
            file.write(b"GGUX")
            file.flush()
            with self.assertRaisesRegex(ValueError, "not a GGUF file"):
                read_header(file.name)


# Answers as the two servers do: seven tokens of those asked for.
class Answering(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = min(7, body.get("n_predict") or body.get("max_tokens"))
        events = [{"content": "a", "stop": False}] * tokens
        events.append({"content": "", "stop": True, "tokens_predicted": tokens})
        if self.path == "/v1/completions":
            events = [{"choices": [{"text": "a"}], "usage": None}] * tokens
            events.append({"choices": [], "usage": {"completion_tokens": tokens}})
        self.send_response(200 if self.path in ("/v1/completions", "/completion") else 404)
        self.end_headers()
        for event in events:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *arguments):
        pass


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        cls.port = cls.server.server_address[1]
        threading.Thread(target=cls.server.serve_forever).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()

    def test_both_servers(self):
        for api in ("octet", "llama"):
            told = http_load.load(api, self.port, 1000, clients=3, requests=2, prompt=5, tokens=7)
            self.assertEqual(sorted(told), ["ttft_p50", "ttft_p90", "value"])
            self.assertGreater(told["ttft_p50"], 0)
            short = http_load.load(api, self.port, 1000, clients=2, requests=1, prompt=5, tokens=8)
            self.assertEqual(short, {"failed": 2, "of": 2, "why": "7 tokens of 8"})
            self.assertGreater(http_load.cached_prefix(api, self.port, 1000, prefix=20)["value"], 0)

    def test_no_server(self):
        self.assertIn("refused", http_load.ask("octet", peer_programs.free_port(), [1], 1).failure)

    def test_percentile(self):
        self.assertEqual(http_load.percentile([5, 1, 4, 2, 3, 6, 7, 8, 9, 10], 0.9), 9)
        self.assertEqual(http_load.percentile([1], 0.9), 1)


if __name__ == "__main__":
    unittest.main()
