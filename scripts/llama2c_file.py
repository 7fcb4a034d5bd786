"""Checkpoints of llama2.c: seven integers, then numbers of f32, little-endian."""
import struct

SIZES = ("dim", "hidden", "layers", "heads", "kv_heads", "vocab", "positions")
HEADER_BYTES = 4 * len(SIZES)


def read_sizes(data, path):
    """Returns the sizes of a checkpoint's bytes. Those of `vocab` are negative if the head is not the embedding."""
    if len(data) < HEADER_BYTES or len(data) % 4 != 0:
        raise ValueError(f"{path}: is not a checkpoint of llama2.c")
    sizes = dict(zip(SIZES, struct.unpack("<7i", data[:HEADER_BYTES])))
    if min(size for key, size in sizes.items() if key != "vocab") < 1 or sizes["dim"] % sizes["heads"] != 0:
        raise ValueError(f"{path}: is not a checkpoint of llama2.c: its sizes are {sizes}")
    return sizes
