#!/usr/bin/env python3
"""Computes the most likely tokens of a folder of Hugging Face with numpy in FP64.

    fp64_llama.py FOLDER COUNT ID...

The code is independent of GRETA's: it follows the definitions of the models in transformers, and of the quantised weights in
AutoAWQ, GPTQModel and compressed-tensors. It prints the tokens after the given ones, and for each the difference between the
logits of the first and of the second choice.
"""
import json
import math
import pathlib
import sys

import numpy as np

PLAIN = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I8": "i1", "U8": "u1", "I32": "<i4", "I64": "<i8"}
AWQ_ORDER = [0, 4, 1, 5, 2, 6, 3, 7]  # nibble of each of 8 columns


def e4m3(codes):
    sign, exponent, mantissa = codes >> 7, (codes >> 3) & 15, codes & 7
    size = np.where(exponent == 0, mantissa / 512, (1 + mantissa / 8) * np.exp2(exponent - 7.0))
    return np.where(sign == 1, -size, size)


def read_file(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        raw, kind = data[begin:end], entry["dtype"]
        if kind == "BF16":
            values = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        elif kind == "F8_E4M3":
            values = e4m3(np.frombuffer(raw, "u1").astype(np.int64))
        else:
            values = np.frombuffer(raw, PLAIN[kind])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def unpack(words, bits):
    """Returns the integers of each word, lowest bits first, along a new last axis."""
    return (words.astype(np.uint32)[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)) & ((1 << bits) - 1)


def nearest_e4m3(values):
    """Returns the numbers of e4m3 that are nearest, and the largest one for those beyond it."""
    values = np.clip(values, -448, 448)
    step = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(values), 1e-30))), -6) - 3)
    return np.rint(values / step) * step


def nearest_int8(values):
    return np.clip(np.rint(values), -128, 127)


class Weights:
    def __init__(self, folder):
        index = folder / "model.safetensors.index.json"
        names = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {"model.safetensors"}
        self.tensors = {}
        for name in names:
            self.tensors.update(read_file(folder / name))
        self.quantised = json.loads((folder / "config.json").read_text()).get("quantization_config", {})

    def has(self, name):
        return name in self.tensors

    def plain(self, name):
        return self.tensors[name].astype(np.float64)

    def matrix(self, name):
        """Returns the matrix [outputs, inputs] of a module."""
        if self.has(name + ".qweight"):
            return self.packed(name, self.quantised["quant_method"] == "awq")
        if self.has(name + ".weight_packed"):
            return self.compressed(name + ".weight")
        weight = self.plain(name + ".weight")
        for suffix in (".weight_scale_inv", ".weight_scale"):
            if self.has(name + suffix):
                return weight * self.scales(self.plain(name + suffix), weight.shape)
        return weight

    def quantised_rows(self, name, x):
        """Returns what a module with static activations multiplies: vLLM's runtime quantises the rows of modules that have the
        same ones once, by the greatest of their scales."""
        if not self.has(name + ".input_scale"):
            return x
        parent, own = name.rsplit(".", 1)
        groups = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("w1", "w3"))
        same = next((group for group in groups if own in group), (own,))
        if ".experts." in parent:
            start = parent.split(".experts.")[0] + ".experts."
            names = [f"{start}{expert}.{one}" for expert in range(64) for one in same]
        else:
            names = [f"{parent}.{one}" for one in same]
        scale = max(self.plain(one + ".input_scale").item() for one in names if self.has(one + ".input_scale"))
        integers = self.tensors[name + ".weight"].dtype == np.int8
        return (nearest_int8 if integers else nearest_e4m3)(x / scale) * scale

    def scales(self, scales, shape):
        if scales.size == 1 or scales.shape == (shape[0], 1):
            return scales.reshape(-1, 1)
        blocks = np.repeat(np.repeat(scales, 128, axis=0), 128, axis=1)
        return blocks[:shape[0], :shape[1]]

    def packed(self, name, awq):
        bits = self.quantised["bits"]
        words, zeros = self.tensors[name + ".qweight"], unpack(self.tensors[name + ".qzeros"], bits)
        scales = self.plain(name + ".scales")
        if awq:
            q = unpack(words, 4)[..., AWQ_ORDER].reshape(len(words), -1)
            zeros = zeros[..., AWQ_ORDER]
        else:
            q = unpack(words, bits).transpose(0, 2, 1).reshape(-1, words.shape[1])
        zeros = zeros.reshape(len(zeros), -1).astype(np.int64)
        if not awq and self.quantised.get("checkpoint_format", "gptq") == "gptq":
            zeros = zeros + 1
        size = self.quantised["group_size"] if self.quantised["group_size"] > 0 else len(q)
        group = self.tensors.get(name + ".g_idx", np.arange(len(q)) // size)
        return ((q.astype(np.int64) - zeros[group]) * scales[group]).T

    def numbers_of_four_bits(self, name):
        bytes_ = self.tensors[name + "_packed"].astype(np.int64)
        codes = np.stack([bytes_ & 15, bytes_ >> 4], axis=-1).reshape(len(bytes_), -1)
        sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        numbers = np.where(codes < 8, 1, -1) * sizes[codes % 8]
        scales = self.plain(name + "_scale")
        if self.has(name + "_global_scale"):
            scales = (scales.astype("<f4") / self.tensors[name + "_global_scale"].astype("<f4")).astype(np.float64)
        else:
            scales = np.exp2(scales - 127)
        return numbers * np.repeat(scales, numbers.shape[1] // scales.shape[1], axis=1)

    def compressed(self, name):
        if self.quantised["config_groups"]["group_0"]["weights"]["type"] == "float":
            return self.numbers_of_four_bits(name)
        bits = self.quantised["config_groups"]["group_0"]["weights"]["num_bits"]
        rows, cols = self.tensors[name + "_shape"]
        q = unpack(self.tensors[name + "_packed"], bits).reshape(rows, -1)[:, :cols].astype(np.int64)
        scales = self.plain(name + "_scale")
        zeros = np.full(scales.shape, 1 << (bits - 1))
        if self.has(name + "_zero_point"):
            zeros = unpack(self.tensors[name + "_zero_point"], bits).transpose(0, 2, 1).reshape(-1, scales.shape[1])[:rows]
        group = self.tensors.get(name + "_g_idx", np.arange(cols) * scales.shape[1] // cols)
        return (q - zeros.astype(np.int64)[:, group]) * scales[:, group]


def frequencies(c, head):
    """Returns the radians of each pair for a position, and the factor of cosines and sines."""
    rope = c.get("rope_parameters") or c.get("rope_scaling") or {}
    theta = rope.get("rope_theta", c.get("rope_theta", 10000.0))
    own = theta ** (-np.arange(0, head, 2) / head)
    kind, factor = rope.get("rope_type", rope.get("type", "default")), rope.get("factor", 1.0)
    original = rope.get("original_max_position_embeddings", c["max_position_embeddings"])
    if kind in ("default", "dynamic"):  # which begins after the positions of the model
        return own, 1.0
    if kind == "linear":
        return own / factor, 1.0
    if kind == "llama3":
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        length = 2 * math.pi / own
        smooth = (original / length - low) / (high - low)
        between = (1 - smooth) * own / factor + smooth * own
        return np.where(length > original / low, own / factor, np.where(length < original / high, own, between)), 1.0
    assert kind == "yarn"

    def pair(rotations):
        return head * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    first, last = math.floor(pair(rope.get("beta_fast", 32))), math.ceil(pair(rope.get("beta_slow", 1)))
    first, last = max(first, 0), min(last, head - 1)
    ramp = np.clip((np.arange(head // 2) - first) / (last - first if last > first else 0.001), 0, 1)
    return own / factor * ramp + own * (1 - ramp), rope.get("attention_factor", 0.1 * math.log(factor) + 1)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


class Model:
    def __init__(self, folder):
        self.c = json.loads((folder / "config.json").read_text())
        self.w = Weights(folder)
        self.heads = self.c["num_attention_heads"]
        self.kv_heads = self.c.get("num_key_value_heads") or self.heads
        self.head = self.c.get("head_dim") or self.c["hidden_size"] // self.heads

    def linear(self, name, x):
        y = self.w.quantised_rows(name, x) @ self.w.matrix(name).T
        return y + self.w.plain(name + ".bias") if self.w.has(name + ".bias") else y

    def norm(self, name, x):
        mean = (x * x).mean(axis=-1, keepdims=True)
        return x / np.sqrt(mean + self.c["rms_norm_eps"]) * self.w.plain(name + ".weight")

    def rotated(self, x):
        radians, factor = frequencies(self.c, self.head)
        angles = np.arange(x.shape[1])[:, None] * radians
        cos, sin = factor * np.cos(angles), factor * np.sin(angles)
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def attention(self, at, x):
        count = len(x)

        def heads_of(name, number):
            y = self.linear(at + name + "_proj", x).reshape(count, number, self.head)
            if name != "v" and self.w.has(at + name + "_norm.weight"):
                y = self.norm(at + name + "_norm", y)
            return y.transpose(1, 0, 2)

        q, k = (self.rotated(heads_of(name, number)) for name, number in (("q", self.heads), ("k", self.kv_heads)))
        v = heads_of("v", self.kv_heads)
        k, v = (np.repeat(each, self.heads // self.kv_heads, axis=0) for each in (k, v))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(self.head)
        distance = np.arange(count)[:, None] - np.arange(count)
        window = (self.c.get("sliding_window") or count) if self.c["model_type"] in ("mistral", "mixtral") else count
        scores = np.where((distance >= 0) & (distance < window), scores, -np.inf)
        return self.linear(at + "o_proj", (softmax(scores) @ v).transpose(1, 0, 2).reshape(count, -1))

    def network(self, at, x, names=("gate_proj", "up_proj", "down_proj")):
        gate, up, down = names
        return self.linear(at + down, silu(self.linear(at + gate, x)) * self.linear(at + up, x))

    def experts(self, at, x):
        c, mixtral = self.c, self.c["model_type"] == "mixtral"
        names = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
        shares = softmax(self.linear(at + "gate", x))
        chosen = np.argsort(-shares, axis=-1, kind="stable")[:, :c["num_experts_per_tok"]]
        result = np.zeros_like(x)
        for row, ids in enumerate(chosen):
            weights = shares[row, ids]
            if mixtral or c.get("norm_topk_prob", False):
                weights = weights / weights.sum()
            for expert, weight in zip(ids, weights):
                result[row] += weight * self.network(f"{at}experts.{expert}.", x[row], names)
        if c["model_type"] == "qwen2_moe":
            result += self.network(at + "shared_expert.", x) / (1 + np.exp(-self.linear(at + "shared_expert_gate", x)))
        return result

    def logits(self, ids):
        x = self.w.plain("model.embed_tokens.weight")[ids]
        for layer in range(self.c["num_hidden_layers"]):
            at = f"model.layers.{layer}."
            x = x + self.attention(at + "self_attn.", self.norm(at + "input_layernorm", x))
            y = self.norm(at + "post_attention_layernorm", x)
            block = next((name for name in ("block_sparse_moe.", "mlp.") if self.w.has(at + name + "gate.weight")), None)
            x = x + (self.experts(at + block, y) if block else self.network(at + "mlp.", y))
        x = self.norm("model.norm", x[-1])
        tied = self.c.get("tie_word_embeddings", False)
        return x @ self.w.plain("model.embed_tokens.weight").T if tied else self.linear("lm_head", x)


def main():
    model, count = Model(pathlib.Path(sys.argv[1])), int(sys.argv[2])
    ids, gaps = [int(word) for word in sys.argv[3:]], []
    for _ in range(count):
        logits = model.logits(ids)
        second, first = np.sort(logits)[-2:]
        gaps.append(float(first - second))
        ids.append(int(np.argmax(logits)))
    print(json.dumps({"ids": ids[-count:], "gaps": gaps}))


if __name__ == "__main__":
    main()
