#!/usr/bin/env python3
"""Measures the default model on this machine with `octet bench serve`, and writes what it saw as a page.

Loads one `octet serve` of the default model with 1 to 16 conversations at once, each load twice, and leaves the page
and its figures beside the benchmarks.
   benchmarks/report_page.py BUILD [flags of octet bench serve]"""
import pathlib
import subprocess
import sys

import peer_programs

LOAD = ["--concurrency", "1,2,4,8,16", "--num-prompts", "32", "--input-len", "256", "--output-len", "64",
        "--num-warmups", "1", "--repeats", "2", "--slo", "ttft:p90=2000ms,tpot:p90=50ms"]


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    page = (build / "benchmarks" / "report.html").resolve()
    try:
        octet = peer_programs.find_program(build, "octet")
        pulled = subprocess.run([octet, "pull", "smollm2"], stdout=subprocess.PIPE, text=True, check=True)
        model = pulled.stdout.splitlines()[-1]
        port = peer_programs.free_port()
        url = f"http://127.0.0.1:{port}"
        with peer_programs.serving([octet, "serve", model, "--served-model-name", "smollm2", "--port", str(port)],
                                    url + "/ready"):
            subprocess.run([octet, "bench", "serve", "--base-url", url, "--tokenizer", model, "--label", "octet, smollm2",
                            *LOAD, "--html", page, "--json", page.with_suffix(".json"), *sys.argv[2:]], check=True)
    except (peer_programs.Missing, peer_programs.Failed) as error:
        sys.exit(f"report_page.py: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"the page: {page}")


if __name__ == "__main__":
    main()
