#!/usr/bin/env python3
"""Writes small folders of random weights in the forms that published checkpoints have.

    checkpoint_forms.py FORM SEED FOLDER
    checkpoint_forms.py                      # names of the forms, as JSON

FORMS has what each form changes of a Llama with F32 weights in one file. Integers, codes and scales of quantised weights are
drawn, not made of other weights.
"""
import json
import pathlib
import sys

import numpy as np

LLAMA = {"model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "float32"}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "decoder_sparse_step": 1,
           "mlp_only_layers": [0]}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}


def without(*keys, **changes):
    return {**{key: None for key in keys}, **changes}


def compressed(weights, form, activations=None):
    group = {"targets": ["Linear"], "weights": {"symmetric": True, **weights}, "input_activations": activations}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": group}, "ignore": ["lm_head"]}


def gptq(**changes):
    return {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": False, "sym": False, **changes}


DYNAMIC = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True, "symmetric": True}
STATIC = {"num_bits": 8, "type": "int", "strategy": "tensor", "dynamic": False, "symmetric": True}
# By name: changes of the config, and of how weights are written.
FORMS = {
    "shards, tied, of several types": (without("torch_dtype", tie_word_embeddings=True, dtype="bfloat16"),
                                       {"shards": 3, "types": ("BF16", "F16", "F32")}),
    "heads of another size": (without("num_key_value_heads", head_dim=16), {}),
    "null": ({"head_dim": None, "rope_scaling": None, "sliding_window": None}, {}),
    "llama3": ({"rope_scaling": LLAMA3}, {}),
    "linear": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, {}),
    "dynamic": ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, {}),
    "yarn": ({"rope_scaling": {**YARN, "attention_factor": 1.3}}, {}),
    "rope_parameters": (without("rope_theta", model_type="qwen3", head_dim=32,
                                rope_parameters={**YARN, "rope_theta": 50000.0}), {}),
    "rope_parameters of llama3": (without("rope_theta", rope_parameters={**LLAMA3, "rope_theta": 50000.0}), {}),
    "window": ({"model_type": "mistral", "sliding_window": 40}, {}),
    "biases": ({"attention_bias": True, "mlp_bias": True}, {}),
    "qwen2": ({"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 4}, {}),
    "mixtral": ({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}, {}),
    "qwen2_moe": ({"model_type": "qwen2_moe", "shared_expert_intermediate_size": 64, **EXPERTS}, {}),
    "qwen3_moe": ({"model_type": "qwen3_moe", "head_dim": 32, "norm_topk_prob": True, **EXPERTS}, {}),
    "fp8 of blocks": ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, {"scales": "block"}),
    "fp8 of rows": ({"quantization_config": compressed({"num_bits": 8, "type": "float", "strategy": "channel"},
                                                       "float-quantized", {**DYNAMIC, "type": "float"})}, {"scales": "row"}),
    "fp8 of all weights": ({"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}},
                           {"scales": "tensor"}),
    "fp8 of ModelOpt, static": ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}},
                                {"scales": "tensor", "inputs": 448}),
    "fp8 of AutoFP8, static": ({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2,
                                "quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}},
                               {"scales": "tensor", "inputs": 448}),
    "fp8 of rows, static": ({"quantization_config": compressed({"num_bits": 8, "type": "float", "strategy": "channel"},
                                                               "float-quantized", {**STATIC, "type": "float"})},
                            {"scales": "row", "inputs": 448}),
    "int8, static": ({"quantization_config": compressed({"num_bits": 8, "type": "int", "strategy": "channel"},
                                                        "int-quantized", STATIC)},
                     {"scales": "row", "integers": True, "inputs": 127}),
    "int8": ({"quantization_config": compressed({"num_bits": 8, "type": "int", "strategy": "channel"}, "int-quantized",
                                                DYNAMIC)}, {"scales": "row", "integers": True}),
    "gptq": ({"quantization_config": gptq()}, {}),
    "gptq_v2": ({"quantization_config": gptq(checkpoint_format="gptq_v2", desc_act=True)}, {}),
    "gptq of 8 bits": ({"quantization_config": gptq(bits=8, group_size=-1)}, {}),
    "awq": ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm",
                                     "zero_point": True}}, {}),
    "pack-quantized": ({"quantization_config": compressed({"num_bits": 4, "type": "int", "strategy": "group",
                                                           "group_size": 64}, "pack-quantized")}, {}),
    "mxfp4": ({"quantization_config": compressed({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32},
                                                 "mxfp4-pack-quantized")}, {}),
    "nvfp4": ({"quantization_config": compressed({"num_bits": 4, "type": "float", "strategy": "tensor_group",
                                                  "group_size": 16}, "nvfp4-pack-quantized")}, {}),
    "pack-quantized with zero points": (
        {"quantization_config": compressed({"num_bits": 8, "type": "int", "strategy": "group", "group_size": 64,
                                            "symmetric": False, "actorder": "group"}, "pack-quantized")}, {}),
}


def bf16(values):
    """Returns numbers rounded toward zero."""
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2")


def packed(integers, bits, axis):
    """Returns words of consecutive integers along an axis, the first one in the lowest bits."""
    moved = np.moveaxis(integers.astype(np.uint32), axis, -1)
    moved = moved.reshape(*moved.shape[:-1], -1, 32 // bits)
    words = (moved << np.arange(0, 32, bits, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)
    return np.moveaxis(words, -1, axis).view("<i4")


class Writer:
    def __init__(self, config, how, draw):
        self.c, self.how, self.draw, self.tensors = config, how, draw, {}
        self.quantised = config.get("quantization_config", {})
        dim, head = config["hidden_size"], config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        heads = config["num_attention_heads"]
        self.rows = {"q": heads * head, "k": (config.get("num_key_value_heads") or heads) * head}
        self.rows["v"], self.head, self.dim = self.rows["k"], head, dim
        self.plain("model.embed_tokens.weight", (config["vocab_size"], dim), 0.3)
        self.norm("model.norm", dim)
        if not config["tie_word_embeddings"]:
            self.plain("lm_head.weight", (config["vocab_size"], dim), dim ** -0.5)
        for layer in range(config["num_hidden_layers"]):
            self.layer(f"model.layers.{layer}.", layer)

    def add(self, name, values, kind):
        self.tensors[name] = kind, values

    def plain(self, name, shape, spread, middle=0.0):
        values = self.draw.normal(middle, spread, shape)
        types = self.how.get("types", ("F32",))
        kind = types[len(self.tensors) % len(types)]
        stored = bf16(values) if kind == "BF16" else values.astype("<f2" if kind == "F16" else "<f4")
        self.add(name, stored, kind)

    def norm(self, name, count):
        self.plain(name + ".weight", (count,), 0.1, 1.0)

    def linear(self, name, rows, cols, bias=False):
        if bias:
            self.plain(name + ".bias", (rows,), 0.3)
        method = self.quantised.get("quant_method")
        if "scales" in self.how:
            self.scaled(name, rows, cols)
        elif method == "compressed-tensors":
            self.compressed(name, rows, cols)
        elif method:
            self.grouped(name, rows, cols, method == "awq")
        else:
            self.plain(name + ".weight", (rows, cols), cols ** -0.5)

    def scaled(self, name, rows, cols):
        sharing, integers = self.how["scales"], self.how.get("integers", False)
        codes = self.draw.integers(0, 256, (rows, cols), np.uint8)
        if not integers:
            codes = np.where(codes & 127 == 127, 0, codes).astype(np.uint8)  # no NaN
        self.add(name + ".weight", codes, "I8" if integers else "F8_E4M3")
        shape = {"block": (-(-rows // 128), -(-cols // 128)), "row": (rows, 1), "tensor": ()}[sharing]
        scales = self.draw.uniform(1, 2, shape) / (74 if integers else 120) / cols ** 0.5 / 1.5
        if sharing == "row":
            self.add(name + ".weight_scale", bf16(scales), "BF16")
        else:
            suffix = ".weight_scale_inv" if sharing == "block" else ".weight_scale"
            self.add(name + suffix, np.asarray(scales, "<f4"), "F32")
        if "inputs" in self.how:  # activations of 2 to 3 are the largest number
            scale = self.draw.uniform(2, 3) / self.how["inputs"]
            self.add(name + ".input_scale", np.asarray([scale], "<f4"), "F32")

    def numbers(self, rows, cols, bits, size, zero_points):
        """Returns integers [rows, cols], scales and zero points [rows, groups], and the groups of columns."""
        groups = cols // size
        integers = self.draw.integers(0, 1 << bits, (rows, cols))
        scales = (self.draw.uniform(1, 2, (rows, groups)) / (1 << bits) * 2.3 / cols ** 0.5).astype("<f2")
        middle = 1 << (bits - 1)
        zeros = self.draw.integers(middle - 3, middle + 4, (rows, groups)) if zero_points else np.full((rows, groups), middle)
        return integers, scales, zeros, np.arange(cols) // size

    def grouped(self, name, rows, cols, awq):
        bits, size = self.quantised["bits"], self.quantised["group_size"]
        integers, scales, zeros, group = self.numbers(rows, cols, bits, cols if size < 0 else size, True)
        if awq:  # whose words have eight columns in this order
            order = [0, 2, 4, 6, 1, 3, 5, 7]
            for part, values in ((".qweight", integers.T), (".qzeros", zeros.T)):
                mixed = values.reshape(len(values), -1, 8)[..., order].reshape(len(values), -1)
                self.add(name + part, packed(mixed, 4, 1), "I32")
        else:
            stored = zeros.T - (0 if self.quantised.get("checkpoint_format") == "gptq_v2" else 1)
            self.add(name + ".qweight", packed(integers.T, bits, 0), "I32")
            self.add(name + ".qzeros", packed(stored, bits, 1), "I32")
            if self.quantised["desc_act"]:
                group = self.draw.permutation(group)
            self.add(name + ".g_idx", group.astype("<i4"), "I32")
        self.add(name + ".scales", np.ascontiguousarray(scales.T), "F16")

    def compressed(self, name, rows, cols):
        scheme = self.quantised["config_groups"]["group_0"]["weights"]
        if scheme["type"] == "float":
            return self.numbers_of_four_bits(name, rows, cols, scheme["group_size"])
        bits = scheme["num_bits"]
        integers, scales, zeros, group = self.numbers(rows, cols, bits, scheme["group_size"], not scheme["symmetric"])
        self.add(name + ".weight_packed", packed(integers, bits, 1), "I32")
        self.add(name + ".weight_scale", scales, "F16")
        self.add(name + ".weight_shape", np.array([rows, cols], "<i8"), "I64")
        if not scheme["symmetric"]:
            self.add(name + ".weight_zero_point", packed(zeros, bits, 0), "I32")
        if scheme.get("actorder") == "group":
            self.add(name + ".weight_g_idx", self.draw.permutation(group).astype("<i4"), "I32")

    def numbers_of_four_bits(self, name, rows, cols, group):
        self.add(name + ".weight_packed", self.draw.integers(0, 256, (rows, cols // 2), np.uint8), "U8")
        shape = rows, cols // group
        if group == 32:  # powers of two
            self.add(name + ".weight_scale", self.draw.integers(121, 125, shape, np.uint8), "U8")
        else:
            self.add(name + ".weight_scale", self.draw.integers(0x50, 0x70, shape, np.uint8), "F8_E4M3")
            self.add(name + ".weight_global_scale", np.array([700], "<f4"), "F32")

    def network(self, at, hidden, names=("gate_proj", "up_proj", "down_proj")):
        bias = self.c.get("mlp_bias", False)
        for name in names[:2]:
            self.linear(at + name, hidden, self.dim, bias)
        self.linear(at + names[2], self.dim, hidden, bias)

    def layer(self, at, number):
        c, kind = self.c, self.c["model_type"]
        self.norm(at + "input_layernorm", self.dim)
        self.norm(at + "post_attention_layernorm", self.dim)
        for name, rows in self.rows.items():
            self.linear(f"{at}self_attn.{name}_proj", rows, self.dim, kind.startswith("qwen2") or c.get("attention_bias", False))
            if kind.startswith("qwen3") and name != "v":
                self.norm(f"{at}self_attn.{name}_norm", self.head)
        self.linear(at + "self_attn.o_proj", self.dim, self.rows["q"], c.get("attention_bias", False))
        if kind != "mixtral" and (not kind.endswith("_moe") or number in c["mlp_only_layers"]):
            return self.network(at + "mlp.", c["intermediate_size"])
        block = at + ("block_sparse_moe." if kind == "mixtral" else "mlp.")
        count = c.get("num_local_experts") or c["num_experts"]
        self.plain(block + "gate.weight", (count, self.dim), self.dim ** -0.5)
        for expert in range(count):
            if kind == "mixtral":
                self.network(f"{block}experts.{expert}.", c["intermediate_size"], ("w1", "w3", "w2"))
            else:
                self.network(f"{block}experts.{expert}.", c["moe_intermediate_size"])
        if kind == "qwen2_moe":
            self.network(block + "shared_expert.", c["shared_expert_intermediate_size"])
            self.plain(block + "shared_expert_gate.weight", (1, self.dim), self.dim ** -0.5)
        return None

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        shards = self.how.get("shards", 1)
        names = ["model.safetensors"] if shards == 1 else [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
        for shard, file in enumerate(names):
            own, header, end = list(self.tensors.items())[shard::shards], {}, 0
            for name, (kind, values) in own:
                header[name] = {"dtype": kind, "shape": values.shape, "data_offsets": [end, end + values.nbytes]}
                end += values.nbytes
            text = json.dumps(header).encode()
            data = b"".join(np.ascontiguousarray(values).tobytes() for _, (_, values) in own)
            (folder / file).write_bytes(len(text).to_bytes(8, "little") + text + data)
        if shards > 1:
            where = {name: names[i % shards] for i, name in enumerate(self.tensors)}
            (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
        (folder / "config.json").write_text(json.dumps(self.c))


def main():
    if len(sys.argv) == 1:
        return print(json.dumps(list(FORMS)))
    form, seed, folder = sys.argv[1:]
    changes, how = FORMS[form]
    removed = {key for key, value in changes.items() if value is None and form != "null"}
    config = {key: value for key, value in {**LLAMA, **changes}.items() if key not in removed}
    return Writer(config, how, np.random.default_rng(int(seed))).write(pathlib.Path(folder))


if __name__ == "__main__":
    main()
