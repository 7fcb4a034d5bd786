#!/usr/bin/env python3
"""Draws bugs of kernel templates (mutants) that give wrong results, and records what the diagnosis says of each.

  scripts/diagnose_mutants.py RESULTS --tune greta-tune --seed 1 [--count 20] [--devices vulkan:0,hip-host:0]
                              [--problems 60] [--skip FILE]... [--cases DIR] [--diagnose OPTIONS] [--compare]
      appends a line of JSON for each mutant that `greta-tune verify --keep-failed` finds and keeps, until there are
      COUNT. Whether the first cause is correct is for a reader to say: the field "correct" is null. --skip names results
      whose mutants are not drawn again. --cases keeps the cases, each in a folder with its mutant's id

  scripts/diagnose_mutants.py RESULTS --again --tune greta-tune
      runs the mutants in RESULTS again and replaces what the diagnosis says, after a change of it

A mutant differs from the built-in template by construction, so that a comparison with it shows the bug. The search without
a known-good version is therefore measured with `diagnose --against none`, and the comparison only with --compare. Each line
says which: "against" is "none" or "built-in".

Mutants are drawn as by scripts/mutate.py, at most three of an operation and one of a file's line.
"""
import argparse
import collections
import json
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from mutation import mutants as mutation_list  # noqa: E402
from mutation import runner  # noqa: E402

MOST_OF_AN_OPERATION = 3
MOST_PROBLEMS = 8  # in which a mutant is looked for, on a device


def planted(mutant, folder):
    """Writes the mutated file, and returns the folder of templates."""
    templates = folder / "templates"
    file = templates / pathlib.Path(mutant.file).relative_to(runner.TEMPLATES.relative_to(runner.ROOT))
    file.parent.mkdir(parents=True)
    file.write_text(mutant.text())
    return templates


def diagnosed(tools, mutant, devices, how, number=None, cases=None):
    """Returns what the diagnosis, with the options `how`, says of a mutant; None if no kept case shows it. `number`
    selects one problem. The case is copied to the folder `cases`, if it is given."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mutant-"))
    try:
        templates = planted(mutant, folder)
        for device in devices:
            problems = [number] if number else tools.reach(mutant.op, device).of(mutant.file, mutant.start)[:MOST_PROBLEMS]
            if not problems:
                continue
            kept = folder / "kept"
            code, output, _ = runner.run(
                [tools.tune, "verify", mutant.op, "--device", device, "--problems", tools.problems, "--seed", tools.seed,
                 "--first", "--deadline", 20, "--json", "--templates", templates, "--only",
                 ",".join(map(str, problems)), "--keep-failed", kept], tools.seconds)
            if code != 1 or not output or not kept.is_dir():
                continue
            failures = json.loads(output)["failures"]
            found = sorted(kept.iterdir())
            if not failures or failures[0]["status"] != "correctness" or not found:
                continue
            if cases:
                shutil.copytree(found[0], cases / mutant.id, dirs_exist_ok=True)
            try:
                code, output, errors = runner.run([tools.tune, "diagnose", "--json", *how, found[0]], tools.seconds)
            except runner.Timeout:  # counts: a case that is left out would embellish the result
                return {"device": device, "number": failures[0]["number"], "causes": [f"no answer in {tools.seconds} s"]}
            if code != 0:
                raise RuntimeError(errors)
            (diagnosis,) = json.loads(output)["diagnoses"]
            causes = [f"{one['kind']}: {one['words']} ({one['evidence']})" for one in diagnosis["causes"][:3]] or ["unknown"]
            return {"device": device, "number": failures[0]["number"], "problem": diagnosis["problem"],
                    "config": diagnosis["config"], "message": diagnosis["message"], "sure": diagnosis["sure"],
                    "against": "none" if "none" in how else "built-in", "causes": causes}
        return None
    except runner.Timeout:
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def drawn(seed):
    """Returns mutants of templates in random order."""
    mutants = [one for one in mutation_list.deal(1000, seed) if one.file.startswith("kernels/templates/") and one.op]
    random.Random(seed).shuffle(mutants)
    return mutants


def devices_of(options, mutant):
    is_hip = mutant.file.endswith(".hip")
    return [one for one in options.devices.split(",") if one.startswith("hip" if is_hip else "vulkan")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--tune", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--devices", default="vulkan:0,hip-host:0,hip-host:1,hip-host:2")
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--limit", type=float, default=300, help="seconds of one tool's run")
    parser.add_argument("--skip", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--cases", type=pathlib.Path, help="folder in which the cases are kept")
    parser.add_argument("--diagnose", default="", metavar="OPTIONS", help="of greta-tune diagnose: '--changes 60'")
    parser.add_argument("--compare", action="store_true", help="compare with the built-in templates")
    options = parser.parse_args()
    how = options.diagnose.split()
    if "--against" in options.diagnose:
        parser.error("--diagnose: no --against; --compare says with what is compared")
    if not options.compare:
        how += ["--against", "none"]
    tools = runner.Tools(options.tune, None, options.devices.split(","), options.problems, options.seed, 1, options.limit)
    known = [json.loads(line) for line in options.results.read_text().splitlines()] if options.results.exists() else []
    if options.again:
        for entry in known:
            mutant = mutation_list.Mutant(**entry["mutant"])
            entry.update(diagnosed(tools, mutant, [entry["device"]], how, entry["number"], options.cases) or {"causes": ["not kept"]})
            print(f"{mutant.id} {mutant.file}:{mutant.line()} {mutant.old!r} -> {mutant.new!r}: {entry['causes'][0]}",
                  flush=True)
        options.results.write_text("".join(json.dumps(entry) + "\n" for entry in known))
        return 0
    earlier = [json.loads(line) for file in options.skip for line in file.read_text().splitlines()] + known
    seen = {(entry["mutant"]["file"], entry["mutant"]["start"]) for entry in earlier}
    counts = collections.Counter(entry["mutant"]["op"] for entry in known)
    for mutant in drawn(options.seed):
        if len(known) >= options.count:
            break
        if counts[mutant.op] >= MOST_OF_AN_OPERATION or (mutant.file, mutant.start) in seen:
            continue
        found = diagnosed(tools, mutant, devices_of(options, mutant), how, cases=options.cases)
        if found is None:
            continue
        counts[mutant.op] += 1
        known.append({"id": mutant.id, "mutant": mutant.__dict__, "line": mutant.line(), **found, "correct": None})
        with options.results.open("a") as results:
            results.write(json.dumps(known[-1]) + "\n")
        print(f"{mutant.id} {mutant.file}:{mutant.line()} {mutant.old!r} -> {mutant.new!r}: {found['causes'][0]}", flush=True)
    return 0 if len(known) >= options.count else 1


if __name__ == "__main__":
    sys.exit(main())
