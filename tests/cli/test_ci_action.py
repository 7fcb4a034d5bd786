"""Protects: the steps of scripts/ci/action.yml run as on a runner, write the summary, and fail on a
regression. This file replaces the runner and the actions that store files."""
import csv
import json
import pathlib
import re
import subprocess
import unittest

from bench_case import GEMM, BenchCase
from cli_case import BENCH, SOURCE, limit

ACTION = SOURCE / "scripts/ci/action.yml"
ENTRY = re.compile(r"( *)(- )?([\w-]+):(?: (.*))?$")


def unquoted(text):
    return text[1:-1].replace("''", "'") if text[:1] == "'" else text


def read_steps(lines):
    """Returns the steps as dictionaries, for the part of YAML that action.yml uses: entries at most one level below a
    step, each on one line."""
    steps = []
    for line in lines[lines.index("  steps:") + 1:]:
        if line.lstrip().startswith("#"):
            continue
        indent, first, name, value = ENTRY.fullmatch(line).groups()
        if first:
            steps.append({})
        step, depth = steps[-1], len(indent) + len(first or "")
        if depth == 6:
            step[name] = unquoted(value) if value else {}
            inner = step[name]
        else:
            inner[name] = unquoted(value)
    return steps


def read_inputs(lines):
    """Returns the default of each input."""
    inputs = {}
    for line in lines[lines.index("inputs:") + 1:lines.index("outputs:")]:
        indent, _, name, value = ENTRY.fullmatch(line).groups()
        if len(indent) == 2:
            current = name
        elif name == "default":
            inputs[current] = unquoted(value)
    return inputs


class Runner:
    """Runs the steps of the action in a folder for one job after the other, with a store of cached files."""

    def __init__(self, test):
        lines = ACTION.read_text().splitlines()
        self.steps, self.inputs, self.test = read_steps(lines), read_inputs(lines), test
        self.store, self.uploads, self.jobs = {}, {}, 0

    def value(self, expression):
        """Evaluates an expression of a workflow."""
        for part in expression.split(" || "):
            scope, _, name = part.strip().partition(".")
            if scope == "steps":
                step, kind, name = name.split(".", 2) if ".outputs." in name else (*name.split("."), "")
                found = self.outputs.get(step, {}).get(name, "") if kind == "outputs" else self.outcomes[step]
            else:
                found = {"inputs": self.given, "github": self.github, "runner": {"name": "gpu box"}}[scope][name]
            if found:
                return found
        return ""

    def text(self, template):
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: self.value(match[1]), template)

    def wanted(self, step, failed):
        terms = step.get("if", "success()").split(" && ")
        if "always()" not in terms and failed:
            return False
        for term in terms:
            if " == " in term:
                left, right = term.split(" == ")
                if self.value(left) != unquoted(right):
                    return False
        return True

    def run(self, step, temporary):
        output = temporary / "output"
        output.write_text("")
        env = dict(self.test.env, GITHUB_ACTION_PATH=str(ACTION.parent), RUNNER_TEMP=str(temporary),
                   GITHUB_OUTPUT=str(output), GITHUB_STEP_SUMMARY=str(self.summary))
        env.update({name: self.text(value) for name, value in step.get("env", {}).items()})
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], env=env,
                              text=True, capture_output=True, timeout=limit(120), stdin=subprocess.DEVNULL,
                              cwd=self.test.folder)
        self.log += done.stdout + done.stderr
        self.outputs[step.get("id", "")] = dict(
            line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode

    def use(self, step):
        words = {name: self.text(value) for name, value in step["with"].items()}
        path = pathlib.Path(words["path"])
        if step["uses"].startswith("actions/cache/restore@"):
            for key in reversed(self.store):
                if key == words["key"] or key.startswith(words["restore-keys"]):
                    path.write_text(self.store[key])
                    return
        elif step["uses"].startswith("actions/cache/save@"):
            self.test.assertNotRegex(words["key"], r"[,\s]")
            self.store[words["key"]] = path.read_text()
        else:
            self.test.assertTrue(step["uses"].startswith("actions/upload-artifact@"))
            self.test.assertNotRegex(words["name"], r'[\\/:*?"<>|\s]')
            self.uploads = {file.name: file.read_text() for file in path.iterdir()}

    def job(self, sha, event="push", branch="main", **inputs):
        """Returns the exit code of the first step that failed, or 0. Sets log, summary and outputs."""
        self.jobs += 1
        temporary = self.test.folder / f"job{self.jobs}"
        temporary.mkdir()
        self.given = {**self.inputs, **inputs}
        base = branch if event == "pull_request" else ""
        self.github = {"base_ref": base, "ref_name": "7/merge" if base else branch, "sha": sha, "event_name": event}
        self.outputs, self.outcomes, self.log, self.summary = {}, {}, "", temporary / "summary.md"
        failed = 0
        for step in self.steps:
            if not self.wanted(step, failed):
                self.outcomes[step.get("id", "")] = "skipped"
                continue
            if "uses" in step:
                self.use(step)
            else:
                code = self.run(step, temporary)
                self.outcomes[step.get("id", "")] = "failure" if code else "success"
                failed = failed or code
        return failed

    def said(self):
        return self.summary.read_text() if self.summary.exists() else ""


class CiAction(BenchCase):
    known_devices = "vulkan:0"

    def setUp(self):
        super().setUp()
        self.runner = Runner(self)
        preset = self.preset(iterations=6, batch=2, problems=[GEMM])
        # Of tests on a busy machine, only changes that are much larger than the noise are the same each time.
        self.inputs = {"preset": str(preset), "device": "vulkan:0", "threshold": "900",
                       "bin": str(pathlib.Path(BENCH).parent),
                       "options": f"--compute-only --settle 0 --flush 1 --no-lock --db {self.db}"}

    def slow_down(self, factor):
        """Makes the stored results those of a machine on which everything took 1/factor of the time."""
        (key, text), = self.runner.store.items()
        rows = list(csv.DictReader(text.splitlines()))
        lines = [",".join(rows[0])]
        for row in rows:
            for name in ("us", "low_us", "high_us", "samples_us", "cpu_us"):
                row[name] = re.sub(r"[\d.]+(e[-+]?\d+)?", lambda us: f"{float(us[0]) / factor:g}", row[name])
            lines.append(",".join('"' + value.replace('"', '""') + '"' for value in row.values()))
        self.runner.store[key] = "\n".join(lines) + "\n"

    def test_a_branch_and_its_pull_requests(self):
        runner = self.runner
        self.assertEqual(runner.job("1", **self.inputs), 0, runner.log)
        self.assertIn("no results yet", runner.said())
        self.assertEqual(runner.outputs["compare"]["regressions"], "")
        self.assertEqual(list(runner.store), ["greta-tiny-vulkan_0-gpu_box-main-1"])
        first = dict(runner.store)

        self.assertEqual(runner.job("2", "pull_request", **self.inputs), 0, runner.log)
        self.assertRegex(runner.said(), r"### GRETA: tiny\n\n\*\*1 row: 0 slower by more than 900 %")
        self.assertEqual(runner.outputs["compare"]["regressions"], "0")
        self.assertEqual(runner.store, first)  # a pull request does not change what others are compared with
        self.assertEqual(json.loads(runner.uploads["comparison.json"])["regressions"], 0)
        self.assertIn("gemm,f32", runner.uploads["new.csv"])

        self.slow_down(100)
        self.assertEqual(runner.job("3", "pull_request", **self.inputs), 4, runner.log)
        self.assertRegex(runner.said(), r"\| slower \|.*gemm f32 m=32 n=32 k=32, default, vulkan \|")
        self.assertIn("::error title=greta-bench::1 of the benchmarks", runner.log)
        self.assertEqual(runner.outputs["compare"]["regressions"], "1")
        self.assertEqual(json.loads(runner.uploads["comparison.json"])["regressions"], 1)

        accepted = self.folder / "accepted.json"
        accepted.write_text(json.dumps({"accepted": [
            {"benchmark": "gemm *", "slower": "1000 %", "until": "9999-12-31", "reason": "on purpose"}]}))
        self.assertEqual(runner.job("3a", "pull_request", **self.inputs, accept=str(accepted)), 4)
        self.assertIn("is exceeded", runner.said())
        accepted.write_text('{"accepted": []')
        self.assertEqual(runner.job("3b", "pull_request", **self.inputs, accept=str(accepted)), 2)
        self.assertIn("accepted.json: is not JSON", runner.log)

        # On the branch itself the run fails as well, and later ones are compared with it.
        self.assertEqual(runner.job("4", **self.inputs), 4, runner.log)
        self.assertEqual(len(runner.store), 2)
        self.assertEqual(runner.job("5", "pull_request", **self.inputs), 0, runner.log)

        # Another branch has its own results.
        self.assertEqual(runner.job("6", "pull_request", "stable", **self.inputs), 0, runner.log)
        self.assertIn("no results yet", runner.said())

    def test_what_fails_stores_nothing(self):
        runner = self.runner
        self.assertEqual(runner.job("1", **{**self.inputs, "device": "vulkan:99"}), 2)
        self.assertIn("vulkan:99", runner.log)
        self.assertEqual((runner.store, runner.said()), ({}, ""))
        self.assertNotEqual(runner.job("2", **{**self.inputs, "bin": str(self.folder)}), 0)
        self.assertEqual(runner.store, {})

    def test_another_device_is_an_error_with_its_reason(self):
        runner = self.runner
        self.assertEqual(runner.job("1", **self.inputs), 0, runner.log)
        (key, text), = runner.store.items()
        device = next(csv.DictReader(text.splitlines()))["device"]
        runner.store[key] = text.replace(device, "50 % of a card")
        self.assertEqual(runner.job("2", "pull_request", **self.inputs), 2)
        self.assertRegex(runner.log, r"::error title=greta-bench::.*different devices: 50 %25 of a card and")
        self.assertIn("exit code 2", runner.said())

    def test_the_page_lists_every_input_with_its_default(self):
        page = (SOURCE / "docs/ci.md").read_text()
        self.assertEqual(len(self.runner.inputs), 6)
        for name, default in self.runner.inputs.items():
            self.assertIn(f"| `{name}` | `{default}` |" if default else f"| `{name}` | |", page)

    def test_values_are_no_commands(self):
        for step in self.runner.steps:
            self.assertNotIn("${{", step.get("run", ""), step["name"])
        planted = self.folder / "planted"
        self.runner.job("1", **{**self.inputs, "preset": f"$(touch {planted})`touch {planted}`;touch {planted}"})
        self.runner.job("2", **{**self.inputs, "options": f"--x=$(touch {planted}) ; touch {planted}"})
        self.assertFalse(planted.exists())


if __name__ == "__main__":
    unittest.main()
