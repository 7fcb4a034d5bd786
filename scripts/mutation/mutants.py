"""Mutants: single changes of a kernel template, a reference or the code that checks results."""
import dataclasses
import hashlib
import json
import pathlib
import random
import re

from mutation.operators import mutations

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "kernels/templates"
REFERENCES = sorted((ROOT / "kernels/reference").glob("*.cpp"))
CHECKS = [ROOT / name for name in ("kernels/launch/guarded_buffer.cpp", "kernels/launch/operands.cpp",
                                   "kernels/launch/prepared_plan.cpp", "kernels/model/tensor.cpp",
                                   "tuner/evaluate/local_evaluator.cpp", "tuner/evaluate/small_checks.cpp",
                                   "tuner/evaluate/workload.cpp")]
SOURCES = (".comp", ".glsl", ".hip")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """Replaces the text `old` at `start` of a file by `new`."""
    file: str  # relative to the repository's root
    kind: str
    start: int
    old: str
    new: str
    op: str  # operation that the file belongs to; empty: all

    @property
    def id(self):
        words = f"{self.file}\0{self.start}\0{self.old}\0{self.new}"
        return hashlib.sha256(words.encode()).hexdigest()[:12]

    def line(self):
        return (ROOT / self.file).read_text()[:self.start].count("\n") + 1

    def text(self):
        """Returns the whole mutated file."""
        text = (ROOT / self.file).read_text()
        if text[self.start:self.start + len(self.old)] != self.old:
            raise ValueError(f"{self.file} has changed: {self.old!r} is not at {self.start}")
        return text[:self.start] + self.new + text[self.start + len(self.old):]


def mutants_of(file, op=""):
    """Returns all mutants of a file."""
    text = file.read_text()
    name = str(file.relative_to(ROOT))
    for kind, start, end, new in mutations(text):
        yield Mutant(name, kind, start, text[start:end], new, op)


def template_files(op):
    """Returns the sources of an operation's kernels and all included files, the operation's files
    first."""
    files = [file for file in sorted((TEMPLATES / op).iterdir()) if file.suffix in SOURCES]
    for file in files:
        for name in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
            if TEMPLATES / name not in files:
                files.append(TEMPLATES / name)
    return files


def own_files(op):
    return sum(file.suffix in SOURCES for file in (TEMPLATES / op).iterdir())


def operations():
    return [folder.name for folder in sorted(TEMPLATES.iterdir()) if folder.is_dir() and folder.name != "common"]


class Dealer:
    """Draws mutants of some files, with equal frequency for each file and each kind of change."""

    def __init__(self, files, op, seed):
        # A separate generator, so that a change of one file does not affect the mutants of others.
        self.draw = draw = random.Random(f"{seed} {files[0].relative_to(ROOT)}")
        self.hands = []  # for each file, for each kind, mutants in random order
        for file in files:
            kinds = {}
            for mutant in mutants_of(file, op):
                kinds.setdefault(mutant.kind, []).append(mutant)
            for mutants in kinds.values():
                draw.shuffle(mutants)
            if kinds:
                self.hands.append(list(kinds.values()))
        draw.shuffle(self.hands)

    def deal(self, taken):
        """Returns a mutant whose id is not among `taken`; None if there is none left."""
        while self.hands:
            hand = self.hands.pop(0)
            kind = hand.pop(self.draw.randrange(len(hand)))
            mutant = kind.pop()
            if kind:
                hand.append(kind)
            if hand:
                self.hands.append(hand)
            if mutant.id not in taken:
                return mutant
        return None


def reference_operation(file):
    """Returns the operation of a file of kernels/reference; empty if it serves several."""
    return file.stem if file.stem in operations() else {"gemm_error": "gemm", "norms": "rmsnorm",
                                                        "rows": "softmax"}.get(file.stem, "")


def deal(count, seed):
    """Returns `count` mutants. Eight of ten are of templates, with more for operations that have
    many; two are of references and checking code."""
    code = [Dealer([file], reference_operation(file), seed) for file in REFERENCES + CHECKS]
    kernels = [dealer for op in operations()
               for dealer in [Dealer(template_files(op), op, seed)] * max(1, own_files(op) // 2)]
    taken = {}
    for dealers, share in ((kernels, count * 8 // 10), (code, count)):
        dealers = list(dealers)
        while dealers and len(taken) < share:
            dealer = dealers.pop(0)
            mutant = dealer.deal(taken)
            if mutant is not None:
                taken[mutant.id] = mutant
                dealers.append(dealer)
    return list(taken.values())


def write(mutants, file):
    file.write_text("".join(json.dumps(dataclasses.asdict(mutant)) + "\n" for mutant in mutants))


def read(file):
    return [Mutant(**json.loads(line)) for line in file.read_text().splitlines() if line.strip()]
