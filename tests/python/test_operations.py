"""Protects: each operation of the package passes its operands and options to the operation of the
same name, on hip-host and lavapipe: results are compared with numpy's in FP64."""

import unittest

import numpy as np
from device_case import RANDOM, OneDevice, silu, values
from python_case import Case, greta


def rms(x, weight=1, epsilon=1e-5):
    x = x.astype("float64")
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def layer(x, weight=1, bias=0, epsilon=1e-5):
    x = x.astype("float64")
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * weight + bias


def softmax(x):
    e = np.exp(x.astype("float64") - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rotated(x, positions, table):
    """Interleaved pairs; a row of the table has the cosine and sine of each pair."""
    pairs, turns = x.astype("float64").reshape(*x.shape[:-1], -1, 2), table[positions]
    cos, sin = turns[:, None, 0::2], turns[:, None, 1::2]
    return np.stack([pairs[..., 0] * cos - pairs[..., 1] * sin,
                     pairs[..., 0] * sin + pairs[..., 1] * cos], -1).reshape(x.shape)


def turns(count, dim):
    angles = RANDOM.standard_normal((count, dim // 2))
    return np.stack([np.cos(angles), np.sin(angles)], -1).reshape(count, dim).astype("float32")


class OnEachDevice(OneDevice):
    """The tests of a device."""

    def test_gemm(self):
        x, y, bias, residual = values(24, 40), values(32, 40), values(32), values(24, 32)
        a, b, c, d, r = self.make(x, y, np.ones((24, 32), "float32"), bias, residual)
        self.runtime.gemm(a, b, c, layout="nt", alpha=2, beta=0.5, bias=d, residual=r,
                          activation="silu")
        product = x.astype("float64") @ y.T.astype("float64")
        self.check(c, silu(2 * product + bias + residual + 0.5))

    def test_gemm_in_tf32(self):
        x, y = values(24, 40), values(40, 32)
        a, b = self.make(x, y)
        c = self.runtime.empty((24, 32))
        self.runtime.gemm(a, b, c, tf32x3=True)
        self.check(c, x.astype("float64") @ y.astype("float64"))

    def test_gemm_of_panels(self):
        x, y = values(24, 40).astype("float16"), values(32, 40).astype("float16")
        panels = np.ascontiguousarray(y.reshape(2, 16, 5, 8).transpose(0, 2, 1, 3)).reshape(32, 40)
        a, b = self.make(x, panels)
        c = self.runtime.empty((24, 32), dtype="f32")
        self.runtime.gemm(a, b, c, layout="nt", packing="panels")
        self.check(c, x.astype("float64") @ y.T.astype("float64"))
        with self.assertRaises(greta.InvalidArgumentError):
            self.runtime.gemm(a, b, c, layout="nt", packing="awq")

    def test_gemm_with_norm_and_gates(self):
        x, y, weight = values(4, 64), values(64, 64), values(64)
        a, b, w = self.make(x, y, weight)
        c = self.runtime.empty((4, 32))
        self.runtime.gemm(a, b, c, activation="swiglu", norm_weight=w, norm_epsilon=1e-3)
        product = rms(x, weight, 1e-3) @ y
        self.check(c, silu(product[:, :32]) * product[:, 32:], 1e-3)

    def test_gemm_of_a_batch(self):
        x, y = values(3, 24, 40), values(3, 40, 32)
        a, b = self.make(x, y)
        c = self.runtime.empty((3, 24, 32))
        self.runtime.gemm(a, b, c)
        self.check(c, x @ y)

    def test_grouped_gemm(self):
        x, y = values(24, 40), values(3, 32, 40)
        a, b, ends = self.make(x, y, np.array([5, 5, 20], "int32"))
        c = self.runtime.tensor(np.full((24, 32), 7, "float32"))
        self.runtime.grouped_gemm(a, b, ends, c)
        expected = np.full((24, 32), 7.0)  # the last four rows are of no group
        expected[:5], expected[5:20] = x[:5] @ y[0].T, x[5:20] @ y[2].T
        self.check(c, expected)

    def test_grouped_gemm_of_masked_groups(self):
        x, y = values(3, 6, 40), values(3, 40, 32)
        a, b, rows = self.make(x, y, np.array([6, 0, 1], "int32"))
        c = self.runtime.tensor(np.full((3, 6, 32), 7, "float32"))
        self.runtime.grouped_gemm(a, b, rows, c, layout="nn")
        expected = np.full((3, 6, 32), 7.0)
        expected[0], expected[2, :1] = x[0] @ y[0], x[2, :1] @ y[2]
        self.check(c, expected)

    def test_grouped_gemm_with_gates(self):
        x, y = values(6, 40), values(2, 64, 40)
        a, b, ends = self.make(x, y, np.array([4, 6], "int32"))
        c = self.runtime.empty((6, 32))
        self.runtime.grouped_gemm(a, b, ends, c, activation="swiglu")
        products = np.concatenate([x[:4] @ y[0].T, x[4:] @ y[1].T])
        gate, up = products[:, :32], products[:, 32:]
        self.check(c, gate / (1 + np.exp(-gate)) * up)

    def test_sample(self):
        x = 3 * values(4, 50)
        x[2, 17] = 30
        past = np.full((4, 5), -1, "int32")
        past[2] = 17  # whose penalty leaves it unlikely
        rows = [[0, 0, 1, 0], [1, 1, 1, 0], [1, 0, 0.9, 0], [2, 3, 1, 0.01]]
        logits, settings, seeds, penalties, history, token = self.make(
            x, np.array(rows, "float32"), np.arange(12, dtype="int32").reshape(4, 3),
            np.full((4, 3), [2, 100, 1], "float32"), past, np.zeros(4, "int32"))
        self.runtime.sample(logits, settings, seeds, token)
        best = x.argmax(1)
        self.assertEqual(token.numpy()[:3].tolist(), best[:3].tolist())
        self.assertIn(token.numpy()[3], np.argsort(-x[3])[:3])
        self.runtime.sample(logits, settings, seeds, token, penalties=penalties, history=history)
        self.assertEqual(token.numpy()[:2].tolist(), best[:2].tolist())
        self.assertNotEqual(token.numpy()[2], 17)
        self.assertEqual(logits.numpy()[2, 17], 30 / 2 - 5 * 100 - 1)

    def test_route(self):
        x, bias = 4 * values(5, 12), values(12)
        logits, biases, ids, weights = self.make(x, bias, np.zeros((5, 3), "int32"), values(5, 3))
        self.runtime.route(logits, ids, weights)
        best = np.argsort(-x, 1)[:, :3]
        self.assertEqual(ids.numpy().tolist(), best.tolist())
        powers = np.exp(np.take_along_axis(x, best, 1).astype("float64"))
        self.check(weights, powers / powers.sum(1, keepdims=True))
        self.runtime.route(logits, ids, weights, score="sigmoid", renormalise=False, bias=biases, scale=2.5)
        scores = 1 / (1 + np.exp(-x.astype("float64")))
        best = np.argsort(-(scores + bias), 1)[:, :3]
        self.assertEqual(ids.numpy().tolist(), best.tolist())
        self.check(weights, 2.5 * np.take_along_axis(scores, best, 1))

    def test_experts(self):
        """Rows go to their experts and back, in both forms that grouped_gemm takes."""
        rows, chosen, shares = values(6, 8), np.array([[0, 2], [2, 1], [9, 2]] * 2, "int32"), values(6, 2)
        b = values(3, 5, 8)
        x, ids, weights, experts = self.make(rows, chosen, shares, b)
        groups, places = self.make(np.zeros(3, "int32"), np.zeros((6, 2), "int32"))
        expected = np.zeros((6, 5))
        for token, k in np.ndindex(6, 2):
            if chosen[token, k] < 3:
                expected[token] += shares[token, k] * (b[chosen[token, k]] @ rows[token])
        for shape, block in (((12,), 1), ((57,), 16), ((3, 6), 1)):
            with self.subTest(shape=shape):
                permuted, products = self.runtime.empty((*shape, 8)), self.runtime.empty((*shape, 5))
                self.runtime.permute(x, ids, permuted, groups, places, block=block)
                self.runtime.grouped_gemm(permuted, experts, groups, products)
                out = self.runtime.empty((6, 5))
                self.runtime.unpermute(products, places, weights, out)
                self.check(out, expected)
        with self.assertRaises(greta.GretaError):
            self.runtime.permute(x, ids, self.runtime.empty((13, 8)), groups, places)

    def test_experts_of_few_tokens(self):
        rows, chosen, shares = values(3, 8), np.array([[0, 2], [2, -1], [9, 1]], "int32"), values(3, 2)
        gates, downs = values(3, 12, 8), values(3, 8, 6)
        x, ids, weights, gate_up, down = self.make(rows, chosen, shares, gates, downs)
        expected = np.zeros((3, 8))
        for token, k in np.ndindex(3, 2):
            if 0 <= chosen[token, k] < 3:
                products = gates[chosen[token, k]].astype("float64") @ rows[token]
                hidden = products[:6] / (1 + np.exp(-products[:6])) * products[6:]
                expected[token] += shares[token, k] * (downs[chosen[token, k]] @ hidden)
        out = self.runtime.empty((3, 8))
        self.runtime.experts(x, ids, weights, gate_up, down, out)
        self.check(out, expected)

    def test_scaled_gemm(self):
        x = RANDOM.integers(-128, 128, (5, 256)).astype("int8")
        y = RANDOM.integers(-128, 128, (24, 256)).astype("int8")
        scales_x, scales_y = values(5, 2) / 64, values(1, 2) / 64
        a, b, s, t = self.make(x.view("uint8"), y.view("uint8"), scales_x, scales_y)
        c = self.runtime.empty((5, 24))
        self.runtime.scaled_gemm(a, b, s, t, c, numbers="int8", scales="block")
        each = [v.astype("float64") * np.repeat(w, 128, 1).astype("float64")
                for v, w in ((x, scales_x), (y, scales_y))]
        self.check(c, each[0] @ each[1].T)

    def test_scaled_gemm_of_fp8(self):
        # OCP's e4m3: 0x38 is 1, 0x40 is 2, 0x01 is 2^-9, and the highest bit is the sign.
        codes = np.array([0x38, 0x40, 0xb8, 0x01], "uint8")
        numbers = np.array([1, 2, -1, 2.0**-9])
        of_a, of_b = RANDOM.integers(0, 4, (3, 32)), RANDOM.integers(0, 4, (8, 32))
        half = np.array([[0.5]], "float32")
        a, b, s, t = self.make(codes[of_a], codes[of_b], half, half)
        c = self.runtime.empty((3, 8))
        self.runtime.scaled_gemm(a, b, s, t, c)
        self.check(c, numbers[of_a] @ numbers[of_b].T / 4)

    def test_scaled_gemm_of_microscaling_formats(self):
        # e4m3: 0x38 is 1, 0x40 2, 0xb8 -1; e2m1: the even number of a byte is in its lower half.
        codes, numbers = np.array([0x38, 0x40, 0xb8], "uint8"), np.array([1, 2, -1])
        fours = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        of_a, of_b = RANDOM.integers(0, 3, (3, 64)), RANDOM.integers(0, 16, (8, 64))
        scales_a, scales_b = RANDOM.integers(124, 130, (3, 2)), RANDOM.integers(124, 130, (8, 2))
        packed = (of_b[:, ::2] | of_b[:, 1::2] << 4).astype("uint8")
        a, b, s, t = self.make(codes[of_a], packed, scales_a.astype("uint8"), scales_b.astype("uint8"))
        c = self.runtime.empty((3, 8))
        self.runtime.scaled_gemm(a, b, s, t, c, scales="mx", numbers_b="e2m1")
        x = numbers[of_a] * np.repeat(2.0 ** (scales_a - 127), 32, 1)
        y = fours[of_b % 8] * np.where(of_b < 8, 1, -1) * np.repeat(2.0 ** (scales_b - 127), 32, 1)
        self.check(c, x @ y.T)
        with self.assertRaises(ValueError):
            self.runtime.scaled_gemm(a, b, s, t, c, numbers_b="e2m1")

    def test_quantize(self):
        x, weight = values(6, 256), values(256)
        a, w = self.make(x, weight)
        q, scales = self.runtime.empty((6, 256), "u8"), self.runtime.empty((6, 2))
        self.runtime.quantize(a, q, scales, numbers="int8", sharing="block", weight=w)
        y = rms(x, weight).reshape(6, 2, 128)
        s = np.abs(y).max(2) / 127
        self.check(scales, s)
        codes = q.numpy().view("int8").reshape(6, 2, 128)
        self.assertLess(np.abs(codes - y / s[:, :, None]).max(), 0.501)
        with self.assertRaises(ValueError):
            self.runtime.quantize(a, q, scales, residual=a)

    def test_quantize_after_a_layer_norm(self):
        x, weight, bias = values(6, 256), values(256), values(256)
        a, w, b = self.make(x, weight, bias)
        q, scales = self.runtime.empty((6, 256), "u8"), self.runtime.empty((6, 1))
        for given in ({}, {"weight": w}, {"weight": w, "bias": b}):
            self.runtime.quantize(a, q, scales, numbers="int8", layernorm=True, **given)
            y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
            y = y * (weight if "weight" in given else 1) + (bias if "bias" in given else 0)
            s = np.abs(y).max(1, keepdims=True) / 127
            self.check(scales, s)
            self.assertLess(np.abs(q.numpy().view("int8") - y / s).max(), 0.501)
        for wrong in ({"bias": b}, {"layernorm": True, "up": a}, {"layernorm": True, "residual": a, "weight": w}):
            with self.assertRaises(ValueError):
                self.runtime.quantize(a, q, scales, **wrong)
        with self.assertRaisesRegex(greta.GretaError, "a bias is given with its weight"):
            self.runtime.quantize(a, q, scales, layernorm=True, bias=b)

    def test_elements(self):
        x, y = values(6, 32), values(6, 32)
        a, b = self.make(x, y)
        out = self.runtime.empty((6, 32))
        self.runtime.add(a, b, out)
        self.check(out, x + y)
        self.runtime.silu_mul(a, b, out)
        self.check(out, silu(x) * y)
        half = self.runtime.empty((6, 16))
        self.runtime.silu_mul_packed(a, half)
        self.check(half, silu(x[:, :16]) * x[:, 16:])
        self.runtime.gelu(a, out, form="tanh")
        self.check(out, 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
        self.runtime.copy(out, b)
        self.check(out, y)

    def test_rows(self):
        x, y, weight, bias, gain = values(6, 48), values(6, 48), values(48), values(48), values(48)
        a, b, w, s, g = self.make(x, y, weight, bias, gain)
        out, total = self.runtime.empty((6, 48)), self.runtime.empty((6, 48))
        self.runtime.rmsnorm(a, out, weight=w, epsilon=1e-2)
        self.check(out, rms(x, weight, 1e-2))
        self.runtime.layernorm(a, out, weight=w, bias=s)
        self.check(out, layer(x, weight, bias))
        self.runtime.add_rmsnorm(a, b, total, out, weight=w)
        self.check(total, x + y)
        self.check(out, rms(x + y, weight))
        self.runtime.layernorm_rmsnorm(a, out, g, weight=w, bias=s)
        self.check(out, rms(layer(x, weight, bias)) * gain)
        self.runtime.softmax(a, out, scale=2, mask=b)
        self.check(out, softmax(2 * x + y))
        self.runtime.run("softmax dtype=f32 out=f32 rows=6 cols=48", [a, out])
        self.check(out, softmax(x))
        index = self.runtime.empty(6, "i32")
        self.runtime.argmax(b, index)
        self.assertEqual(index.numpy().tolist(), y.argmax(1).tolist())

    def test_tokens(self):
        table, ids = values(20, 32), np.array([3, 19, 0], "int32")
        out = self.runtime.empty((3, 32))
        self.runtime.embedding(*self.make(ids, table), out)
        self.check(out, table[ids])
        columns = self.runtime.empty((20, 3))
        self.runtime.gather_columns(*self.make(ids, table), columns)
        self.check(columns, table[:, ids])
        x, positions, circle = values(3, 2, 16), np.array([4, 0, 7], "int32"), turns(8, 16)
        rotation = self.runtime.empty((3, 2, 16))
        self.runtime.rope(*self.make(x, positions, circle), rotation)
        self.check(rotation, rotated(x, positions, circle))

    def test_caches(self):
        k, v, position = values(2, 2, 16), values(2, 2, 16), np.array([3], "int32")
        zeros = np.zeros((2, 8, 16), "float32")
        caches = self.make(zeros, zeros)
        self.runtime.kv_update(*self.make(k, v, position), *caches)
        for cache, new in zip(caches, (k, v)):
            expected = zeros.copy()
            expected[:, 3:5] = new.transpose(1, 0, 2)
            self.check(cache, expected)
        pages = np.zeros((4, 2, 16, 16), "float32")
        caches = self.make(pages, pages)
        blocks, last = np.array([2, 0], "int32"), np.array([15], "int32")
        self.runtime.kv_update(*self.make(k, v, last), *caches,
                               block_table=self.runtime.tensor(blocks))
        for cache, new in zip(caches, (k, v)):
            expected = pages.copy()
            expected[2, :, 15], expected[0, :, 0] = new[0], new[1]
            self.check(cache, expected)

    def test_rope_append(self):
        q, k, v = values(1, 2, 4, 16), values(1, 2, 2, 16), values(1, 2, 2, 16)
        positions, circle, slots = np.array([[5, 6]], "int32"), turns(8, 16), np.array([5], "int32")
        caches = self.make(*[np.zeros((1, 2, 8, 16), "float32")] * 2)
        weight = values(16)
        norm = self.runtime.tensor(weight)
        out = self.runtime.empty(q.shape)
        self.runtime.rope_append(*self.make(q, k, v, positions, circle, slots), *caches, out,
                                 q_norm=norm, k_norm=norm)
        self.check(out[:], rotated(rms(q[0], weight), positions[0], circle)[None])
        expected = rotated(rms(k[0], weight), positions[0], circle).transpose(1, 0, 2)
        self.check(caches[0], np.pad(expected, ((0, 0), (5, 1), (0, 0)))[None])
        self.check(caches[1], np.pad(v[0].transpose(1, 0, 2), ((0, 0), (5, 1), (0, 0)))[None])

    def test_attention(self):
        q, k, v = values(1, 2, 2, 32), values(1, 1, 16, 32), values(1, 1, 16, 32)
        lengths = np.array([12], "int32")
        out, lse = self.runtime.empty(q.shape), self.runtime.empty((1, 2, 2))
        a, b, c, n = self.make(q, k, v, lengths)
        self.runtime.attention(a, b, c, n, out, scale=0.25, lse=lse)
        scores = np.einsum("qhd,kd->qhk", q[0].astype("float64"), k[0, 0, :12]) * 0.25
        expected = np.einsum("qhk,kd->qhd", softmax(scores), v[0, 0, :12])[None]
        self.check(out, expected, 1e-3)
        sums = np.log(np.exp(scores).sum(-1))[None]
        self.check(lse, sums, 1e-3)
        # Two equal parts: the same result, of twice the weight.
        outs, lses = self.make(np.stack([expected[0]] * 2).astype("float32"),
                               np.stack([sums[0]] * 2).astype("float32"))
        joined, total = self.runtime.empty(q.shape[1:]), self.runtime.empty((2, 2))
        self.runtime.attention_merge(outs, lses, joined, total)
        self.check(joined, expected[0], 1e-3)
        self.check(total, sums[0] + np.log(2), 1e-3)

    def test_attention_of_a_tree_and_latents(self):
        """Two branches of a root behind nine keys, of which no token sees the other branch."""
        cache, lengths = values(1, 1, 16, 48), np.array([12], "int32")
        q, tree = values(1, 3, 2, 48), np.array([[[1], [3], [5]]], "int32")
        sees = np.array([[1] * 9 + row for row in ([1, 0, 0], [1, 1, 0], [1, 0, 1])], bool)
        scores = np.einsum("qhd,kd->qhk", q[0].astype("float64"), cache[0, 0, :12]) * 0.25
        weights = softmax(np.where(sees[:, None], scores, -np.inf))
        expected = np.einsum("qhk,kd->qhd", weights, cache[0, 0, :12])[None]
        out, latents = self.runtime.empty(q.shape), self.runtime.empty((1, 3, 2, 32))
        a, k, n, bits = self.make(q, cache, lengths, tree)
        self.runtime.attention(a, k, k, n, out, scale=0.25, tree=bits)
        self.check(out, expected, 1e-3)
        rows, = self.make(cache[0])
        self.runtime.latent_attention(a, rows, n, latents, scale=0.25, tree=bits)
        self.check(latents, expected[..., :32], 1e-3)
        with self.assertRaisesRegex(greta.GretaError, "a tree has no mask"):
            self.runtime.attention(a, k, k, n, out, tree=bits, causal=True)


class HipHostOperations(OnEachDevice, Case):
    device = "hip-host:0"


class VulkanOperations(OnEachDevice, Case):
    device = "vulkan:0"


if __name__ == "__main__":
    unittest.main()
