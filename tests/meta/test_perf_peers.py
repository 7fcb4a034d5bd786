#!/usr/bin/env python3
# Protects: presets/perf.json has all operations, at sizes that fit a GPU, and scripts/measure_peers.py has peers for all of its
# problems but those that are named here. Each peer is called once, with a replacement of torch that checks operands.
import csv
import itertools
import json
import math
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import replaced_torch as torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import measure_peers  # noqa: E402
from peers.groups import Random, different_experts  # noqa: E402

SCHEMA = json.loads((ROOT / "presets/schema.json").read_text())["$defs"]
PERF = json.loads((ROOT / "presets/perf.json").read_text())["problems"]
# Dimensions and attributes that a problem has if a preset does not name them.
USUAL = {"batch": 1, "q": 1, "latent": 512, "rope": 64, "history": 0, "capacity": 0, "positions": 4096}
WITHOUT_PEER = {("attention", "lengths=ragged")}


def first_type(op, field):
    field = SCHEMA[op]["properties"][field]
    return field.get("anyOf", [field])[0].get("type")


def problems():
    """Returns the problems of the preset, as greta-bench writes them."""
    for entry in PERF:
        fields = [name for name in entry if name not in ("op", "dtype")]
        lists = [one if isinstance(one, list) else [one] for one in [entry["dtype"], *(entry[name] for name in fields)]]
        for dtype, *values in itertools.product(*lists):
            given, op = dict(zip(fields, values)), entry["op"]
            names = [name for name in SCHEMA[op]["properties"] if name != "op" and first_type(op, name) == "integer"]
            sizes = {"kv_heads": given.get("heads"), "kv": given.get("q")}
            sizes = {name: given.get(name, sizes.get(name) or USUAL.get(name)) for name in names}
            attributes = " ".join(f"{name}={given[name]}" for name in fields if name not in names)
            yield op, dtype, " ".join(f"{name}={value}" for name, value in sizes.items()), attributes


def made(op, sizes, attributes="", dtype="bf16"):
    """Returns the peers of a problem, and the shapes of what they return."""
    def shapes(result):
        if isinstance(result, torch.Tensor):
            return result.shape
        return [shapes(one) for one in result] if result is not None else None
    found = measure_peers.peers_of(measure_peers.Peers(torch), (op, dtype, sizes, attributes))
    return {name: shapes(run()) for name, run in found}


@mock.patch.dict(sys.modules, torch.installed())
class Perf(unittest.TestCase):
    def test_all_operations_have_some_problems(self):
        counts = {op: sum(one[0] == op for one in problems()) for op in SCHEMA}
        self.assertEqual([op for op, count in counts.items() if count < 2], [])

    def test_all_problems_have_peers_but_few(self):
        without = set()
        for key in problems():
            with self.subTest(" ".join(key)):
                if not made(key[0], key[2], key[3], key[1]):
                    without.add((key[0], key[3]))
        self.assertEqual(without, WITHOUT_PEER)

    def test_operands_fit_a_gpu(self):
        class Sized(measure_peers.Peers):
            def tensor(self, *sizes, dtype):
                self.most = max(getattr(self, "most", 0), math.prod(sizes) * dtype.itemsize)
                return super().tensor(*sizes, dtype=dtype)
        for key in problems():
            peers = Sized(torch)
            measure_peers.peers_of(peers, key)
            self.assertLess(getattr(peers, "most", 0), 10e9, key)


@mock.patch.dict(sys.modules, torch.installed())
class New(unittest.TestCase):
    def test_caches(self):
        sizes = "batch=3 tokens=2 heads=4 kv_heads=2 dim=8 positions=16 capacity=10"
        for attributes, rows in (("style=half place=in q_stride=64 kv_stride=64", (6, 4, 8)), ("norm=rms", (6, 4, 8))):
            self.assertEqual(made("rope_append", sizes, attributes), {"torch": rows, "torch.compile": rows})
        self.assertEqual(made("rope_append", sizes, "style=half page_size=64"), {})
        self.assertEqual(made("attention_merge", "parts=3 tokens=5 heads=2 dim=8", "lse=stored")["torch"], [(5, 2, 8), (5, 2)])
        self.assertEqual(made("latent_attention", "batch=2 heads=3 q=1 kv=20 latent=16 rope=8"),
                         {"torch": (2, 3, 16), "torch.compile": (2, 3, 16), "torch efficient attention": (2, 1, 3, 16)})
        for attributes in ("mask=causal", "page_size=64", "lengths=ragged"):
            self.assertEqual(made("latent_attention", "batch=2 heads=3 q=2 kv=20 latent=16 rope=8", attributes), {})
        for kv_heads in (2, 4):
            self.assertEqual(made("tree_attention", f"batch=2 heads=4 kv_heads={kv_heads} q=5 kv=13 dim=8"),
                             {"cuDNN": (2, 4, 5, 8), "torch efficient attention": (2, kv_heads, 20 // kv_heads, 8),
                              "torch.compile flex_attention": (2, 4, 5, 8)})

    def test_a_tree_has_ancestors_of_each_token(self):
        for tree in measure_peers.Peers(torch).trees(3, 20).values:
            for token, seen in enumerate(tree):
                self.assertTrue(seen[token] and not any(seen[token + 1:]))
                for other in (other for other in range(token) if seen[other]):
                    self.assertTrue(all(seen[above] for above in range(20) if tree[other][above]))

    def test_experts(self):
        for attributes in ("", "renormalise=no", "score=sigmoid bias=expert scale=2.5 groups=4 top_groups=2"):
            self.assertEqual(made("route", "tokens=7 experts=16 top_k=3", attributes)["torch"], [(7, 3), (7, 3)])
        self.assertEqual(made("permute", "tokens=9 experts=5 top_k=2 dim=8 capacity=0")["torch"], [(18, 8), (5,), (9, 2)])
        self.assertEqual(made("permute", "tokens=9 experts=5 top_k=2 dim=8 capacity=4"), {})
        self.assertEqual(made("permute", "tokens=9 experts=5 top_k=2 dim=8 capacity=0", "block=16"), {})
        self.assertEqual(made("unpermute", "tokens=9 rows=18 top_k=2 dim=8")["torch"], (9, 8))
        sizes = "tokens=3 experts=6 top_k=2 dim=256 hidden=128"
        self.assertEqual(made("experts", sizes), {"torch.compile gathered": (3, 256), "torch _grouped_mm": (3, 256),
                                                  "torch.compile _grouped_mm": (3, 256)})
        for attributes in ("weights=int4", "weights=int8 zeros=groups group=32", "scales=tensor", "scales=row", "scales=block"):
            self.assertEqual(made("experts", sizes, attributes), {"torch.compile gathered": (3, 256)})
        for attributes in ("weights=q4_k", "weights=mxfp4", "scales=row format=int8"):
            self.assertEqual(made("experts", sizes, attributes), {})
        self.assertEqual(made("experts", sizes.replace("128", "192"), "scales=block"), {})

    def test_weights(self):
        self.assertEqual(made("dequantize", "rows=4 cols=256", "weights=int8")["torch"], (4, 256))
        self.assertEqual(made("dequantize", "rows=4 cols=256", "weights=q4_k"), {})
        for attributes, zeros in (("zeros=groups", (16, 1)), ("", None)):
            self.assertEqual(made("repack_weights", "n=16 k=128", attributes)["torch"], [(16, 64), (16, 1), zeros])
        self.assertEqual(made("repack_weights", "n=16 k=128", "packing=gptq zeros=groups")["torch"], [(16, 16), (16, 1), (16, 1)])
        for attributes in ("order=given", "packing=gptq weights=int8"):
            self.assertEqual(made("repack_weights", "n=16 k=128", attributes), {})

    def test_groups_with_scales_of_blocks_are_multiplied_one_by_one(self):
        sizes = made("scaled_grouped_gemm", "groups=4 m=96 n=64 k=128", "scales=block")["torch._scaled_mm of each group"]
        self.assertEqual((len(sizes), sum(m for m, _ in sizes)), (4, 96))

    def test_a_peer_that_fails_leaves_the_others(self):
        with mock.patch.object(torch, "create_block_mask", side_effect=RuntimeError), \
             mock.patch.dict(sys.modules, torch.installed()):
            self.assertEqual(list(made("tree_attention", "batch=1 heads=4 kv_heads=4 q=5 kv=13 dim=8")),
                             ["cuDNN", "torch efficient attention"])


class Experts(unittest.TestCase):
    def test_random_numbers_are_those_of_cpp(self):
        draw = Random(5489)  # the default seed, of which the standard gives the ten thousandth number
        self.assertEqual([draw() for _ in range(10000)][-1], 9981545732273789042)

    def test_a_tokens_experts_differ(self):
        for line in different_experts(50, 9, 8):
            self.assertEqual(len(set(line)), 8)
            self.assertTrue(all(0 <= expert < 9 for expert in line))


class Files(unittest.TestCase):
    def test_measured_problems_are_not_measured_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "peers.csv"
            self.assertEqual(measure_peers.measured(path), set())
            with open(path, "w", newline="") as file:
                writer = csv.DictWriter(file, measure_peers.FIELDS)
                writer.writeheader()
                measure_peers.measure_one(measure_peers.Peers(torch), lambda run: (1, 1, 1),
                                          ("add", "f16", "rows=2 cols=3", ""), writer.writerow)
            self.assertEqual(measure_peers.measured(path), {("add", "f16", "rows=2 cols=3", "")})

    def test_types_of_weights_of_tokens_are_no_conversion(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bench.csv"
            path.write_text("op,dtype,out_dtype,problem,attributes,config,us\nroute,bf16,f32,tokens=1,,lanes,5\n"
                            "add,bf16,f32,rows=1 cols=1,,flat,5\n")
            self.assertEqual([key[1] for key in measure_peers.rows_of(path)], ["bf16", "bf16 to f32"])


if __name__ == "__main__":
    unittest.main()
