"""Protects: operations with quantised weights pass their operands and options on, as test_operations.py
has it for others, and options that a program of the C interface does not set."""

import ctypes
import unittest

import numpy as np
from device_case import RANDOM, OneDevice, silu, values
from python_case import Case, greta

from greta import _abi


def q8_0(*shape):
    """Returns random weights [.., k], and the blocks that have them."""
    *lines, k = shape
    q = RANDOM.integers(-128, 128, (*lines, k // 32, 32)).astype("int8")
    scales = (values(*lines, k // 32, 1) / 64).astype("float16")
    blocks = np.concatenate([scales.view("uint8"), q.view("uint8")], -1).reshape(*lines, k // 32 * 34)
    return (q * scales.astype("float64")).reshape(shape), blocks


def in_panels(rows):
    """Returns bytes [.., n, bytes] of rows as panels of 16 rows, units of 16 bytes of each row in turn."""
    units = rows.reshape(*rows.shape[:-2], rows.shape[-2] // 16, 16, rows.shape[-1] // 16, 16)
    return np.ascontiguousarray(units.swapaxes(-3, -2)).reshape(rows.shape)


def of_experts(rows, chosen, shares, gates, downs):
    """Returns what experts() computes."""
    expected, hidden = np.zeros(rows.shape), downs.shape[2]
    for token, k in np.ndindex(*chosen.shape):
        if 0 <= chosen[token, k] < len(downs):
            products = gates[chosen[token, k]] @ rows[token].astype("float64")
            gated = silu(products[:hidden]) * products[hidden:]
            expected[token] += shares[token, k] * (downs[chosen[token, k]] @ gated)
    return expected


class OnEachDevice(OneDevice):
    """The tests of a device."""

    def test_quantised_experts_and_their_numbers(self):
        rows, chosen, shares = values(3, 32), np.array([[0, 2], [2, -1], [9, 1]], "int32"), values(3, 2)
        integers = [RANDOM.integers(0, 16, shape).astype("uint8") for shape in ((3, 64, 32), (3, 32, 32))]
        scales = [(values(3, lines, 1) / 8).astype("float16") for lines in (64, 32)]
        zeros = [RANDOM.integers(4, 12, (3, lines, 1)).astype("uint8") for lines in (64, 32)]
        gates, downs = ((q.astype("float64") - z) * s for q, s, z in zip(integers, scales, zeros))
        x, ids, weights = self.make(rows, chosen, shares)
        packed = self.make(*(q[:, :, 0::2] | q[:, :, 1::2] << 4 for q in integers))
        (gate_up_scales, down_scales), (gate_up_zeros, down_zeros) = self.make(*scales), self.make(*zeros)
        expected = of_experts(rows, chosen, shares, gates, downs)
        out = self.runtime.empty((3, 32))
        self.runtime.experts(x, ids, weights, *packed, out, format="int4", gate_up_scales=gate_up_scales,
                             down_scales=down_scales, gate_up_zeros=gate_up_zeros, down_zeros=down_zeros)
        self.check(out, expected)
        panels = [self.runtime.empty(one.shape, "u8") for one in packed]
        for rows, to in zip(packed, panels):
            self.runtime.repack_weights(rows, None, to, None, packing="rows", to="panels")
            np.testing.assert_array_equal(to.numpy(), in_panels(rows.numpy()))
        again = self.runtime.empty((3, 32))
        self.runtime.experts(x, ids, weights, *panels, again, format="int4", gate_up_scales=gate_up_scales,
                             down_scales=down_scales, gate_up_zeros=gate_up_zeros, down_zeros=down_zeros,
                             packing="panels")
        np.testing.assert_array_equal(again.numpy(), out.numpy())
        with self.assertRaisesRegex(ValueError, "packing panels: needs format int4"):
            self.runtime.experts(x, ids, weights, *packed, out, packing="panels")
        with self.assertRaisesRegex(greta.GretaError, "rows of each matrix must be whole panels of 16"):
            self.runtime.repack_weights(*self.make(np.zeros((2, 8, 16), "uint8"))[:1], None,
                                        self.runtime.empty((2, 8, 16), "u8"), None, packing="rows", to="panels")
        numbers = self.runtime.empty((64, 32))
        b, s, z = self.make(integers[0][1][:, 0::2] | integers[0][1][:, 1::2] << 4, scales[0][1], zeros[0][1])
        self.runtime.dequantize(b, numbers, scales=s, zeros=z)
        self.check(numbers, gates[1])
        of_panels = self.runtime.empty((64, 32))
        self.runtime.dequantize(*self.make(in_panels(b.numpy())), of_panels, scales=s, zeros=z, packing="panels")
        np.testing.assert_array_equal(of_panels.numpy(), numbers.numpy())
        with self.assertRaisesRegex(ValueError, "dense matrices have no scales"):
            self.runtime.experts(x, ids, weights, *packed, out, down_scales=down_scales)

    def test_weights_of_awq_and_gptq(self):
        n, k, group = 32, 64, 32
        x = values(5, k).astype("float16")
        scales = (values(k // group, n) / 8).astype("float16")
        given = np.argsort(RANDOM.random(k), kind="stable").astype("int32")
        for packing, bits, order in (("awq", 4, None), ("gptq", 4, given), ("gptq_v2", 8, None)):
            q = RANDOM.integers(0, 2**bits, (k, n)).astype("uint32")
            zeros = RANDOM.integers(1, 2**bits, (k // group, n)).astype("uint32")
            columns = [0, 2, 4, 6, 1, 3, 5, 7] if packing == "awq" else range(32 // bits)

            def words(rows):
                return sum(rows[:, column::32 // bits] << bits * i for i, column in enumerate(columns)).view("int32")

            stored = words(q) if packing == "awq" else words(np.ascontiguousarray(q.T)).T.copy()
            qzeros = words(zeros - 1 if packing == "gptq" else zeros)
            qweight, s, z, *places = self.make(stored, scales, qzeros, *([] if order is None else [order]))
            b, own_scales, own_zeros = self.make(np.zeros((n, k * bits // 8), "uint8"), np.zeros((n, k // group), "float16"),
                                                 np.zeros((n, k // group), "uint8"))
            self.runtime.repack_weights(qweight, s, b, own_scales, packing=packing, weights=f"int{bits}", qzeros=z,
                                        zeros=own_zeros, order=places[0] if places else None)
            in_order = q if order is None else q[order]
            c, rows = self.runtime.empty((5, n)), x if order is None else x[:, order]
            self.runtime.quantized_gemm(self.make(np.ascontiguousarray(rows))[0], b, c, weights=f"int{bits}",
                                        scales=own_scales, zeros=own_zeros)
            each = (in_order.astype("float64") - np.repeat(zeros, group, 0)) * np.repeat(scales, group, 0)
            product = rows.astype("float64") @ each
            self.check(c, product)
            panels = self.make(np.zeros((n, k * bits // 8), "uint8"))[0]
            self.runtime.repack_weights(qweight, s, panels, own_scales, packing=packing, weights=f"int{bits}", qzeros=z,
                                        zeros=own_zeros, order=places[0] if places else None, to="panels")
            self.runtime.quantized_gemm(self.make(np.ascontiguousarray(rows))[0], panels, c, weights=f"int{bits}",
                                        scales=own_scales, zeros=own_zeros, packing="panels")
            self.check(c, product)
            again = self.make(np.zeros((n, k * bits // 8), "uint8"))[0]
            self.runtime.repack_weights(b, None, again, None, packing="rows", weights=f"int{bits}", to="panels")
            np.testing.assert_array_equal(again.numpy(), panels.numpy())
            if order is None:  # as they lie
                self.runtime.quantized_gemm(self.make(x)[0], qweight, c, weights=f"int{bits}", packing=packing,
                                            scales=s, zeros=z)
                self.check(c, product)
        with self.assertRaisesRegex(greta.GretaError, "packing=awq has 4 bits"):
            self.runtime.repack_weights(qweight, s, b, own_scales, weights="int8")
        with self.assertRaisesRegex(greta.InvalidArgumentError, "^packing is 'rows'; there are awq, gptq, gptq_v2$"):
            self.runtime.repack_weights(qweight, s, b, own_scales, packing="rows")
        with self.assertRaisesRegex(greta.GretaError, "of rows B alone is repacked, their scales stay"):
            self.runtime.repack_weights(b, s, panels, own_scales, packing="rows", to="panels")
        with self.assertRaisesRegex(greta.InvalidArgumentError, "^to is 'tiles'; there are rows, panels$"):
            self.runtime.repack_weights(qweight, s, b, own_scales, to="tiles")
        numbers = np.arange(16 * 32, dtype="float16").reshape(16, 32)
        rows, panels = self.make(numbers, np.zeros((16, 32), "float16"))
        self.runtime.repack_weights(rows, None, panels, None, packing="rows", to="panels")
        np.testing.assert_array_equal(panels.numpy().reshape(4, 16, 8), numbers.reshape(16, 4, 8).transpose(1, 0, 2))
        with self.assertRaisesRegex(greta.GretaError, "qzeros and zeros are given together"):
            self.runtime.repack_weights(qweight, s, b, own_scales, packing="gptq", weights="int8", qzeros=z)

    def test_quantized_gemm(self):
        x = values(5, 64).astype("float16")
        q = RANDOM.integers(0, 16, (24, 64)).astype("uint8")
        scales = (values(24, 2) / 8).astype("float16")
        zeros = RANDOM.integers(4, 12, (24, 2)).astype("uint8")
        a, b, s, z = self.make(x, q[:, 0::2] | q[:, 1::2] << 4, scales, zeros)
        c = self.runtime.empty((5, 24))
        self.runtime.quantized_gemm(a, b, c, scales=s, zeros=z)
        each = (q.reshape(24, 2, 32).astype("float64") - zeros[:, :, None]) * scales[:, :, None]
        product = x.astype("float64") @ each.reshape(24, 64).T
        self.check(c, product)
        self.runtime.quantized_gemm(a, b, c, scales=s, zeros=z, rounded_weights=True)
        self.check(c, product)
        with self.assertRaisesRegex(greta.GretaError, "math rounded_weights: needs dtype f16 or bf16"):
            self.runtime.quantized_gemm(self.make(x.astype("float32"))[0], b, c, scales=s, zeros=z,
                                        rounded_weights=True)
        bias, residual = values(24), values(5, 24)
        for name, added in (("bias", bias), ("residual", residual)):
            self.runtime.quantized_gemm(a, b, c, scales=s, zeros=z, **{name: self.make(added)[0]})
            self.check(c, product + added)
        gated = self.runtime.empty((5, 12))
        self.runtime.quantized_gemm(a, b, gated, scales=s, zeros=z, activation="swiglu")
        gate, up = product[:, :12], product[:, 12:]
        self.check(gated, gate / (1 + np.exp(-gate)) * up)
        weight = values(64).astype("float16")
        self.runtime.quantized_gemm(a, b, c, scales=s, zeros=z, norm_weight=self.make(weight)[0], norm_epsilon=1e-2)
        wide = x.astype("float64")
        normed = wide / np.sqrt((wide ** 2).mean(axis=1, keepdims=True) + 1e-2) * weight
        self.check(c, normed @ each.reshape(24, 64).T)
        with self.assertRaisesRegex(greta.GretaError, "GRETA_NO_ACTIVATION, GRETA_SWIGLU"):
            self.runtime.quantized_gemm(a, b, c, scales=s, zeros=z, activation="gelu")
        with self.assertRaisesRegex(greta.GretaError, "bias"):
            self.runtime.quantized_gemm(a, b, c, scales=s, zeros=z, **dict(zip(
                ("bias", "residual"), self.make(bias, residual))))

    def test_quantized_gemm_of_blocks(self):
        x, (weights, blocks) = values(2, 96), q8_0(8, 96)
        a, b = self.make(x, blocks)
        c = self.runtime.empty((2, 8))
        self.runtime.quantized_gemm(a, b, c, weights="q8_0")
        self.check(c, x.astype("float64") @ weights.T)
        library = greta._library.runtime_library()
        options = library.greta_quantized_gemm_defaults()
        options.weights = _abi.WEIGHTS["GRETA_Q8_0"]
        options.size = 64  # of a header before rounded_weights, whose last four bytes were padding
        options.reserved = options.rounded_weights = -1
        c = self.runtime.empty((2, 8))
        library.call("greta_quantized_gemm_fused", self.runtime._receiver, *(one._handle for one in (a, b, c)),
                     ctypes.byref(options))
        self.runtime._recorded()
        self.check(c, x.astype("float64") @ weights.T)

    def test_quantized_gemm_of_mxfp4(self):
        x, codes = values(2, 64), RANDOM.integers(0, 16, (8, 64)).astype("uint8")
        scales = RANDOM.integers(120, 128, (8, 2)).astype("uint8")
        a, b, s = self.make(x, codes[:, 0::2] | codes[:, 1::2] << 4, scales)
        c = self.runtime.empty((2, 8))
        self.runtime.quantized_gemm(a, b, c, weights="mxfp4", scales=s)
        numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        weights = np.where(codes < 8, 1, -1) * numbers[codes % 8]
        weights = weights * np.repeat(2.0 ** (scales.astype("float64") - 127), 32, 1)
        self.check(c, x.astype("float64") @ weights.T)

    def test_experts_of_blocks(self):
        """down_format is by default that of both, also for a program in C that sets nothing but the format."""
        rows, chosen, shares = values(3, 32), np.array([[0, 2], [2, -1], [9, 1]], "int32"), values(3, 2)
        (gates, packed_gates), (downs, packed_downs) = q8_0(3, 64, 32), q8_0(3, 32, 32)
        expected = of_experts(rows, chosen, shares, gates, downs)
        x, ids, weights, gate_up, down = self.make(rows, chosen, shares, packed_gates, packed_downs)
        operands = (x, ids, weights, gate_up, down)
        for formats in ({}, {"down_format": "q8_0"}):
            out = self.runtime.empty((3, 32))
            self.runtime.experts(*operands, out, format="q8_0", **formats)
            self.check(out, expected)
        library = greta._library.runtime_library()
        options = library.greta_quantized_experts_defaults()
        self.assertEqual(options.down_weights, _abi.WEIGHTS["GRETA_SAME_WEIGHTS"])
        options.weights = _abi.WEIGHTS["GRETA_Q8_0"]
        out = self.runtime.empty((3, 32))
        library.call("greta_quantized_experts", self.runtime._receiver, *(one._handle for one in (*operands, out)),
                     ctypes.byref(options))
        self.check(out, expected)
        with self.assertRaisesRegex(greta.GretaError, "down_weights.*int4"):
            self.runtime.experts(*operands, out, format="q8_0", down_format="int4")
        options.weights = _abi.WEIGHTS["GRETA_SAME_WEIGHTS"]
        with self.assertRaisesRegex(greta.GretaError, "weights is 255"):
            library.call("greta_quantized_experts", self.runtime._receiver,
                         *(one._handle for one in (*operands, out)), ctypes.byref(options))

    def test_quantized_grouped_gemm(self):
        x = values(24, 64).astype("float16")
        q = RANDOM.integers(0, 16, (3, 8, 64)).astype("uint8")
        scales = (values(3, 8, 2) / 8).astype("float16")
        zeros = RANDOM.integers(4, 12, (3, 8, 2)).astype("uint8")
        a, b, s, z, ends = self.make(x, q[:, :, 0::2] | q[:, :, 1::2] << 4, scales, zeros, np.array([5, 5, 20], "int32"))
        each = (q.reshape(3, 8, 2, 32).astype("float64") - zeros[..., None]) * scales[..., None]
        each, wide = each.reshape(3, 8, 64), x.astype("float64")
        expected = np.full((24, 8), 7.0)  # the last four rows are of no group
        expected[:5], expected[5:20] = wide[:5] @ each[0].T, wide[5:20] @ each[2].T
        c = self.runtime.tensor(np.full((24, 8), 7, "float32"))
        self.runtime.quantized_grouped_gemm(a, b, ends, c, scales=s, zeros=z)
        self.check(c, expected)
        with self.assertRaisesRegex(greta.GretaError, "need scales"):
            self.runtime.quantized_grouped_gemm(a, b, ends, c)
        with self.assertRaisesRegex(greta.GretaError, "none, swiglu or geglu"):
            self.runtime.quantized_grouped_gemm(a, b, ends, c, scales=s, zeros=z, activation="silu")

    def test_quantized_grouped_gemm_of_panels(self):
        x, rows = values(12, 64).astype("float16"), RANDOM.integers(0, 256, (2, 32, 64)).astype("uint8")
        scales = (values(2, 32, 2) / 256).astype("float16")
        a, b, panels, s, ends = self.make(x, rows, in_panels(rows), scales, np.array([5, 12], "int32"))
        products = [self.runtime.empty((12, 32)) for _ in range(2)]
        for given, packing, c in zip((b, panels), ("rows", "panels"), products):
            self.runtime.quantized_grouped_gemm(a, given, ends, c, weights="int8", scales=s, packing=packing)
        np.testing.assert_array_equal(products[0].numpy(), products[1].numpy())
        each = rows.view("int8").reshape(2, 32, 2, 32) * scales[..., None].astype("float64")
        self.check(products[1], np.concatenate([x[:5].astype("float64") @ each[0].reshape(32, 64).T,
                                                x[5:].astype("float64") @ each[1].reshape(32, 64).T]))
        with self.assertRaisesRegex(greta.InvalidArgumentError, "^packing is 'awq'; there are rows, panels$"):
            self.runtime.quantized_grouped_gemm(a, b, ends, products[0], scales=s, packing="awq")

    def test_quantized_grouped_gemm_of_blocks_with_gates(self):
        x, (weights, blocks) = values(3, 6, 32), q8_0(3, 16, 32)
        a, b, rows = self.make(x, blocks, np.array([6, 0, 1], "int32"))
        c = self.runtime.tensor(np.full((3, 6, 8), 7, "float32"))
        self.runtime.quantized_grouped_gemm(a, b, rows, c, weights="q8_0", activation="swiglu")
        expected = np.full((3, 6, 8), 7.0)
        for group, count in ((0, 6), (2, 1)):
            products = x[group, :count].astype("float64") @ weights[group].T
            expected[group, :count] = silu(products[:, :8]) * products[:, 8:]
        self.check(c, expected)

    def of_fp8(self, *shape):
        """Returns bytes of e4m3 without NaN, and their numbers."""
        codes = RANDOM.integers(0, 126, shape).astype("uint8")
        exponents, mantissas = codes // 8, codes % 8
        numbers = np.where(exponents == 0, mantissas / 512, (1 + mantissas / 8) * 2.0 ** (exponents - 7.0))
        signs = RANDOM.integers(0, 2, shape).astype("uint8")
        return codes | signs << 7, np.where(signs == 1, -numbers, numbers)

    def test_scaled_grouped_gemm(self):
        """Scales of rows, and of tensors with gates."""
        (a8, a), (b8, b) = self.of_fp8(12, 48), self.of_fp8(3, 16, 48)
        of_a, of_b = (np.abs(values(lines, 1)) / 256 for lines in (12, 48))
        groups = np.array([5, 5, 11], "int32")
        products = [(a * of_a) @ (b[group] * of_b[group * 16:group * 16 + 16]).T for group in range(3)]
        expected = np.full((12, 16), 7.0)  # the last row is of no group
        expected[:5], expected[5:11] = products[0][:5], products[2][5:11]
        operands = self.make(a8, b8, of_a.astype("float32"), of_b.astype("float32"), groups)
        c = self.runtime.tensor(np.full((12, 16), 7, "float32"))
        self.runtime.scaled_grouped_gemm(*operands, c, scales="row")
        # Matrix cores add with 13 bits.
        np.testing.assert_allclose(c.numpy(), expected, rtol=2e-2, atol=2e-2 * np.abs(expected).max())
        each = np.full((3, 1), 1 / 64, "float32")
        c = self.runtime.tensor(np.full((12, 8), 7, "float32"))
        self.runtime.scaled_grouped_gemm(*operands[:2], *self.make(each, each), operands[4], c, activation="swiglu")
        expected = np.full((12, 8), 7.0)
        for group, own in ((0, slice(0, 5)), (2, slice(5, 11))):
            product = a[own] @ b[group].T / 4096
            expected[own] = silu(product[:, :8]) * product[:, 8:]
        np.testing.assert_allclose(c.numpy(), expected, rtol=2e-2, atol=2e-2 * np.abs(expected).max())
        with self.assertRaisesRegex(greta.GretaError, "none, swiglu or geglu"):
            self.runtime.scaled_grouped_gemm(*operands, c, scales="row", activation="silu")

    def test_scaled_experts(self):
        """Rows stay as they are: results have the error of f32. Scales of blocks, rows and tensors."""
        rows, chosen, shares = values(3, 32), np.array([[0, 2], [2, -1], [9, 1]], "int32"), values(3, 2)
        (gates8, gates), (downs8, downs) = self.of_fp8(3, 64, 32), self.of_fp8(3, 32, 32)
        x, ids, weights, gate_up, down = self.make(rows, chosen, shares, gates8, downs8)
        for sharing, lines in (("tensor", (1, 1)), ("row", (64, 32)), ("block", (1, 1))):
            scales = [(np.abs(values(3 * count, 1)) / 64 + 1 / 256).astype("float32") for count in lines]
            wide = [one.reshape(3, -1, 1).astype("float64") for one in scales]
            expected = of_experts(rows, chosen, shares, gates * wide[0], downs * wide[1])
            out = self.runtime.empty((3, 32))
            gate_up_scales, down_scales = self.make(*scales)
            self.runtime.experts(x, ids, weights, gate_up, down, out, sharing=sharing,
                                 gate_up_scales=gate_up_scales, down_scales=down_scales)
            np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
        with self.assertRaisesRegex(ValueError, "no format and no zero points"):
            self.runtime.experts(x, ids, weights, gate_up, down, out, sharing="row", format="q8_0")
        with self.assertRaisesRegex(greta.GretaError, "gate_up_scales"):
            self.runtime.experts(x, ids, weights, gate_up, down, out, sharing="row")
        with self.assertRaisesRegex(ValueError, "numbers: only with sharing"):
            self.runtime.experts(x, ids, weights, gate_up, down, out, numbers="int8")


class HipHostQuantised(OnEachDevice, Case):
    device = "hip-host:0"


class VulkanQuantised(OnEachDevice, Case):
    device = "vulkan:0"


if __name__ == "__main__":
    unittest.main()
