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
        numbers = self.runtime.empty((64, 32))
        b, s, z = self.make(integers[0][1][:, 0::2] | integers[0][1][:, 1::2] << 4, scales[0][1], zeros[0][1])
        self.runtime.dequantize(b, numbers, scales=s, zeros=z)
        self.check(numbers, gates[1])
        with self.assertRaisesRegex(ValueError, "dense matrices have no scales"):
            self.runtime.experts(x, ids, weights, *packed, out, down_scales=down_scales)

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


class HipHostQuantised(OnEachDevice, Case):
    device = "hip-host:0"


class VulkanQuantised(OnEachDevice, Case):
    device = "vulkan:0"


if __name__ == "__main__":
    unittest.main()
