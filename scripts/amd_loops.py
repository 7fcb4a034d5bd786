#!/usr/bin/env python3
"""Examines the main loops of default kernels on AMD GPUs, which need not be present, and compares
them with those that were recorded, and with other projects' published code objects.

  amd_loops.py --record [--peers DIR]  examines all problems of scripts/amd_loop_problems.txt, and
                                       writes tests/data/amd_loops.json and docs/amd-main-loops.md
  amd_loops.py --check [--fast]        prints a line for each figure that is worse than the recorded
                                       one; --fast examines only the first problems of the file,
                                       on four architectures

  --tune FILE  greta-tune; default: the one on PATH
  --peers DIR  a folder with the published code objects of PEERS below, by their paths there
  --arch LIST  architectures; default: all of the recorded ones. Only with --check

The exit code is 1 if a figure is worse, and 2 if an examination failed. Figures are comparable only
if the same compiler made them: both use clang of the version in COMPILER.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBLEMS = ROOT / "scripts" / "amd_loop_problems.txt"
RECORD = ROOT / "tests" / "data" / "amd_loops.json"
PAGE = ROOT / "docs" / "amd-main-loops.md"
COMPILER = "clang-22"
ARCHITECTURES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1103", "gfx1151", "gfx1201"]
# Those of the fast suite: one of each generation that is developed further.
FAST = ["gfx942", "gfx950", "gfx1100", "gfx1201"]
# Published code objects of ROCm/aiter for tiles of the same problems.
PEER_PROJECT = "https://github.com/ROCm/aiter"
PEERS = {
    "attention --batch 4 --heads 32 --q 4096 --kv 4096 --dim 128 --dtype bf16": {
        "gfx942": "hsa/gfx942/fmha_v3_fwd/MI300/fwd_hd128_bf16_rtne.co",
        "gfx950": "hsa/gfx950/fmha_v3_fwd/fwd_hd128_bf16.co"},
    "attention --batch 4 --heads 32 --q 4096 --kv 4096 --dim 128 --dtype bf16 --causal 1": {
        "gfx942": "hsa/gfx942/fmha_v3_fwd/MI300/fwd_hd128_bf16_causal_rtne.co",
        "gfx950": "hsa/gfx950/fmha_v3_fwd/fwd_hd128_bf16_causal.co"},
    "gemm --m 4096 --n 4096 --k 4096 --dtype bf16 --layout nt": {
        "gfx950": "hsa/gfx950/bf16gemm/bf16gemm_bf16_tn_256x256.co"},
}
# The figures that must not get worse: name, what it is called, whether more is better, and by which
# factor it may differ, since patch levels of a compiler do.
GUARDED = [("matrix_share", "matrix share of instructions", True, 1.02),
           ("vector_per_matrix", "vector instructions for each matrix instruction", False, 1.02),
           ("waves", "waves a SIMD", True, 1.0),
           ("lds_conflicts", "LDS cycles of conflicts", False, 1.0)]


class Failed(Exception):
    """An examination failed."""


def problems():
    """Returns the problems, and the number of those that the fast suite examines."""
    found, fast = [], 0
    for line in PROBLEMS.read_text().splitlines():
        if line == "#":
            fast = len(found)
        elif line and not line.startswith("#"):
            found.append(line)
    return found, fast


def run(words):
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}: {result.stderr.strip() or result.returncode}")
    return json.loads(result.stdout)


def figures_of(kernel):
    """Returns what is recorded of a kernel, or None if its main loop is unknown."""
    loop = kernel.get("main_loop")
    if loop is None:
        return None
    matrix = loop["matrix"]
    conflicts = None if loop["lds_cycles"] is None else \
        max(0.0, loop["lds_cycles"] - loop["lds_least_cycles"])
    return {"kernel": kernel["name"], "registers": kernel["registers"], "waves": loop["waves"],
            "instructions": loop["instructions"], "matrix": matrix,
            "matrix_share": round(matrix / loop["instructions"], 4),
            "vector_per_matrix": round(loop["vector"] / matrix, 3) if matrix else None,
            "scalar_per_matrix": round(loop["scalar"] / matrix, 3) if matrix else None,
            "instructions_per_mflop": round(loop["instructions_per_mflop"], 1) if matrix else None,
            "vector": loop["vector"], "drains": loop["drains"],
            "accumulator_moves": loop["accumulator_moves"],
            "lds_bytes": loop["lds_bytes"], "lds_cycles": loop["lds_cycles"],
            "lds_conflicts": conflicts, "matrix_cycles": loop["matrix_cycles"],
            "bound": None if loop["bound"] is None else round(loop["bound"], 3),
            "bounded_by": loop["bounded_by"]}


def examine(tune, problem, architecture):
    """Returns the figures of the kernels of a problem's default configuration."""
    report = run([tune, "compile", *problem.split(), "--arch", architecture, "--compiler", COMPILER,
                  "--json"])
    (configuration,) = report["configurations"]
    kernels = [figures_of(kernel) for kernel in configuration["kernels"]]
    if None in kernels:
        raise Failed(f"{problem} on {architecture}: a kernel has no main loop")
    return {"config": configuration["config_text"], "kernels": kernels}


def examine_all(tune, wanted):
    """Examines (problem, architecture) on all cores. Returns them with their figures, in order."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(zip(wanted, pool.map(lambda one: examine(tune, *one), wanted)))


def worse(before, now):
    """Yields a text for each guarded figure of a kernel that is worse than before."""
    for name, called, more_is_better, factor in GUARDED:
        old, new = before[name], now[name]
        if old is None or (new is None and name != "lds_conflicts"):
            continue
        if new is None:
            yield f"{called}: {old:g} before, unknown now"
        elif new * factor < old if more_is_better else new > old * factor:
            yield f"{called}: {old:g} before, {new:g} now"


def check(tune, fast, architectures):
    recorded = json.loads(RECORD.read_text())["problems"]
    found, first = problems()
    wanted = [(problem, architecture) for problem in (found[:first] if fast else found)
              for architecture in architectures if architecture in recorded.get(problem, {})]
    if not wanted:
        raise Failed(f"{RECORD}: nothing is recorded of these problems and architectures")
    lines = []
    for (problem, architecture), now in examine_all(tune, wanted):
        before = recorded[problem][architecture]["kernels"]
        for old, new in zip(before, now["kernels"]):
            lines += [f"{new['kernel']} on {architecture} ({problem}): {line}"
                      for line in worse(old, new)]
    for line in lines:
        print(line)
    return 1 if lines else 0


def peer_figures(tune, folder):
    """Returns the figures of the peers' kernels that the folder has: problem -> architecture."""
    found = {}
    for problem, paths in PEERS.items():
        for architecture, path in paths.items():
            file = folder / path
            if not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
                continue
            (contents,) = run([tune, "inspect", file, "--json"])["code_objects"]
            figures = figures_of(contents["kernels"][0])
            found.setdefault(problem, {})[architecture] = dict(figures, path=path)
    return found


def cell(value, digits=2):
    if value is None:
        return "–"
    text = str(value) if isinstance(value, int) else f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def row(label, architecture, figures):
    unknown = figures["lds_cycles"] is None
    lds = "?" if unknown else cell(figures["lds_cycles"], 0)
    if figures["lds_conflicts"]:
        lds += f" ({cell(figures['lds_conflicts'], 0)})"
    bound = "–" if figures["bound"] is None else \
        f"{100 * figures['bound']:.0f} %, {figures['bounded_by']}"
    return [label, architecture, cell(figures["registers"]), cell(figures["waves"]),
            cell(figures["instructions"]), cell(figures["matrix"]),
            f"{100 * figures['matrix_share']:.1f} %" if figures["matrix"] else "–",
            cell(figures["vector_per_matrix"]), cell(figures["scalar_per_matrix"]),
            cell(figures["instructions_per_mflop"], 0), cell(figures["drains"]),
            cell(figures["accumulator_moves"]), lds, cell(figures["matrix_cycles"], 0), bound]


COLUMNS = ["kernel", "architecture", "registers", "waves", "instructions", "matrix", "share",
           "vector", "scalar", "per MFLOP", "drains", "moves", "LDS cycles", "matrix cycles", "bound"]


def page(record, peers):
    """Returns the text of the page."""
    lines = [
        "# Main loops on AMD GPUs",
        "",
        "This page lists what the main loops of GRETA's default kernels consist of on seven AMD "
        "architectures. It is for",
        "developers who optimise kernels. No kernel was run: the figures come from machine code.",
        "[compile.md](compile.md#main-loops-of-amd-kernels) describes how they are computed. "
        "`scripts/amd_loops.py --record`",
        f"writes this page with {record['compiler']}. The test suite compares the kernels with the "
        "same figures",
        "([tests/data/amd_loops.json](../tests/data/amd_loops.json)).",
        "",
        "- `registers`: of a thread. `waves`: resident on a SIMD.",
        "- `instructions`, `matrix`: of a wave in a turn of the loop; `share`: of matrix instructions "
        "among all.",
        "- `vector`, `scalar`: vector and scalar instructions for each matrix instruction.",
        "- `per MFLOP`: instructions of a wave for 10^6 floating point operations of matrix "
        "instructions.",
        "- `drains`: waits until no access is under way. `moves`: accumulator moves.",
        "- `LDS cycles`: of an LDS unit, in parentheses those of bank conflicts; `?` where addresses "
        "are unknown.",
        "- `matrix cycles`: of a SIMD's matrix cores. `bound`: the largest share of the rate of these "
        "matrix instructions",
        "  that the loop can reach, and what bounds it.",
        "",
        f"Rows named AITER are code objects that [ROCm/aiter]({PEER_PROJECT}) publishes for the "
        "same problem, with",
        "the tile that is nearest to GRETA's. They are not part of this repository. The arguments of "
        "these kernels are",
        "unknown, so their LDS conflicts are, too.",
    ]
    if peers is None or not any(peers.values()):
        lines += ["This page was written without them."]
    missing = sorted(path for problem, paths in PEERS.items() for architecture, path in paths.items()
                     if not (peers or {}).get(problem, {}).get(architecture))
    if peers and missing:
        lines += ["Not available when this page was written: " + ", ".join(missing) + "."]
    for problem, by_architecture in record["problems"].items():
        lines += ["", f"## {problem}", "", "| " + " | ".join(COLUMNS) + " |",
                  "|" + "---|" * len(COLUMNS)]
        for architecture, entry in by_architecture.items():
            for figures in entry["kernels"]:
                lines.append("| " + " | ".join(row(figures["kernel"], architecture, figures)) + " |")
            peer = (peers or {}).get(problem, {}).get(architecture)
            if peer:
                label = "AITER " + pathlib.PurePath(peer["path"]).stem
                lines.append("| " + " | ".join(row(label, architecture, peer)) + " |")
        lines += ["", "Default configurations:", ""]
        for architecture, entry in by_architecture.items():
            lines.append(f"- {architecture}: `{entry['config']}`")
    return "\n".join(lines) + "\n"


def record(tune, peers_folder):
    found, _ = problems()
    wanted = [(problem, architecture) for problem in found for architecture in ARCHITECTURES]
    by_problem = {}
    for (problem, architecture), figures in examine_all(tune, wanted):
        by_problem.setdefault(problem, {})[architecture] = figures
    made = {"compiler": COMPILER, "problems": by_problem}
    peers = peer_figures(tune, peers_folder) if peers_folder else None
    RECORD.write_text(json.dumps(made, indent=1) + "\n")
    PAGE.write_text(page(made, peers))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--record", action="store_true")
    action.add_argument("--check", action="store_true")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--tune", default="greta-tune")
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--arch")
    options = parser.parse_args()
    try:
        if options.record:
            record(options.tune, options.peers)
            return 0
        chosen = FAST if options.fast else ARCHITECTURES
        return check(options.tune, options.fast, options.arch.split(",") if options.arch else chosen)
    except (Failed, OSError) as error:
        print(f"amd_loops.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
