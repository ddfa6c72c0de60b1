#!/usr/bin/env python3
"""Octet beside builds of llama.cpp and ik_llama.cpp: one run, in turns (A B C A B C ...), as many rounds as asked; the
median of each, its spread, the ratio to the better peer, and the machine's limit as measured in the same run.

rows
  prefill512, prefill2048  prompt tokens/s of a prompt alone. Peers: llama-bench -p N -n 0; Octet: model_bench
  decode                   tokens/s of one stream, 64 tokens from an empty context. Peers: llama-bench -p 0 -n 64
  streams4, streams16      tokens/s of 4 and 16 streams together, 64 tokens each behind prompts of 128.
                           Peers: llama-batched-bench -npp 128 -ntg 64 -npl N
  server                   16 clients over HTTP on loopback, each two requests one after another: prompts of 128 random
                           tokens, 64 out, prefix caches off; output tokens/s and TTFT (p90). llama-server -np 16
  cached                   a prompt of 2,000 tokens that are known, and 16 that are not: TTFT of the same prompt when it
                           was new over TTFT now (a ratio, larger is better). llama-server -np 1

The ratio is the median of the rounds' ratios. ik_llama.cpp runs with and without -rtr; both are shown, the better
counts. The limit is that of weights read, or of multiply-adds, whichever comes first; attention is not counted. A peer
that is missing is reported as missing. Needs an otherwise idle machine: what other programs took is told.

example
  benchmarks/peers.py --llama ~/llama.cpp/build --ik ~/ik_llama.cpp/build --models a.gguf b.gguf --json result.json
  benchmarks/peers.py ... --models a-q8_0.gguf --octet-model a-folder --quantization fp8_per_block"""

import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import sys

from gguf_header import read_header
from peer_programs import PROMPTS, STREAMS, Failed, Missing, System, find_program, run

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ("prefill512", "prefill2048", "decode", "streams4", "streams16", "server", "cached")


def spread(values):
    """Median, least, most."""
    return statistics.median(values), min(values), max(values)


def ratio(ours, theirs):
    """The median of the rounds' ratios; none where either has no round."""
    pairs = [a / b for a, b in zip(ours, theirs) if a is not None and b]
    return statistics.median(pairs) if pairs else None


def better_peer(rounds):
    """The name of the peer with the highest median; none where no peer has one."""
    medians = {name: statistics.median(have) for name, values in rounds.items()
               if name != "octet" and (have := [value for value in values if value is not None])}
    return max(medians, key=medians.get, default=None)


def limit(row, header, limits):
    """Tokens per second that the machine allows at most, and what binds; none for rows without one."""
    if row not in PROMPTS and row != "decode" and row not in STREAMS:
        return None
    streams = PROMPTS.get(row, STREAMS.get(row, 1))
    read, operations = header.token_cost(streams, 1 if row in PROMPTS else streams)
    by = {"reads": limits["read_gbs"] * 1e9 / read * streams}
    peaks = [one["gops"] for one in limits.get("arithmetic", []) if one["integer"] == header.integer]
    if peaks:
        by["arithmetic"] = max(peaks) * 1e9 / operations
    what = min(by, key=by.get)
    return {"rate": by[what], "of": what}


class Neighbours:
    """How much of the machine went to anything but this script and the programs that it ran to their end."""

    def __enter__(self):
        self.before = self.read()
        return self

    def __exit__(self, *error):
        everyone, own, total = (after - before for before, after in zip(self.before, self.read()))
        self.share = max(0.0, everyone - own) / total if total > 0 else 0.0

    @staticmethod
    def read():
        """Seconds of all cores: busy, or taken by the host; of this script and its programs; in all."""
        try:
            first = pathlib.Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0]
        except OSError:
            return 0.0, 0.0, 0.0
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in first.split()[1:9]]
        idle = ticks[3] + ticks[4]
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(ticks) - idle, sum(one.ru_utime + one.ru_stime for one in used), sum(ticks)


def show(value, digits=3):
    return f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def cell(result):
    """One system's part of a row."""
    values = [value for value in result["values"] if value is not None]
    if not values:
        return result["why"].split(":")[0] or "-"
    middle, least, most = spread(values)
    text = f"{show(middle)} ({show(least)} to {show(most)})"
    told = result["more"]
    if "ttft_p90" in told:
        text += f", p90 TTFT {show(told['ttft_p90'])} s"
    if "cached" in told:
        text += f", {show(1e3 * told['cold'])} to {show(1e3 * told['cached'])} ms"
    return text + (" (not every round)" if result["why"] else "")


def table(model, rows, names):
    """Markdown."""
    heads = [model, *names, "Octet / better peer", "limit", "share of it"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, row in rows.items():
        cells = [cell(row["systems"][system]) if system in row["systems"] else "-" for system in names]
        against = f"{row['ratio']:.2f} ({row['better']})" if row["ratio"] else "-"
        most = f"{show(row['limit']['rate'])} ({row['limit']['of']})" if row["limit"] else "-"
        share = f"{100 * row['share']:.0f} %" if row["share"] else "-"
        lines.append(f"| {name} | " + " | ".join(cells + [against, most, share]) + " |")
    return "\n".join(lines)


def measure_row(row, model, header, systems, repeats):
    """Rounds of all systems in turns; one that is missing, or fails twice, is not asked again."""
    results = {system.name: {"values": [], "rounds": [], "why": "", "failures": 0} for system in systems}
    for round_number in range(repeats):
        for system in systems:
            result = results[system.name]
            told = {}
            if result["failures"] < 2:
                try:
                    with Neighbours() as neighbours:
                        told = system.measure(row, model, header.vocabulary, round_number)
                    told["neighbours"] = neighbours.share
                    if "failed" in told:
                        raise Failed(f"{told['failed']} of {told['of']} requests failed: {told['why']}")
                except Missing as error:
                    result.update(why=f"missing: {error}", failures=2)
                except Failed as error:
                    result["why"] = f"failed: {error}"
                    result["failures"] += 1
            result["rounds"].append(told)
            result["values"].append(told.get("value"))
            outcome = told.get("value") or result["why"]
            print(f"  {row}, round {round_number + 1}, {system.name}: {outcome}", file=sys.stderr)
    for result in results.values():
        whole = [told for told in result["rounds"] if "value" in told]
        result["more"] = {key: statistics.median(told[key] for told in whole) for key in (whole[0] if whole else {})}
    return results


def measure_model(model, args, systems):
    model = model.resolve()
    header = read_header(model)
    octet = systems[0]
    own = header.as_block_fp8() if octet.quantization == "fp8_per_block" else header
    limits = json.loads(run([find_program(octet.folder, "roofline_bench"), "--only", "limits", "--threads",
                             args.threads, "--json"]))["limits"]
    rows = {}
    for row in args.rows:
        taking_part = [system for system in systems if system.servers or row not in ("server", "cached")]
        found = measure_row(row, model, header, taking_part, args.repeats)
        rounds = {name: result["values"] for name, result in found.items()}
        better = better_peer(rounds)
        ours = [value for value in rounds["octet"] if value is not None]
        most = limit(row, own, limits)
        rows[row] = {
            "systems": found, "better": better, "limit": most,
            "ratio": ratio(rounds["octet"], rounds[better]) if better else None,
            "ratios": {name: ratio(rounds["octet"], values) for name, values in rounds.items() if name != "octet"},
            "share": statistics.median(ours) / most["rate"] if most and ours else None}
    return {"model": str(model), "limits": limits, "rows": rows}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octet", type=pathlib.Path, default=ROOT / "build", metavar="DIR",
                        help="build folder with octet, model_bench and roofline_bench (default: build)")
    parser.add_argument("--llama", type=pathlib.Path, metavar="DIR",
                        help="build folder of llama.cpp, with llama-bench, llama-batched-bench, llama-server")
    parser.add_argument("--ik", type=pathlib.Path, metavar="DIR",
                        help="build folder of ik_llama.cpp, with llama-bench, llama-batched-bench")
    parser.add_argument("--models", type=pathlib.Path, nargs="+", metavar="FILE",
                        help="GGUF files (default: the default model)")
    parser.add_argument("--octet-model", type=pathlib.Path, metavar="DIR",
                        help="what Octet runs in place of the one file of --models: the same weights in another form")
    parser.add_argument("--quantization", default="", metavar="NAME",
                        help="as octet serve's, for Octet alone: FP8, say, beside the peers' Q8_0")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS), metavar="ROW,...",
                        help="of " + ", ".join(ROWS) + " (default: all)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="rounds (default: 5)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="of every program (default: 2)")
    parser.add_argument("--step-rows", type=int, default=512, metavar="N",
                        help="tokens of a step of model_bench (default: 512, as llama-bench's); octet serve chooses")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write every round to this file")
    args = parser.parse_args()
    for row in args.rows:
        if row not in ROWS:
            parser.error(f"--rows {row}: one of {', '.join(ROWS)}")
    if args.octet_model and len(args.models or []) != 1:
        parser.error("--octet-model: goes with one file in --models")
    if args.repeats < 1:
        parser.error(f"--repeats {args.repeats}: at least 1")
    return args


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def main():
    args = parse_arguments()
    systems = [System("octet", args.octet, args.threads, step_rows=args.step_rows,
                      model=args.octet_model and args.octet_model.resolve(), quantization=args.quantization)]
    if args.llama:
        systems.append(System("llama.cpp", args.llama, args.threads))
    if args.ik:
        systems.append(System("ik_llama.cpp", args.ik, args.threads, servers=False))
        systems.append(System("ik_llama.cpp -rtr", args.ik, args.threads, repack=True, servers=False))
    if not args.models:
        pulled = run([find_program(args.octet, "octet"), "pull", "smollm2"])
        args.models = [pathlib.Path(pulled.strip().splitlines()[-1])]
    names = [system.name for system in systems]
    told = {"processor": processor(), "threads": args.threads, "repeats": args.repeats, "models": []}
    print(f"{told['processor']}, {args.threads} thread{'s' if args.threads > 1 else ''}, median of {args.repeats} (least to most)")
    for peer, folder in (("llama.cpp", args.llama), ("ik_llama.cpp", args.ik)):
        if not folder:
            print(f"{peer}: missing (no folder was given)")
    for model in args.models:
        before = os.getloadavg()[0]
        result = measure_model(model, args, systems)
        result["load_before"] = before
        told["models"].append(result)
        found = [f"reads {result['limits']['read_gbs']:.1f} GB/s"]
        found += [f"{one['name']} {one['gops']:.0f} GOP/s" for one in result["limits"].get("arithmetic", [])]
        print(f"\n{'; '.join(found)}; load {before:.1f} before this model\n")
        title = f"{model.name}, Octet: {args.quantization or args.octet_model.name}" if args.octet_model else model.name
        print(table(title, result["rows"], names), flush=True)
        for why in sorted({f"{name}: {found['why']}" for row in result["rows"].values()
                           for name, found in row["systems"].items() if found["why"]}):
            print(f"\n{why}", flush=True)
        taken = [found["more"]["neighbours"] for row in result["rows"].values() for found in row["systems"].values()
                 if found["more"]]
        if taken and max(taken) > 0.05:
            print(f"\nOther programs took {100 * min(taken):.0f} to {100 * max(taken):.0f} % of the cores: "
                  "not a measurement of these alone.", flush=True)
        if args.json:
            args.json.write_text(json.dumps(told, indent=1), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except (Failed, Missing, OSError, ValueError) as error:
        sys.exit(f"peers: {error}")
