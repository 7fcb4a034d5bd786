"""Protects: greta.torch computes what torch does, on torch's own memory, decides and remembers which
of them runs a problem, and records shapes. On CPU tensors and hip-host, with any version of PyTorch from 1.13 on."""

import contextlib
import io
import os
import re
import threading
import unittest

import torch
import torch.utils._python_dispatch
from python_case import CACHE, SOURCE, greta
from torch_case import Torch

import greta.torch
from greta.torch import capturing, fallbacks, operations

F = torch.nn.functional


class TorchOperations(Torch):
    def test_linear_with_epilogues(self):
        x, w, b, r = (torch.randn(*shape) for shape in ((5, 7, 64), (48, 64), (48,), (5, 7, 48)))
        self.near(greta.torch.linear(x, w), F.linear(x, w), 2e-5)
        self.near(greta.torch.linear(x, w, b), F.linear(x, w, b), 2e-5)
        self.near(greta.torch.linear(x, w, b, residual=r, activation="silu"), F.silu(F.linear(x, w, b) + r), 2e-5)
        gelu = greta.torch.linear(x, w, residual=r, activation="gelu")
        self.near(gelu, fallbacks.linear_of_torch(x, w, None, r, "gelu"), 2e-5)
        self.assertIn("gemm dtype=f32 out=f32 layout=nt epilogue=bias,residual,silu m=35 n=48 k=64", self.ran())
        self.assertEqual(len(self.ran()), 4)
        self.assert_refused(greta.InvalidArgumentError, "activation is 'tanh'; there are none, silu, gelu, swiglu",
                            greta.torch.linear, x, w, activation="tanh")

    def test_linear_with_norm_and_gates(self):
        for rows in (3, 9):  # the second is computed in parts
            x, w, g = torch.randn(rows, 64), torch.randn(48, 64) / 8, torch.rand(64) + 0.5
            expected = F.linear(fallbacks.rms_norm_of_torch(x, g, 1e-6), w)
            self.near(greta.torch.linear(x, w, norm_weight=g, norm_eps=1e-6), expected, 2e-5)
            self.near(greta.torch.linear(x, w, norm_weight=g, norm_eps=1e-6, activation="swiglu"),
                      F.silu(expected[:, :24]) * expected[:, 24:], 2e-5)
        for problem in ("gemm dtype=f32 out=f32 layout=nt epilogue=swiglu prologue=rmsnorm epsilon=1e-06 m=3 n=24 k=64",
                        "rmsnorm dtype=f32 out=f32 epsilon=1e-06 rows=9 cols=64",
                        "gemm dtype=f32 out=f32 layout=nt m=9 n=48 k=64",
                        "silu_mul dtype=f32 out=f32 layout=packed rows=9 cols=24"):
            self.assertIn(problem, self.ran())
        self.assert_refused(greta.InvalidArgumentError, "activation 'swiglu' takes no residual", greta.torch.linear, x, w,
                            residual=x, activation="swiglu")

    def test_sums_and_gates(self):
        x, y, w = torch.randn(2, 5, 64), torch.randn(2, 5, 64), torch.rand(64)
        total, normed = greta.torch.add_rms_norm(x, y, w, 1e-6)
        self.near(total, x + y)
        self.near(normed, fallbacks.rms_norm_of_torch(x + y, w, 1e-6))
        self.near(greta.torch.silu_mul(x), F.silu(x[..., :32]) * x[..., 32:])
        self.assertEqual(len(self.ran()), 2)

    def test_rotary_embedding(self):
        angles = torch.randn(9, 8)
        table = torch.stack((angles.cos(), angles.sin()), -1).reshape(9, 16)
        positions = torch.tensor([3, 0, 8, 5, 1, 2], dtype=torch.int32)
        for whole in (torch.randn(2, 3, 6, 16), torch.randn(6, 6, 16)):
            turns = angles[positions.long()].reshape(*whole.shape[:-2], 1, 8)
            for x in (whole, whole[..., 2:5, :], whole[..., 5:, :], whole[..., ::2, :]):
                a, b = x.chunk(2, -1)
                half = torch.cat((a * turns.cos() - b * turns.sin(), b * turns.cos() + a * turns.sin()), -1)
                self.near(greta.torch.rope(x, positions, table), half)
                a, b = x[..., 0::2], x[..., 1::2]
                pairs = torch.stack((a * turns.cos() - b * turns.sin(), b * turns.cos() + a * turns.sin()), -1)
                self.near(greta.torch.rope(x, positions, table, pairs="interleaved"), pairs.flatten(-2))
        self.assertTrue(any('x_stride="96"' in one for one in self.ran()), self.ran())
        self.assert_refused(greta.InvalidArgumentError, "pairs is 'odd'; there are half, interleaved", greta.torch.rope,
                            x, positions, table, pairs="odd")

    def test_further_calls_pass_addresses_alone(self):
        x, w = torch.randn(3, 64), torch.randn(16, 64)
        first = greta.torch.linear(x, w)
        outputs = [greta.torch.linear(x, w) for _ in range(300)]  # of as many addresses
        self.assertEqual(len({one.data_ptr() for one in outputs}), 300)
        self.assertTrue(all(torch.equal(one, first) for one in outputs))
        x.mul_(2)
        self.near(greta.torch.linear(x, w), F.linear(x, w), 5e-5)
        self.assertEqual(len(self.ran()), 1)

    def test_shapes_that_do_not_fit_are_torch_s_errors(self):
        x, w = torch.randn(3, 64), torch.randn(16, 64)
        greta.torch.linear(x, w)
        with self.assertRaises(RuntimeError):
            greta.torch.linear(x, w[:, :32].contiguous())
        with self.assertRaises(RuntimeError):
            greta.torch.linear(x, w, torch.randn(8))
        q, k = torch.randn(2, 4, 3, 16), torch.randn(2, 4, 5, 16)
        with self.assertRaises(RuntimeError):
            greta.torch.scaled_dot_product_attention(q, k, k[:, :, :4], lengths=torch.tensor([3, 2]))
        self.assertEqual(len(self.ran()), 1)

    def test_modes_of_torch_see_operations(self):
        seen = []

        class Mode(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append(str(function))
                return function(*args, **(kwargs or {}))

        x = torch.randn(4, 16)
        expected = greta.torch.softmax(x)
        with Mode():
            self.assertTrue(torch.equal(greta.torch.softmax(x), expected))
        self.assertTrue(any("greta.softmax" in one for one in seen), seen)

    def test_subclasses_of_tensors_see_operations(self):
        seen = []

        class Watched(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                seen.append(str(function))
                return super().__torch_function__(function, types, args, kwargs or {})

        x = torch.randn(4, 16)
        expected = greta.torch.softmax(x)
        self.assertTrue(torch.equal(greta.torch.softmax(x.as_subclass(Watched)), expected))
        self.assertTrue(any("greta.softmax" in one for one in seen), seen)

    def test_threads(self):
        x, w = torch.randn(5, 64), torch.randn(16, 64)
        expected, wrong = F.linear(x, w), []

        def work():
            for _ in range(40):
                y = greta.torch.rms_norm(greta.torch.linear(x, w))
                if float((y - fallbacks.rms_norm_of_torch(expected, None, 1e-5)).abs().max()) > 1e-4:
                    wrong.append(y)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(wrong, [])

    def test_half_precision(self):
        for dtype in (torch.float16, torch.bfloat16):
            x, w = torch.randn(3, 32, dtype=torch.float32).to(dtype), torch.randn(16, 32).to(dtype)
            exact = F.linear(x.float(), w.float())
            self.near(greta.torch.linear(x, w).float(), exact, 0.2)

    def test_strided_and_unaligned_tensors_are_read_as_they_are(self):
        w, base = torch.randn(16, 32), torch.randn(33 * 4 + 1)
        rows = base[1:].reshape(4, 33)[:, :32]
        self.near(greta.torch.linear(rows, w), F.linear(rows, w), 2e-5)
        self.near(greta.torch.softmax(base[1:129].reshape(4, 32)), torch.softmax(base[1:129].reshape(4, 32), -1))
        columns = torch.randn(32, 16)
        self.near(greta.torch.linear(w, columns.t()), F.linear(w, columns.t()), 2e-5)

    def test_norms_and_softmax(self):
        x, w, b = torch.randn(2, 5, 64), torch.randn(64), torch.randn(64)
        self.near(greta.torch.rms_norm(x, w, 1e-6), fallbacks.rms_norm_of_torch(x, w, 1e-6))
        self.near(greta.torch.rms_norm(x), fallbacks.rms_norm_of_torch(x, None, 1e-5))
        self.near(greta.torch.layer_norm(x, w, b), F.layer_norm(x, (64,), w, b))
        self.near(greta.torch.layer_norm(x), F.layer_norm(x, (64,)))
        self.near(greta.torch.softmax(x, 0.25), F.softmax(x * 0.25, -1))
        self.assertEqual(len(self.ran()), 5)

    def attention(self, q, k, v, causal, lengths=None, scale=None):
        scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(2, 3)
        scores = scores * (scale or q.shape[-1] ** -0.5)
        for b in range(q.shape[0]):
            end = k.shape[2] if lengths is None else int(lengths[b])
            scores[b, :, :, end:] = -float("inf")
            for i in range(q.shape[2] if causal else 0):
                scores[b, :, i, end - q.shape[2] + i + 1:] = -float("inf")
        return scores.softmax(-1) @ v.repeat_interleave(q.shape[1] // k.shape[1], 1)

    def test_attention_with_and_without_a_cache(self):
        q, k, v = torch.randn(2, 8, 6, 32), torch.randn(2, 4, 10, 32), torch.randn(2, 4, 10, 32)
        attention = greta.torch.scaled_dot_product_attention
        lengths = torch.tensor([7, 10], dtype=torch.int32)
        for mode in ("greta", "torch"):
            self.configure(mode)
            for causal in (False, True):
                self.near(attention(q, k, v, is_causal=causal), self.attention(q, k, v, causal), 1e-5)
                self.near(attention(q, k, v, lengths=lengths, is_causal=causal),
                          self.attention(q, k, v, causal, lengths), 1e-5)
            self.near(attention(q, k[:, :, :6], v[:, :, :6], is_causal=True, scale=0.5),
                      self.attention(q, k[:, :, :6], v[:, :, :6], True, scale=0.5), 1e-5)
            self.assertEqual(len(set(self.ran())), 3 if mode == "greta" else 0)

    def test_what_has_no_problem_is_torch_s(self):
        x, w = torch.randn(3, 32, dtype=torch.float64), torch.randn(16, 32, dtype=torch.float64)
        self.near(greta.torch.linear(x, w), F.linear(x, w), 0)
        self.assertEqual(greta.torch.linear(torch.empty(0, 32), w.float()).shape, (0, 16))
        q = torch.randn(1, 1, 2, 12)  # GRETA's heads have a multiple of 8 elements
        self.near(greta.torch.scaled_dot_product_attention(q, q, q), self.attention(q, q, q, False))
        refused, = greta.torch.choices()
        self.assertFalse(refused.greta)
        self.assertIn("multiple of 8", refused.why)

    def test_gradients_are_torch_s(self):
        x, w = torch.randn(3, 32, requires_grad=True), torch.randn(16, 32, requires_grad=True)
        greta.torch.linear(x, w, activation="silu").sum().backward()
        greta.torch.rms_norm(x).sum().backward()
        self.assertIsNotNone(w.grad)
        self.assertEqual(self.ran(), [])
        with torch.no_grad():
            greta.torch.linear(x, w)
        self.assertEqual(len(self.ran()), 1)

    def test_fake_kernels_have_the_shapes_of_the_real_ones(self):
        x, w, q = torch.randn(2, 3, 32), torch.randn(16, 32), torch.randn(2, 3, 4, 8)
        k, v = torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 16)
        cases = {"linear": (x, w, None, None, None, "none"), "silu_mul": (x,),
                 "rope": (torch.randn(2, 3, 4, 8)[:, :, :2], torch.arange(6, dtype=torch.int32), torch.randn(6, 8), "half"),
                 "add_rms_norm": (x, x.transpose(0, 1).contiguous().transpose(0, 1), None, 1e-5), "rms_norm": (x.transpose(0, 1), None, 1e-5),
                 "layer_norm": (x.transpose(0, 1), None, None, 1e-5), "softmax": (x.transpose(0, 1), 1.0),
                 "attention": (q, k, v, None, None, False)}
        self.assertEqual(set(cases), set(operations.SCHEMAS))
        for mode in ("greta", "torch"):
            self.configure(mode)
            for name, arguments in cases.items():
                real = getattr(torch.ops.greta, name)(*arguments)
                meta = [one.to("meta") if isinstance(one, torch.Tensor) else one for one in arguments]
                fake = operations.SCHEMAS[name][2](*meta)
                for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (fake, real))):
                    self.assertEqual((one.shape, one.dtype, one.stride()),
                                     (other.shape, other.dtype, other.stride()), f"{mode}: {name}")


class TorchDecisions(Torch):
    mode = "measured"

    def test_problems_are_measured_once_and_remembered(self):
        x, w = torch.randn(8, 32), torch.randn(16, 32)
        greta.torch.linear(x, w)
        choice, = greta.torch.choices()
        self.assertEqual(choice.why, "measured")
        self.assertGreater(choice.decision.greta_us, 0)
        self.assertGreater(choice.decision.framework_us, 0)
        self.assertEqual(choice.greta, choice.decision.regret() <= 0)
        for most, runs in ((1e9, True), (-1.0, False)):
            self.configure("measured", most_regret=most)
            self.near(greta.torch.linear(x, w), F.linear(x, w), 2e-5)
            again, = greta.torch.choices()
            self.assertEqual((again.why, again.decision, again.greta), ("stored", choice.decision, runs))

    def test_lengths_of_a_cache_share_a_decision(self):
        for keys in (301, 302, 303):
            q, k = torch.randn(1, 4, 1, 16), torch.randn(1, 2, keys, 16)
            greta.torch.scaled_dot_product_attention(q, k, k)
        self.assertEqual([choice.why for choice in greta.torch.choices()], ["measured", "stored", "stored"])
        self.assertEqual(len({choice.problem for choice in greta.torch.choices()}), 3)

    def test_another_configuration_is_measured_again(self):
        x = torch.randn(16, 64)
        greta.torch.softmax(x)
        first, = greta.torch.choices()
        greta.tune("softmax", rows=16, cols=64, device="hip-host:0", budget=3, db=self.folder / "tuned.db",
                   cache=CACHE, lock=False, flush_mib=1, in_process=True, shipped=False, seed=2)
        self.configure("measured")
        greta.torch.softmax(x)
        second, = greta.torch.choices()
        self.assertEqual(second.answer["origin"], "exact")
        changed = second.answer["config"] != first.answer["config"]
        self.assertEqual(second.why, "measured" if changed else "stored")

    def test_modes(self):
        x = torch.randn(4, 16)
        for mode, runs in (("greta", 1), ("torch", 0)):
            self.configure(mode)
            self.near(greta.torch.softmax(x), torch.softmax(x, -1))
            self.assertEqual(len(self.ran()), runs)
        self.assertFalse((self.folder / "frameworks.json").exists())
        self.assert_refused(greta.InvalidArgumentError, "mode is 'fast'; there are measured, greta, torch",
                            self.configure, "fast")


class TorchCaptures(Torch):
    def test_functions_of_torch_and_of_greta(self):
        x, w, b = torch.randn(4, 6, 32), torch.randn(16, 32), torch.randn(16)
        file = self.folder / "shapes.jsonl"
        with greta.torch.capture(file, device="cpu") as captured:
            F.linear(x, w, b)
            x @ w.t()
            torch.matmul(x, torch.randn(32, 8))
            torch.softmax(x, -1)
            x.softmax(dim=1)  # not of rows
            F.layer_norm(x, (32,), eps=1e-6)
            F.linear(x.double(), w.double())  # no element type of GRETA's
            greta.torch.linear(x, w)
            greta.torch.rms_norm(x)
            greta.torch.rms_norm(x)
        F.linear(x, w)
        self.assertEqual(captured.counts, {
            "gemm dtype=f32 out=f32 layout=nt epilogue=bias m=24 n=16 k=32": 1,
            "gemm dtype=f32 out=f32 layout=nt m=24 n=16 k=32": 2,
            "gemm dtype=f32 out=f32 m=24 n=8 k=32": 1,
            "softmax dtype=f32 out=f32 rows=24 cols=32": 1,
            "layernorm dtype=f32 out=f32 affine=none epsilon=1e-06 rows=24 cols=32": 1,
            "rmsnorm dtype=f32 out=f32 affine=none rows=24 cols=32": 2})
        self.assertEqual(len(file.read_text().splitlines()), 7)

    def test_fallbacks_count_once(self):
        self.configure("torch")
        with greta.torch.capture(device="cpu") as captured:
            greta.torch.linear(torch.randn(4, 32), torch.randn(16, 32))
        self.assertEqual(list(captured.counts.values()), [1])

    def test_attention_is_that_of_torch_s_function(self):
        q, k = torch.empty(2, 8, 6, 32), torch.empty(2, 4, 10, 32)
        self.assertIn("q=6 kv=10", capturing._attention(q, k, k))
        self.assertIsNone(capturing._attention(q, k, k, is_causal=True))
        self.assertIsNone(capturing._attention(q, k, k, torch.empty(6, 10)))
        self.assertIn("mask=causal", capturing._attention(q, k[:, :, :6], k[:, :, :6], is_causal=True))


class TorchTutorial(Torch):
    def test_all_code(self):
        text = (SOURCE / "docs/pytorch.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 5)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        names, output = {}, io.StringIO()
        for block in blocks:
            with self.subTest(block), contextlib.redirect_stdout(output):
                exec(compile(block, "docs/pytorch.md", "exec"), names)
        self.assertIn("gemm dtype=f32 out=f32 layout=nt epilogue=bias,silu m=24 n=48 k=64 GRETA mode", output.getvalue())
        self.assertIn("\n2 1\n", output.getvalue())
        self.assertIn("'gemm dtype=f32 out=f32 layout=nt epilogue=bias m=24 n=32 k=64': 1", output.getvalue())


if __name__ == "__main__":
    unittest.main()
