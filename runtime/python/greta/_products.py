"""The operations that multiply matrices, and those that convert their operands."""

from __future__ import annotations

from . import _choices
from ._calls import Calls, Operand
from .tensor import choose


class Products(Calls):
    """Methods of Operations."""

    def gemm(self, a: Operand, b: Operand, c: Operand, *, layout: str = "nn",
             activation: str = "none", alpha: float = 1.0, beta: float = 0.0,
             bias: Operand | None = None, residual: Operand | None = None,
             norm_weight: Operand | None = None, norm_epsilon: float = 1e-5,
             tf32x3: bool = False, packing: str = "rows") -> None:
        """C = act(alpha norm(A) B + bias + residual + beta C)

        layout: "nn", "nt" (B is transposed), "tn" (A is) or "tt". activation: "none", "silu", "gelu",
        or gated "swiglu" and "geglu", where the first half of B's columns are gates. norm_weight:
        A, of at most 8 rows, is replaced by its rmsnorm. tf32x3: products of f32 may be computed as
        three of TF32, within the bound of f32. packing "panels": b, of f16 or bf16 with layout "nt",
        lies in panels of 16 rows, and has the shape of rows. If b has three dimensions, the first is
        that of a batch, as in a and c."""
        self._call("gemm", {"a": a, "b": b, "c": c}, options={
            "layout": choose(_choices.LAYOUTS, layout, "layout"),
            "activation": choose(_choices.ACTIVATIONS, activation, "activation"),
            "alpha": alpha, "beta": beta, "bias": bias, "residual": residual,
            "norm_weight": norm_weight, "norm_epsilon": norm_epsilon, "tf32x3": tf32x3,
            "packing": 4 * choose(("rows", "panels"), packing, "packing")})

    def grouped_gemm(self, a: Operand, b: Operand, groups: Operand, c: Operand, *,
                     layout: str = "nt", activation: str = "none") -> None:
        """C = A B[group] for groups of rows, with b [groups, n, k] (layout "nn": [groups, k, n])

        a [rows, k], c [rows, n]: groups i32 [groups] has the row after each group's last.
        a [groups, most, k], c [groups, most, n]: it has the number of rows of each group that
        count. Other rows of c stay as they are. activation: "none", or with b [groups, 2 n, k], a
        group's gates and then its ups, "swiglu" or "geglu"."""
        self._call("grouped_gemm", {"a": a, "b": b, "groups": groups, "c": c},
                   choose(_choices.LAYOUTS, layout, "layout"),
                   choose(_choices.ACTIVATIONS, activation, "activation"))

    def quantized_gemm(self, a: Operand, b: Operand, c: Operand, *, weights: str = "int4",
                       scales: Operand | None = None, zeros: Operand | None = None,
                       bias: Operand | None = None, residual: Operand | None = None,
                       activation: str = "none", norm_weight: Operand | None = None,
                       norm_epsilon: float = 1e-5, rounded_weights: bool = False,
                       packing: str = "rows") -> None:
        """C = A W^T + bias + residual with quantised weights W [n, k], whose rows are those of b, u8
        [n, bytes]. bias [n] and residual [.., n] are of c's type. activation="swiglu": C [.., n] =
        silu(gate) * up, and b has 2 n rows, those of gates first. At most one of the three is given. norm_weight [k]:
        a, of at most 8 rows, is replaced by its RMS norm with this weight. rounded_weights: weights may be
        rounded to a's type, of 16 bits, before they are multiplied.

        int4, int8: scales [n, groups] (bf16 if a is, else f16) and zero points u8 [n, groups] are
        beside them, W = scale (b - zero); without zeros, int4 has the zero point 8, and int8 is
        signed. mxfp4: numbers of four bits (e2m1), with scales u8 [n, k / 32] (e8m0) beside them.
        q4_0, q8_0, q4_k, q6_k: the blocks of GGUF files, which hold their scales. packing "panels": b
        has panels of 16 rows, of int4, int8 or mxfp4. "awq", "gptq", "gptq_v2": b, scales and zeros are
        qweight (at a multiple of 16 bytes), scales and qzeros as of repack_weights; few variants read them."""
        self._call("quantized_gemm_fused", {"a": a, "b": b, "c": c}, options={
            "weights": choose(_choices.WEIGHTS, weights, "weights"),
            "activation": choose(_choices.ACTIVATIONS, activation, "activation"),
            "scales": scales, "zeros": zeros, "bias": bias, "residual": residual,
            "norm_weight": norm_weight, "norm_epsilon": norm_epsilon,
            "rounded_weights": rounded_weights,
            "packing": choose(_choices.PACKINGS, packing, "packing")})

    def quantized_grouped_gemm(self, a: Operand, b: Operand, groups: Operand, c: Operand, *,
                               weights: str = "int4", scales: Operand | None = None,
                               zeros: Operand | None = None, activation: str = "none", packing: str = "rows") -> None:
        """C = A W[group]^T for groups of rows as in grouped_gemm, of which each has quantised weights:
        b is u8 [groups, n, bytes]

        weights, scales and zeros are those of quantized_gemm, for each group: [groups, n, ..].
        activation: "none", or with b [groups, 2 n, bytes], a group's gates and then its ups,
        "swiglu" or "geglu". packing "panels": b has panels of 16 rows, of int4, int8 or mxfp4."""
        self._call("quantized_grouped_gemm", {"a": a, "b": b, "groups": groups, "c": c}, options={
            "weights": choose(_choices.WEIGHTS, weights, "weights"),
            "activation": choose(_choices.ACTIVATIONS, activation, "activation"),
            "scales": scales, "zeros": zeros, "packing": 4 * choose(("rows", "panels"), packing, "packing")})

    def scaled_gemm(self, a: Operand, b: Operand, scales_a: Operand, scales_b: Operand, c: Operand,
                    *, numbers: str = "e4m3", scales: str = "tensor",
                    numbers_b: str | None = None) -> None:
        """C = (scales_a A) (scales_b B)^T with A [.., k] and B [n, k] of u8, whose bytes are numbers:
        "e4m3", "e5m2", "e4m3_fnuz", "e5m2_fnuz" or "int8". k is a multiple of 16.
        Scales are f32. scales="tensor": [1, 1] each; "row": [m, 1] and [n, 1]; "block": [m, ceil(k /
        128)] and [ceil(n / 128), ceil(k / 128)].

        scales="mx": "e4m3", "e5m2", or "e2m1", two in a byte, the even one in its lower half, with scales
        u8 [m, k / 32] and [n, k / 32], e8m0 (MX 1.0). numbers_b: of B then; None: as A."""
        if numbers_b is not None and scales != "mx":
            raise ValueError('numbers_b is given with scales="mx"')
        mx = scales == "mx"
        self._call("mx_gemm" if mx else "scaled_gemm",
                   {"a": a, "b": b, "scales_a": scales_a, "scales_b": scales_b, "c": c},
                   choose(_choices.NUMBERS, numbers, "numbers"),
                   choose(_choices.NUMBERS, numbers_b or numbers, "numbers_b") if mx
                   else choose(_choices.SCALES, scales, "scales"))

    def scaled_grouped_gemm(self, a: Operand, b: Operand, scales_a: Operand, scales_b: Operand,
                            groups: Operand, c: Operand, *, numbers: str = "e4m3",
                            scales: str = "tensor", activation: str = "none") -> None:
        """C = (scales_a A) (scales_b B[group])^T for groups of rows as in grouped_gemm, with b of u8
        [groups, n, k] and numbers as in scaled_gemm

        Scales are f32. scales="tensor": [groups, 1] each; "row": [rows of a, 1] and [groups * n, 1];
        "block": [rows of a, ceil(k / 128)] and [groups * ceil(n / 128), ceil(k / 128)]. activation:
        "none", or with b [groups, 2 n, k], a group's gates and then its ups, "swiglu" or "geglu"; then
        2 n takes the place of n."""
        self._call("scaled_grouped_gemm",
                   {"a": a, "b": b, "scales_a": scales_a, "scales_b": scales_b, "groups": groups,
                    "c": c},
                   choose(_choices.NUMBERS, numbers, "numbers"),
                   choose(_choices.SCALES, scales, "scales"),
                   choose(_choices.ACTIVATIONS, activation, "activation"))

    def quantize(self, x: Operand, q: Operand, scales: Operand, *, numbers: str = "e4m3",
                 sharing: str = "row", weight: Operand | None = None,
                 residual: Operand | None = None, sum: Operand | None = None,
                 up: Operand | None = None, layernorm: bool = False,
                 bias: Operand | None = None, epsilon: float = 1e-5) -> None:
        """q = y / scale and its scales, as scaled_gemm reads A. q is u8 [.., cols], whose bytes are
        numbers as in scaled_gemm; cols is a multiple of 4. y is x; with a weight rmsnorm(x); with
        residual and sum, too, sum = x + residual and y = rmsnorm(sum); with layernorm=True
        layernorm(x), whose weight and bias may be given; with `up` silu(x) * up; an x [.., 2 cols]
        holds gate, then up.

        Scales are f32. sharing="row": [rows, 1]; "block": [rows, ceil(cols / 128)]; "tensor": [1,
        1], which is read; "mx": u8 [rows, cols / 32] as of scaled_gemm, and q of "e2m1" [.., cols / 2]."""
        if up is not None and (weight is not None or residual is not None):
            raise ValueError("up is given without weight and residual")
        if residual is not None and weight is None:
            raise ValueError("a residual is given with a weight")
        rest = (choose(_choices.NUMBERS, numbers, "numbers"),
                choose(_choices.SCALES, sharing, "sharing"), epsilon)
        if layernorm:
            if any(one is not None for one in (residual, sum, up)):
                raise ValueError("layernorm has no residual, sum and up")
            self._call("quantize_layernorm",
                       {"x": x, "weight": weight, "bias": bias, "q": q, "scales": scales}, *rest)
            return
        if bias is not None:
            raise ValueError("bias is given with layernorm=True")
        self._call("quantize", {"x": x, "other": up if residual is None else residual,
                                "weight": weight, "sum": sum, "q": q, "scales": scales}, *rest)

    def dequantize(self, b: Operand, out: Operand, *, weights: str = "int4",
                   scales: Operand | None = None, zeros: Operand | None = None, packing: str = "rows") -> None:
        """out [n, k] = the numbers that b stands for, u8 lines as of quantized_gemm, or with packing "panels" panels."""
        self._call(("dequantize", "dequantize_panels")[choose(("rows", "panels"), packing, "packing")],
                   {"b": b, "scales": scales, "zeros": zeros, "out": out},
                   choose(_choices.WEIGHTS, weights, "weights"))

    def repack_weights(self, qweight: Operand, qscales: Operand | None, b: Operand,
                       scales: Operand | None, *, packing: str = "awq", weights: str = "int4",
                       qzeros: Operand | None = None, zeros: Operand | None = None,
                       order: Operand | None = None, to: str = "rows") -> None:
        """b u8 [n, bytes], scales [n, groups] and zeros u8 [n, groups], as quantized_gemm takes them,
        from checkpoints of AWQ and GPTQ: packing "awq", "gptq" or "gptq_v2", weights "int4" or, of
        GPTQ, "int8". qweight is i32, [k, n / 8] of "awq", else [k / 8, n] or with "int8" [k / 4, n];
        qscales [groups, n]; qzeros i32 [groups, n / 8], or with "int8" [groups, n / 4]. Without qzeros
        and zeros, zero points are 8, with "int8" 128. order, i32 [k]: weight i of each row is the
        stored weight order[i]; a's columns need the same order.

        to="panels": b has panels of 16 rows, units of 16 bytes of each row in turn, with packing="rows"
        of rows, qweight u8 [n, bytes] or numbers [n, k], or [groups, n, ..] of these; others are None."""
        panels = choose(("rows", "panels"), to, "to")
        self._call(("repack_weights", "repack_to_panels")[panels],
                   {"qweight": qweight, "qscales": qscales, "qzeros": qzeros, "order": order, "b": b,
                    "scales": scales, "zeros": zeros},
                   1 - panels + choose(_choices.PACKINGS[1 - panels:4], packing, "packing"),
                   choose(_choices.WEIGHTS, weights, "weights"))
