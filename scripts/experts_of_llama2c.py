#!/usr/bin/env python3
"""Converts a checkpoint of llama2.c to a Mixtral in Hugging Face's format, whose experts are copies of its networks.

    scripts/experts_of_llama2c.py MODEL.bin FOLDER [--experts 8] [--top-k 2] [--seed 1]

Routers are random. As the weights of a token's experts sum to 1, the model generates what the checkpoint does. For tests
and examples.
"""
import argparse
import array
import json
import pathlib
import random
import struct
import sys

from llama2c_file import HEADER_BYTES, read_sizes


def read(path):
    """Returns the sizes of a checkpoint, and its numbers."""
    data = path.read_bytes()
    sizes = read_sizes(data, path)
    numbers = array.array("f", data[HEADER_BYTES:])
    if sys.byteorder == "big":
        numbers.byteswap()
    return sizes, numbers


def halves(matrix, heads, cols):
    """Orders the rows of each head for the rotation of elements that are half a head apart."""
    per_head = len(matrix) // cols // heads
    order = [head * per_head + row for head in range(heads)
             for row in (*range(0, per_head, 2), *range(1, per_head, 2))]
    result = array.array("f")
    for row in order:
        result.extend(matrix[row * cols:(row + 1) * cols])
    return result


def tensors_of(sizes, numbers, experts, seed):
    """Yields names, shapes and numbers."""
    dim, hidden, layers, vocab = (sizes[key] for key in ("dim", "hidden", "layers", "vocab"))
    kv_dim = dim // sizes["heads"] * sizes["kv_heads"]
    draw = random.Random(seed)
    place = 0

    def take(count):
        nonlocal place
        place += count
        if place > len(numbers):
            raise ValueError(f"the checkpoint ends after {len(numbers)} of at least {place} numbers")
        return numbers[place - count:place]

    yield "model.embed_tokens", (abs(vocab), dim), take(abs(vocab) * dim)
    kinds = (("input_layernorm", (dim,)), ("self_attn.q_proj", (dim, dim)), ("self_attn.k_proj", (kv_dim, dim)),
             ("self_attn.v_proj", (kv_dim, dim)), ("self_attn.o_proj", (dim, dim)),
             ("post_attention_layernorm", (dim,)), ("w1", (hidden, dim)), ("w2", (dim, hidden)), ("w3", (hidden, dim)))
    for name, shape in kinds:
        for layer in range(layers):
            matrix = take(shape[0] * (shape[1] if len(shape) > 1 else 1))
            prefix = f"model.layers.{layer}."
            if name.endswith(("q_proj", "k_proj")):
                matrix = halves(matrix, sizes["heads" if name.endswith("q_proj") else "kv_heads"], dim)
            if not name.startswith("w"):
                yield prefix + name, shape, matrix
                continue
            for expert in range(experts):
                yield f"{prefix}block_sparse_moe.experts.{expert}.{name}", shape, matrix
    for layer in range(layers):
        router = array.array("f", (draw.gauss(0, 0.3) for _ in range(experts * dim)))
        yield f"model.layers.{layer}.block_sparse_moe.gate", (experts, dim), router
    yield "model.norm", (dim,), take(dim)
    take(sizes["positions"] * (dim // sizes["heads"]))  # the tables of the rotation
    if vocab < 0:
        yield "lm_head", (-vocab, dim), take(-vocab * dim)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--experts", type=int, default=8, help="of a layer")
    parser.add_argument("--top-k", type=int, default=2, help="experts of a token")
    parser.add_argument("--seed", type=int, default=1, help="of the routers")
    options = parser.parse_args()
    if not 1 <= options.top_k <= options.experts:
        parser.error("--top-k must be from 1 to --experts")
    try:
        convert(options)
    except (OSError, ValueError) as error:
        sys.exit(f"experts_of_llama2c.py: {error}")


def convert(options):
    sizes, numbers = read(options.model)
    header, data = {}, []
    offset = 0
    for name, shape, matrix in tensors_of(sizes, numbers, options.experts, options.seed):
        if sys.byteorder == "big":
            matrix.byteswap()
        data.append(matrix.tobytes())
        header[name + ".weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(data[-1])]}
        offset += len(data[-1])
    text = json.dumps(header).encode()
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))
    (options.folder / "config.json").write_text(json.dumps({
        "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": sizes["dim"],
        "intermediate_size": sizes["hidden"], "num_hidden_layers": sizes["layers"],
        "num_attention_heads": sizes["heads"], "num_key_value_heads": sizes["kv_heads"],
        "vocab_size": abs(sizes["vocab"]), "max_position_embeddings": sizes["positions"], "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": sizes["vocab"] > 0, "bos_token_id": 1, "eos_token_id": [1, 2],
        "num_local_experts": options.experts, "num_experts_per_tok": options.top_k, "torch_dtype": "float32"}))


if __name__ == "__main__":
    main()
