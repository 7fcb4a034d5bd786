#!/usr/bin/env python3
"""Converts a checkpoint of llama2.c and its tokenizer to a GGUF file of architecture llama.

    scripts/gguf_of_llama2c.py MODEL.bin TOKENIZER.bin OUTPUT.gguf [--type TYPE] [--experts N]

TYPE is f32, f16, bf16, q8_0, q4_0, q4_k, q6_k, q5_1 or iq4_nl.

Norms, and matrices whose rows are not whole blocks of the type, stay f32. Quantisation is plain rounding, which is good
enough for tests and examples. With --experts, a layer has N copies of its network as experts, of which a random router
selects 2 for each token: their weights sum to 1, so the model generates the same.
"""
import argparse
import pathlib
import struct
import sys

import numpy as np
from llama2c_file import HEADER_BYTES, read_sizes

U32, F32, TEXT, ARRAY, I32 = 4, 6, 8, 9, 5  # types of values
TYPES = {"f32": (0, 1), "f16": (1, 1), "bf16": (30, 1), "q8_0": (8, 32), "q4_0": (2, 32), "q4_k": (12, 256),
         "q6_k": (14, 256), "q5_1": (7, 32), "iq4_nl": (20, 32)}  # number, elements of a block
ALIGNMENT = 32


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


class Writer:
    """Collects the values and tensors of a GGUF file of version 3."""

    def __init__(self):
        self.values, self.tensors, self.unchanged = [], [], []

    def add(self, key, kind, data):
        self.values.append(text(key) + struct.pack("<I", kind) + data)

    def add_u32(self, key, value):
        self.add(key, U32, struct.pack("<I", value))

    def add_f32(self, key, value):
        self.add(key, F32, struct.pack("<f", value))

    def add_text(self, key, value):
        self.add(key, TEXT, text(value))

    def add_list(self, key, kind, items):
        form = {F32: "<f", I32: "<i"}.get(kind)
        data = b"".join(struct.pack(form, item) if form else text(item) for item in items)
        self.add(key, ARRAY, struct.pack("<IQ", kind, len(items)) + data)

    def add_tensor(self, name, matrix, kind="f32"):
        """Adds a tensor in a type, or in f32 if its rows are no whole blocks."""
        if matrix.ndim < 2:
            kind = "f32"
        elif matrix.shape[-1] % TYPES[kind][1] != 0:
            self.unchanged.append(name)
            kind = "f32"
        self.tensors.append((name, matrix.shape, TYPES[kind][0], encode(matrix, kind)))

    def data(self):
        infos, data = b"", b""
        for name, shape, kind, stored in self.tensors:
            infos += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
            infos += struct.pack("<IQ", kind, len(data))
            data += stored + bytes(-len(stored) % ALIGNMENT)
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.values)) + b"".join(self.values) + infos
        return head + bytes(-len(head) % ALIGNMENT) + data


def scales(values):
    """Rounds scales to f16, and returns them as f32 and as bytes."""
    stored = values.astype("<f2")
    return stored.astype(np.float32), stored.view(np.uint8).reshape(len(values), 2)


def rounded(values, steps, least, most):
    """Divides by steps, of which 0 stands for blocks of 0, and rounds."""
    steps = np.where(steps == 0, 1, steps)
    return np.clip(np.rint(values / steps), least, most).astype(np.int32)


def halves(low, high):
    return (low | high << 4).astype(np.uint8)


def encode_q8_0(blocks):
    scale, data = scales(np.abs(blocks).max(axis=1) / 127)
    return data, rounded(blocks, scale[:, None], -127, 127).astype(np.int8).view(np.uint8)


def encode_q4_0(blocks):
    scale, data = scales(np.abs(blocks).max(axis=1) / 7)
    quants = rounded(blocks, scale[:, None], -8, 7) + 8
    return data, halves(quants[:, :16], quants[:, 16:])


def encode_q4_k(blocks):
    groups = blocks.reshape(len(blocks), 8, 32)
    offsets = np.maximum(-groups.min(axis=2), 0)
    steps = (groups.max(axis=2) + offsets) / 15
    scale, scale_data = scales(steps.max(axis=1) / 63)
    least, least_data = scales(offsets.max(axis=1) / 63)
    factor, minimum = rounded(steps, scale[:, None], 0, 63), rounded(offsets, least[:, None], 0, 63)
    step, offset = factor * scale[:, None], minimum * least[:, None]
    quants = rounded(groups + offset[:, :, None], step[:, :, None], 0, 15)
    packed = np.concatenate([factor[:, :4] | factor[:, 4:] >> 4 << 6, minimum[:, :4] | minimum[:, 4:] >> 4 << 6,
                             factor[:, 4:] & 15 | (minimum[:, 4:] & 15) << 4], axis=1).astype(np.uint8)
    return scale_data, least_data, packed, halves(quants[:, 0::2], quants[:, 1::2]).reshape(len(blocks), 128)


def encode_q6_k(blocks):
    groups = blocks.reshape(len(blocks), 16, 16)
    steps = np.abs(groups).max(axis=2) / 31
    scale, data = scales(steps.max(axis=1) / 127)
    factor = rounded(steps, scale[:, None], 0, 127)
    step = (factor * scale[:, None])[:, :, None]
    quants = rounded(groups, step, -32, 31).reshape(len(blocks), 2, 4, 32) + 32  # halves, quarters of a half
    low, high = quants & 15, quants >> 4
    low = halves(low[:, :, :2], low[:, :, 2:]).reshape(len(blocks), 128)
    high = (high << np.array([0, 2, 4, 6]).reshape(1, 1, 4, 1)).sum(axis=2).astype(np.uint8)
    return low, high.reshape(len(blocks), 64), factor.astype(np.int8).view(np.uint8), data


def encode_q5_1(blocks):
    least, least_data = scales(blocks.min(axis=1))
    scale, data = scales((blocks.max(axis=1) - least) / 31)
    quants = rounded(blocks - least[:, None], scale[:, None], 0, 31)
    high = np.packbits(quants >> 4, axis=1, bitorder="little")
    return data, least_data, high, halves(quants[:, :16] & 15, quants[:, 16:] & 15)


def encode_iq4_nl(blocks):
    integers = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
    scale, data = scales(np.abs(blocks).max(axis=1) / 113)
    ratios = blocks / np.where(scale == 0, 1, scale)[:, None]
    quants = np.abs(ratios[:, :, None] - integers).argmin(axis=2)
    return data, halves(quants[:, :16], quants[:, 16:])


def encode(matrix, kind):
    matrix = np.ascontiguousarray(matrix, dtype="<f4")
    if kind == "f32":
        return matrix.tobytes()
    if kind == "f16":
        return matrix.astype("<f2").tobytes()
    if kind == "bf16":
        bits = matrix.view("<u4").astype(np.uint64)
        return (bits + 0x7fff + (bits >> 16 & 1) >> 16).astype("<u2").tobytes()
    encoders = {"q8_0": encode_q8_0, "q4_0": encode_q4_0, "q4_k": encode_q4_k, "q6_k": encode_q6_k,
                "q5_1": encode_q5_1, "iq4_nl": encode_iq4_nl}
    return np.concatenate(encoders[kind](matrix.reshape(-1, TYPES[kind][1])), axis=1).tobytes()


def add_tokens(file, data, vocab):
    tokens, scores, kinds, at = [], [], [], 4
    for token in range(vocab):
        score, length = struct.unpack_from("<fi", data, at)
        name = data[at + 8:at + 8 + length]
        at += 8 + length
        is_byte = len(name) == 6 and name.startswith(b"<0x")
        tokens.append({0: b"<unk>", 1: b"<s>", 2: b"</s>"}.get(token, name.replace(b" ", "\u2581".encode())))
        kinds.append(2 if token == 0 else 3 if token < 3 else 6 if is_byte else 1)
        scores.append(score)
    file.add_text("tokenizer.ggml.model", "llama")
    file.add_list("tokenizer.ggml.tokens", TEXT, tokens)
    file.add_list("tokenizer.ggml.scores", F32, scores)
    file.add_list("tokenizer.ggml.token_type", I32, kinds)
    file.add_u32("tokenizer.ggml.bos_token_id", 1)
    file.add_u32("tokenizer.ggml.eos_token_id", 2)
    file.add_u32("tokenizer.ggml.eot_token_id", 1)  # of the next text


def convert(model, tokenizer, kind="f32", experts=0):
    """Returns the bytes of the GGUF file."""
    data = pathlib.Path(model).read_bytes()
    dim, hidden, layers, heads, kv_heads, vocab, positions = read_sizes(data, model).values()
    tied, vocab, head_dim = vocab > 0, abs(vocab), dim // heads
    numbers, at = np.frombuffer(data, "<f4", offset=HEADER_BYTES), 0

    def take(*shape):
        nonlocal at
        count = int(np.prod(shape))
        at += count
        return numbers[at - count:at].reshape(shape)

    file = Writer()
    file.add_text("general.architecture", "llama")
    file.add_text("general.name", pathlib.Path(model).stem)
    for key, value in (("context_length", positions), ("embedding_length", dim), ("feed_forward_length", hidden),
                       ("block_count", layers), ("attention.head_count", heads),
                       ("attention.head_count_kv", kv_heads), ("rope.dimension_count", head_dim)):
        file.add_u32(f"llama.{key}", value)
    file.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    add_tokens(file, pathlib.Path(tokenizer).read_bytes(), vocab)
    file.add_tensor("token_embd.weight", take(vocab, dim), kind)
    # Like GGUF, llama2.c rotates neighbouring elements, so the rows of wq and wk keep their order.
    kv_dim = kv_heads * head_dim
    for name, shape in (("attn_norm", (dim,)), ("attn_q", (dim, dim)), ("attn_k", (kv_dim, dim)),
                        ("attn_v", (kv_dim, dim)), ("attn_output", (dim, dim)), ("ffn_norm", (dim,)),
                        ("ffn_gate", (hidden, dim)), ("ffn_down", (dim, hidden)), ("ffn_up", (hidden, dim))):
        for layer in range(layers):
            matrix = take(*shape)
            copied = experts > 0 and name in ("ffn_gate", "ffn_down", "ffn_up")
            file.add_tensor(f"blk.{layer}.{name}{'_exps' if copied else ''}.weight",
                            np.stack([matrix] * experts) if copied else matrix, kind)
    if experts > 0:
        file.add_u32("llama.expert_count", experts)
        file.add_u32("llama.expert_used_count", 2)
        draw = np.random.default_rng(1)
        for layer in range(layers):
            file.add_tensor(f"blk.{layer}.ffn_gate_inp.weight", 0.3 * draw.standard_normal((experts, dim)))
    file.add_tensor("output_norm.weight", take(dim))
    take(positions, head_dim)  # tables of rope
    if not tied:
        file.add_tensor("output.weight", take(vocab, dim), kind)
    if file.unchanged:
        matrices = sum(len(shape) > 1 for _, shape, _, _ in file.tensors)
        print(f"gguf_of_llama2c.py: {len(file.unchanged)} of {matrices} matrices stay f32: their rows are not whole "
              f"blocks of {TYPES[kind][1]} elements", file=sys.stderr)
    return file.data()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("tokenizer")
    parser.add_argument("output")
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--experts", type=int, default=0)
    options = parser.parse_args()
    try:
        converted = convert(options.model, options.tokenizer, options.type, options.experts)
        pathlib.Path(options.output).write_bytes(converted)
    except (OSError, ValueError) as error:
        sys.exit(f"gguf_of_llama2c.py: {error}")
