#!/usr/bin/env python3
# Protects: scripts/measure_peers.py gives torch operands of quantised products that it accepts, padded and named so
# where it must, has no peer for what torch does not compute, and compares only problems with a peer.
import csv
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest

import replaced_torch as torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/measure_peers.py"
sys.path.insert(0, str(ROOT / "scripts"))
from draw_preset import Draw  # noqa: E402
from measure_peers import TYPES, Peers, Timer  # noqa: E402

DIMENSIONS = {"groups", "m", "n", "k", "rows", "cols", "history"}
DEFAULTS = {"format": "e4m3", "weights": "int4", "group": 128, "zeros": "none", "fused": "none"}


def peers(op, dtype="bf16", **problem):
    """Returns the names of the peers, and the shapes and types of their results."""
    sizes = {name: value for name, value in problem.items() if name in DIMENSIONS}
    attributes = {name: str(value) for name, value in problem.items() if name not in DIMENSIONS and DEFAULTS.get(name) != value}
    made = getattr(Peers(torch), op)(sizes, attributes, getattr(torch, TYPES[dtype]))
    results = [(name, run()) for name, run in made]
    return [(name, one.shape, one.dtype.name) if isinstance(one, torch.Tensor) else (name, one) for name, one in results]


class Flushes(unittest.TestCase):
    def test_last_as_long_as_the_host_needs_for_a_call(self):
        timer = Timer.__new__(Timer)
        timer.flush_us = 120
        self.assertEqual([timer.flushes_for(host_us) for host_us in (0, 30, 100, 1000, 1e6)], [1, 1, 3, 18, Timer.MOST_FLUSHES])


    def test_write_as_much_as_a_call_returns_up_to_the_cache(self):
        class Result:
            def __init__(self, nbytes):
                self.nbytes = nbytes

        cuda = types.SimpleNamespace(get_device_properties=lambda device: types.SimpleNamespace(L2_cache_size=400))
        timer = Timer.__new__(Timer)
        timer.torch, timer.memory = types.SimpleNamespace(Tensor=Result, cuda=cuda), range(1000)
        results = Result(40), (Result(40), Result(80), 3), None, Result(4000)
        self.assertEqual([len(timer.written(result)) for result in results], [10, 30, 0, 100])


class Quantized(unittest.TestCase):
    def test_fp8_is_padded_where_torch_must(self):
        for scales in ("tensor", "row", "block"):
            with self.subTest(scales):
                for m in (1, 5, 160):
                    self.assertEqual(peers("scaled_gemm", m=m, n=256, k=640, scales=scales),
                                     [("torch._scaled_mm", (m, 256), "bfloat16")])
                self.assertEqual(peers("scaled_gemm", "f16", m=5, n=250, k=656, scales=scales),
                                 [("torch._scaled_mm padded", (5, 256), "float16")])
        torch.refused_rows.add(5)
        self.addCleanup(torch.refused_rows.clear)
        self.assertEqual(peers("scaled_gemm", m=5, n=256, k=640), [("torch._scaled_mm padded", (16, 256), "bfloat16")])

    def test_scales_of_blocks_are_packed_where_torch_wants_them_so(self):
        self.addCleanup(setattr, torch, "steps_of_lines", torch.steps_of_lines)
        for torch.steps_of_lines in (1, 4):
            self.assertEqual(len(peers("scaled_gemm", m=48, n=256, k=640, scales="block")), 1)

    def test_what_no_number_of_rows_mends_is_an_error(self):
        torch.refused_rows.update({5, 16})
        self.addCleanup(torch.refused_rows.clear)
        with self.assertRaisesRegex(RuntimeError, "NOT_SUPPORTED"):
            peers("scaled_gemm", m=5, n=256, k=640)

    def test_int8_is_scaled_to_the_type_of_c(self):
        for m, n, shape, suffix in ((40, 64, (40, 64), ""), (3, 64, (32, 64), " padded"), (40, 60, (40, 64), " padded")):
            self.assertEqual(peers("scaled_gemm", m=m, n=n, k=48, format="int8", scales="row"),
                             [(f"{name} _int_mm, scaled{suffix}", shape, "bfloat16") for name in ("torch", "torch.compile")])

    def test_weights_in_groups(self):
        whole = ("torch.compile dequantise, mm", (3, 72), "bfloat16")
        for problem in ({"k": 256}, {"k": 192, "group": 64, "zeros": "groups"}, {"k": 96, "group": 32}):
            self.assertEqual(peers("quantized_gemm", m=3, n=72, **problem), [whole, ("torch int4pack", (3, 72), "bfloat16")])
            self.assertEqual(peers("quantized_gemm", m=3, n=72, weights="int8", **problem), [whole])
            self.assertEqual(len(peers("quantized_gemm", "f16", m=3, n=72, **problem)), 1)
        self.assertEqual(peers("quantized_gemm", m=3, n=70, k=256)[1], ("torch int4pack padded", (3, 72), "bfloat16"))

    def test_groups(self):
        problem = {"groups": 4, "m": 100, "n": 64, "k": 128}
        for scales in ("tensor", "row"):
            self.assertEqual(peers("scaled_grouped_gemm", scales=scales, **problem),
                             [("torch._scaled_grouped_mm", (100, 64), "bfloat16")])
        self.assertEqual(peers("quantized_grouped_gemm", zeros="groups", **problem),
                         [("torch.compile dequantise, _grouped_mm", (100, 64), "bfloat16")])

    def test_rows_of_codes(self):
        for scales, shape in (("row", (6, 1, 1)), ("block", (6, 2, 1)), ("tensor", (1,))):
            for fused in ("none", "rmsnorm", "add_rmsnorm", "layernorm", "silu_mul"):
                for _, (q, scale, total) in peers("quantize", "f16", rows=6, cols=256, scales=scales, fused=fused):
                    self.assertEqual((q.shape, q.dtype.name, scale.shape), ((6, 256), "float8_e4m3fn", shape))
                    self.assertEqual(total.dtype.name if fused == "add_rmsnorm" else total,
                                     "float16" if fused == "add_rmsnorm" else None)

    def test_sample_draws_one_token_for_each_row(self):
        self.assertEqual(peers("sample", "f32", rows=7, cols=1000),
                         [("torch", (7, 1), "int64"), ("torch.compile", (7, 1), "int64")])

    def test_no_peer_for_what_torch_does_not_compute(self):
        groups = {"groups": 4, "m": 100, "n": 64, "k": 128}
        for op, problem in (
                ("scaled_gemm", {"m": 32, "n": 64, "k": 128, "format": "e5m2"}),
                ("scaled_gemm", {"m": 32, "n": 64, "k": 128, "format": "int8", "scales": "block"}),
                ("scaled_gemm", {"m": 32, "n": 64, "k": 128, "scales": "mx"}),
                ("quantize", {"rows": 6, "cols": 192, "scales": "mx"}),
                ("quantized_gemm", {"m": 1, "n": 64, "k": 256, "weights": "q4_k"}),
                ("quantized_gemm", {"m": 1, "n": 64, "k": 256, "epilogue": "swiglu"}),
                ("quantized_gemm", {"m": 1, "n": 64, "k": 256, "prologue": "rmsnorm"}),
                ("scaled_grouped_gemm", {"form": "masked", "scales": "block", **groups}),
                ("quantized_grouped_gemm", {"epilogue": "swiglu", **groups}),
                ("quantize", {"rows": 6, "cols": 192, "scales": "block"}),
                ("sample", {"rows": 2, "cols": 100, "history": 8})):
            with self.subTest(op, **problem):
                self.assertEqual(peers(op, **problem), [])

    def test_torch_accepts_what_is_drawn(self):
        draw = Draw(random.Random(5))
        for op in ("scaled_gemm", "quantized_gemm", "scaled_grouped_gemm", "quantized_grouped_gemm", "quantize", "sample"):
            found = 0
            for _ in range(60):
                problem = getattr(draw, op)()
                with self.subTest(op, **problem):
                    found += bool(peers(op, **problem))
            self.assertGreater(found, 30)


class Compare(unittest.TestCase):
    BENCH = ["op,dtype,out_dtype,problem,attributes,config,us",
             'scaled_gemm,bf16,bf16,m=1 n=64 k=64,scales=row,"tma BM=64",10', 'scaled_gemm,bf16,bf16,m=2 n=64 k=64,,"tiled BM=8",10',
             'quantized_gemm,f16,f16,m=1 n=64 k=64,,gemv,10', 'quantized_gemm,f16,f32,m=1 n=64 k=64,,gemv,10', "upload,,,,,,3"]
    PEERS = ["peer,op,dtype,problem,attributes,us,low_us,high_us", "torch,scaled_gemm,bf16,m=1 n=64 k=64,scales=row,30,29,31",
             "torch.compile,scaled_gemm,bf16,m=1 n=64 k=64,scales=row,20,19,21",
             "torch int4pack,quantized_gemm,f16,m=1 n=64 k=64,,5,4,6"]

    def test_the_fastest_peer_and_only_problems_with_one_count(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("bench.csv", "peers.csv")]
            for file, lines in zip(files, (self.BENCH, self.PEERS)):
                file.write_text("\n".join(lines) + "\n")
                self.assertEqual(len({len(row) for row in csv.reader(lines)}), 1)
            result = subprocess.run([sys.executable, "-B", str(SCRIPT), *map(str, files), "--compare"], capture_output=True,
                                    text=True, check=True)
        self.assertEqual(result.stdout.splitlines(), [
            "2.000 scaled_gemm bf16 m=1 n=64 k=64 scales=row: 10.00 us by tma, 20 us by torch.compile",
            "0.500 quantized_gemm f16 m=1 n=64 k=64 : 10.00 us by gemv, 5 us by torch int4pack",
            "scaled_gemm: 2.000 of 1, 0 below 0.95, least 2.000 (torch.compile 1)",
            "quantized_gemm: 0.500 of 1, 1 below 0.95, least 0.500 (torch int4pack 1)",
            "all: 1.000 of 2, 1 below 0.95, least 0.500",
            "no peer: scaled_gemm bf16 m=2 n=64 k=64 ", "no peer: quantized_gemm f16 to f32 m=1 n=64 k=64 "])

    def compare(self, folder, lines):
        bench, peers = pathlib.Path(folder) / "bench.csv", pathlib.Path(folder) / "peers.csv"
        if lines is not None:
            bench.write_text("\n".join(lines) + "\n")
        peers.write_text(self.PEERS[0] + "\n")
        return subprocess.run([sys.executable, "-B", str(SCRIPT), str(bench), str(peers), "--compare"], capture_output=True,
                              text=True)

    def test_files_without_the_type_of_the_output_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.compare(folder, ["op,dtype,attributes,problem,config,us", "gemm,f16,,m=1 n=2 k=3,gemv X=1,5"])
        self.assertEqual((result.returncode, result.stdout), (0, "no peer of any problem: gemm\nno peer: gemm f16 m=1 n=2 k=3 \n"),
                         result.stderr)

    def test_other_files_are_refused_in_one_line(self):
        for lines in (["name,us", "x,1"], None):
            with self.subTest(lines), tempfile.TemporaryDirectory() as folder:
                result = self.compare(folder, lines)
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr, r"\Ameasure_peers.py: .*bench.csv.*\n\Z")


if __name__ == "__main__":
    unittest.main()
