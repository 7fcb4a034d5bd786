"""Determines with the preprocessor which of the kernels that `verify` checks contain a line of a
template. Every part of a template between two preprocessor conditions gets a mark. The kernel
sources are rendered from the marked templates and preprocessed. The remaining marks show which
parts each kernel contains."""
import pathlib
import re
import shutil
import subprocess
import tempfile

from mutation.mutants import ROOT, SOURCES, TEMPLATES

LANGUAGE = ROOT / "runtime/device/hip/host/language/greta_host.hpp"
CONDITION = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b")
MARK = re.compile(r"\bGRETA_PART_(\d+)_(\d+)\b")


def parts(text):
    """Returns the positions at which the parts of a template begin: its start, and after each
    condition."""
    starts = [] if text.startswith("#version ") else [0]  # #version must be the first line
    for line in re.finditer(r"(?:[^\n\\]|\\\n|\\)*\n", text):
        if line[0].startswith("#version ") or CONDITION.match(line[0]):
            starts.append(line.end())
    return starts


class Reach:
    """The problems, by number, whose kernels contain a part of a template, for one operation and
    device."""

    def __init__(self, render, device, arch):
        """`render(templates, folder)` writes the kernel sources of problem I as FOLDER/I-*.glsl or
        .hip. `arch` is the architecture that the device is or emulates, for example gfx942 or
        sm_90."""
        self.device, self.arch = device, arch
        self.files = [file for file in sorted(TEMPLATES.rglob("*")) if file.suffix in SOURCES]
        self.starts = [parts(file.read_text()) for file in self.files]
        folder = pathlib.Path(tempfile.mkdtemp(prefix="reach-"))
        try:
            self._mark(folder / "templates")
            (folder / "sources").mkdir()
            render(folder / "templates", folder / "sources")
            self.problems = {}
            for source in sorted((folder / "sources").iterdir()):
                number = int(source.name.split("-")[0])
                for mark in set(MARK.findall(self._preprocessed(source))):
                    self.problems.setdefault((int(mark[0]), int(mark[1])), set()).add(number)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _mark(self, folder):
        for i, file in enumerate(self.files):
            text, marked, last = file.read_text(), "", 0
            for j, start in enumerate(self.starts[i]):
                marked += f"{text[last:start]}GRETA_PART_{i}_{j}\n"
                last = start
            to = folder / file.relative_to(TEMPLATES)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(marked + text[last:])

    def _preprocessed(self, source):
        # Kernels with cooperative matrices need one of two extensions, which the device layer
        # selects.
        command = ["cpp", "-P", "-undef", "-w", "-x", "assembler-with-cpp", "-DGRETA_MATRIX_KHR"]
        if source.suffix == ".hip" and self.device.startswith("hip-host"):
            number = re.search(r"\d+$", self.arch)[0].replace("90", "80")  # hip-host:4 has those of sm_80
            command = ["c++", "-E", "-P", "-w", "-x", "c++", f"-DGRETA_HOST={number}", "-DGRETA_HOST_DYNAMIC_BYTES=65536",
                       "-I", str(ROOT), "-include", str(LANGUAGE)]
        elif source.suffix == ".hip" and self.arch.startswith("sm_"):
            command.append(f"-D__CUDA_ARCH__={self.arch[3:]}0")
            # Warpgroup kernels are compiled for sm_90a, which defines this macro. Nothing else
            # reads it.
            command += ["-D__CUDA_ARCH_FEAT_SM90_ALL"] * (self.arch == "sm_90")
        elif source.suffix == ".hip":
            command += ["-D__AMDGCN__", f"-D__{self.arch}__"] + ["-D__GFX9__"] * self.arch.startswith("gfx9")
        done = subprocess.run([*command, str(source)], capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise RuntimeError(f"{source.name}: {done.stderr[:300]}")
        return done.stdout

    def of(self, file, position):
        """Returns the problems whose kernels contain the text at a position of a template."""
        i = self.files.index(ROOT / file)
        part = max((j for j, start in enumerate(self.starts[i]) if start <= position), default=0)
        return sorted(self.problems.get((i, part), ()))
