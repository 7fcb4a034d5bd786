"""Protects: one problem is measured in several ways: named configurations, each variant, several devices, from the
command line and from presets. Comparisons match a chosen configuration with itself only."""
import json
import unittest

from bench_case import GEMM, BenchCase
from cli_case import SOURCE

SIZE = ["--m", 32, "--n", 32, "--k", 32]
SMALL = "tiled BM=16 BN=32 TM=4 TN=4 LX=8 BK=8 STAGES=1 PAD=0 VA=1 VB=1 UNROLL=1 SWIZZLE=1 SUBGROUP=0"
NAIVE = "naive THREADS=64"


class BenchWays(BenchCase):
    known_devices = "vulkan:0,hip-host:0"

    def ways(self, *options, device="vulkan:0", export=()):
        if "--device" not in options:
            options += ("--device", device)
        return self.bench("gemm", *SIZE, "--db", self.db, "--no-lock", "--flush", 1, "--settle", 0,
                          "--seed", 1, *options, *export)

    def test_named_configurations_and_each_variant(self):
        file = self.folder / "ways.csv"
        result = self.ways("--config", NAIVE, "--config", SMALL, "--default", export=["--export", file])
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = self.rows(file)
        self.assertEqual([(row["config"], row["origin"]) for row in rows[:2]],
                         [(NAIVE, "chosen"), (SMALL, "chosen")])
        self.assertEqual(rows[2]["origin"], "default")
        self.assertTrue(all(row["status"] == "ok" and float(row["error"]) <= float(row["bound"]) for row in rows))
        header, *lines = result.stdout.splitlines()
        self.assertIn("× fastest", header)
        self.assertEqual(len(lines), 3)
        medians = {row["config"]: float(row["us"]) for row in rows}
        self.assertTrue(lines[0].startswith(min(medians, key=medians.get)), result.stdout)
        self.assertRegex(lines[-1], r"\d \(\d.* to \d.*\)")

        result = self.ways("--each-variant", device="vulkan:0,hip-host:0", export=["--export", file])
        self.assertEqual(result.returncode, 0, result.stderr)
        chosen = [row for row in self.rows(file)[3:] if row["origin"] == "chosen"]
        self.assertGreaterEqual(len({(row["backend"], row["config"].split()[0]) for row in chosen}), 6)
        self.assertEqual({row["backend"] for row in chosen}, {"vulkan", "hip-host"})

    def test_own_kernels_stand_beside_the_variants(self):
        own = SOURCE / "tests/data/faulty/product.jsonc"
        file = self.folder / "own.csv"
        result = self.ways("--config", NAIVE, "--own", own, device="hip-host:0", export=["--export", file])
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = {row["op"]: row for row in self.rows(file)}
        self.assertEqual(set(rows), {"gemm", "product"})
        self.assertEqual(rows["product"]["origin"], "chosen")
        self.assertTrue(all(row["status"] == "ok" for row in rows.values()))
        line = next(line for line in result.stdout.splitlines() if line.startswith("product: "))
        self.assertIn("product: described FAULT=none ", line)
        self.assertIn("FLOPS", line)  # of the same work
        # What computes something else is no row.
        wrong = [(("--layout", "nt"), "computes something else"), (("--dtype", "f16"), "is not A"),
                 (("--batch", 2), "no dimension batch")]
        for options, why in wrong:
            self.refused(self.ways("--own", own, *options, device="hip-host:0"), 2, "--own", "product.jsonc", why)
        self.refused(self.ways("--own", own, "--own", own, device="hip-host:0"), 2, "--own", "is given twice")
        self.refused(self.ways("--own", self.folder / "none.jsonc", device="hip-host:0"), 2, "--own", "none.jsonc", "no such file")

    def test_an_own_kernel_alone(self):
        own = SOURCE / "tests/data/faulty/product.jsonc"
        result = self.bench("kernel", own, *SIZE, "--db", self.db, "--no-lock", "--flush", 1, "--settle", 0, "--seed", 1,
                            "--device", "hip-host:0", "--config", "described FAULT=none", "--config",
                            "described FAULT=half_sums")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^described FAULT=none +chosen +hip-host +\d")
        self.assertRegex(result.stdout, r"(?m)^described FAULT=half_sums .*correctness: ")
        self.refused(self.bench("kernel"), 2, "greta-bench: kernel: needs FILE")
        self.refused(self.bench("kernel", self.folder / "none.jsonc"), 2, "none.jsonc: No such file")
        self.refused(self.bench("kernel", self.folder), 2, "is a folder")

    def test_the_answer_beside_the_default(self):
        result = self.ways()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(" default ", result.stdout)

    def test_presets_name_configurations_and_variants(self):
        preset = self.preset(iterations=3, batch=2, problems=[
            dict(GEMM, config=[NAIVE, SMALL]), dict(GEMM, k=48, variants=["naive", "split_k"])])
        before, after = self.folder / "before.csv", self.folder / "after.csv"
        for file in (before, after):
            result = self.bench("--preset", preset, "--device", "vulkan:0", "--settle", 0, "--seed", 1,
                                "--export", file)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([row["config"].split()[0] for row in self.rows(before)],
                         ["naive", "tiled", "naive", "split_k"])
        # A file without one of them: the others still find themselves.
        lines = after.read_text().splitlines(keepends=True)
        after.write_text("".join(line for line in lines if SMALL not in line))
        compared = self.bench("compare", before, after, "--format", "json")
        self.assertIn(compared.returncode, (0, 4), compared.stderr)
        self.assertIn("tiled BM=16", compared.stdout)

    def test_a_fused_operation_beside_its_parts(self):
        file = self.folder / "parts.csv"
        words = ["--m", 24, "--n", 32, "--k", 32, "--layout", "nt", "--epilogue", "swiglu", "--parts", "--device",
                 "hip-host:0", "--db", self.db, "--no-lock", "--flush", 1, "--settle", 0, "--seed", 1]
        result = self.bench("gemm", *words, "--export", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = self.rows(file)
        self.assertEqual([(row["op"], row["status"]) for row in rows],
                         [("gemm", "ok"), ("gemm", "ok"), ("silu_mul", "ok")])
        self.assertIn("swiglu", rows[0]["attributes"])
        self.assertIn("n=64", rows[1]["problem"])
        self.assertEqual([line.split()[0] for line in result.stdout.splitlines()],
                         ["operation", "gemm", "gemm", "silu_mul", "together"])
        self.assertRegex(result.stdout.splitlines()[-1], r" [\d.e+-]+ \([\d.e+-]+ to [\d.e+-]+\)")
        result = self.bench("gemm", *words, "--json")
        parts = json.loads(result.stdout)["parts"][0]
        self.assertAlmostEqual(parts["together_us"], sum(one["launches"] * one["median_us"] for one in parts["parts"]))
        self.assertAlmostEqual(parts["ratio"], parts["together_us"] / parts["median_us"])
        compared = self.bench("compare", file, file, "--format", "json")
        self.assertEqual(len(json.loads(compared.stdout)["results"]), 3)

        preset = self.preset(iterations=2, batch=2, problems=[
            {"op": "add_rmsnorm", "rows": 8, "cols": 64, "parts": True}])
        result = self.bench("--preset", preset, "--device", "hip-host:0", "--settle", 0, "--seed", 1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("  together", result.stdout)
        preset = self.preset(problems=[{"op": "softmax", "rows": 8, "cols": 64, "parts": True}])
        result = self.bench("--preset", preset, "--device", "hip-host:0")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("problems[0].parts: softmax fuses no other operations", result.stderr)
        preset = self.preset(iterations=2, batch=2, problems=[
            {"op": "attention_merge", "parts": 3, "tokens": 2, "heads": 2, "dim": 8}])  # its dimension
        result = self.bench("--preset", preset, "--device", "hip-host:0", "--settle", 0, "--seed", 1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("parts=3", result.stdout)
        result = self.bench("gemm", *SIZE, "--parts", "--device", "hip-host:0", "--db", self.db, "--no-lock")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--parts: no other operations compute the parts of gemm", result.stderr)

    def test_bad_input(self):
        for options, message in (
                (["--config", "tiled BM=3"], '--config: configuration "tiled BM=3": domain: BM=3 is not one of'),
                (["--config", "nope A=1"], '"nope" is not one of'), (["--variant", "nope"], "nope"),
                (["--device", "nowhere:7"], "nowhere:7"), (["--preset", "smoke"], "--preset")):
            with self.subTest(options=options):
                result = self.ways(*options)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(message, result.stderr.splitlines()[-1])
                self.assertEqual(result.stdout, "")
        result = self.ways("--each-backend")
        self.assertIn("no other API reaches vulkan:0", result.stderr)


if __name__ == "__main__":
    unittest.main()
