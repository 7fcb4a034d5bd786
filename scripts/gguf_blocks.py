#!/usr/bin/env python3
"""Writes random blocks of each quantised type of GGUF files and the weights that they stand for.

    scripts/gguf_blocks.py [OUTPUT.json]        # default: tests/data/gguf_blocks.json

The decoders here use numpy, and are independent of those in kernels/model/block_formats.cpp, which a test compares with
them. They follow the types' definitions in ggml (ggml-common.h); the sizes of all fields are in FIELDS. Values are
computed in FP64, in which all of them are exact.
"""
import json
import pathlib
import sys

import numpy as np

# The fields of a block in the order of its bytes: name and number of bytes. `d` and `e` are f16.
FIELDS = {
    "q8_0": (("d", 2), ("low", 32)),
    "q4_0": (("d", 2), ("low", 16)),
    "q4_k": (("d", 2), ("e", 2), ("scales", 12), ("low", 128)),
    "q6_k": (("low", 128), ("high", 64), ("scales", 16), ("d", 2)),
    "q5_0": (("d", 2), ("high", 4), ("low", 16)),
    "iq4_nl": (("d", 2), ("low", 16)),
    "q3_k": (("high", 32), ("low", 64), ("scales", 12), ("d", 2)),
    "q4_1": (("d", 2), ("e", 2), ("low", 16)),
    "q5_1": (("d", 2), ("e", 2), ("high", 4), ("low", 16)),
    "q5_k": (("d", 2), ("e", 2), ("scales", 12), ("high", 32), ("low", 128)),
    "q2_k": (("scales", 16), ("low", 64), ("d", 2), ("e", 2)),
    "iq4_xs": (("d", 2), ("scales_high", 2), ("scales", 4), ("low", 128)),
    "mxfp4": (("exponent", 1), ("low", 16)),
    "tq1_0": (("digits", 52), ("d", 2)),
    "tq2_0": (("low", 64), ("d", 2)),
}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])


def bits(data):
    """Returns the bits of each block's bytes, from the lowest one of the first byte upwards."""
    return np.unpackbits(data, axis=1, bitorder="little").astype(np.int64)


def number(*planes):
    """Makes integers of bits, the lowest one first."""
    return sum(plane << weight for weight, plane in enumerate(planes))


def columns(data, width, run):
    """Returns integers of `width` bits of which bytes hold several: in each run of bytes, those in the lowest bits of all
    bytes come first."""
    planes = bits(data).reshape(len(data), -1, run, 8 // width, width)
    return number(*np.moveaxis(planes, 4, 0)).transpose(0, 1, 3, 2).reshape(len(data), -1)


def signed(data):
    return data.view(np.int8).astype(np.int64)


def digits(data):
    """Returns five digits to the base of 3 of each byte, the highest one of all bytes first: a byte is 256/243 of the
    number, rounded up."""
    rest, result = data.astype(np.int64) * 243 // 256, []
    for power in (81, 27, 9, 3, 1):
        result.append(rest // power)
        rest = rest % power
    return np.concatenate(result, axis=1)


def k_scales(scales):
    """Returns the 8 factors and the 8 minima of q4_k and q5_k: (blocks, 8) each."""
    field = bits(scales).reshape(len(scales), 12, 8)
    six = number(*(field[:, :8, i] for i in range(6)))
    top = number(field[:, :8, 6], field[:, :8, 7])
    low, high = (number(*(field[:, 8:, i + at] for i in range(4))) for at in (0, 4))
    return (np.concatenate([six[:, :4], low + 16 * top[:, :4]], axis=1),
            np.concatenate([six[:, 4:], high + 16 * top[:, 4:]], axis=1))


def q3_scales(scales):
    low, high = columns(scales[:, :8], 4, 8), columns(scales[:, 8:], 2, 4)
    return low + 16 * high - 32


def spread(factors, size):
    return np.repeat(factors, size, axis=1)


def decode(kind, block):
    """Returns the weights (blocks, elements) of a type's fields: arrays of bytes (blocks, size)."""
    d, e = (block[name].view("<f2").astype(np.float64) if name in block else 0 for name in ("d", "e"))
    low, high, scales = (block.get(name) for name in ("low", "high", "scales"))
    if kind == "q8_0":
        return d * signed(low)
    if kind in ("q4_0", "iq4_nl", "q4_1"):
        q = columns(low, 4, 16)
        return d * (q - 8) if kind == "q4_0" else d * IQ4[q] if kind == "iq4_nl" else d * q + e
    if kind in ("q5_0", "q5_1"):
        q = columns(low, 4, 16) + 16 * bits(high)
        return d * (q - 16) if kind == "q5_0" else d * q + e
    if kind in ("q4_k", "q5_k"):
        q = columns(low, 4, 32) + (16 * columns(high, 1, 32) if kind == "q5_k" else 0)
        factors, minima = k_scales(scales)
        return d * spread(factors, 32) * q - e * spread(minima, 32)
    if kind == "q6_k":
        q = columns(low, 4, 64) + 16 * columns(high, 2, 32)
        return d * spread(signed(scales), 16) * (q - 32)
    if kind == "q3_k":
        q = columns(low, 2, 32) + 4 * columns(high, 1, 32)
        return d * spread(q3_scales(scales), 16) * (q - 4)
    if kind == "q2_k":
        return d * spread(scales & 15, 16) * columns(low, 2, 32) - e * spread(scales >> 4, 16)
    if kind == "mxfp4":
        return np.exp2(block["exponent"].astype(np.float64) - 127) * E2M1[columns(low, 4, 16)]
    if kind == "tq2_0":
        return d * (columns(low, 2, 32) - 1)
    if kind == "tq1_0":
        return d * (np.concatenate([digits(part) for part in np.split(block["digits"], [32, 48], axis=1)], axis=1)[:, :256] - 1)
    assert kind == "iq4_xs"
    factors = columns(scales, 4, 1) + 16 * columns(block["scales_high"], 2, 1) - 32
    return d * spread(factors, 32) * IQ4[columns(low, 4, 16)]


def random_blocks(kind, count, draw):
    """Returns the bytes (count, size) of blocks whose bytes are random, but for scales of f16, which are between 2^-12 and 1
    or the negative of such."""
    fields = {}
    for name, size in FIELDS[kind]:
        if name in ("d", "e"):
            sizes = draw.choice([-1, 1], (count, 1)) * np.exp2(-12 * draw.random((count, 1)))
            fields[name] = sizes.astype("<f2").view(np.uint8)
        elif name == "digits":
            numbers = draw.integers(0, 243, (count, size))
            fields[name] = ((numbers * 256 + 242) // 243).astype(np.uint8)
        elif name == "exponent":
            fields[name] = draw.integers(0, 255, (count, size), np.uint8)
        else:
            fields[name] = draw.integers(0, 256, (count, size), np.uint8)
    return fields


def table(seed=20261129):
    draw = np.random.default_rng(seed)
    result = {}
    for kind, fields in FIELDS.items():
        block = random_blocks(kind, 2 if sum(size for _, size in fields) > 64 else 8, draw)
        data = np.concatenate([block[name] for name, _ in fields], axis=1)
        result[kind] = {"bytes": data.tobytes().hex(), "values": decode(kind, block).ravel().tolist()}
    return result


def as_text(result):
    return "{\n" + ",\n".join(f'"{kind}": {json.dumps(one)}' for kind, one in result.items()) + "\n}\n"


if __name__ == "__main__":
    default = pathlib.Path(__file__).resolve().parent.parent / "tests/data/gguf_blocks.json"
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else default).write_text(as_text(table()))
