#!/usr/bin/env python3
"""Plants the bugs of a list in kernels of tests/data/planted and in templates, and records what the diagnosis says without
a comparison with the correct source (`--against none`).

  scripts/diagnose_planted.py RESULTS --tune greta-tune [--changes 60] [--time 20] [--only 3,4] [--cases DIR]
      writes a CSV file with the first cause of each bug. Whether it is correct is for a reader to say: `correct` is
      empty
"""
import argparse
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
OWN = ROOT / "tests/data/planted"
TEMPLATES = ROOT / "kernels/templates"
COLUMNS = ["number", "bug", "file", "new", "problem", "first_cause", "search", "correct", "why"]
BATCHED, ROWS, CAUSAL = ([name, "--config", "described UNUSED=0"] for name in ("batched", "rows", "causal"))
NORM, TILES = ["norm", "--config", "described THREADS=32"], ["tiles", "--config", "described TILE=8"]
GEMM = ["gemm", "--m", "70", "--n", "60", "--k", "88", "--variant"]
ATTENTION = ["attention", "--batch", "2", "--heads", "4", "--kv_heads", "2", "--q", "9", "--kv", "40", "--dim", "16",
             "--variant", "vector", "--mask", "causal"]

# What is planted, the kernel (an operation with its options: a template), its file, the correct text, and the bug.
PLANTED = [
    ("transposed operand", BATCHED, "batched.hip", "b_of_batch[(k0 + y) * n + col]", "b_of_batch[col * k + k0 + y]"),
    ("wrong stride", BATCHED, "batched.hip", "a_of_batch[row * k + k0 + x]",
     "a_of_batch[(row * n + k0 + x) % (m * k)]"),
    ("missing tail of K", BATCHED, "batched.hip", "for (int k0 = 0; k0 < k; k0 += TILE)",
     "for (int k0 = 0; k0 + TILE <= k; k0 += TILE)"),
    ("wrong batch", BATCHED, "batched.hip", "b + batch * k * n", "b + batch / 2 * k * n"),
    ("race", BATCHED, "batched.hip", "sum += a_tile[y][i] * b_tile[i][x];\n    __syncthreads();",
     "sum += a_tile[y][i] * b_tile[i][x];"),
    ("missing tail of a sum", ROWS, "rows.hip", "i < cols; i += THREADS) sum +=",
     "i < cols / THREADS * THREADS; i += THREADS) sum +="),
    ("race", ROWS, "rows.hip", "parts[me] = sum;\n  __syncthreads();", "parts[me] = sum;"),
    ("uninitialised read", ROWS, "rows.hip", "float sum = 0;", "float sum;"),
    ("shifted row", NORM, "norm.comp", "(x.v[first + i] - mean) * factor",
     "(x.v[min(row + 1, rows - 1) * cols + i] - mean) * factor"),
    ("half-precision accumulation", NORM, "norm.comp", "sum += apart * apart;",
     "sum = float(float16_t(sum + apart * apart));"),
    ("off-by-one mask", CAUSAL, "causal.hip", "keys - queries + query + 1;", "keys - queries + query;"),
    ("wrong head", CAUSAL, "causal.hip", "head / (heads / kv_heads);\n  const float* own",
     "head % kv_heads;\n  const float* own"),
    ("column-major operand", TILES, "tiles.comp", "a.v[row * k + k0 + x]", "a.v[(k0 + x) * m + row]"),
    ("doubled slice", TILES, "tiles.comp", "for (int k0 = 0; k0 < k; k0 += TILE) {",
     "for (int step = -TILE; step < k; step += TILE) {\n    const int k0 = max(step, 0);"),
    ("stale last tile", TILES, "tiles.comp",
     "    b_tile[y][x] = k0 + y < k && col < n ? b.v[(k0 + y) * n + col] : 0;",
     "    if (k0 + TILE <= k) b_tile[y][x] = k0 + y < k && col < n ? b.v[(k0 + y) * n + col] : 0;"),
    ("missing tail of K", [*GEMM, "tiled"], "gemm/tiled.hip", "smaller(k_begin + slice, k);",
     "smaller(k_begin + slice, k) / BK * BK;"),
    ("wrong stride", [*GEMM, "tiled"], "gemm/tiled.comp", "#define STRIDE B_LINES", "#define STRIDE (B_LINES + 1)"),
    ("shifted row", ["rmsnorm", "--rows", "9", "--cols", "192"], "common/rms.glsl",
     "return Row(in_row(row), out_row(row));",
     "return Row(in_row(row + 1 < args.rows ? row + 1 : row), out_row(row));"),
    ("off-by-one mask", ATTENTION, "attention/vector.hip", "return key < left && (", "return key <= left && ("),
    ("half-precision accumulation", [*GEMM, "naive"], "gemm/naive.hip",
     "sum = multiply_add(x, to_float(*b_next), sum);",
     "sum = to_float(narrow<f16>(multiply_add(x, to_float(*b_next), sum)));"),
]


def planted(folder, command, name, correct, bug):
    """Writes the kernel with its bug, and returns the words of `verify`."""
    source = (OWN if (OWN / name).exists() else TEMPLATES) / name
    text = source.read_text()
    if text.count(correct) != 1:
        raise ValueError(f"{name} has {text.count(correct)} times {correct!r}")
    text = text.replace(correct, bug)
    device = "hip-host:0" if name.endswith(".hip") else "vulkan:0"
    if source.parent == OWN:
        shutil.copytree(OWN, folder / "own")
        (folder / "own" / name).write_text(text)
        return [folder / f"own/{command[0]}.jsonc", *command[1:], "--device", device]
    to = folder / "templates" / name
    to.parent.mkdir(parents=True)
    to.write_text(text)
    return [*command, "--device", device, "--templates", folder / "templates"]


def diagnosed(options, number, bug):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="planted-"))
    try:
        kept = folder / "kept"
        words = [options.tune, "verify", *planted(folder, *bug[1:]), "--seed", "1", "--keep-failed", kept]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        found = sorted(kept.iterdir()) if kept.is_dir() else []
        if done.returncode != 1 or not found:
            return {"problem": "", "first_cause": f"not kept: {done.stdout[-300:]} {done.stderr[-300:]}"}
        case = found[0]
        if options.cases:
            shutil.copytree(case, options.cases / str(number), dirs_exist_ok=True)
        words = [options.tune, "diagnose", "--json", "--time", options.time, "--changes", options.changes, "--against",
                 "none", case]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                              env={**os.environ, "GALLIVM_PERF": "nopt"})
        if done.returncode != 0:
            return {"problem": "", "first_cause": f"failed: {done.stderr[-300:]}"}
        (said,) = json.loads(done.stdout)["diagnoses"]
        cause = said["causes"][0] if said["causes"] else {"kind": "unknown", "words": "", "evidence": ""}
        return {"problem": said["problem"], "search": said["search"],
                "first_cause": f"{cause['kind']}: {cause['words']} ({cause['evidence']})"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--tune", required=True)
    parser.add_argument("--changes", default="0", help="seconds of the search for a change of the source")
    parser.add_argument("--time", default="20", help="seconds of a diagnosis")
    parser.add_argument("--only", help="numbers of bugs, with commas between them")
    parser.add_argument("--cases", type=pathlib.Path, help="folder in which the cases are kept")
    options = parser.parse_args()
    chosen = [int(one) for one in options.only.split(",")] if options.only else range(1, len(PLANTED) + 1)
    with options.results.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for number in chosen:
            bug = PLANTED[number - 1]
            said = diagnosed(options, number, bug)
            writer.writerow({"number": number, "bug": bug[0], "file": bug[2], "new": bug[4], **said})
            file.flush()
            print(f"{number} {bug[0]}, {bug[2]}: {said['first_cause']}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
