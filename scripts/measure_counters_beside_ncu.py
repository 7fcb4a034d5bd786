"""Compares the counters of greta-tune profile with those of Nsight Compute for the same launches on an NVIDIA GPU.

Each of the kernels below is profiled with `greta-tune profile --default`, and launched under ncu with `--launch-only`,
after the same flush of the caches. Bytes that pass through the caches differ from launch to launch, so both tools run
--runs times in turns, and their medians are compared; the range of ncu's runs stands beside them. ncu repeats the whole
program for each of its passes. With --replay kernel, it repeats the kernel instead and invalidates the caches itself;
the TLBs are then warm, which shortens kernels of a few microseconds. Prints a table and, with --csv, writes it; ends
with exit code 1 if a figure that counts for the bar differs by more than --bar percent.
"""

import argparse
import csv
import io
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

KERNELS = (
    ("f16 gemm, square", "gemm --m 4096 --n 4096 --k 4096 --dtype f16"),
    ("bf16 gemm, few rows", "gemm --m 512 --n 4096 --k 4096 --dtype bf16"),
    ("f32 gemm", "gemm --m 2048 --n 2048 --k 2048"),
    ("f16 gemv", "gemm --m 1 --n 11008 --k 4096 --dtype f16"),
    ("f16 gemm, odd shape", "gemm --m 1000 --n 1000 --k 1000 --dtype f16"),
    ("softmax f32", "softmax --rows 16384 --cols 4096"),
    ("softmax f16, long rows", "softmax --rows 4096 --cols 32000 --dtype f16"),
    ("rmsnorm f16", "rmsnorm --rows 16384 --cols 4096 --dtype f16"),
    ("layernorm f32", "layernorm --rows 16384 --cols 4096"),
    ("attention prefill", "attention --heads 32 --q 2048 --dim 128 --dtype f16"),
    ("silu_mul f16", "silu_mul --rows 4096 --cols 11008 --dtype f16"),
    ("add f32", "add --rows 16384 --cols 4096"),
)

ACTIVE = ".avg.pct_of_peak_sustained_active"
CYCLES = "sm__cycles_active.avg"
FLUSH = "greta_read"  # the kernel that flushes the caches
# Figure of GRETA: (metric of ncu, factor, how several kernels combine, whether it counts for the bar)
FIGURES = {
    "memory_read_bytes": ("dram__bytes_read.sum", 1, "sum", True),
    "memory_write_bytes": ("dram__bytes_write.sum", 1, "sum", True),
    "l2_bytes": ("lts__t_bytes.sum", 1, "sum", True),
    "l1_bytes": ("l1tex__t_bytes.sum", 1, "sum", True),
    "l2_to_l1_bytes": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1, "sum", True),
    "shared_bytes": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 128, "sum", True),
    "matrix_share": ("sm__pipe_tensor_cycles_active" + ACTIVE, 0.01, "mean", True),
    "fma_share": ("sm__pipe_fma_cycles_active" + ACTIVE, 0.01, "mean", False),
    "occupancy_share": ("sm__warps_active" + ACTIVE, 0.01, "mean", True),
    "instructions": ("smsp__inst_executed.sum", 1, "sum", False),
}
SMALL_BYTES = 4 << 20  # of fewer bytes, those of the driver and the profiler itself are a part that counts
SMALL_SHARE = 0.005


def run(words, **options):
    result = subprocess.run(words, capture_output=True, text=True, timeout=options.get("timeout", 300))
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit code {result.returncode}\n{result.stdout[-2000:]}"
                 f"\n{result.stderr[-2000:]}")
    return result.stdout


def of_greta(tune, problem, device, database):
    text = run([tune, "profile", *problem.split(), "--default", "--device", device, "--db", database,
                "--seconds", "0.5", "--no-lock", "--json"])
    way = json.loads(text)["ways"][0]
    if "counters" not in way:
        sys.exit(f"{problem}: no counters: {way.get('no_counters', way.get('message'))}")
    return way["counters"]["figures"], way["us"]["estimate"], way["limiter"]


def number(text):
    return float(text.replace(",", ""))


def of_ncu(ncu, tune, problem, device, database, replay):
    """Returns the figures of the launch's kernels together, and their number."""
    metrics = sorted({metric for metric, *_ in FIGURES.values()} | {CYCLES})
    caches = "none" if replay == "application" else "all"
    text = run([ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--target-processes",
                "application-only", "--replay-mode", replay, "--cache-control", caches, "--metrics",
                ",".join(metrics), tune, "profile", *problem.split(), "--default", "--launch-only", "--device", device,
                "--db", database, "--no-lock"])
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        sys.exit(f"{problem}: ncu printed no table:\n{text[-2000:]}")
    kernels = [row for row in csv.DictReader(io.StringIO("\n".join(lines[begin:])))
               if row["ID"] and not row["Kernel Name"].startswith(FLUSH)]
    values = {}
    for figure, (metric, factor, how, _) in FIGURES.items():
        if how == "sum":
            values[figure] = factor * sum(number(row[metric]) for row in kernels)
        else:  # a share of the active cycles
            cycles = [number(row[CYCLES]) for row in kernels]
            shares = [number(row[metric]) for row in kernels]
            values[figure] = factor * sum(c * s for c, s in zip(cycles, shares)) / sum(cycles)
    return values, len(kernels)


def difference(figure, ours, theirs):
    """Returns the difference in percent; None where both are too small to compare."""
    small = SMALL_SHARE if figure.endswith("share") else SMALL_BYTES if figure.endswith("bytes") else 1
    if max(abs(ours), abs(theirs)) < small:
        return None
    return 100 * (ours / theirs - 1) if theirs else float("inf")


def of_both(options, problem, database):
    """Returns for each figure its values of all runs by GRETA and by ncu, and a line about the launch."""
    ours, theirs = {}, {}
    for _ in range(options.runs):
        figures, us, limiter = of_greta(options.tune, problem, options.device, database)
        counted, kernels = of_ncu(options.ncu, options.tune, problem, options.device, database, options.replay)
        for figure in FIGURES:
            theirs.setdefault(figure, []).append(counted[figure])
            if figure in figures:
                ours.setdefault(figure, []).append(figures[figure])
    return ours, theirs, f"{us:.1f} us, {kernels} kernel(s); {limiter}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tune", default="greta-tune", help="path of greta-tune")
    parser.add_argument("--ncu", default="ncu", help="path of ncu")
    parser.add_argument("--device", default="hip:0")
    parser.add_argument("--csv", type=pathlib.Path, help="file for the table")
    parser.add_argument("--only", help="only these kernels, by number, as 1,5")
    parser.add_argument("--replay", choices=("application", "kernel"), default="application", help="ncu's replay mode")
    parser.add_argument("--runs", type=int, default=3, help="runs of each tool, whose medians are compared")
    parser.add_argument("--bar", type=float, default=3, help="largest difference in percent")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs: at least 1")
    chosen = [KERNELS[int(number) - 1] for number in options.only.split(",")] if options.only else KERNELS
    rows, worst = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        database = str(pathlib.Path(folder) / "profile.db")
        for name, problem in chosen:
            ours, theirs, told = of_both(options, problem, database)
            print(f"{name} ({problem}): {told}")
            for figure, (_, _, _, counts) in FIGURES.items():
                peer = statistics.median(theirs[figure])
                if len(ours.get(figure, ())) < options.runs:
                    print(f"  {figure:22} absent in some runs; ncu {peer:.6g}")
                    worst = math.inf if counts else worst
                    continue
                own = statistics.median(ours[figure])
                spread = 100 * (max(theirs[figure]) - min(theirs[figure])) / peer if peer else 0
                percent = difference(figure, own, peer)
                told = "both small" if percent is None else f"{percent:+.2f} %"
                print(f"  {figure:22} {own:14.6g} {peer:14.6g} {told:>12}, range of ncu's runs {spread:.2f} %"
                      f"{'' if counts else '  (not of the bar)'}")
                rows.append((name, problem, figure, own, peer, "" if percent is None else f"{percent:.3f}",
                             f"{spread:.3f}", options.runs, int(counts)))
                if counts and percent is not None:
                    worst = max(worst, abs(percent))
            sys.stdout.flush()
    if options.csv:
        with options.csv.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(("kernel", "problem", "figure", "greta", "ncu", "difference_percent", "ncu_range_percent", "runs",
                          "of_the_bar"))
            out.writerows(rows)
    print(f"largest difference of the bar's figures: {worst:.2f} %; the bar is {options.bar:g} %")
    return 0 if worst <= options.bar else 1


if __name__ == "__main__":
    sys.exit(main())
