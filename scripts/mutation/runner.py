"""Runs mutants: builds only the mutated file, and runs the tools and tests to see whether they
detect it."""
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading

from mutation.mutants import ROOT, TEMPLATES, operations, template_files
from mutation.reach import Reach

# A plain tune rounds these extents up, so that its problem has no partial tiles.
EXTENTS = ("m", "n", "k", "rows", "cols", "q", "kv", "tokens", "capacity")


class Timeout(Exception):
    pass


# lavapipe compiles three times faster without LLVM's optimisations, and the results are the same.
ENVIRONMENT = {**os.environ, "GALLIVM_PERF": "nopt"}


def run(command, seconds, **more):
    """Returns (exit code, standard output, standard error). Kills the whole process group on
    timeout."""
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True,
                               env=ENVIRONMENT, **more)
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Timeout(f"no end after {seconds} s: {shlex.join(map(str, command))}") from None
    return process.returncode, output, errors


class Tools:
    """The programs that detect mutants, and their limits."""

    def __init__(self, tune, build, devices, problems, seed, trials, seconds):
        self.tune = pathlib.Path(tune).resolve()
        self.build = build and pathlib.Path(build).resolve()  # with compile_commands.json; none: no C++ mutants
        self.glsl_devices = [device for device in devices if device.startswith("vulkan")]
        self.hip_devices = [device for device in devices if device.startswith("hip")]
        self.problems, self.seed, self.trials, self.seconds = problems, seed, trials, seconds

    def reach(self, op, device):
        """Returns which of the operation's random problems contain which part of a template."""
        with self._lock:
            lock = self._locks.setdefault((op, device), threading.Lock())
        with lock:
            if (op, device) not in self._reach:
                def render(templates, folder):
                    code, _, errors = run([self.tune, "verify", op, "--device", device, "--problems", self.problems,
                                           "--seed", self.seed, "--templates", templates, "--sources", folder], 300)
                    if code != 0:
                        raise RuntimeError(errors)
                self._reach[op, device] = Reach(render, device, self.architecture(device))
            return self._reach[op, device]

    def architecture(self, device):
        """Returns the architecture that a device is or emulates."""
        with self._lock:
            if not self._architectures:
                for backend in json.loads(run([self.tune, "devices", "--json"], 60)[1]):
                    self._architectures.update({one["id"]: one["architecture"] for one in backend["devices"]})
            return self._architectures[device]

    def verify(self, op, device, templates=None, tune=None, problems=None, only=()):
        """Returns the outcome of `greta-tune verify`: None if all is correct, else the kind and
        place of the failure. `only` selects random problems by number; the kernels of the others
        don't depend on `templates`."""
        failure = self.failure(op, device, templates, tune, problems, only)
        if isinstance(failure, dict):
            return failure["status"], f"{failure['problem']} | {failure['message']}"[:300]
        return failure

    def failure(self, op, device, templates=None, tune=None, problems=None, only=()):
        """Like verify(), but returns the tool's report if a kernel failed."""
        command = [tune or self.tune, "verify", op, "--device", device, "--problems",
                   problems or self.problems, "--seed", self.seed, "--first", "--deadline", 20, "--json"]
        command += ["--templates", templates] if templates else []
        code, output, errors = run(command + (["--only", ",".join(map(str, only))] if only else []), self.seconds)
        if code == 0:
            return None
        failures = json.loads(output)["failures"] if code == 1 and output else []
        if failures:
            number = failures[0]["number"]
            if templates and failures[0]["status"] != "compile" and not self.sound(op, device, number):
                rest = [other for other in only if other != number]
                return self.failure(op, device, templates, tune, problems, rest) if rest else None
            return failures[0]
        if ": ceiling/" in errors:  # a kernel that a worker compiles when it opens a device
            return "compile", errors.strip()[-300:]
        return ("no device" if code == 3 else "tool"), errors.strip()[-300:]

    def sound(self, op, device, number):
        """Returns whether the unmodified kernels pass a problem. A problem that fails anyway
        detects no mutant."""
        if (op, device, number) not in self._sound:
            self._sound[op, device, number] = self.verify(op, device, only=[number]) is None
        return self._sound[op, device, number]

    def tuning(self, op, device, templates, folder, problems):
        """Returns the outcome of a plain tune, in the form of verify(). It tries the configuration
        that `verify` found to be wrong first: on a problem without partial tiles, then on the
        problem of `verify`."""
        failure = self.failure(op, device, templates, only=problems)
        if not isinstance(failure, dict):
            return failure
        if failure["status"] == "compile":
            return "compile", failure["message"][:300]
        database = folder / "tuned.db"
        shutil.copy(self.known_peaks(device), database)
        config = failure["config"]
        words = [config["variant"], *(f"{name}={value}" for name, value in config["values"])]
        # A kernel without partial tiles may lack the line, or the configuration may be invalid for
        # the larger problem.
        for rounded in (True, False):
            command = [self.tune, op, *problem_options(failure["problem"], rounded), "--try", " ".join(words),
                       "--device", device, "--budget", self.trials, "--seed", self.seed, "--warm", "--no-lock",
                       "--db", database, "--json", "--templates", templates]
            code, output, errors = run(command, self.seconds)
            counts = json.loads(output)["trials"] if output else {}
            for status in ("correctness", "crash", "timeout", "launch", "compile"):
                if counts.get(status, 0) > 0:
                    edges = "without edges" if rounded else "with edges"
                    return status, f"{counts[status]} of {counts['total']} trials of a problem {edges}"
        return None if code == 0 else ("tool", errors.strip()[-300:])

    def known_peaks(self, device):
        """Returns a database with the device's measured peaks, which a first tune would measure for a
        long time."""
        with self._lock:
            if device not in self._databases:
                file = pathlib.Path(self._folder.name) / f"{device}.db"
                code, _, errors = run([self.tune, "add", "--rows", 8, "--cols", 8, "--device", device, "--budget",
                                       1, "--no-lock", "--db", file], self.seconds)
                if code != 0:
                    raise RuntimeError(errors)
                self._databases[device] = file
            return self._databases[device]

    _databases, _reach, _locks, _sound, _architectures = {}, {}, {}, {}, {}
    _lock, _folder = threading.Lock(), tempfile.TemporaryDirectory(prefix="mutate-")

    def compiled(self, mutant, folder):
        """Returns the object file of a mutated source; None if it does not compile."""
        (folder / "mutant.cpp").write_text(mutant.text())
        commands = json.loads((self.build / "compile_commands.json").read_text())
        entry = next((one for one in commands if one["file"] == str(ROOT / mutant.file)), None)
        if entry is None:
            raise RuntimeError(f"{self.build} has no command for {mutant.file}: the preset single has")
        words = shlex.split(entry["command"])
        words[words.index("-o") + 1] = str(folder / "mutant.o")
        words[words.index(entry["file"])] = str(folder / "mutant.cpp")
        words = [word for word in words if word != "-Werror"] + ["-iquote", str((ROOT / mutant.file).parent)]
        return folder / "mutant.o" if run(words, 300, cwd=entry["directory"])[0] == 0 else None

    def linked(self, name, mutant_object):
        """Links a program of the build folder with the mutated object file before the libraries."""
        program = mutant_object.with_name(name)
        _, text, _ = run(["ninja", "-C", self.build, "-t", "commands", name], 60)
        link = text.strip().splitlines()[-1].removeprefix(": && ").removesuffix(" && :").split(" && ")[0]
        words = shlex.split(link)
        at = words.index("-o") + 1
        words[at:at + 1] = [str(program), str(mutant_object), "-Wl,--allow-multiple-definition"]
        code, _, errors = run(words, 300, cwd=self.build)
        if code != 0:
            raise RuntimeError(f"{name} does not link: {errors[-500:]}")
        return program


def problem_options(key, rounded):
    """Returns the options of a problem key, for example `gemm dtype=f16 out=f16 layout=nt m=70 n=96
    k=33`. If rounded, rows are packed and extents are multiples of 64."""
    options = []
    for word in shlex.split(key)[1:]:
        name, value = word.split("=", 1)
        if rounded and name.endswith("_stride"):
            continue
        if rounded and name in EXTENTS:
            value = -(-int(value) // 64) * 64
        options += ["--out-dtype" if name == "out" else "--" + name, value]
    return options


def look(tools, method, folder, templates, op, device, problems):
    """Returns a verdict if a mutant is detected, does not compile, or can't be judged; None if it
    survives."""
    found = (tools.verify(op, device, templates, only=problems) if method == "verify" else
             tools.tuning(op, device, templates, folder, problems))
    if not found:
        return None
    verdict = {"compile": "no mutant", "no device": "error", "tool": "error"}.get(found[0], "found")
    return {"verdict": verdict, "how": found[0], "where": f"{device}: {found[1]}"}


def judge_template(tools, mutant, method):
    """Returns whether and how a mutant of kernels is detected: by its operation, or else by others
    that include the file."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mutant-"))
    try:
        templates = folder / "templates"
        file = templates / pathlib.Path(mutant.file).relative_to(TEMPLATES.relative_to(ROOT))
        file.parent.mkdir(parents=True)
        file.write_text(mutant.text())
        devices = tools.hip_devices if file.suffix == ".hip" else tools.glsl_devices
        others = [op for op in operations() if op != mutant.op and ROOT / mutant.file in template_files(op)]
        compiled = []
        for op in [mutant.op, *others]:
            for device in devices:
                problems = tools.reach(op, device).of(mutant.file, mutant.start)
                if op != mutant.op:  # the first user of a shared line is enough
                    problems = problems[:tools.problems // 10]
                if not problems:
                    continue
                compiled.append(f"{op} on {device}")
                if outcome := look(tools, method, folder, templates, op, device, problems):
                    return outcome
                if op != mutant.op:
                    break
        if compiled:
            return {"verdict": "survived", "how": "", "where": f"compiled for {', '.join(compiled)}"}
        return {"verdict": "not compiled", "how": "", "where": "no kernel of these devices has the line"}
    except Timeout as timeout:  # of the tool, not of a launch
        return {"verdict": "error", "how": "timeout", "where": str(timeout)[:300]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# Tests of references and checks that take seconds: a filter for each program, by source folder.
EVALUATOR = {"greta_test_tuner": "Operands*:LocalEvaluator*:CheckBuffer*:*PlantedBug*:Sampler*"}
TESTS = {"kernels": {"greta_test_bounds": "*",
                     "greta_test_kernels": "*Reference*:*Guard*:*Screen*:*Model*:*Input*:*Problem*-*Property*:*Coverage*:Devices/*"},
         "kernels/launch": EVALUATOR,
         "tuner": EVALUATOR}


def judge_code(tools, mutant, method):
    """Returns whether and how a mutant of a reference or of checking code is detected: by tests, or
    else by `verify`."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mutant-"))
    try:
        mutant_object = tools.compiled(mutant, folder)
        if mutant_object is None:
            return {"verdict": "no mutant", "how": "compile", "where": ""}
        tests = [test for folder, tests in TESTS.items() if mutant.file.startswith(f"{folder}/") for test in tests.items()]
        if not tests:
            raise RuntimeError(f"no test judges {mutant.file}")
        for name, filter in tests:
            if mutant.op not in ("", "gemm") and name == "greta_test_kernels":
                filter += ":Gemm*"  # takes half a minute for another operation
            code, output, errors = run([tools.linked(name, mutant_object), f"--gtest_filter={filter}",
                                        "--gtest_brief=1", "--gtest_fail_fast"], tools.seconds, cwd=folder)
            if code != 0:
                failed = [line for line in output.splitlines() if line.startswith("[  FAILED  ]")]
                return {"verdict": "found", "how": "test", "where": f"{name}: {failed[:1] or errors[-200:]}"}
        tune = tools.linked("greta-tune", mutant_object)
        for op in [mutant.op] if mutant.op else ("gemm", "softmax", "attention", "kv_update"):
            for device in tools.glsl_devices[:1] + tools.hip_devices[:1]:
                found = tools.verify(op, device, tune=tune, problems=min(tools.problems, 60))
                if found:
                    return {"verdict": "found", "how": found[0], "where": f"{device}: {found[1]}"}
        return {"verdict": "survived", "how": "", "where": ""}
    except Timeout as timeout:
        return {"verdict": "found", "how": "timeout", "where": str(timeout)[:300]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judge(tools, mutant, method):
    is_template = mutant.file.startswith("kernels/templates/")
    return (judge_template if is_template else judge_code)(tools, mutant, method)
