"""The operations of greta.h (docs/kernels.md) as methods of runtimes, queues and pipelines."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Sequence, Union

from . import _choices
from ._abi import WEIGHTS
from ._library import runtime_library
from .tensor import Tensor, choose, wrap

if TYPE_CHECKING:
    from .runtime import Runtime

# A tensor, or an object whose memory is used in place (Runtime.wrap()).
Operand = Union[Tensor, Any]


class Operations:
    """Receives operations: a queue and a runtime run them immediately, a pipeline records them.

    Operands are tensors, or objects with DLPack, __cuda_array_interface__ or a buffer whose memory
    the device can use in place. Outputs are operands too; nothing is allocated.
    """

    _runtime: Runtime
    _receiver: Any
    _stream: int | None  # for which libraries of other operands wait

    def _recorded(self) -> None:
        """Called after each operation."""

    def _operand(self, given: Operand | None, name: str) -> Tensor | None:
        if given is None or isinstance(given, Tensor):
            return given
        return wrap(self._runtime, self._runtime._handle, given, self._stream, name)

    def _call(self, name: str, operands: dict[str, Operand | None], *rest: Any,
              options: dict[str, Any] | None = None) -> None:
        """Calls an operation. `options` are the fields of its struct; tensors among them are
        operands."""
        library = runtime_library()
        held = [self._operand(given, key) for key, given in operands.items()]
        arguments = [one._handle if one is not None else None for one in held]
        if options is not None:
            kind = {"layernorm": "norm", "rmsnorm": "norm", "add_rmsnorm": "norm",
                    "layernorm_rmsnorm": "norm", "quantized_gemm_fused": "quantized_gemm"}.get(name, name)
            struct = getattr(library, f"greta_{kind}_defaults")()
            fields = dict(struct._fields_)
            for key, value in options.items():
                if fields[key] is ctypes.c_void_p:
                    held.append(self._operand(value, key))
                    value = held[-1]._handle if held[-1] is not None else None
                setattr(struct, key, value)
            rest += (ctypes.byref(struct),)
        library.call("greta_" + name, self._receiver, *arguments, *rest)
        self._recorded()

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

    def add(self, a: Operand, b: Operand, out: Operand) -> None:
        """out = a + b"""
        self._call("add", {"a": a, "b": b, "out": out})

    def silu_mul(self, gate: Operand, up: Operand, out: Operand) -> None:
        """out = silu(gate) * up"""
        self._call("silu_mul", {"gate": gate, "up": up, "out": out})

    def silu_mul_packed(self, x: Operand, out: Operand) -> None:
        """out = silu(gate) * up, where each row of x holds gate, then up"""
        self._call("silu_mul_packed", {"x": x, "out": out})

    def gelu(self, x: Operand, out: Operand, *, form: str = "tanh") -> None:
        """out = gelu(x); form: "tanh" or "erf" """
        self._call("gelu", {"x": x, "out": out}, choose(_choices.FORMS, form, "form"))

    def rope(self, x: Operand, positions: Operand, table: Operand, out: Operand, *,
             pairs: str = "interleaved") -> None:
        """Rotary embedding of x [tokens, heads, dim] at positions i32 [tokens], with table f32
        [positions, dim]; out may be x. pairs: "interleaved" or "half"."""
        self._call("rope", {"x": x, "positions": positions, "table": table, "out": out},
                   choose(_choices.PAIRS, pairs, "pairs"))

    def kv_update(self, k: Operand, v: Operand, position: Operand, k_cache: Operand,
                  v_cache: Operand, *, block_table: Operand | None = None) -> None:
        """Writes k, v [tokens, kv_heads, dim] to caches [kv_heads, capacity, dim] from slot
        `position` (i32) on; with a block table i32 [pages of the sequence], to caches [pages,
        kv_heads, page, dim]."""
        if block_table is None:
            return self._call("kv_update", {"k": k, "v": v, "position": position,
                                            "k_cache": k_cache, "v_cache": v_cache})
        return self._call("kv_update_pages", {"k": k, "v": v, "position": position,
                                              "block_table": block_table, "k_cache": k_cache,
                                              "v_cache": v_cache})

    def rope_append(self, q: Operand, k: Operand, v: Operand, positions: Operand, table: Operand,
                    slots: Operand, k_cache: Operand, v_cache: Operand, out: Operand, *,
                    pairs: str = "interleaved", epsilon: float = 1e-5,
                    q_norm: Operand | None = None, k_norm: Operand | None = None,
                    block_table: Operand | None = None) -> None:
        """rope of q [batch, tokens, heads, dim] to out, which may be q, and of k; kv_update with
        the rotated k and with v. q_norm, k_norm [dim]: weights of RMS norms of the heads."""
        self._call("rope_append", {
            "q": q, "k": k, "v": v, "positions": positions, "table": table, "slots": slots,
            "k_cache": k_cache, "v_cache": v_cache, "out": out}, options={
                "pairs": choose(_choices.PAIRS, pairs, "pairs"), "epsilon": epsilon, "q_norm": q_norm,
                "k_norm": k_norm, "block_table": block_table})

    def embedding(self, ids: Operand, table: Operand, out: Operand) -> None:
        """out [tokens, dim] = the rows of table [vocabulary, dim] with numbers ids i32 [tokens]"""
        self._call("embedding", {"ids": ids, "table": table, "out": out})

    def gather_columns(self, ids: Operand, x: Operand, out: Operand) -> None:
        """out [.., cols] = the columns of x [.., width] with numbers ids i32 [cols]"""
        self._call("gather_columns", {"ids": ids, "x": x, "out": out})

    def argmax(self, x: Operand, index: Operand) -> None:
        """index i32 [rows] = the column of each row's largest element"""
        self._call("argmax", {"x": x, "index": index})

    def sample(self, x: Operand, settings: Operand, seeds: Operand, token: Operand, *,
               penalties: Operand | None = None, history: Operand | None = None) -> None:
        """token i32 [rows] = one that is drawn from each row of logits x [.., cols]

        settings f32 [rows, 4]: temperature (0: the largest logit), top_k (0: off), top_p (1: off)
        and min_p (0: off). seeds i32 [rows, 3]: a seed's two words and an offset, such as the
        token's position. penalties f32 [rows, 3], repetition (1: off), frequency and presence (0:
        off), change x in place for the tokens of history i32 [rows, tokens]."""
        self._call("sample", {"x": x, "settings": settings, "seeds": seeds,
                              "penalties": penalties, "history": history, "token": token})

    def route(self, logits: Operand, ids: Operand, weights: Operand, *, score: str = "softmax",
              renormalise: bool = True, bias: Operand | None = None, scale: float = 1.0,
              groups: int = 1, top_groups: int = 1) -> None:
        """ids i32 [.., top_k] = the experts of each token by logits [.., experts], the largest
        first; weights f32 [.., top_k] = their scores times scale

        score: "softmax" or "sigmoid". renormalise: scores are divided by the sum of the token's.
        bias f32 [experts]: experts are selected by score + bias. groups: the best
        top_groups of these groups of neighbouring experts have a token's experts."""
        self._call("route", {"logits": logits, "ids": ids, "weights": weights}, options={
            "sigmoid": choose(_choices.SCORES, score, "score"), "renormalise": int(renormalise),
            "bias": bias, "scale": scale, "groups": groups, "top_groups": top_groups})

    def permute(self, x: Operand, ids: Operand, out: Operand, groups: Operand, places: Operand, *,
                block: int = 1) -> None:
        """Copies rows of x [.., dim] to the experts of ids i32 [.., top_k], as grouped_gemm takes
        them; places i32 [.., top_k] receives the row of out of each, or -1

        out [rows, dim]: experts' rows one after the other, their numbers rounded up to a multiple
        of block by rows of zeros; groups i32 [experts] receives the row after each one's last. out
        [experts, capacity, dim]: groups receives the number of rows of each that count."""
        self._call("permute", {"x": x, "ids": ids, "out": out, "groups": groups, "places": places},
                   block)

    def unpermute(self, y: Operand, places: Operand, weights: Operand, out: Operand) -> None:
        """out [.., dim] = the sum of the rows of y [.., dim] at places i32 [.., top_k], times
        weights f32 [.., top_k]"""
        self._call("unpermute", {"y": y, "places": places, "weights": weights, "out": out})

    def experts(self, x: Operand, ids: Operand, weights: Operand, gate_up: Operand, down: Operand,
                out: Operand, *, format: str = "dense", gate_up_scales: Operand | None = None, down_scales: Operand | None = None,
                gate_up_zeros: Operand | None = None, down_zeros: Operand | None = None, down_format: str | None = None,
                numbers: str | None = None, sharing: str | None = None, packing: str = "rows") -> None:
        """out [.., dim] = the sum over each token's experts, ids i32 [.., top_k], of weights f32 [..,
        top_k] times down (silu(gate x) * (up x)), for up to 64 tokens

        gate_up [experts, 2 hidden, dim] has each expert's gates and then its ups, down is [experts,
        dim, hidden]. An id that is not below experts adds nothing, nor does a weight of 0. format:
        one of the weights of quantized_gemm, whose rows of b are u8 lines of both then; "int4" and
        "int8" have scales [experts, 2 hidden, groups] and [experts, dim, groups], and may have zero
        points u8 like these; "mxfp4" has such scales u8, of groups of 32. packing "panels": both have
        panels of 16 lines, of these three. down_format: of down, where both are in blocks; None: as format.

        sharing: "tensor", "row" or "block" of matrices u8 whose bytes are numbers as in scaled_gemm,
        by default "e4m3"; gate_up_scales and down_scales are f32 as scales_b of scaled_grouped_gemm
        then, of groups for experts. dim and hidden are multiples of 16. None: matrices are not scaled,
        and numbers is not given."""
        beside = {"gate_up_scales": gate_up_scales, "down_scales": down_scales,
                  "gate_up_zeros": gate_up_zeros, "down_zeros": down_zeros}
        panels = choose(("rows", "panels"), packing, "packing")
        if panels and format == "dense":
            raise ValueError("packing panels: needs format int4, int8 or mxfp4")
        if sharing is not None:
            if format != "dense" or any(one is not None for one in (gate_up_zeros, down_zeros, down_format)):
                raise ValueError("scaled matrices have no format and no zero points")
            self._call("scaled_experts",
                       {"x": x, "ids": ids, "weights": weights, "gate_up": gate_up, "gate_up_scales": gate_up_scales,
                        "down": down, "down_scales": down_scales, "out": out},
                       choose(_choices.NUMBERS, "e4m3" if numbers is None else numbers, "numbers"),
                       choose(_choices.SCALES, sharing, "sharing"))
            return
        if numbers is not None:
            raise ValueError("numbers: only with sharing, of scaled matrices")
        operands = {"x": x, "ids": ids, "weights": weights, "gate_up": gate_up, "down": down, "out": out}
        if format == "dense":
            if down_format is not None or any(one is not None for one in beside.values()):
                raise ValueError("dense matrices have no scales, zero points or formats")
            self._call("experts", operands)
            return
        self._call("quantized_experts", operands, options={
            "weights": choose(_choices.WEIGHTS, format, "format"),
            "down_weights": WEIGHTS["GRETA_SAME_WEIGHTS"] if down_format is None
            else choose(_choices.WEIGHTS, down_format, "down_format"),
            "packing": 4 * panels, **beside})

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

    def attention(self, q: Operand, k: Operand, v: Operand, lengths: Operand | None, out: Operand,
                  *, scale: float = 0.0, causal: bool = False, window: int = 0,
                  softcap: float = 0.0, sinks: Operand | None = None, lse: Operand | None = None,
                  block_table: Operand | None = None, cu_seqlens_q: Operand | None = None,
                  cu_seqlens_k: Operand | None = None, ragged: bool = False,
                  tree: Operand | None = None) -> None:
        """Attention of q [batch, q, heads, dim] over k, v [batch, kv_heads, capacity, dim] of
        lengths i32 [batch]. scale 0: 1 / sqrt(dim). window: keys that a causal query attends to,
        0: all. softcap: limit of the scores, 0: none. sinks f32 [heads]. lse f32 [batch, q, heads]
        receives log-sum-exps. block_table: k and v are in pages. cu_seqlens_q, cu_seqlens_k i32
        [sequences + 1]: packed sequences, without lengths. ragged: lengths differ. tree i32
        [batch, q, ceil(q / 32)]: queries are the tokens of a tree, whose keys are the last q; each
        sees the keys before these, its own, and token j's if bit j % 32 of word j / 32 is set."""
        self._call("attention", {"q": q, "k": k, "v": v, "lengths": lengths, "out": out}, options={
            "scale": scale, "causal": int(causal), "window": window, "softcap": softcap,
            "sinks": sinks, "lse": lse, "block_table": block_table, "cu_seqlens_q": cu_seqlens_q,
            "cu_seqlens_k": cu_seqlens_k, "ragged": int(ragged), "tree": tree})

    def latent_attention(self, q: Operand, cache: Operand, lengths: Operand, out: Operand, *,
                         scale: float = 0.0, causal: bool = False, tree: Operand | None = None,
                         lse: Operand | None = None, block_table: Operand | None = None,
                         ragged: bool = False) -> None:
        """Multi-head latent attention in its absorbed form: q [batch, q, heads, latent + rope] over
        a cache of all heads [batch, capacity, latent + rope], whose rows are keys, and their first
        elements values; out [batch, q, heads, latent]; lengths i32 [batch]. scale 0: 1 /
        sqrt(latent + rope). The other options are those of attention."""
        operands = {"q": q, "cache": cache, "lengths": lengths, "out": out}
        self._call("latent_attention", operands, options={
            "scale": scale, "causal": int(causal), "tree": tree, "lse": lse,
            "block_table": block_table, "ragged": int(ragged)})

    def attention_merge(self, outs: Operand, lses: Operand, out: Operand,
                        lse: Operand | None = None) -> None:
        """Joins partial results of attention, outs [parts, .., heads, dim], by their log-sum-exps,
        lses f32 [parts, .., heads]; lse receives those of all parts."""
        self._call("attention_merge", {"outs": outs, "lses": lses, "out": out, "lse": lse})

    def softmax(self, x: Operand, y: Operand, *, scale: float = 1.0, causal: bool = False,
                mask: Operand | None = None) -> None:
        """y = softmax of each row of scale x + mask; y may be x. causal: row r attends to columns
        up to r mod cols."""
        self._call("softmax", {"x": x, "y": y},
                   options={"scale": scale, "causal": int(causal), "mask": mask})

    def layernorm(self, x: Operand, y: Operand, *, weight: Operand | None = None,
                  bias: Operand | None = None, epsilon: float = 1e-5) -> None:
        """y = layernorm(x)"""
        self._call("layernorm", {"x": x, "y": y},
                   options={"weight": weight, "bias": bias, "epsilon": epsilon})

    def rmsnorm(self, x: Operand, y: Operand, *, weight: Operand | None = None,
                epsilon: float = 1e-5) -> None:
        """y = rmsnorm(x)"""
        self._call("rmsnorm", {"x": x, "y": y}, options={"weight": weight, "epsilon": epsilon})

    def add_rmsnorm(self, x: Operand, residual: Operand, sum: Operand, y: Operand, *,
                    weight: Operand | None = None, epsilon: float = 1e-5) -> None:
        """sum = x + residual, y = rmsnorm(sum)"""
        self._call("add_rmsnorm", {"x": x, "residual": residual, "sum": sum, "y": y},
                   options={"weight": weight, "epsilon": epsilon})

    def layernorm_rmsnorm(self, x: Operand, y: Operand, gain: Operand | None = None, *,
                          weight: Operand | None = None, bias: Operand | None = None,
                          epsilon: float = 1e-5) -> None:
        """y = rmsnorm(layernorm(x)) * gain; the gain is required with a weight"""
        self._call("layernorm_rmsnorm", {"x": x, "y": y, "gain": gain},
                   options={"weight": weight, "bias": bias, "epsilon": epsilon})

    def copy(self, to: Operand, source: Operand) -> None:
        """Copies a contiguous tensor to another of the same type and number of elements."""
        self._call("copy", {"to": to, "from": source})

    def run(self, problem: str, operands: Sequence[Operand]) -> None:
        """Runs a problem, given by its key such as "softmax dtype=f32 out=f32 rows=4 cols=8", on
        its operands in order."""
        held = [self._operand(given, f"operand {number}") for number, given in enumerate(operands)]
        handles = (ctypes.c_void_p * len(held))(*(one._handle if one else None for one in held))
        runtime_library().call("greta_run", self._receiver, problem.encode(), handles, len(held))
        self._recorded()

