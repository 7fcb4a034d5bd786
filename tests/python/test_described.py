"""Protects: described kernels run from Python on arrays and in graphs, with what the databases have
of them, and are tuned with a Python function as the reference."""

import json
import os
import shutil
import subprocess
import unittest

import numpy
from python_case import CACHE, SOURCE, Case, greta

DEVICE = "hip-host:0"
FAST = {"device": DEVICE, "lock": False, "flush_mib": 1, "shipped": False, "seed": 3}


def floats(*shape, seed=1):
    return numpy.random.default_rng(seed).standard_normal(shape).astype("float32")


class Described(Case):
    def setUp(self):
        super().setUp()
        for name in ("vector_add.jsonc", "vector_add.cu", "row_sums.jsonc", "row_sums.hip"):
            shutil.copy(SOURCE / "tests/data/kernels" / name, self.folder)
        self.db, self.cache = self.folder / "tuned.db", CACHE
        self.know_ceilings(DEVICE)
        self.files = {"cache": self.cache, "db": None, "shipped": False}

    def kernel(self, name="vector_add.jsonc", **options):
        return greta.kernel(self.folder / name, device=DEVICE, **{**self.files, **options})

    def tune(self, kernel, **options):
        return greta.tune(kernel, db=self.db, cache=self.cache, **{**FAST, **options})

    def replace(self, name, before, after):
        path = self.folder / name
        self.assertIn(before, path.read_text())
        path.write_text(path.read_text().replace(before, after))


class DescribedKernels(Described):
    def test_names_are_those_of_the_file(self):
        add = self.kernel()
        self.assertEqual(repr(add), f"<greta.Kernel vector_add(a, b, c) on {DEVICE}>")
        self.assertEqual(add.operands[2], {"name": "c", "role": "output", "dtype": "f32", "shape": ["n"]})
        self.assertEqual(add.dimensions[0]["default"], 1000000)
        self.assertEqual(add.about["parameters"][2], {"name": "MODE", "values": ["strided", "blocked"]})
        self.assertEqual(add.about["parameters"][3]["values"], [False, True])
        self.assertEqual(add.problem(n=7), "vector_add dtype=f32 out=f32 n=7")
        self.assertEqual(add.problem(), "vector_add dtype=f32 out=f32 n=1000000")

    def test_arrays(self):
        add = self.kernel()
        a, b, c = floats(4099), floats(4099, seed=2), numpy.zeros(4099, "float32")
        add(a, b, c)
        numpy.testing.assert_array_equal(c, a + b)

    def test_arrays_that_can_not_receive_results_are_refused_before_the_kernel_runs(self):
        step = greta.kernel(SOURCE / "tests/data/kernels/stencil.jsonc", device="vulkan:0", **self.files)
        grid = floats(9, 11)
        y, wide, fixed = (numpy.zeros(shape, "float32") for shape in ((9, 11), (9, 22), (9, 11)))
        fixed.flags.writeable = False
        step(numpy.asfortranarray(grid), y)  # inputs are copied, whatever their strides
        self.assertTrue(y.any())
        self.assert_refused(greta.InvalidArgumentError, "^y receives results, but it is not contiguous$",
                            step, grid, wide[:, ::2])
        self.assert_refused(greta.InvalidArgumentError, "^y receives results, but it is read-only$", step, grid, fixed)

    def test_dimensions_are_those_of_shapes_or_given(self):
        row_sums = self.kernel("row_sums.jsonc")
        x, sums = row_sums.runtime.tensor(floats(12, 40), "bf16"), numpy.zeros((12, 1), "float32")
        row_sums(x, sums, factor=3)
        expected = 3 * x.numpy().sum(axis=1, dtype="float64", keepdims=True)
        numpy.testing.assert_allclose(sums, expected, atol=1e-3)
        self.assert_refused(greta.InvalidArgumentError, "factor is not an operand's extent, so it must be",
                            row_sums, x, sums)

    def test_a_database_carries_the_kernel(self):
        self.tune(self.kernel(), n=4099, budget=3)
        app = self.folder / "app.db"
        subprocess.run([os.environ["GRETA_DB"], "export", "--ship", "--with-kernels", "--db", self.db,
                        "--out", app, "--kernels", self.folder], check=True, capture_output=True)
        for name in ("vector_add.jsonc", "vector_add.cu"):
            (self.folder / name).unlink()
        add = greta.kernel("vector_add", device=DEVICE, cache=self.cache, db=app, shipped=False)
        a, b, c = floats(4099), floats(4099, seed=2), numpy.zeros(4099, "float32")
        add(a, b, c)
        numpy.testing.assert_array_equal(c, a + b)
        self.assertEqual(add.runtime.lookup(add.problem(n=4099))["origin"], "exact")
        with greta.Runtime(DEVICE, cache=self.cache, db=app, shipped=False) as other:
            add(a, b, c[::-1].copy(), on=other)
            other.synchronize()
            self.assertEqual(other.lookup(add.problem(n=4099))["origin"], "exact")
        self.assert_refused(greta.InvalidArgumentError, "no database carries a kernel none",
                            greta.kernel, "none", device=DEVICE, db=app, cache=self.cache)
        self.assert_refused(greta.InvalidArgumentError, "is carried by a database", self.tune, add)

    def test_other_types_constant_memory_and_headers(self):
        shutil.copytree(SOURCE / "tests/data/kernels/include", self.folder / "include")
        for name in ("scale.jsonc", "scale.hip"):
            shutil.copy(SOURCE / "tests/data/kernels" / name, self.folder)
        scale = self.kernel("scale.jsonc")
        x = (numpy.arange(1000) % 256).astype("uint8")
        weights, y = numpy.array([1.5, -2, 0.25, 3]), numpy.zeros(1000)
        scale(x, weights, y)
        numpy.testing.assert_array_equal(y, x * weights[numpy.arange(1000) % 4] + 0.125)

        @greta.reference(scale)
        def scaled(x, weights):
            self.assertEqual((x.dtype, weights.dtype), (numpy.uint8, numpy.float64))
            return x * weights[numpy.arange(x.size) % 4] + 0.125

        self.assertEqual(self.tune(scale, n=1000, budget=2).report["trials"]["ok"], 2)

    def test_on_runtimes_queues_and_pipelines(self):
        add = self.kernel()
        a, b = floats(5000), floats(5000, seed=2)
        with greta.Runtime(DEVICE, cache=self.cache, shipped=False) as runtime:
            c = runtime.empty((5000,))
            add(runtime.tensor(a), runtime.tensor(b), c, on=runtime)
            numpy.testing.assert_array_equal(c.numpy(), a + b)
            with runtime.pipeline() as pipeline:
                between = pipeline.temporary((5000,))
                x, y = runtime.tensor(a), runtime.tensor(b)
                add(x, y, between, on=pipeline)
                add(between, y, c, on=pipeline)
                graph = pipeline.finish()
            graph.replay()
            numpy.testing.assert_array_equal(c.numpy(), (a + b) + b)
            self.assertEqual(graph.explain().count("vector_add dtype=f32 out=f32 n=5000"), 2)
            self.assertIn("UNROLL=0 | default", graph.explain())

    def test_winners_are_used(self):
        result = self.tune(self.kernel(), n=5000, budget=6, in_process=True)
        self.assertEqual(result.problem, "vector_add dtype=f32 out=f32 n=5000")
        with greta.Runtime(DEVICE, db=self.db, cache=self.cache, shipped=False) as runtime:
            add = greta.Kernel(self.folder / "vector_add.jsonc", runtime)
            with runtime.pipeline() as pipeline:
                x = runtime.tensor(floats(5000))
                add(x, x, runtime.empty((5000,)), on=pipeline)
                text = pipeline.finish().explain()
        self.assertIn("| exact |", text)
        self.assertIn(result.config, text)

    def test_mistakes_are_one_line(self):
        add = self.kernel()
        a = floats(100)
        self.assert_refused(greta.InvalidArgumentError, "vector_add has 3 operands, a, b, c; 2 are", add, a, a)
        self.assert_refused(greta.InvalidArgumentError, "no dimension m; there are n", add, a, a, a, m=3)
        self.assert_refused(greta.InvalidArgumentError, "b is f32 .*50", add, a, a[:50].copy(), a.copy())
        self.assert_refused(greta.FileError, "none.json: No such file", self.kernel, "none.json")
        self.replace("vector_add.jsonc", '"role": "output"', '"role": "out"')
        self.assert_refused(greta.InvalidArgumentError, "line 23, column 27, operands.2..role: must be",
                            self.kernel)
        self.replace("vector_add.jsonc", '"role": "out"', '"role": "output"')
        self.replace("vector_add.jsonc", '"name": "vector_add"', '"name": "gemm"')
        self.assert_refused(greta.InvalidArgumentError, "gemm: there is an operation of this name",
                            self.kernel)


class References(Described):
    def setUp(self):
        super().setUp()
        text = (self.folder / "vector_add.jsonc").read_text()
        text = text[:text.index('  "reference"')]
        self.own = '  "reference": {"function": "total", "tolerance": {"ulp": 0}}\n}\n'
        (self.folder / "vector_add.jsonc").write_text(text + self.own)
        self.calls = []

    def total(self, a, b):
        self.calls.append((a.shape, a.dtype.name))
        return a + b

    def test_a_function_verifies(self):
        add = self.kernel()
        self.assertEqual(greta.reference(add)(self.total), self.total)
        result = self.tune(add, n=5000, budget=4)
        self.assertEqual(result.report["trials"], {"ok": 4, "total": 4})
        self.assertIn(((5000,), "float32"), self.calls)
        self.assertGreater(len(self.calls), 1)  # other inputs and other sizes

    def test_wrong_kernels_fail_and_tolerances_hold(self):
        add = self.kernel()
        wrong = lambda a, b: (a + b) * (1 + 1e-5)  # noqa: E731
        greta.reference(add)(wrong)
        result = self.tune(add, n=5000, budget=2)
        self.assertEqual(result.report["trials"], {"correctness": 2, "ok": 0, "total": 2})
        self.assertRegex(result.rows()[0]["message"], r"element .* is .*, expected .* elements are wrong")
        greta.reference(add, relative=1e-4)(wrong)
        self.assertEqual(self.tune(add, n=5001, budget=2).report["trials"], {"ok": 2, "total": 2})

    def test_dimensions_are_keyword_parameters(self):
        add, seen = self.kernel(), set()

        @greta.reference(add)
        def total(a, b, *, n):
            seen.add(n == a.size)
            return a + b

        self.tune(add, n=5000, budget=1)
        self.assertEqual(seen, {True})

    def test_a_function_replaces_the_description_s_reference(self):
        shutil.copy(SOURCE / "tests/data/kernels/vector_add.jsonc", self.folder)
        add = self.kernel()
        greta.reference(add)(lambda a, b: a - b)
        self.assertEqual(self.tune(add, n=5000, budget=2).report["trials"]["ok"], 0)

    def test_bf16_and_outputs_of_two_dimensions(self):
        row_sums = self.kernel("row_sums.jsonc")

        @greta.reference(row_sums)
        def sums(x, *, factor):
            return factor * x.astype("float64").sum(axis=1, keepdims=True)

        self.assertEqual(self.tune(row_sums, factor=3, budget=2).report["trials"]["ok"], 2)

    def test_a_crash_is_the_worker_s(self):
        self.replace("vector_add.cu", "if (at < n) c[at] = a[at] + b[at];\n  }", "*(int*)0 = ITEMS;\n  }")
        add = self.kernel()
        greta.reference(add)(self.total)
        report = self.tune(add, n=5000, budget=1).report
        self.assertEqual(report["trials"]["ok"], 0)
        self.assertIsNone(report["winner"])

    def test_in_this_process(self):
        add = self.kernel()
        greta.reference(add)(self.total)
        self.assertEqual(self.tune(add, n=5000, budget=2, in_process=True).report["trials"]["ok"], 2)

    def test_the_form_t1(self):
        (self.folder / "add_t1.json").write_text(json.dumps({
            "General": {"BenchmarkName": "add_t1"},
            "ConfigurationSpace": {"TuningParameters": [
                {"Name": "block_size_x", "Type": "int", "Values": "[32, 64, 128]", "Default": 32}], "Conditions": []},
            "KernelSpecification": {
                "Language": "CUDA", "KernelName": "add_one", "KernelFile": "add.cu", "ProblemSize": [3000],
                "LocalSize": {"X": "block_size_x"}, "GlobalSize": {"X": "ProblemSize[0]"},
                "GlobalSizeType": "CUDA", "GridDivX": ["block_size_x"],
                "Arguments": [
                    {"Name": "c", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly",
                     "FillType": "Constant", "FillValue": 0.0, "Size": "ProblemSize[0]", "Output": 1},
                    {"Name": "a", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly",
                     "FillType": "Random", "Size": "ProblemSize[0]"},
                    {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": "ProblemSize[0]"}]}}))
        (self.folder / "add.cu").write_text(
            'extern "C" __global__ void add_one(float* c, const float* a, int n) {\n'
            "  const int i = blockIdx.x * block_size_x + threadIdx.x;\n  if (i < n) c[i] = a[i] + 1;\n}\n")
        add_one = self.kernel("add_t1.json")
        c, a = numpy.zeros(3000, "float32"), floats(3000)
        add_one(c, a)
        numpy.testing.assert_array_equal(c, a + 1)
        greta.reference(add_one, ulp=1)(lambda a: a + numpy.float32(1))
        self.assertEqual(self.tune(add_one, budget=3).report["trials"], {"ok": 3, "total": 3})

    def test_exceptions_end_the_run_and_are_raised(self):
        add = self.kernel()

        @greta.reference(add)
        def fails(a, b):
            raise ZeroDivisionError("no result")

        with self.assertRaisesRegex(ZeroDivisionError, "no result"):
            self.tune(add, n=5000, budget=2)
        for results, message in ((lambda a, b: (a, b), "returns 2 arrays for 1 outputs"),
                                 (lambda a, b: a[1:], "returns c of shape .*, not"),):
            greta.reference(add)(results)
            with self.assertRaisesRegex(greta.InvalidArgumentError, message):
                self.tune(add, n=5000, budget=2)

    def test_without_the_function_there_is_none(self):
        self.assert_refused(greta.InvalidArgumentError,
                            "vector_add is checked by a function, total, which a program brings",
                            self.tune, self.kernel(), n=5000, budget=2)


if __name__ == "__main__":
    unittest.main()
