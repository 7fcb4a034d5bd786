#!/usr/bin/env python3
"""Draws a preset of problems that nobody chose, to judge predictions and searches by shapes in no other preset.

    scripts/draw_preset.py --seed 7 [--only gemm,attention] [--times 2] > fresh.json
    greta-bench --preset fresh.json --export bench.csv
    python3 scripts/measure_peers.py bench.csv peers.csv && python3 scripts/measure_peers.py bench.csv peers.csv --compare

Sizes are log-uniform; a fifth of them is a multiple of nothing. Columns and k of quantised products are widths of models in half of
the problems. Operations are drawn that scripts/measure_peers.py has peers for, and with them some forms that have none: e5m2, and
int8 with scales of blocks. The same seed and options give the same problems.
"""

import argparse
import json
import math
import random
import sys

WIDE, NARROW = ["f16", "bf16", "f16", "bf16", "f32"], ["f16", "bf16"]
MOST_ELEMENTS = 3e8  # of an operand of rows
MOST_PRODUCTS = {"f32": 1.5e11, "f16": 1e12, "bf16": 1e12}
MOST_WEIGHTS = 1e9  # of all groups
WIDTHS = [768, 1408, 1536, 2048, 2560, 2816, 3072, 3584, 4096, 5120, 7168, 8192, 11008, 13824, 14336, 18944, 22016, 28672]
COUNTS = {"softmax": 8, "rmsnorm": 8, "layernorm": 7, "add_rmsnorm": 7, "silu_mul": 7, "add": 5, "rope": 5,
          "kv_update": 4, "embedding": 5, "argmax": 5, "attention": 16, "grouped_gemm": 6, "gemm": 24,
          "scaled_gemm": 24, "quantized_gemm": 24, "scaled_grouped_gemm": 8, "quantized_grouped_gemm": 8, "quantize": 6,
          "sample": 5, "gelu": 4, "layernorm_rmsnorm": 4, "rope_append": 5, "gather_columns": 4, "attention_merge": 4,
          "latent_attention": 8, "tree_attention": 6, "route": 5, "permute": 4, "unpermute": 4, "experts": 8,
          "dequantize": 5, "repack_weights": 4}


class Draw:
    """Each operation's method returns the fields of a problem without `op`."""

    def __init__(self, rng):
        self.one_of, self.uniform = rng.choice, rng.uniform

    def size(self, low, high, steps=(1, 8, 8, 64, 64)):
        step = self.one_of(steps)
        return max(low, round(math.exp(self.uniform(math.log(low), math.log(high)))) // step * step)

    def rows(self):
        rows, cols = self.size(1, 20000), self.size(64, 40000)
        while rows * cols > MOST_ELEMENTS:
            rows //= 2
        return {"dtype": self.one_of(WIDE), "rows": rows, "cols": cols}

    softmax = rmsnorm = layernorm = add_rmsnorm = add = rows

    def silu_mul(self):
        return self.rows() | {"layout": "packed"}

    def rope(self):
        return {"dtype": self.one_of(WIDE), "style": "half", "place": "in", "tokens": self.size(1, 8192),
                "heads": self.one_of([8, 12, 20, 28, 40, 48]), "dim": self.one_of([64, 96, 128, 256]),
                "positions": 8192}

    def kv_update(self):
        return {"dtype": self.one_of(NARROW), "tokens": self.size(1, 4096), "kv_heads": self.one_of([2, 4, 8, 20]),
                "dim": self.one_of([64, 96, 128]), "capacity": 8192}

    def embedding(self):
        return {"dtype": self.one_of(WIDE), "tokens": self.size(1, 8192),
                "vocabulary": self.one_of([49152, 50257, 151936, 100352]), "dim": self.one_of([896, 1536, 2560, 5120])}

    def argmax(self):
        return {"dtype": self.one_of(WIDE), "rows": self.size(1, 256),
                "cols": self.one_of([49152, 50257, 151936, 100352])}

    def attention(self):
        kv_heads = self.one_of([1, 2, 4, 8])
        fields = {"dtype": self.one_of(NARROW), "heads": kv_heads * self.one_of([1, 2, 4, 7, 8]), "kv_heads": kv_heads,
                  "dim": self.one_of([64, 96, 128, 128, 256])}
        if self.one_of([True, False]):  # decoding
            return fields | {"batch": self.one_of([1, 1, 2, 7, 16]), "q": 1, "kv": self.size(64, 32000)}
        length = self.size(64, 6000)
        return fields | {"batch": self.one_of([1, 1, 2, 3]), "q": length, "kv": length,
                         "mask": self.one_of(["none", "causal", "causal"])}

    def grouped_gemm(self):
        return {"dtype": "bf16", "groups": self.one_of([4, 8, 16, 60, 128]), "m": self.size(64, 20000, [64]),
                "n": self.one_of([768, 1408, 2048, 2816, 4096]), "k": self.one_of([768, 1408, 2048, 4096, 5120])}

    def gemm(self):
        fields = {"dtype": self.one_of(WIDE), "layout": self.one_of(["nn", "nt", "nt", "nt", "tn"]),
                  "m": self.size(1, 16384), "n": self.size(64, 16384), "k": self.size(64, 16384)}
        self.bound(fields, MOST_PRODUCTS[fields["dtype"]])
        return fields | ({"epilogue": "residual"} if self.uniform(0, 1) < 0.15 else {})

    def bound(self, fields, most):
        while fields["m"] * fields["n"] * fields["k"] > most:
            fields["m"] = max(1, fields["m"] // 2)

    def width(self, low, high, steps):
        """Half of them are widths of models that are multiples of the largest step, half are random multiples of a step."""
        step = self.one_of(steps)
        if self.one_of([True, False]):
            return self.one_of([width for width in WIDTHS if low <= width <= high and width % max(steps) == 0])
        return self.size(max(low, step), high, [step])

    def scaled_gemm(self):
        form = self.one_of(["e4m3"] * 12 + ["int8"] * 4 + ["e5m2"])
        scales = self.one_of(["tensor", "row", "row", "block", "mx"])
        of_b = {}
        if scales == "mx":
            form, second = self.one_of([("e4m3", "same"), ("e4m3", "e2m1"), ("e4m3", "e2m1"), ("e2m1", "same")])
            of_b = {} if second == "same" else {"format_b": second}
        fields = {"dtype": self.one_of(["bf16", "bf16", "bf16", "f16", "f32"]), "format": form, "scales": scales,
                  "m": self.size(1, 16384, [1, 1, 8, 16]), "n": self.width(64, 30000, [1, 8, 16, 64, 128]),
                  "k": self.width(256, 20000, [{"block": 128, "mx": 32}.get(scales, 16)])} | of_b
        self.bound(fields, MOST_PRODUCTS["f16"])
        return fields

    def weights(self):
        return {"weights": self.one_of(["int4", "int4", "int4", "int8"]), "group": self.one_of([32, 64, 128, 128]),
                "zeros": self.one_of(["none", "none", "groups"])}

    def quantized_gemm(self):
        fields = {"dtype": self.one_of(NARROW)} | self.weights()
        fields |= {"m": self.size(1, 16384, [1, 1, 8, 16]), "n": self.width(64, 30000, [1, 8, 16, 64, 128]),
                   "k": self.width(256, 20000, [fields["group"]])}
        self.bound(fields, MOST_PRODUCTS["f16"])
        return fields

    def groups(self, step):
        fields = {"groups": self.one_of([4, 8, 16, 60, 128]), "m": self.size(64, 20000),
                  "n": self.width(512, 7168, [16, 64]), "k": self.width(512, 7168, [step])}
        while fields["groups"] * fields["n"] * fields["k"] > MOST_WEIGHTS:
            fields["groups"] //= 2
        self.bound(fields, MOST_PRODUCTS["f16"])
        return fields

    def scaled_grouped_gemm(self):
        scales = self.one_of(["tensor", "row", "row", "row", "block"])
        return {"dtype": "bf16", "format": "e4m3", "scales": scales} | self.groups(128 if scales == "block" else 16)

    def quantized_grouped_gemm(self):
        fields = {"dtype": "bf16"} | self.weights()
        return fields | self.groups(fields["group"])

    def quantize(self):
        fields = self.rows() | {"format": self.one_of(["e4m3", "e4m3", "int8"]),
                                "scales": self.one_of(["row", "row", "block", "tensor", "mx"]),
                                "fused": self.one_of(["none", "none", "rmsnorm", "add_rmsnorm", "layernorm", "silu_mul"])}
        if fields["scales"] == "mx":
            fields["format"] = self.one_of(["e4m3", "e2m1"])
        step = {"block": 128, "mx": 32}.get(fields["scales"], 4)
        fields["cols"] = max(step, fields["cols"] // step * step)
        return fields | ({"layout": "packed"} if fields["fused"] == "silu_mul" else {})

    def sample(self):
        return {"dtype": self.one_of(WIDE), "rows": self.size(1, 256),
                "cols": self.one_of([32000, 49152, 50257, 100352, 128256, 151936])}

    gelu = layernorm_rmsnorm = rows

    def rope_append(self):
        kv_heads, dim = self.one_of([1, 2, 4, 8]), self.one_of([64, 128, 128, 256])
        heads = kv_heads * self.one_of([1, 2, 4, 7, 8])
        stride = (heads + 2 * kv_heads) * dim
        batch, tokens = self.one_of([(self.size(1, 64, [1]), 1), (1, self.size(1, 8192))])
        norm = {"norm": "rms", "epsilon": 1e-6} if self.uniform(0, 1) < 0.3 else {}
        return {"dtype": self.one_of(NARROW), "style": self.one_of(["half", "half", "interleaved"]), "place": "in"} | norm | {
            "batch": batch, "tokens": tokens, "heads": heads, "kv_heads": kv_heads, "dim": dim, "positions": 8192,
            "capacity": 8192, "q_stride": stride, "kv_stride": stride}

    def gather_columns(self):
        width = self.width(512, 30000, [8, 64])
        return {"dtype": self.one_of(NARROW), "rows": self.size(1, 8192), "width": width, "cols": width}

    def attention_merge(self):
        return {"dtype": self.one_of(NARROW), "parts": self.one_of([2, 2, 3, 4, 8]), "tokens": self.size(1, 4096),
                "heads": self.one_of([8, 16, 28, 32, 40, 64]), "dim": self.one_of([64, 128, 128, 256])}

    def latent_attention(self):
        return {"dtype": self.one_of(["bf16", "bf16", "f16"]), "scale": 0.072168784, "batch": self.size(1, 128, [1]),
                "heads": self.one_of([16, 32, 64, 128, 128]), "q": self.one_of([1, 1, 1, 2, 4]), "kv": self.size(256, 20000)}

    def tree_attention(self):
        kv_heads = self.one_of([1, 2, 4, 8])
        return {"dtype": self.one_of(NARROW), "batch": self.size(1, 16, [1]), "heads": kv_heads * self.one_of([1, 4, 7, 8]),
                "kv_heads": kv_heads, "q": self.size(4, 64, [1]), "kv": self.size(256, 16000),
                "dim": self.one_of([64, 128, 128])}

    def experts_of_model(self):
        """Experts, of which each token has top_k."""
        return dict(zip(("experts", "top_k"), self.one_of([(8, 2), (16, 4), (64, 6), (128, 8), (256, 8)])))

    def route(self):
        groups = {"score": "sigmoid", "bias": "expert", "scale": 2.5, "groups": 8, "top_groups": 4, "experts": 256, "top_k": 8}
        grouped = self.uniform(0, 1) < 0.3
        fields = {"dtype": self.one_of(WIDE)} | (groups if grouped else self.experts_of_model())
        return fields | {"tokens": self.size(1, 16384)}

    def permute(self):
        fields = {"dtype": self.one_of(NARROW)} | self.experts_of_model()
        fields |= {"tokens": self.size(1, 8192), "dim": self.one_of([1536, 2048, 2880, 4096, 5120, 7168])}
        while fields["tokens"] * fields["top_k"] * fields["dim"] > MOST_ELEMENTS:
            fields["tokens"] //= 2
        return fields

    def unpermute(self):
        fields = self.permute()
        del fields["experts"]
        return fields | {"rows": fields["tokens"] * fields["top_k"]}

    def experts(self):
        form = self.one_of([{}, {}, {"weights": "int4"}, {"scales": "block"}])
        fields = {"dtype": self.one_of(NARROW) if "scales" not in form else "bf16"} | form | self.experts_of_model()
        fields |= {"tokens": self.size(1, 16, [1]), "dim": self.one_of([2048, 2560, 4096, 7168]),
                   "hidden": self.one_of([512, 768, 1408, 1536, 2048, 4096])}
        while fields["experts"] * fields["dim"] * fields["hidden"] * 3 > MOST_WEIGHTS * 2:
            fields["experts"] //= 2
        return fields

    def dequantize(self):
        fields = {"dtype": self.one_of(NARROW)} | self.weights()
        return fields | {"rows": self.width(64, 30000, [1, 8, 64]), "cols": self.width(256, 20000, [fields["group"]])}

    def repack_weights(self):
        return {"dtype": "f16", "packing": self.one_of(["awq", "gptq"]), "zeros": "groups",
                "n": self.width(512, 30000, [64]), "k": self.width(512, 20000, [128])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--only", default=",".join(COUNTS), help="operations, separated by commas")
    parser.add_argument("--times", type=int, default=1, help="factor of the number of problems")
    options = parser.parse_args()
    operations = options.only.split(",")
    unknown = [op for op in operations if op not in COUNTS]
    if unknown or options.times < 1:
        parser.error(f"--only: no operation {unknown[0]}" if unknown else "--times: must be positive")
    draw = Draw(random.Random(options.seed))
    problems = []
    for op in operations:
        wanted = len(problems) + COUNTS[op] * options.times
        while len(problems) < wanted:
            problem = {"op": op} | getattr(draw, op)()
            if problem not in problems:
                problems.append(problem)
    json.dump({"name": f"drawn-{options.seed}", "summary": f"Problems drawn with the seed {options.seed}",
               "budget": "5s", "iterations": 6, "batch": 5, "problems": problems}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
