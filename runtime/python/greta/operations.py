"""The operations of greta.h (docs/kernels.md) as methods of runtimes, queues and pipelines."""

from __future__ import annotations

import ctypes
from typing import Sequence

from . import _choices
from ._abi import WEIGHTS
from ._calls import Operand
from ._library import runtime_library
from ._products import Products
from .tensor import choose


class Operations(Products):
    """Receives operations: a queue and a runtime run them immediately, a pipeline records them.

    Operands are tensors, or objects with DLPack, __cuda_array_interface__ or a buffer whose memory
    the device can use in place. Outputs are operands too; nothing is allocated.
    """

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

