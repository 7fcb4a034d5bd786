"""Peers of operations on quantised numbers, and of sampling.

The rows of fp8 are padded to a multiple of 16 where torch refuses their number, its columns of weights always, rows of
int8 to 32 where there are up to 16, and columns of int8 and of int4pack to a multiple of 8. Such a peer's name ends in
`padded`; it computes the padding, too, but copies of operands are not timed.

Weights that torch has no product for are what a user of it writes: dequantised by a compiled function, then multiplied.
"""

import functools

from .calls import Calls, multiple
from .groups import ends_of_groups

LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "int8": 127.0}


class Quantized(Calls):
    """As in Floating."""

    def fp8(self, *sizes):
        return (self.torch.rand(*sizes, device=self.device, dtype=self.torch.bfloat16) - 0.5).to(self.torch.float8_e4m3fn)

    def scaled_gemm(self, d, a, dtype):
        form, scales, rows = a.get("format", "e4m3"), a.get("scales", "tensor"), d["m"]
        if scales == "mx":
            return []  # torch multiplies these on sm_100 alone
        if form == "int8" and scales != "block":
            rows = 32 if rows <= 16 else rows
            makers = [functools.partial(self.int_mm, d, m, scales, dtype) for m in dict.fromkeys((rows, multiple(rows, 16)))]
        elif form == "e4m3":
            # Versions of torch differ in whether the scales of a row of blocks are padded to 16 bytes.
            makers = [functools.partial(self.scaled_mm, d, m, scales, step, dtype)
                      for m in dict.fromkeys((rows, multiple(rows, 16))) for step in ((4, 1) if scales == "block" else (1,))]
        else:
            return []  # torch multiplies neither e5m2 by e5m2, nor int8 with scales of blocks
        return self.accepted(makers)

    def scaled_mm(self, d, m, scales, step, dtype):
        n, k = multiple(d["n"], 16), d["k"]
        x, w = self.fp8(m, k), self.fp8(n, k).t()
        if scales == "block":
            steps = multiple(k, 128) // 128
            scales_x = self.scales(steps, m).t()
            scales_w = self.scales(multiple(n, 128) // 128, multiple(steps, step))[:, :steps].t()
        elif scales == "row":
            scales_x, scales_w = self.scales(m, 1), self.scales(1, n)
        else:
            scales_x, scales_w = self.scales(1), self.scales(1)
        name = "torch._scaled_mm" + (" padded" if (m, n) != (d["m"], d["n"]) else "")
        return [(name, lambda: self.torch._scaled_mm(x, w, scales_x, scales_w, out_dtype=dtype))]

    def int_mm(self, d, m, scales, dtype):
        n, k = multiple(d["n"], 8), d["k"]
        x, w = (self.integers(-127, 128, lines, k, dtype=self.torch.int8) for lines in (m, n))
        scales_x, scales_w = (self.scales(m, 1), self.scales(1, n)) if scales == "row" else (self.scales(1), self.scales(1))

        def run(x, w, scales_x, scales_w):
            return (self.torch._int_mm(x, w.t()).float() * scales_x * scales_w).to(dtype)
        return self.both(run, x, w, scales_x, scales_w,
                         name=" _int_mm, scaled" + (" padded" if (m, n) != (d["m"], d["n"]) else ""))

    def weights(self, a, *lines, k, dtype):
        """Returns the function that dequantises int4 or int8 in groups to dtype, and its operands, of [lines…, k] weights."""
        group, small, zeros = int(a.get("group", 128)), a.get("weights", "int4") == "int4", a.get("zeros") == "groups"
        signed = not small and not zeros
        codes = self.integers(-127 if signed else 0, 128 if signed else 256, *lines, k // 2 if small else k,
                              dtype=self.torch.int8 if signed else self.torch.uint8)
        scales = self.scales(*lines, k // group, dtype=dtype if dtype.itemsize == 2 else self.torch.float16)
        zero_points = [self.integers(0, 16 if small else 256, *lines, k // group, dtype=self.torch.uint8)] if zeros else []
        return self.decoder(a, *lines, k=k, dtype=dtype), [codes, scales, *zero_points]

    def decoder(self, a, *lines, k, dtype):
        """Returns the function that dequantises operands of [lines…, k] weights."""
        group, small, zeros = int(a.get("group", 128)), a.get("weights", "int4") == "int4", a.get("zeros") == "groups"

        def dequantise(codes, scales, *zero_points):
            if small:
                codes = self.torch.stack((codes & 15, codes >> 4), -1)
            zero = zero_points[0].unsqueeze(-1).to(dtype) if zeros else 8 if small else 0
            weights = (codes.reshape(*lines, k // group, group).to(dtype) - zero) * scales.unsqueeze(-1)
            return weights.to(dtype).reshape(*lines, k)
        return dequantise

    def has_weights_of_torch(self, a):
        return a.get("weights", "int4") in ("int4", "int8") and not {"epilogue", "prologue", "form"} & a.keys()

    def quantized_gemm(self, d, a, dtype):
        if not self.has_weights_of_torch(a):
            return []
        m, n, k = d["m"], d["n"], d["k"]
        x = self.tensor(m, k, dtype=dtype)
        dequantise, operands = self.weights(a, n, k=k, dtype=dtype)
        product = self.compiled(lambda x, *weights: x @ dequantise(*weights).t())
        peers = [("torch.compile dequantise, mm", lambda: product(x, *operands))]
        if a.get("weights", "int4") == "int4" and dtype == self.torch.bfloat16:
            peers.append(self.int4pack(x, m, n, k, int(a.get("group", 128))))
        return peers

    def int4pack(self, x, m, n, k, group):
        """It subtracts 8 and adds a number for each group, which stands for any zero point."""
        columns = multiple(n, 8)
        tiles = next(tiles for tiles in (8, 4, 2) if k % (tiles * 16) == 0)
        pack, multiply = (getattr(self.torch.ops.aten, name) for name in ("_convert_weight_to_int4pack", "_weight_int4pack_mm"))
        packed = pack(self.integers(0, 256, columns, k // 2, dtype=self.torch.uint8), tiles)
        scales = self.scales(k // group, columns, 2, dtype=self.torch.bfloat16)
        return "torch int4pack" + (" padded" if columns != n else ""), lambda: multiply(x, packed, group, scales)

    def ends(self, d, a):
        return self.torch.tensor(ends_of_groups(d["groups"], d["m"], a.get("routing")), device=self.device,
                                 dtype=self.torch.int32)

    def scaled_grouped_gemm(self, d, a, dtype):
        """A scale of a group's operand is that of each of its rows, as torch takes them."""
        if a.get("format", "e4m3") != "e4m3" or {"epilogue", "form"} & a.keys():
            return []  # no call of torch
        if a.get("scales") == "block":
            return self.one_by_one(d, a, dtype)
        groups, m, n, k = d["groups"], d["m"], multiple(d["n"], 16), d["k"]
        x, w = self.fp8(m, k), self.fp8(groups, n, k).transpose(1, 2)
        scales_x, scales_w, ends = self.scales(m), self.scales(groups, n), self.ends(d, a)
        name = "torch._scaled_grouped_mm" + (" padded" if n != d["n"] else "")
        return [(name, lambda: self.torch._scaled_grouped_mm(x, w, scales_x, scales_w, offs=ends, out_dtype=dtype))]

    def one_by_one(self, d, a, dtype):
        """A product for each group that has rows, whose numbers the host knows."""
        ends = ends_of_groups(d["groups"], d["m"], a.get("routing"))
        rows = [end - begin for begin, end in zip([0, *ends], ends) if end > begin]
        made = [self.scaled_gemm({"m": m, "n": d["n"], "k": d["k"]}, {"scales": "block"}, dtype)[0] for m in rows]
        padded = any(name.endswith("padded") for name, _ in made)
        return [("torch._scaled_mm of each group" + (" padded" if padded else ""), lambda: [run() for _, run in made])]

    def quantized_grouped_gemm(self, d, a, dtype):
        if not self.has_weights_of_torch(a) or dtype != self.torch.bfloat16:
            return []  # of other types torch multiplies one group after the other
        x, ends = self.tensor(d["m"], d["k"], dtype=dtype), self.ends(d, a)
        dequantise, operands = self.weights(a, d["groups"], d["n"], k=d["k"], dtype=dtype)
        compiled = self.compiled(dequantise)
        return [("torch.compile dequantise, _grouped_mm",
                 lambda: self.torch._grouped_mm(x, compiled(*operands).transpose(1, 2), offs=ends))]

    def quantize(self, d, a, dtype):
        form, scales, fused = a.get("format", "e4m3"), a.get("scales", "row"), a.get("fused", "none")
        rows, cols = d["rows"], d["cols"]
        if form not in LARGEST or {"x_stride", "q_stride"} & a.keys() or (scales == "block" and cols % 128 != 0) or scales == "mx":
            return []
        largest, packed = LARGEST[form], fused == "silu_mul" and a.get("layout") == "packed"
        types = {"e4m3": self.torch.float8_e4m3fn, "e5m2": self.torch.float8_e5m2, "int8": self.torch.int8}
        x, other = self.tensor(rows, 2 * cols if packed else cols, dtype=dtype), self.tensor(rows, cols, dtype=dtype)
        weight, bias, given = self.tensor(cols, dtype=dtype), self.tensor(cols, dtype=dtype), self.scales(1)
        affine = {"weight_bias": (weight, bias), "weight": (weight, None), "none": (None, None)}[a.get("affine", "weight_bias")]

        def fuse(x, other, weight):
            if fused == "silu_mul":
                gate, up = (x[:, :cols], x[:, cols:]) if packed else (x, other)
                return None, self.functional.silu(gate.float()) * up.float()
            if fused == "layernorm":
                one, two = (part if part is None else part.float() for part in affine)
                return None, self.functional.layer_norm(x.float(), (cols,), one, two)
            total = x.float() + other.float() if fused == "add_rmsnorm" else x.float()
            if fused == "none":
                return None, total
            return total.to(dtype), total * (total.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * weight.float()

        def run(x, other, weight, given):
            total, y = fuse(x, other, weight)
            y = y.reshape(rows, -1, 128 if scales == "block" else cols)
            scale = given if scales == "tensor" else y.abs().amax(-1, keepdim=True).clamp(min=2.0 ** -126) / largest
            q = (y / scale).clamp(-largest, largest)
            q = (q.round() if form == "int8" else q).to(types[form]).reshape(rows, cols)
            return q, scale, total if fused == "add_rmsnorm" else None
        return self.both(run, x, other, weight, given)

    def sample(self, d, a, dtype):
        """Draws from the fewest of the largest probabilities whose sum reaches 0.9, with which GRETA measures."""
        if d.get("history", 0) or a:
            return []
        x = self.tensor(d["rows"], d["cols"], dtype=dtype)

        def run(x):
            values, order = self.torch.softmax(x.float(), -1).sort(-1, descending=True)
            kept = values.masked_fill(values.cumsum(-1) - values > 0.9, 0.0)
            return order.gather(-1, self.torch.multinomial(kept, 1))
        return self.both(run, x)
