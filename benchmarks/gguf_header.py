"""What a GGUF file says of itself in its header: metadata, and the shape and type of every tensor."""

import dataclasses
import math
import struct

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
# Type number: (name, values per block, bytes per block).
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 30: ("BF16", 1, 2), 39: ("MXFP4", 32, 17)}
FLOATS = ("F32", "F16", "BF16")


@dataclasses.dataclass
class Tensor:
    name: str
    type: str
    values: int
    bytes: int


class Reader:
    def __init__(self, file):
        self.file = file

    def take(self, form):
        return struct.unpack("<" + form, self.file.read(struct.calcsize("<" + form)))[0]

    def string(self):
        return self.file.read(self.take("Q")).decode(errors="replace")

    def value(self, kind):
        if kind in SCALARS:
            return self.take(SCALARS[kind])
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            raise ValueError(f"metadata of the unknown type {kind}")
        of, count = self.take("I"), self.take("Q")
        return [self.value(of) for _ in range(count)]


@dataclasses.dataclass
class Header:
    metadata: dict
    tensors: list

    def field(self, name, otherwise=None):
        """A field of the model's architecture."""
        return self.metadata.get(f"{self.metadata.get('general.architecture')}.{name}", otherwise)

    @property
    def vocabulary(self):
        return len(self.metadata.get("tokenizer.ggml.tokens", [])) or self.field("vocab_size", 0)

    @property
    def integer(self):
        """Whether most of the weights are blocks of integers."""
        blocks = sum(tensor.values for tensor in self.tensors if tensor.type not in FLOATS)
        return 2 * blocks > sum(tensor.values for tensor in self.tensors)

    def as_block_fp8(self):
        """What a folder of the same model in BF16 becomes with --quantization fp8_per_block: the matrices of the layers
        take a byte a weight, their scales next to nothing; embeddings, lm_head and routers stay."""
        def kept(tensor):
            return tensor.name in ("token_embd.weight", "output.weight") or "ffn_gate_inp" in tensor.name
        def bytes_of(tensor):
            return tensor.values * (2 if kept(tensor) else 1) if tensor.type != "F32" else tensor.bytes
        return Header(self.metadata, [dataclasses.replace(tensor, type="F8_E4M3", bytes=bytes_of(tensor))
                                      for tensor in self.tensors])

    def token_cost(self, rows, logits_rows):
        """Bytes of weights that a step of `rows` tokens reads, and operations of a token in it: matrices alone."""
        tied = all(tensor.name != "output.weight" for tensor in self.tensors)
        experts, used = self.field("expert_count", 0), self.field("expert_used_count", 0)
        read = operations = 0
        for tensor in self.tensors:
            share = computed = 1
            if tensor.name == "token_embd.weight" and not tied:
                continue
            if tensor.name in ("token_embd.weight", "output.weight"):
                computed = logits_rows / rows
            if "_exps." in tensor.name and experts:
                share = 1 - (1 - used / experts) ** rows  # experts that some row chose, where each is as likely
                computed = used / experts
            read += tensor.bytes * share
            operations += 2 * tensor.values * computed
        return read, operations


def read_header(path):
    with open(path, "rb") as file:
        reader = Reader(file)
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path}: not a GGUF file")
        reader.take("I")
        tensor_count, field_count = reader.take("Q"), reader.take("Q")
        metadata = {}
        for _ in range(field_count):
            name = reader.string()
            metadata[name] = reader.value(reader.take("I"))
        tensors = []
        for _ in range(tensor_count):
            name = reader.string()
            values = math.prod([reader.take("Q") for _ in range(reader.take("I"))])
            number = reader.take("I")
            reader.take("Q")
            if number not in TYPES:
                raise ValueError(f"{path}: {name} has the unknown type {number}")
            kind, block, size = TYPES[number]
            tensors.append(Tensor(name, kind, values, values // block * size))
        return Header(metadata, tensors)
