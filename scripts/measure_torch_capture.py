#!/usr/bin/env python3
"""Records the GEMMs of a PyTorch Llama block on a GPU with libgreta-capture.so, compares them with the list that follows
from the block's sizes, and tunes them on the same card. Weights are random; nothing is downloaded. Takes a minute.

    python3 scripts/measure_torch_capture.py OUTDIR [options]

    OUTDIR           receives gemms.jsonl, calls-*.jsonl, tuned.json and summary.txt; must not contain them yet
    --greta PREFIX   GRETA's installation or build folder; by default build/release
    --tune TIME      time in which the GEMMs are tuned; by default 60s; 0: they are not
    --layers N       blocks; by default 2
    --prompt N       tokens of the prompt; by default 512
    --tokens N       tokens that are generated; by default 8

The exit code is 1 if GEMMs are missing or too many, if one that ran twice has no time, if the model computes other bits than
without the library, or if a call takes a microsecond longer.
"""
import argparse
import collections
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import time

# Llama 3 8B's.
HIDDEN, HEADS, KV_HEADS, HEAD, FFN, VOCABULARY = 4096, 32, 8, 128, 14336, 32000
CALLS, ROUNDS, PROCESSES = 800, 60, 3


def options_of(words):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--greta", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--tune", default="60s")
    for name, fallback in (("layers", 2), ("prompt", 512), ("tokens", 8)):
        parser.add_argument(f"--{name}", type=int, default=fallback)
    parser.add_argument("--part", choices=("model", "calls"), help=argparse.SUPPRESS)  # only run it, and print the result
    return parser.parse_args(words)


class Block:
    def __init__(self, torch):
        def weight(rows, columns):
            return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) / math.sqrt(columns)
        self.torch = torch
        self.q, self.o = weight(HEADS * HEAD, HIDDEN), weight(HIDDEN, HEADS * HEAD)
        self.k, self.v = weight(KV_HEADS * HEAD, HIDDEN), weight(KV_HEADS * HEAD, HIDDEN)
        self.gate, self.up, self.down = weight(FFN, HIDDEN), weight(FFN, HIDDEN), weight(HIDDEN, FFN)
        self.keys = self.values = None

    def attention(self, x):
        torch, linear = self.torch, self.torch.nn.functional.linear
        tokens = x.shape[0]
        q = linear(x, self.q).view(tokens, HEADS, HEAD).transpose(0, 1)
        k = linear(x, self.k).view(tokens, KV_HEADS, HEAD).transpose(0, 1)
        v = linear(x, self.v).view(tokens, KV_HEADS, HEAD).transpose(0, 1)
        self.keys = k if self.keys is None else torch.cat((self.keys, k), 1)
        self.values = v if self.values is None else torch.cat((self.values, v), 1)
        keys = self.keys.repeat_interleave(HEADS // KV_HEADS, 0)
        values = self.values.repeat_interleave(HEADS // KV_HEADS, 0)
        scores = torch.matmul(q, keys.transpose(1, 2)) / math.sqrt(HEAD)
        if tokens > 1:
            scores += torch.full((tokens, tokens), -math.inf, device="cuda", dtype=x.dtype).triu(1)
        mixed = torch.matmul(torch.softmax(scores.float(), -1).to(x.dtype), values)
        return linear(mixed.transpose(0, 1).reshape(tokens, HEADS * HEAD), self.o)

    def __call__(self, x):
        def norm(y):
            return (y.float() * self.torch.rsqrt(y.float().pow(2).mean(-1, keepdim=True) + 1e-5)).to(y.dtype)
        linear, functional = self.torch.nn.functional.linear, self.torch.nn.functional
        x = x + self.attention(norm(x))
        y = norm(x)
        return x + linear(functional.silu(linear(y, self.gate)) * linear(y, self.up), self.down)


def run_model(options):
    """Returns a digest of all logits."""
    import torch
    torch.manual_seed(1)
    blocks = [Block(torch) for _ in range(options.layers)]
    head = torch.randn(VOCABULARY, HIDDEN, device="cuda", dtype=torch.bfloat16) / math.sqrt(HIDDEN)
    digest = hashlib.sha256()
    with torch.no_grad():
        x = torch.randn(options.prompt, HIDDEN, device="cuda", dtype=torch.bfloat16)
        for step in range(options.tokens + 1):
            for block in blocks:
                x = block(x)
            logits = torch.nn.functional.linear(x[-1:], head)
            digest.update(repr(logits.float().tolist()).encode())
            x = torch.randn(1, HIDDEN, device="cuda", dtype=torch.bfloat16)
    return {"digest": digest.hexdigest(), "device": torch.cuda.get_device_name(), "torch": torch.__version__}


def run_calls(_):
    """Returns the host's time of a small product in µs: the least of many rounds."""
    import torch
    a = torch.randn(8, 8, device="cuda", dtype=torch.bfloat16)
    c, best = torch.empty_like(a), math.inf
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            torch.mm(a, a, out=c)
        best = min(best, 1e6 * (time.perf_counter() - begin) / CALLS)
        torch.cuda.synchronize()
    return {"call_us": best}


def gemm_key(op_a, op_b, m, n, k, batch, dtype):
    """A product as BLAS names it. How a matrix with one line is stored makes no difference."""
    return ("-" if m == 1 or k == 1 else op_a, "-" if n == 1 or k == 1 else op_b, m, n, k, batch, dtype)


def expected(options):
    """Returns the number of calls of each product. PyTorch's rows are BLAS's columns: linear() of T tokens is the product
    of the transpose of the weight and of the activations."""
    calls = collections.Counter()

    def linear(tokens, rows, columns, count):
        calls[gemm_key("T", "N", rows, tokens, columns, 1, "bf16")] += count
    for step in range(options.tokens + 1):
        tokens, keys = (options.prompt, options.prompt) if step == 0 else (1, options.prompt + step)
        n = options.layers
        linear(tokens, HEADS * HEAD, HIDDEN, n)  # q
        linear(tokens, KV_HEADS * HEAD, HIDDEN, 2 * n)  # k, v
        linear(tokens, HIDDEN, HEADS * HEAD, n)  # o
        linear(tokens, FFN, HIDDEN, 2 * n)  # gate, up
        linear(tokens, HIDDEN, FFN, n)  # down
        calls[gemm_key("T", "N", keys, tokens, HEAD, HEADS, "bf16")] += n  # scores
        calls[gemm_key("N", "N", HEAD, tokens, keys, HEADS, "bf16")] += n  # weighted sums
        linear(1, VOCABULARY, HIDDEN, 1)
    return calls


def recorded(file):
    calls = collections.Counter()
    for line in file.read_text().splitlines()[1:]:
        row = json.loads(line)
        calls[gemm_key(row["op_a"], row["op_b"], row["m"], row["n"], row["k"], row.get("batch", 1), row["a_type"])] += row["count"]
    return calls


def say_times(file, say):
    """Prints where the time goes. Returns whether each GEMM that ran more than once has a time."""
    rows = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    often = [row for row in rows if row["count"] > 1]
    known = [row for row in often if row.get("least_us", 0) > 0]
    say(f"{len(known)} of {len(often)} GEMMs that ran more than once have a time")
    for row in sorted(known, key=lambda row: -row["count"] * row["least_us"])[:6]:
        say(f"  {row['op_a']} {row['op_b']} {row['m']} {row['n']} {row['k']} batch {row.get('batch', 1)}: {row['count']} calls, "
            f"{row['least_us']:.4g} us (least of {row['timed']})")
    return len(known) == len(often) > 0


def result_of(options, part, *before):
    words = [*before, sys.executable, __file__, options.out, "--part", part, "--layers", options.layers, "--prompt",
             options.prompt, "--tokens", options.tokens]
    return json.loads(subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True).stdout)


def compare(options, say):
    """Runs the model with and without the library. Returns whether all is as it must be."""
    def capture(name):
        return options.greta / "bin/greta-tune", "capture", "--output", options.out / name
    without = result_of(options, "model")
    captured = result_of(options, "model", *capture("gemms.jsonl"))
    wanted, found = expected(options), recorded(options.out / "gemms.jsonl")
    say(f"{captured['device']}, PyTorch {captured['torch']}: {sum(found.values())} calls of {len(found)} GEMMs recorded, "
        f"{sum(wanted.values())} of {len(wanted)} expected")
    for key in sorted(wanted.keys() | found.keys(), key=str):
        if wanted[key] != found[key]:
            say(f"  {' '.join(map(str, key))}: {found[key]} calls recorded, {wanted[key]} expected")
    timed = say_times(options.out / "gemms.jsonl", say)
    same = without["digest"] == captured["digest"]
    say(f"logits: {'the same bits' if same else 'OTHER BITS'} as without the library")
    plain = min(result_of(options, "calls")["call_us"] for _ in range(PROCESSES))
    files = [f"calls-{i}.jsonl" for i in range(PROCESSES)]
    more = min(result_of(options, "calls", *capture(file))["call_us"] for file in files) - plain
    counted = min(sum(recorded(options.out / file).values()) for file in files)
    say(f"torch.mm of 8 x 8: {plain:.2f} us on the host, {more:+.2f} us with the library, which counted {counted} of "
        f"{ROUNDS * CALLS} calls")
    return wanted == found and timed and same and more < 1 and counted == ROUNDS * CALLS


def tune_captured(options, say):
    file = options.out / "gemms.jsonl"
    tuned = subprocess.run([options.greta / "bin/greta-tune", "from-capture", file, "--budget", options.tune, "--db",
                            options.out / "tuned.db", "--json"], stdout=subprocess.PIPE, text=True)
    (options.out / "tuned.json").write_text(tuned.stdout)
    if tuned.returncode not in (0, 1) or not tuned.stdout:
        say(f"from-capture ended with {tuned.returncode}")
        return False
    for result in json.loads(tuned.stdout)["results"]:
        winner, vendor = result["winner"], result.get("vendor")
        beside = f", {vendor['library']} {vendor['median_us']:.4g} us ({vendor['ratio']:.3f})" if vendor else ""
        say(f"{result['problem']['key']}: " + (f"{winner['median_us']:.4g} us" if winner else "no winner") + beside)
    return tuned.returncode == 0


def main():
    options = options_of(sys.argv[1:])
    if options.part:
        print(json.dumps({"model": run_model, "calls": run_calls}[options.part](options)))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    if (options.out / "summary.txt").exists():
        sys.exit(f"{options.out} has results already")
    with open(options.out / "summary.txt", "w") as summary:
        def say(line):
            print(line, flush=True)
            print(line, file=summary, flush=True)
        good = compare(options, say)
        if options.tune != "0":
            good = tune_captured(options, say) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
