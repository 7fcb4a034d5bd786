#!/usr/bin/env python3
"""Times on an NVIDIA GPU what people use instead of GRETA, for each problem of a file of greta-bench.

    python3 scripts/measure_peers.py BENCH.csv PEERS.csv [--device N] [--only OP,...] [--seconds S]
    python3 scripts/measure_peers.py BENCH.csv PEERS.csv --compare

BENCH.csv is what `greta-bench --preset perf --export` writes. PEERS.csv receives a row for each peer: torch (its eager
operation, and for products cuBLAS through it), torch.compile, FlashAttention and cuDNN through torch. --compare joins
the two files, prints the ratio of the fastest peer's time to GRETA's for each problem, and the geometric mean of each
operation with the peers that were the fastest; problems without a peer are named, and count nowhere.

Peers compute the same from the same types, with scales shared by the same numbers, to the same type. scripts/peers/quantized.py
says how operands are padded for those of quantised numbers, and what multiplies weights that torch has no product for.

Samples are cold: a buffer larger than the last-level cache is overwritten before each launch. A figure is the median of 30.
"""

import argparse
import collections
import csv
import math
import statistics
import sys
import time
import warnings

from peers.floating import Floating
from peers.quantized import Quantized

TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
FIELDS = ["peer", "op", "dtype", "problem", "attributes", "us", "low_us", "high_us"]


def words(text):
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def rows_of(path):
    """Returns the problems of kernels: rows with a configuration, one for each problem."""
    found = {}
    with open(path, newline="") as file:
        rows = csv.DictReader(file)
        missing = {"op", "dtype", "problem", "attributes", "config", "us"} - set(rows.fieldnames or [])
        if missing:
            raise ValueError(f"{path} is not a file of greta-bench: the column {sorted(missing)[0]} is missing")
        for row in rows:
            if row["config"] and row["us"]:
                out = row.get("out_dtype") or row["dtype"]
                dtype = f"{row['dtype']} to {out}" if out in TYPES and out != row["dtype"] else row["dtype"]
                found.setdefault((row["op"], dtype, row["problem"], row["attributes"]), row)
    return found


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


class Peers(Floating, Quantized):
    """A method for each operation that has peers."""


def measure(options, problems):
    import torch
    warnings.filterwarnings("ignore")
    torch.cuda.set_device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = False
    peers, timer, end = Peers(torch), Timer(torch), time.monotonic() + options.seconds
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}", file=sys.stderr)
    with open(options.peers, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for op, dtype, problem, attributes in problems:
            if not hasattr(Peers, op) or dtype not in TYPES or (options.only and op not in options.only.split(",")):
                continue
            if time.monotonic() > end:
                print(f"{op} {dtype} {problem}: no time left", file=sys.stderr)
                continue
            sizes = {name: int(value) for name, value in words(problem).items()}
            try:
                made = getattr(peers, op)(sizes, words(attributes), getattr(torch, TYPES[dtype]))
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


def summary(name, ratios, fastest=()):
    peers = ", ".join(f"{peer} {count}" for peer, count in collections.Counter(fastest).most_common())
    return (f"{name}: {statistics.geometric_mean(ratios):.3f} of {len(ratios)}, {sum(r < 0.95 for r in ratios)} below 0.95, "
            f"least {min(ratios):.3f}" + (f" ({peers})" if peers else ""))


def compare(options, problems):
    best, ratios, fastest, without = {}, {}, {}, []
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
        fastest.setdefault(key[0], []).append(best[key]["peer"])
        print(f"{ratio:.3f} {' '.join(key)}: {float(row['us']):.2f} us by {row['config'].split()[0]}, "
              f"{best[key]['us']} us by {best[key]['peer']}")
    for op, all_of in ratios.items():
        print(summary(op, all_of, fastest[op]))
    if ratios:
        print(summary("all", [ratio for all_of in ratios.values() for ratio in all_of]))
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
    try:
        problems = rows_of(options.bench)
    except (OSError, ValueError) as error:
        print(f"measure_peers.py: {error}", file=sys.stderr)
        sys.exit(2)
    (compare if options.compare else measure)(options, problems)


if __name__ == "__main__":
    main()
