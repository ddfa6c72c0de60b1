"""components.jsonl: random combinations of the components of a tokenizer.json, with what `tokenizers` makes of random texts and ids.

Usage: make_components.py TEXT_FOLDER CHARSMAP_BASE64 > components.jsonl   (needs tokenizers==0.23.3)
A line: `base` (a tiny-* folder), `set` (members that replace those of its tokenizer.json; those of "model" are set inside it),
`encode` ([text, ids] without special tokens), `decode` ([ids, skip special tokens, text]). No added token is `normalized`."""

import json, pathlib, random, sys

from tokenizers import Tokenizer

BASES = ["tiny-spm", "tiny-unigram", "tiny-bpe"]
PARTS = list("abcdefgh  \t\n.,!-_▁'AB12éÉǅßµ") + [
    "\u0301", "\u0327", "\u200d", "ﬁ", "Ａ", "Ａ\u0301", "ＡＢ", "１", "㍿", "日本", "語", "😀", "👩‍👩‍👧", "\r\n", "\r", "\x00", "\x07", "\u00a0", "\u3000", "\u200b", "İ", "ſ", "½", "²", "한", "각",
    "क्ष", "ｶﾞ", "<unk>", "<s>", "</s>", "<tool>", "the ", "stream", "  ", "▁▁", "<0x41>", "„", "…", "『", "१२", "1,000", "it's"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
SCHEMES = ["first", "always", "never"]
BYTE_RUNS = [b"\xe4\xbd\xa0", b"\xf0\x9f\x98\x80", b"\xff", b"A", b"\xe4\xbd", b" ", b"\xed\xa0\x80"]


def coin(rnd, p=0.5):
    return rnd.random() < p


def sequence(rnd, make, key, nested, most):
    if nested:
        return None
    return {"type": "Sequence", key: [x for x in (make(rnd, nested=True) for _ in range(rnd.randrange(most))) if x]}


def normalizer(rnd, nested=False):
    kind = rnd.choice(["none", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Nmt", "Prepend", "Replace", "Regex", "ByteLevel", "Sequence", "Sequence", "Precompiled"])
    if kind == "Sequence":
        return sequence(rnd, normalizer, "normalizers", nested, 4)
    if kind == "Replace":
        return {"type": kind, "pattern": {"String": rnd.choice([" ", "  ", "a", "é", "▁▁", "."])}, "content": rnd.choice(["▁", " ", "", "xx", "é"])}
    if kind == "Regex":
        pattern = rnd.choice([" {2,}", "[a-c]+", "\\s*", "\\p{L}\\p{M}*", "(?=b)", "\\R"])
        return {"type": "Replace", "pattern": {"Regex": pattern}, "content": rnd.choice(["▁", " ", "", "xx", "\\0"])}
    fields = {"Strip": {"strip_left": coin(rnd), "strip_right": coin(rnd)}, "Prepend": {"prepend": rnd.choice(["▁", " ", "x▁"])}, "Precompiled": {"precompiled_charsmap": CHARSMAP}}
    return None if kind == "none" else {"type": kind, **fields.get(kind, {})}


def pre_tokenizer(rnd, nested=False):
    kind = rnd.choice(["none", "ByteLevel", "Metaspace", "Metaspace", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "CharDelimiterSplit", "BertPreTokenizer", "FixedLength", "Split", "Regex",
                       "Sequence", "Sequence"])
    if kind == "Sequence":
        return sequence(rnd, pre_tokenizer, "pretokenizers", nested, 4)
    split = {"behavior": rnd.choice(BEHAVIORS), "invert": coin(rnd)}
    if kind == "Split":
        return {"type": kind, "pattern": {"String": rnd.choice(["a", " ", "  ", "▁", ".", "ab", ""])}, **split}
    if kind == "Regex":
        return {"type": "Split", "pattern": {"Regex": rnd.choice(["\\s+", "[a-c]+", "\\p{L}+|\\p{N}", "\\w*", "(?<=a)", "'s|\\s+(?!\\S)"])}, **split}
    fields = {"ByteLevel": {"add_prefix_space": coin(rnd), "trim_offsets": True, "use_regex": coin(rnd)},
              "Metaspace": {"replacement": rnd.choice("▁▁▁_a"), "prepend_scheme": rnd.choice(SCHEMES), "split": coin(rnd)}, "Digits": {"individual_digits": coin(rnd)},
              "Punctuation": {"behavior": rnd.choice(BEHAVIORS)}, "CharDelimiterSplit": {"delimiter": rnd.choice("a ▁.")}, "FixedLength": {"length": rnd.randrange(1, 6)}}
    return None if kind == "none" else {"type": kind, **fields.get(kind, {})}


def decoder(rnd, nested=False):
    kind = rnd.choice(["none", "ByteLevel", "ByteFallback", "ByteFallback", "Fuse", "Strip", "Replace", "Regex", "Metaspace", "Sequence", "Sequence", "Sequence", "Sequence"])
    if kind == "Sequence":
        return sequence(rnd, decoder, "decoders", nested, 5)
    if kind == "Replace":
        return {"type": kind, "pattern": {"String": rnd.choice([" ", "▁", "a", "▁▁", "th", "tht", "", "<0x"])}, "content": rnd.choice(["▁", " ", "", "xx", "é"])}
    if kind == "Regex":
        return {"type": "Replace", "pattern": {"Regex": rnd.choice(["[a-c]+", "▁*", "t.", "\\s"])}, "content": rnd.choice(["▁", " ", "", "xx"])}
    fields = {"ByteLevel": {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}, "Strip": {"content": rnd.choice(" ▁at"), "start": rnd.randrange(3), "stop": rnd.choice([0, 0, 1, 2])},
              "Metaspace": {"replacement": rnd.choice("▁▁ta"), "prepend_scheme": rnd.choice(SCHEMES), "split": True}}
    return None if kind == "none" else {"type": kind, **fields.get(kind, {})}


def text(rnd):
    return "".join(rnd.choice(PARTS) for _ in range(rnd.randrange(1, 18)))


def random_ids(rnd, reference, byte_ids):
    ids = []
    for _ in range(rnd.randrange(1, 10)):
        if byte_ids[0] is not None and coin(rnd, 0.4):
            ids += [byte_ids[b] for b in rnd.choice(BYTE_RUNS)]
        else:
            ids.append(rnd.randrange(reference.get_vocab_size() + 2))
    return ids


def attempt(call):
    """What the call gives, or None where the reference fails; its Rust code panics on some edges."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def record(rnd, base, whole):
    model = whole["model"]
    change = {"normalizer": normalizer(rnd), "pre_tokenizer": pre_tokenizer(rnd), "decoder": decoder(rnd), "model": {}}
    # Offsets inside the spelling of one character matter to the reference here.
    if '"ByteLevel"' in json.dumps(change["normalizer"]) and '"first"' in json.dumps(change["pre_tokenizer"]):
        return None
    if coin(rnd, 0.3):
        change["model"]["byte_fallback"] = not model.get("byte_fallback", False)
    if model["type"] == "BPE" and coin(rnd, 0.3):
        change["model"]["fuse_unk"] = not model.get("fuse_unk", False)
    whole = {**whole, **change, "model": {**model, **change["model"]}}
    reference = attempt(lambda: Tokenizer.from_str(json.dumps(whole)))
    if reference is None:
        return None
    byte_ids = [reference.token_to_id(f"<0x{b:02X}>") for b in range(256)]
    texts = [text(rnd) for _ in range(12)]
    encoded = [[t, attempt(lambda: reference.encode(t, add_special_tokens=False).ids)] for t in texts]
    streams = [(random_ids(rnd, reference, byte_ids), coin(rnd)) for _ in range(8)]
    decoded = [[ids, skip, attempt(lambda: reference.decode(ids, skip_special_tokens=skip))] for ids, skip in streams]
    return {"base": base, "set": change, "encode": [x for x in encoded if x[-1] is not None], "decode": [x for x in decoded if x[-1] is not None]}


def main():
    global CHARSMAP
    CHARSMAP = pathlib.Path(sys.argv[2]).read_text().strip()
    rnd = random.Random(4)
    bases = {name: json.loads((pathlib.Path(sys.argv[1]) / name / "tokenizer.json").read_text()) for name in BASES}
    for whole in bases.values():
        for token in whole["added_tokens"]:
            token["normalized"] = False
    written = 0
    while written < 120:
        base = rnd.choice(BASES)
        if (made := record(rnd, base, bases[base])) is not None:
            print(json.dumps(made, ensure_ascii=False, separators=(",", ":")))
            written += 1


main()
