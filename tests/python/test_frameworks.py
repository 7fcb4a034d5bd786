"""Protects: what bindings to frameworks share: problems are those that operations run, decisions
are kept and found again, captures are read by greta-tune, and without PyTorch greta.torch says so."""

import json
import os
import subprocess
import sys
import unittest

from python_case import SOURCE, Case, cli_case, greta

from greta import frameworks
from greta.frameworks import Capture, Decision, Decisions

DEVICE = "hip-host:0"


class Problems(Case):
    def setUp(self):
        super().setUp()
        self.runtime = greta.Runtime(DEVICE, shipped=False)
        self.addCleanup(self.runtime.close)

    def check(self, problem, operation, *shapes, dtype="f32", operands=None, **options):
        """Records an operation, and compares its problem with one from extents."""
        with self.runtime.pipeline() as pipeline:
            tensors = [self.runtime.empty(shape, dtype if isinstance(shape, tuple) else "i32")
                       for shape in shapes]
            for name, shape in (operands or {}).items():
                options[name] = self.runtime.empty(shape, dtype)
            getattr(pipeline, operation)(*tensors, **options)
            ran = pipeline.finish().explain().split(" | ")[1]
        self.assertEqual(self.runtime.problem(problem), ran)
        return ran

    def test_gemm(self):
        self.check(frameworks.gemm(6, 40, 24, dtype="f32", layout="nt"), "gemm", (6, 24), (40, 24), (6, 40),
                   layout="nt")
        for activation in ("none", "silu", "gelu"):
            key = self.check(
                frameworks.gemm(6, 40, 24, dtype="f16", layout="nt", bias=True, residual=True,
                                activation=activation), "gemm", (6, 24), (40, 24), (6, 40), dtype="f16",
                layout="nt", activation=activation, operands={"bias": (40,), "residual": (6, 40)})
            self.assertIn("epilogue=bias,residual", key)

    def test_rows(self):
        for weight in ({}, {"weight": (16,)}):
            self.check(frameworks.rmsnorm(6, 16, dtype="f16", weight=bool(weight), epsilon=1e-6), "rmsnorm",
                       (6, 16), (6, 16), dtype="f16", operands=weight, epsilon=1e-6)
            self.check(frameworks.layernorm(6, 16, dtype="f32", weight=bool(weight), bias=False,
                                            epsilon=1e-5), "layernorm", (6, 16), (6, 16), operands=weight)
        self.check(frameworks.layernorm(6, 16, dtype="f32", weight=True, bias=True, epsilon=1e-5),
                   "layernorm", (6, 16), (6, 16), operands={"weight": (16,), "bias": (16,)})
        self.check(frameworks.softmax(6, 16, dtype="f32", scale=0.125), "softmax", (6, 16), (6, 16),
                   scale=0.125)
        self.check(frameworks.softmax(6, 16, dtype="f32", causal=True), "softmax", (6, 16), (6, 16),
                   causal=True)

    def test_attention(self):
        q, k, v, lengths = (2, 3, 8, 32), (2, 4, 16, 32), (2, 4, 16, 32), [2]
        self.check(frameworks.attention(2, 8, 4, 3, 16, 32, dtype="f16", causal=True), "attention", q, k, v,
                   lengths, q, dtype="f16", causal=True)
        self.check(frameworks.attention(2, 8, 4, 3, 16, 32, dtype="f32", v_dim=32, scale=0.25), "attention",
                   q, k, v, lengths, q, scale=0.25)
        self.check(frameworks.attention(2, 8, 4, 3, 16, 32, dtype="f32", v_dim=16, causal=True, window=5),
                   "attention", q, k, (2, 4, 16, 16), lengths, (2, 3, 8, 16), causal=True, window=5)

    def test_look_ups_say_what_runs(self):
        answer = self.runtime.lookup("softmax cols=64 rows=16")
        self.assertEqual(answer["problem"], "softmax dtype=f32 out=f32 rows=16 cols=64")
        self.assertEqual(answer["origin"], "default")
        self.assertIsNone(answer["speedup"])
        self.assertRegex(answer["config"], r"^held THREADS=\d+")
        self.assertEqual(set(answer), {"problem", "bucket", "config", "origin", "expected_regret", "speedup", "rule"})
        long = "attention dtype=f16 heads=8 kv_heads=2 q=1 dim=64 kv="
        self.assertEqual(self.runtime.lookup(long + "301")["bucket"], self.runtime.lookup(long + "302")["bucket"])
        for text, message in (("softmax rows=1", "cols"), ("softmax rows", "must be NAME=VALUE"),
                              ("none a=1", "no operation 'none'; there are gemm")):
            self.assert_refused(greta.InvalidArgumentError, message, self.runtime.lookup, text)
        about = self.runtime.describe()
        self.assertEqual((about["id"], about["greta"]), (DEVICE, greta.version()))


class StoredDecisions(Case):
    ours = Decision("tiled BM=32", "torch 2.11.0", 10.0, 20.0, 9.0, 8.0)

    def setUp(self):
        super().setUp()
        self.path = self.folder / "share" / "frameworks.json"

    def test_decisions_are_kept_for_a_configuration_and_a_version(self):
        Decisions(self.path).store("GPU", "softmax rows=1", self.ours)
        again = Decisions(self.path)
        self.assertEqual(again.find("GPU", "softmax rows=1", "tiled BM=32", "torch 2.11.0"), self.ours)
        for other in (("CPU", "softmax rows=1", "tiled BM=32", "torch 2.11.0"),
                      ("GPU", "softmax rows=2", "tiled BM=32", "torch 2.11.0"),
                      ("GPU", "softmax rows=1", "tiled BM=64", "torch 2.11.0"),
                      ("GPU", "softmax rows=1", "tiled BM=32", "torch 2.12.0")):
            self.assertIsNone(again.find(*other))

    def test_regret(self):
        self.assertAlmostEqual(self.ours.regret(), -0.5)
        self.assertAlmostEqual(self.ours.regret(in_graph=True), 0.125)
        self.assertAlmostEqual(Decision("", "", 3.0, 2.0).regret(in_graph=True), 0.5)

    def test_writers_keep_what_others_stored(self):
        first, second = Decisions(self.path), Decisions(self.path)
        first.store("GPU", "a", self.ours)
        second.store("GPU", "b", self.ours)
        first.store("CPU", "c", self.ours)
        self.assertEqual(set(Decisions(self.path).all()), {("GPU", "a"), ("GPU", "b"), ("CPU", "c")})
        self.assertEqual([one.name for one in self.path.parent.iterdir()], ["frameworks.json"])

    def test_damaged_files_are_one_line(self):
        self.path.parent.mkdir()
        good = json.dumps({"greta_frameworks": 1, "decisions": []})
        for text, message in (("", "Expecting value"), ("[]", "no decisions"), ('{"a": 1}', "greta_frameworks"),
                              (good.replace("1", "2"), "version 2 of the form, not 1"),
                              (good.replace("[]", '[{"device": "x"}]'), "problem"),
                              (good.replace("[]", '[{"device": "x", "problem": "y", "z": 1}]'), "z")):
            self.path.write_text(text)
            self.assert_refused(greta.FileError, message, Decisions, self.path)
        self.path.write_text(good)
        self.assertEqual(Decisions(self.path).all(), {})


class Captures(Case):
    def test_greta_tune_reads_them(self):
        capture = Capture()
        for problem in ("softmax dtype=f32 out=f32 rows=4 cols=8", "rmsnorm dtype=f32 out=f32 rows=4 cols=8",
                        "rmsnorm dtype=f32 out=f32 rows=4 cols=8"):
            capture.add(problem)
        with greta.Runtime(DEVICE, shipped=False) as runtime:
            about = runtime.describe()
        file = self.folder / "shapes.jsonl"
        file.write_text("replaced")
        capture.write(file, about)
        self.assertEqual(list(self.folder.iterdir()), [file])
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual([line["problem"].split()[0] for line in lines[1:]], ["rmsnorm", "softmax"])
        self.assertEqual(lines[1]["count"], 2)
        env = dict(os.environ, HOME=str(self.folder), XDG_CACHE_HOME=str(cli_case.CACHE))
        run = subprocess.run([os.environ["GRETA_TUNE"], "from-capture", file, "--device", DEVICE, "--budget", "1",
                              "--db", self.folder / "t.db", "--no-lock", "--flush", "1", "--no-shipped"],
                             capture_output=True, text=True, env=env, timeout=cli_case.limit(300))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("captured on", run.stderr)  # the same device
        self.assertIn("rmsnorm", run.stdout)


class WithoutTorch(Case):
    def test_greta_torch_says_what_is_missing(self):
        code = ("import sys; sys.modules['torch'] = None\nimport greta\n"
                "try:\n  import greta.torch\nexcept greta.UnavailableError as error:\n  print(error)")
        run = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True,
                             cwd=SOURCE / "runtime/python", timeout=cli_case.limit(60))
        self.assertRegex(run.stdout, r"^greta\.torch needs PyTorch: .*\n$", run.stderr)

    def test_the_measuring_script_checks_its_options_first(self):
        script = SOURCE / "scripts/measure_torch.py"
        for words, message in ((["--parts", "small,none"], "--parts: there are calls, operations, compile, small, "
                                                           "large, not none"), ([], "out")):
            run = subprocess.run([sys.executable, "-B", script, *([self.folder / "out"] if words else []), *words],
                                 capture_output=True, text=True, timeout=cli_case.limit(60))
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(message, run.stderr.splitlines()[-1])
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
