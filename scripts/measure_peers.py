#!/usr/bin/env python3
"""Times on an NVIDIA GPU what people use instead of GRETA, for each problem of a file of greta-bench.

    python3 scripts/measure_peers.py BENCH.csv PEERS.csv [--device N] [--only OP,...] [--seconds S]
    python3 scripts/measure_peers.py BENCH.csv PEERS.csv --compare

BENCH.csv is what `greta-bench --preset perf --export` writes. PEERS.csv receives a row for each peer: torch (its eager
operation, and for products cuBLAS through it), torch.compile, FlashAttention and cuDNN through torch. --compare joins
the two files, prints the ratio of the fastest peer's time to GRETA's for each problem, and the geometric mean of each
operation; problems without a peer are named.

Samples are cold: a buffer larger than the last-level cache is overwritten before each launch. A figure is the median of 30.
"""

import argparse
import csv
import functools
import math
import statistics
import sys
import time
import warnings

FIELDS = ["peer", "op", "dtype", "problem", "attributes", "us", "low_us", "high_us"]


def words(text):
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def rows_of(path):
    """Returns the problems of kernels: rows with a configuration, one for each problem."""
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["config"] and row["us"]:
                found.setdefault((row["op"], row["dtype"], row["problem"], row["attributes"]), row)
    return found


def mixed(word):
    """Returns the word's hash, as mix64 in kernels/model/random.hpp."""
    bits = (1 << 64) - 1
    word = (word + 0x9E3779B97F4A7C15) & bits
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & bits
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & bits
    return word ^ word >> 31


def ends_of_groups(groups, rows, routing):
    """Returns where contiguous groups end when GRETA measures (kernels/templates/grouped_gemm/rows.cpp)."""
    shares = [0.75 + 0.5 * (mixed(group) >> 32) / (1 << 32) for group in range(groups)]
    if routing == "skewed":
        for rank, group in enumerate(sorted(range(groups), key=mixed)):
            shares[group] = 1 / (rank + 1)
    total, so_far, ends = math.fsum(shares), 0.0, []
    for share in shares:
        so_far += share
        ends.append(min(rows, math.floor(rows * so_far / total + 0.5)))
    ends[-1] = rows
    return ends


def why(error):
    """Returns the first line of an error, some of which have no text."""
    return (str(error).splitlines() or [type(error).__name__])[0][:100]


class Timer:
    def __init__(self, torch, runs=30):
        self.torch, self.runs = torch, runs
        self.flush = torch.empty(512 * 1024 * 1024 // 4, device="cuda")

    def __call__(self, run):
        events = self.torch.cuda.Event
        for _ in range(5):
            run()
        times = []
        for _ in range(self.runs):
            self.flush.zero_()
            start, stop = events(enable_timing=True), events(enable_timing=True)
            start.record()
            run()
            stop.record()
            self.torch.cuda.synchronize()
            times.append(start.elapsed_time(stop) * 1e3)
        times.sort()
        # The order statistics of a 95 % interval of the median.
        half = 0.98 * math.sqrt(self.runs)
        low, high = int(self.runs / 2 - half), int(self.runs / 2 + half)
        return statistics.median(times), times[low], times[min(high, self.runs - 1)]


class Peers:
    """Each operation's method returns (peer, function) pairs for a problem's sizes `d` and attributes `a`."""

    def __init__(self, torch):
        self.torch, self.functional = torch, torch.nn.functional

    def tensor(self, *sizes, dtype):
        return self.torch.randn(*sizes, device="cuda", dtype=dtype)

    def both(self, function, *operands):
        """The function as it is, and compiled for these sizes."""
        self.torch._dynamo.reset()
        compiled = self.torch.compile(function, dynamic=False)
        return [("torch", lambda: function(*operands)), ("torch.compile", lambda: compiled(*operands))]

    def gemm(self, d, a, dtype):
        m, n, k = d["m"], d["n"], d["k"]
        layout = a.get("layout", "nn")
        x = self.tensor(m, k, dtype=dtype) if layout[0] == "n" else self.tensor(k, m, dtype=dtype).t()
        w = self.tensor(k, n, dtype=dtype) if layout[1] == "n" else self.tensor(n, k, dtype=dtype).t()
        if a.get("epilogue") == "residual":
            residual = self.tensor(m, n, dtype=dtype)
            return [("torch", lambda: self.torch.addmm(residual, x, w))]
        return [("torch", lambda: self.torch.mm(x, w))]

    def grouped_gemm(self, d, a, dtype):
        groups, m, n, k = d["groups"], d["m"], d["n"], d["k"]
        w = self.tensor(groups, n, k, dtype=dtype).transpose(1, 2)
        if a.get("form") == "masked":
            if a.get("routing") == "skewed":
                return []  # bmm multiplies all rows
            x = self.tensor(groups, m, k, dtype=dtype)
            return [("torch", lambda: self.torch.bmm(x, w))]
        x = self.tensor(m, k, dtype=dtype)
        ends = self.torch.tensor(ends_of_groups(groups, m, a.get("routing")), device="cuda", dtype=self.torch.int32)
        return [("torch", lambda: self.torch._grouped_mm(x, w, offs=ends))]

    def softmax(self, d, a, dtype):
        x = self.tensor(d["rows"], d["cols"], dtype=dtype)
        return self.both(lambda x: self.torch.softmax(x, -1), x)

    def norm(self, d, dtype, function):
        x, w = self.tensor(d["rows"], d["cols"], dtype=dtype), self.tensor(d["cols"], dtype=dtype)
        return self.both(functools.partial(function, (d["cols"],)), x, w)

    def rmsnorm(self, d, a, dtype):
        return self.norm(d, dtype, lambda size, x, w: self.functional.rms_norm(x, size, w, 1e-5))

    def layernorm(self, d, a, dtype):
        return self.norm(d, dtype, lambda size, x, w: self.functional.layer_norm(x, size, w, w, 1e-5))

    def add_rmsnorm(self, d, a, dtype):
        residual = self.tensor(d["rows"], d["cols"], dtype=dtype)

        def run(size, x, w):
            total = x + residual
            return total, self.functional.rms_norm(total, size, w, 1e-5)
        return self.norm(d, dtype, run)

    def silu_mul(self, d, a, dtype):
        x, cols = self.tensor(d["rows"], 2 * d["cols"], dtype=dtype), d["cols"]
        return self.both(lambda x: self.functional.silu(x[:, :cols]) * x[:, cols:], x)

    def add(self, d, a, dtype):
        x, y = self.tensor(d["rows"], d["cols"], dtype=dtype), self.tensor(d["rows"], d["cols"], dtype=dtype)
        return self.both(lambda x, y: x + y, x, y)

    def rope(self, d, a, dtype):
        if a.get("style") != "half":
            return []
        tokens, heads, dim = d["tokens"], d["heads"], d["dim"]
        lines = self.tensor(tokens, int(a.get("x_stride", heads * dim)), dtype=dtype)
        x = lines[:, :heads * dim].view(tokens, heads, dim)
        angles = self.torch.rand(d["positions"], dim // 2, device="cuda", dtype=self.torch.float32)
        cos, sin = angles.cos(), angles.sin()
        positions = self.torch.arange(tokens, device="cuda")

        def run(x, cos, sin, positions):
            c, s = cos[positions][:, None], sin[positions][:, None]
            first, second = x[..., :dim // 2].float(), x[..., dim // 2:].float()
            y = self.torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
            return x.copy_(y)
        return self.both(run, x, cos, sin, positions)

    def kv_update(self, d, a, dtype):
        tokens, heads, dim = d["tokens"], d["kv_heads"], d["dim"]
        width = heads * dim
        stride = int(a.get("kv_stride", width))
        k, v = (self.tensor(tokens, stride, dtype=dtype)[:, :width].view(tokens, heads, dim) for _ in range(2))
        k_cache, v_cache = (self.tensor(heads, d["capacity"], dim, dtype=dtype) for _ in range(2))
        positions = self.torch.arange(tokens, device="cuda")

        def run(k, v, k_cache, v_cache, positions):
            k_cache.index_copy_(1, positions, k.transpose(0, 1))
            v_cache.index_copy_(1, positions, v.transpose(0, 1))
        return self.both(run, k, v, k_cache, v_cache, positions)

    def embedding(self, d, a, dtype):
        table = self.tensor(d["vocabulary"], d["dim"], dtype=dtype)
        ids = self.torch.randint(d["vocabulary"], (d["tokens"],), device="cuda")
        return self.both(lambda ids, table: self.functional.embedding(ids, table), ids, table)

    def argmax(self, d, a, dtype):
        x = self.tensor(d["rows"], d["cols"], dtype=dtype)
        return self.both(lambda x: self.torch.argmax(x, -1), x)

    def attention(self, d, a, dtype):
        if a.get("lengths") == "ragged":
            return []  # torch has no call for a batch of caches of different lengths
        from torch.nn.attention import SDPBackend, sdpa_kernel
        batch, heads, kv_heads = d["batch"], d["heads"], d["kv_heads"]
        q = self.tensor(batch, heads, d["q"], d["dim"], dtype=dtype)
        k, v = (self.tensor(batch, kv_heads, d["kv"], d["dim"], dtype=dtype) for _ in range(2))
        causal = a.get("mask") == "causal"

        def run(backend):
            with sdpa_kernel(backend):
                return self.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                    enable_gqa=heads != kv_heads)
        return [("FlashAttention", functools.partial(run, SDPBackend.FLASH_ATTENTION)),
                ("cuDNN", functools.partial(run, SDPBackend.CUDNN_ATTENTION))]


def measure(options, problems):
    import torch
    warnings.filterwarnings("ignore")
    torch.cuda.set_device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = False
    peers, timer, end = Peers(torch), Timer(torch), time.monotonic() + options.seconds
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}", file=sys.stderr)
    types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    with open(options.peers, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for op, dtype, problem, attributes in problems:
            if not hasattr(Peers, op) or dtype not in types or (options.only and op not in options.only.split(",")):
                continue
            if time.monotonic() > end:
                print(f"{op} {dtype} {problem}: no time left", file=sys.stderr)
                continue
            sizes = {name: int(value) for name, value in words(problem).items()}
            try:
                made = getattr(peers, op)(sizes, words(attributes), types[dtype])
            except Exception as error:  # one failure must not end the run
                print(f"{op} {dtype} {problem}: {why(error)}", file=sys.stderr)
                continue
            for peer, run in made:
                try:
                    us, low, high = timer(run)
                except Exception as error:
                    print(f"{peer} {op} {dtype} {problem}: {why(error)}", file=sys.stderr)
                    continue
                writer.writerow({"peer": peer, "op": op, "dtype": dtype, "problem": problem, "attributes": attributes,
                                 "us": f"{us:.2f}", "low_us": f"{low:.2f}", "high_us": f"{high:.2f}"})
                file.flush()
            del made
            torch.cuda.empty_cache()


def compare(options, problems):
    best, ratios, without = {}, {}, []
    with open(options.peers, newline="") as file:
        for row in csv.DictReader(file):
            key = row["op"], row["dtype"], row["problem"], row["attributes"]
            if key not in best or float(row["us"]) < float(best[key]["us"]):
                best[key] = row
    for key, row in problems.items():
        if key not in best:
            without.append(" ".join(key))
            continue
        ratio = float(best[key]["us"]) / float(row["us"])
        ratios.setdefault(key[0], []).append(ratio)
        print(f"{ratio:.3f} {' '.join(key)}: {float(row['us']):.2f} us by {row['config'].split()[0]}, "
              f"{best[key]['us']} us by {best[key]['peer']}")
    for op, all_of in ratios.items():
        print(f"{op}: {statistics.geometric_mean(all_of):.3f} of {len(all_of)}, {sum(r < 0.95 for r in all_of)} below 0.95")
    every = [ratio for all_of in ratios.values() for ratio in all_of]
    if every:
        print(f"all: {statistics.geometric_mean(every):.3f} of {len(every)}, {sum(r < 0.95 for r in every)} below 0.95, "
              f"least {min(every):.3f}")
    for name in without:
        print(f"no peer: {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bench")
    parser.add_argument("peers")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    (compare if options.compare else measure)(options, rows_of(options.bench))


if __name__ == "__main__":
    main()
