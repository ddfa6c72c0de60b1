#!/usr/bin/env python3
"""Octet's tokenizer beside the Python package `tokenizers`, in one run, one core, in turns.

Vocabularies: Qwen3 (its tokenizer.json of 151,669 tokens) and Qwen3.6 (248,044 ranks, written out as a tokenizer.json),
both from the test data (tools/fetch_test_data.py). Texts: English (the language reference inside Python), code (Python's
library), Chinese (tokens of the vocabulary at random, rare ones too, with punctuation: no word comes twice, so that no
cache helps). A peer that cannot be imported is reported as missing; PEER names another interpreter for it.

Usage: benchmarks/tokenizer_speed.py [PEER]      needs build/benchmarks/tokenizer_bench"""

import base64
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("OCTET_CACHE", pathlib.Path.home() / ".cache" / "octet")) / "test-packages"
ROUNDS = 5

PEER = """
import sys, time
from tokenizers import Tokenizer
start = time.perf_counter()
tokenizer = Tokenizer.from_file(sys.argv[1])
print("load", time.perf_counter() - start)
for path in sys.argv[2:]:
    text = open(path, encoding="utf-8", newline="").read()
    # In pieces of the size of a prompt: one long text is slower.
    pieces = [text[i:i + 4000] for i in range(0, len(text), 4000)]
    best = 0
    for _ in range(3):
        start = time.perf_counter()
        for piece in pieces:
            tokenizer.encode(piece, add_special_tokens=False)
        best = max(best, len(text.encode()) / 1e6 / (time.perf_counter() - start))
    print(path, best)
"""


def find(name):
    found = sorted(CACHE.rglob(name))
    if not found:
        sys.exit(f"tokenizer_speed: {name} is missing: run tools/fetch_test_data.py")
    return found[0]


def byte_characters():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters, more = {byte: chr(byte) for byte in kept}, 256
    for byte in range(256):
        if byte not in characters:
            characters[byte] = chr(more)
            more += 1
    return characters


def from_ranks(ranks_file, like, out):
    """A tokenizer.json of a rank file, with the other parts of `like`."""
    ranks = {}
    for line in ranks_file.read_text().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    characters = byte_characters()
    spell = lambda token: "".join(characters[byte] for byte in token)
    merges = []
    for token, _ in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += [[spell(a), spell(b)] for a, b in sorted(parts, key=lambda part: (ranks[part[0]], ranks[part[1]]))]
    made = json.loads(like.read_text(encoding="utf-8"))
    made["added_tokens"] = []
    made["model"].update(vocab={spell(token): rank for token, rank in ranks.items()}, merges=merges, ignore_merges=True)
    out.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")


def chinese(tokenizer, length):
    numbers = {character: byte for byte, character in byte_characters().items()}
    words = []
    for token in json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]:
        try:
            word = bytes(numbers[character] for character in token).decode()
        except (KeyError, UnicodeDecodeError):
            continue
        if word and all("\u4e00" <= character <= "\u9fff" for character in word):
            words.append(word)
    draw = random.Random(1)
    text = []
    for _ in range(length):
        text.append(words[int(len(words) * draw.random() ** 3)])
        if draw.random() < 0.1:
            text.append(draw.choice("，。、！"))
    return "".join(text)


def texts(folder, tokenizer):
    import pydoc_data.topics

    library = pathlib.Path(os.__file__).parent
    code = "".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(library.glob("*.py")))
    made = {"English": "\n".join(pydoc_data.topics.topics.values()), "code": code[:2_000_000], "Chinese": chinese(tokenizer, 200_000)}
    paths = {}
    for name, text in made.items():
        paths[name] = folder / f"{name}.txt"
        paths[name].write_bytes(text.encode())
    return paths


def run(command):
    """Seconds of the load and MB/s of each text, or nothing where the program cannot run."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    lines = done.stdout.splitlines()
    return [float(re.search(r"[0-9.]+", lines[0])[0])] + [float(re.search(r"([0-9.]+)(?: MB/s.*)?$", line)[1]) for line in lines[1:]]


def report(name, tokenizer, paths, peer):
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(run([ROOT / "build/benchmarks/tokenizer_bench", tokenizer, *paths.values()]))
        theirs.append(run([peer, "-c", PEER, tokenizer, *paths.values()]))
    if None in ours:
        sys.exit("tokenizer_speed: build/benchmarks/tokenizer_bench does not run: make build")
    print(f"\n{name}, {tokenizer.stat().st_size / 1e6:.1f} MB, {os.uname().machine}, median of {ROUNDS} (least to most)")
    for i, what in enumerate(["load, s", *(f"{text}, MB/s" for text in paths)]):
        show = lambda runs: f"{statistics.median(r[i] for r in runs):.3g} ({min(r[i] for r in runs):.3g} to {max(r[i] for r in runs):.3g})"
        if None in theirs:
            print(f"{what:16} octet {show(ours):28} tokenizers: missing")
            continue
        ratio = statistics.median(a[i] / b[i] for a, b in zip(ours, theirs))
        print(f"{what:16} octet {show(ours):28} tokenizers {show(theirs):28} octet / tokenizers {ratio:.2f}")


def main():
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    peer = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    qwen3 = find("tokenizer_files/tokenizer.json")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        larger = folder / "tokenizer.json"
        from_ranks(find("qwen3_6.tiktoken"), qwen3, larger)
        paths = texts(folder, qwen3)
        report("Qwen3", qwen3, paths, peer)
        report("Qwen3.6", larger, paths, peer)


if __name__ == "__main__":
    main()
