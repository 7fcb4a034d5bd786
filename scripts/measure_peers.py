#!/usr/bin/env python3
"""Times on an NVIDIA GPU what people use instead of GRETA, for each problem of a file of greta-bench.

    python3 scripts/measure_peers.py BENCH.csv PEERS.csv [--device N] [--only OP,...] [--seconds S] [--resume]
    python3 scripts/measure_peers.py BENCH.csv PEERS.csv --compare

BENCH.csv is what `greta-bench --preset perf --export` writes. PEERS.csv receives a row for each peer: torch (its eager
operation, and for products cuBLAS through it), torch.compile, FlashAttention and cuDNN through torch. --resume adds the
problems that PEERS.csv does not have. --compare joins the two files, prints the ratio of the fastest peer's time to GRETA's
for each problem, and the geometric mean of each operation with the peers that were the fastest; problems and operations
without a peer are named, and count nowhere.

Peers compute the same from the same types, with scales shared by the same numbers, to the same type. scripts/peers/quantized.py
says how operands are padded for those of quantised numbers, and what multiplies weights that torch has no product for;
scripts/peers/experts.py and scripts/peers/caches.py say what the peers of experts and of attention over caches are.

Samples are cold: memory that is larger than the last-level cache is read before each call, once or more. A figure is the median of 30,
with the order statistics of its 95 % interval, of all peers alike.
"""

import argparse
import collections
import csv
import math
import statistics
import sys
import time
import warnings

from peers.caches import Caches
from peers.calls import why
from peers.experts import Experts
from peers.packed import Packed

TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
OF_ONE_OUTPUT_TYPE = {"route"}  # whose weights are f32, whatever the logits are
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
                converts = out in TYPES and out != row["dtype"] and row["op"] not in OF_ONE_OUTPUT_TYPE
                dtype = f"{row['dtype']} to {out}" if converts else row["dtype"]
                found.setdefault((row["op"], dtype, row["problem"], row["attributes"]), row)
    return found


class Timer:
    """Times calls one by one, with cold caches, as GRETA does: other memory is read, and then as much of it is
    written as the call returns. Reads come first because lines that a large fill leaves in the cache must be written
    back before others take their place, for which the next launch would wait. The caches are flushed for as long as
    the host needs for a call, so that a call's launches follow each other on the device, unless the call waits for
    the device itself."""

    MOST_FLUSHES = 50

    def __init__(self, torch, runs=30):
        self.torch, self.runs = torch, runs
        self.memory = torch.ones(512 * 1024 * 1024 // 4, device="cuda")
        self.sum = torch.zeros((), device="cuda")
        self.flush_us = min(self.device_us(self.read) for _ in range(10))

    def read(self):
        self.torch.sum(self.memory, dim=0, out=self.sum)

    def written(self, result):
        """Returns the part of the memory that is as large as the tensors that a call returns, up to the cache."""
        results = [result] if isinstance(result, self.torch.Tensor) else result or []
        count = sum(one.nbytes for one in results if isinstance(one, self.torch.Tensor))
        return self.memory[: min(count, self.torch.cuda.get_device_properties(0).L2_cache_size) // 4]

    def device_us(self, run):
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        self.torch.cuda.synchronize()
        return start.elapsed_time(stop) * 1e3

    def host_us(self, run):
        self.torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e6

    def flushes_for(self, host_us):
        return min(math.ceil((2 * host_us + 50) / self.flush_us), self.MOST_FLUSHES)

    def __call__(self, run):
        for _ in range(5):
            written = self.written(run())
        flushes = self.flushes_for(statistics.median(self.host_us(run) for _ in range(5)))
        times = []
        for _ in range(self.runs):
            for _ in range(flushes):
                self.read()
            written.fill_(1)
            times.append(self.device_us(run))
        times.sort()
        # The order statistics of a 95 % interval of the median.
        half = 0.98 * math.sqrt(self.runs)
        low, high = int(self.runs / 2 - half), int(self.runs / 2 + half)
        return statistics.median(times), times[low], times[min(high, self.runs - 1)]


class Peers(Caches, Experts, Packed):
    """A method for each operation that has peers."""


def key_of(row):
    return row["op"], row["dtype"], row["problem"], row["attributes"]


def measured(path):
    """Returns the problems that a file has peers of."""
    try:
        with open(path, newline="") as file:
            return {key_of(row) for row in csv.DictReader(file)}
    except FileNotFoundError:
        return set()


def peers_of(peers, key):
    """Returns the peers of a problem, each as its name and the call to time."""
    op, dtype, problem, attributes = key
    if dtype not in TYPES or not hasattr(Peers, op):
        return []
    sizes = {name: int(value) for name, value in words(problem).items()}
    return getattr(peers, op)(sizes, words(attributes), getattr(peers.torch, TYPES[dtype]))


def measure_one(peers, timer, key, write):
    op, dtype, problem, attributes = key
    try:
        made = peers_of(peers, key)
    except Exception as error:  # one failure must not end the run
        print(f"{op} {dtype} {problem}: {why(error)}", file=sys.stderr)
        return
    if not made:
        print(f"no peer: {' '.join(key)}", file=sys.stderr)
    for peer, run in made:
        try:
            us, low, high = timer(run)
        except Exception as error:
            print(f"{peer} {op} {dtype} {problem}: {why(error)}", file=sys.stderr)
            continue
        write({"peer": peer, "op": op, "dtype": dtype, "problem": problem, "attributes": attributes,
               "us": f"{us:.2f}", "low_us": f"{low:.2f}", "high_us": f"{high:.2f}"})


def measure(options, problems):
    import torch
    warnings.filterwarnings("ignore")
    torch.cuda.set_device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = False
    peers, timer, end = Peers(torch), Timer(torch), time.monotonic() + options.seconds
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}", file=sys.stderr)
    known = measured(options.peers) if options.resume else set()
    with open(options.peers, "a" if known else "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not known:
            writer.writeheader()

        def write(row):
            writer.writerow(row)
            file.flush()
        for key in problems:
            if key in known or (options.only and key[0] not in options.only.split(",")):
                continue
            if time.monotonic() > end:
                print(f"{' '.join(key)}: no time left", file=sys.stderr)
                continue
            measure_one(peers, timer, key, write)
            torch.cuda.empty_cache()


def summary(name, ratios, fastest=()):
    peers = ", ".join(f"{peer} {count}" for peer, count in collections.Counter(fastest).most_common())
    return (f"{name}: {statistics.geometric_mean(ratios):.3f} of {len(ratios)}, {sum(r < 0.95 for r in ratios)} below 0.95, "
            f"least {min(ratios):.3f}" + (f" ({peers})" if peers else ""))


def compare(options, problems):
    best, ratios, fastest, without = {}, {}, {}, []
    with open(options.peers, newline="") as file:
        for row in csv.DictReader(file):
            key = key_of(row)
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
    for op in dict.fromkeys(key[0] for key in problems):
        if op not in ratios:
            print(f"no peer of any problem: {op}")
    for name in without:
        print(f"no peer: {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bench")
    parser.add_argument("peers")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--resume", action="store_true")
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
