"""GRETA's operations as custom operations of torch, `torch.ops.greta`, with kernels for tensors on
CPUs and GPUs and fake ones, so that torch.compile keeps them in its graphs."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..frameworks import problems
from .calls import Operation, Plan, Tensors, run
from .execution import DTYPES
from .fallbacks import (GATED, add_rms_norm_of_torch, attention_of_torch, layer_norm_of_torch,
                        linear_of_torch, rms_norm_of_torch, rope_of_torch, silu_mul_of_torch,
                        softmax_of_torch)

_MOST_FUSED_ROWS = 8  # of products with gates or a norm


def _rows(x: torch.Tensor) -> tuple[int, int]:
    cols = x.shape[-1]
    return x.numel() // cols, cols


def _alike(tensors: Tensors) -> bool:
    """Returns whether all tensors have the first one's type."""
    return len({one.dtype for one in tensors if one is not None}) == 1


def _given(*indices: int, tensors: Tensors) -> tuple[int, ...]:
    return tuple(index for index in indices if tensors[index] is not None)


# ---- linear ----

def _linear_plan(tensors: Tensors, options: tuple[Any, ...]) -> Plan | None:
    input, weight, bias, residual, norm = tensors
    activation, eps = options
    (m, k), gated = _rows(input), activation in GATED
    n = weight.shape[0] // 2 if gated else weight.shape[0]
    shape = (*input.shape[:-1], n)
    if not _alike(tensors) or weight.dim() != 2 or weight.shape[1] != k or (gated and weight.shape[0] % 2) \
            or (bias is not None and bias.shape != weight.shape[:1]) \
            or (norm is not None and norm.shape != (k,)) \
            or (residual is not None and residual.shape != shape) \
            or ((gated or norm is not None) and m > _MOST_FUSED_ROWS):
        return None
    epsilon = None if norm is None else eps
    parts = {"bias": bias is not None, "residual": residual is not None, "activation": activation,
             "norm_epsilon": epsilon}
    return Plan(problems.gemm(m, n, k, dtype=DTYPES[input.dtype], layout="nt", **parts),
                (m, n, k, input.dtype, *parts.values()),
                (0, 1, *_given(4, 2, 3, tensors=tensors)), (shape,))


def _linear_framework(tensors: Tensors, options: tuple[Any, ...]) -> Any:
    """Without a norm and gates torch's operations, else the operation's parts, of which each runs as
    was decided."""
    input, weight, bias, residual, norm = tensors
    activation, eps = options
    if norm is not None:
        normed = run(RMS_NORM, (input, norm), (eps,))
        return run(LINEAR, (normed, weight, bias, residual, None), (activation, eps))
    if activation in GATED:
        both = run(LINEAR, (input, weight, bias, residual, None), ("none", eps))
        return run(SILU_MUL, (both,), ())
    return linear_of_torch(input, weight, bias, residual, activation).contiguous()


LINEAR = Operation("linear", _linear_plan, _linear_framework)


def _linear(input: Any, weight: Any, bias: Any = None, residual: Any = None,
           norm_weight: Any = None, activation: str = "none", norm_eps: float = 1e-5) -> Any:
    return run(LINEAR, (input, weight, bias, residual, norm_weight), (activation, norm_eps))


def _linear_fake(input: Any, weight: Any, bias: Any = None, residual: Any = None,
                 norm_weight: Any = None, activation: str = "none", norm_eps: float = 1e-5) -> Any:
    cols = weight.shape[0] // 2 if activation in GATED else weight.shape[0]
    return input.new_empty((*input.shape[:-1], cols))


def _silu_mul_plan(tensors: Tensors, _: tuple[Any, ...]) -> Plan | None:
    input, = tensors
    rows, cols = _rows(input)
    if cols % 2:
        return None
    return Plan(problems.silu_mul(rows, cols // 2, dtype=DTYPES[input.dtype]),
                (rows, cols, input.dtype), (0,), ((*input.shape[:-1], cols // 2),))


SILU_MUL = Operation("silu_mul", _silu_mul_plan, lambda tensors, _: silu_mul_of_torch(*tensors).contiguous())


def _silu_mul(input: Any) -> Any:
    return run(SILU_MUL, (input,), ())


def _silu_mul_fake(input: Any) -> Any:
    return input.new_empty((*input.shape[:-1], input.shape[-1] // 2))


# ---- norms and softmax ----

def _rms_norm_plan(tensors: Tensors, options: tuple[Any, ...]) -> Plan | None:
    input, weight = tensors
    rows, cols = _rows(input)
    if not _alike(tensors) or (weight is not None and weight.shape != (cols,)):
        return None
    return Plan(problems.rmsnorm(rows, cols, dtype=DTYPES[input.dtype], weight=weight is not None,
                                 epsilon=options[0]),
                (rows, cols, input.dtype, weight is not None, *options),
                _given(0, 1, tensors=tensors), (input.shape,))


RMS_NORM = Operation("rms_norm", _rms_norm_plan,
                     lambda tensors, options: rms_norm_of_torch(*tensors, *options).contiguous())


def _rms_norm(input: Any, weight: Any = None, eps: float = 1e-5) -> Any:
    return run(RMS_NORM, (input, weight), (eps,))


def _rms_norm_fake(input: Any, weight: Any = None, eps: float = 1e-5) -> Any:
    return input.new_empty(input.shape)


def _add_rms_norm_plan(tensors: Tensors, options: tuple[Any, ...]) -> Plan | None:
    input, residual, weight = tensors
    rows, cols = _rows(input)
    if not _alike(tensors) or residual.shape != input.shape \
            or (weight is not None and weight.shape != (cols,)):
        return None
    return Plan(problems.add_rmsnorm(rows, cols, dtype=DTYPES[input.dtype],
                                     weight=weight is not None, epsilon=options[0]),
                (rows, cols, input.dtype, weight is not None, *options),
                _given(0, 1, 2, tensors=tensors), (input.shape, input.shape))


def _add_rms_norm_framework(tensors: Tensors, options: tuple[Any, ...]) -> Any:
    """torch's sum, and the norm as was decided."""
    input, residual, weight = tensors
    total = (input + residual).contiguous()
    return total, run(RMS_NORM, (total, weight), options)


ADD_RMS_NORM = Operation("add_rms_norm", _add_rms_norm_plan, _add_rms_norm_framework)


def _add_rms_norm(input: Any, residual: Any, weight: Any = None, eps: float = 1e-5) -> Any:
    return run(ADD_RMS_NORM, (input, residual, weight), (eps,))


def _add_rms_norm_fake(input: Any, residual: Any, weight: Any = None, eps: float = 1e-5) -> Any:
    return input.new_empty(input.shape), input.new_empty(input.shape)


def _layer_norm_plan(tensors: Tensors, options: tuple[Any, ...]) -> Plan | None:
    input, weight, bias = tensors
    rows, cols = _rows(input)
    if not _alike(tensors) or (bias is not None and weight is None) \
            or any(one is not None and one.shape != (cols,) for one in (weight, bias)):
        return None
    return Plan(problems.layernorm(rows, cols, dtype=DTYPES[input.dtype], weight=weight is not None,
                                   bias=bias is not None, epsilon=options[0]),
                (rows, cols, input.dtype, weight is not None, bias is not None, *options),
                _given(0, 1, 2, tensors=tensors), (input.shape,))


LAYER_NORM = Operation("layer_norm", _layer_norm_plan,
                       lambda tensors, options: layer_norm_of_torch(*tensors, *options).contiguous())


def _layer_norm(input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return run(LAYER_NORM, (input, weight, bias), (eps,))


def _layer_norm_fake(input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return input.new_empty(input.shape)


def _softmax_plan(tensors: Tensors, options: tuple[Any, ...]) -> Plan | None:
    input, = tensors
    rows, cols = _rows(input)
    return Plan(problems.softmax(rows, cols, dtype=DTYPES[input.dtype], scale=options[0]),
                (rows, cols, input.dtype, *options), (0,), (input.shape,))


SOFTMAX = Operation("softmax", _softmax_plan,
                    lambda tensors, options: softmax_of_torch(*tensors, *options).contiguous())


def _softmax(input: Any, scale: float = 1.0) -> Any:
    return run(SOFTMAX, (input,), (scale,))


def _softmax_fake(input: Any, scale: float = 1.0) -> Any:
    return input.new_empty(input.shape)


# ---- attention ----

def _attention_plan(tensors: Tensors, options: tuple[Any, ...]) -> Plan | None:
    query, key, value, lengths = tensors
    scale, causal = options
    if not query.dim() == key.dim() == value.dim() == 4:
        return None
    batch, queries, heads, dim = query.shape
    kv_heads, keys, v_dim = key.shape[1], key.shape[2], value.shape[3]
    if not _alike(tensors[:3]) or heads % kv_heads != 0 or key.shape != (batch, kv_heads, keys, dim) \
            or value.shape[:3] != key.shape[:3] \
            or (lengths is not None and lengths.shape != (batch,)):
        return None
    if scale is not None and abs(scale * math.sqrt(dim) - 1) < 1e-6:
        scale = None
    extents = (batch, heads, kv_heads, queries, keys, dim)
    return Plan(problems.attention(*extents, dtype=DTYPES[query.dtype], v_dim=v_dim, scale=scale,
                                   causal=causal),
                (*extents, v_dim, query.dtype, lengths is not None, scale, causal),
                (0, 1, 2, -1 if lengths is None else 3), ((batch, queries, heads, v_dim),),
                (batch, keys) if lengths is None else None,
                " with lengths" if lengths is not None else "")


ATTENTION = Operation("attention", _attention_plan,
                      lambda tensors, options: attention_of_torch(*tensors, *options))


def _attention(query: Any, key: Any, value: Any, lengths: Any = None, scale: float | None = None,
               causal: bool = False) -> Any:
    if lengths is not None and lengths.dtype != torch.int32:
        lengths = lengths.to(torch.int32)
    return run(ATTENTION, (query, key, value, lengths), (scale, causal))


def _attention_fake(query: Any, key: Any, value: Any, lengths: Any = None,
                    scale: float | None = None, causal: bool = False) -> Any:
    return query.new_empty((*query.shape[:3], value.shape[3]))


# ---- rotary embedding ----

def token_stride(x: torch.Tensor) -> int | None:
    """Returns the distance of the tokens of x [.., tokens, heads, dim] in elements, or None if it is
    not constant, or heads are not packed."""
    if x.stride(-1) != 1 or (x.shape[-2] > 1 and x.stride(-2) != x.shape[-1]):
        return None
    stride = x.stride(-3) if x.shape[-3] > 1 or x.dim() == 3 else x.stride(0)
    rows = 1
    for dim in range(x.dim() - 3, -1, -1):
        if x.shape[dim] > 1 and x.stride(dim) != rows * stride:
            return None
        rows *= x.shape[dim]
    return x.shape[-2] * x.shape[-1] if rows == 1 else stride


def _rope_plan(tensors: Tensors, options: tuple[Any, ...]) -> Plan | None:
    input, positions, table = tensors
    pairs, stride = options
    heads, dim = input.shape[-2:]
    tokens, packed = input.numel() // (heads * dim), heads * dim
    if stride is None:  # copied first
        stride = packed
    if positions.numel() != tokens or table.dim() != 2 or table.shape[1] != dim \
            or (positions.dtype, table.dtype) != (torch.int32, torch.float32):
        return None
    return Plan(problems.rope(tokens, heads, dim, table.shape[0], dtype=DTYPES[input.dtype],
                              half=pairs == "half", stride=None if stride == packed else stride),
                (tokens, heads, dim, table.shape[0], input.dtype, pairs, stride), (0, 1, 2),
                (input.shape,), strided=options[1] is not None)


ROPE = Operation("rope", _rope_plan,
                 lambda tensors, options: rope_of_torch(
                     tensors[0], tensors[1], tensors[2], options[0]).contiguous(),
                 arguments=1)


def _rope(input: Any, positions: Any, table: Any, pairs: str = "half") -> Any:
    return run(ROPE, (input, positions, table), (pairs, token_stride(input)))


def _rope_fake(input: Any, positions: Any, table: Any, pairs: str = "half") -> Any:
    return input.new_empty(input.shape)


# ---- registration ----

SCHEMAS = {
    "linear": ("(Tensor input, Tensor weight, Tensor? bias=None, Tensor? residual=None, "
               "Tensor? norm_weight=None, str activation=\"none\", float norm_eps=1e-05) -> Tensor",
               _linear, _linear_fake),
    "silu_mul": ("(Tensor input) -> Tensor", _silu_mul, _silu_mul_fake),
    "rms_norm": ("(Tensor input, Tensor? weight=None, float eps=1e-05) -> Tensor",
                 _rms_norm, _rms_norm_fake),
    "add_rms_norm": ("(Tensor input, Tensor residual, Tensor? weight=None, float eps=1e-05) "
                     "-> (Tensor, Tensor)", _add_rms_norm, _add_rms_norm_fake),
    "rope": ("(Tensor input, Tensor positions, Tensor table, str pairs=\"half\") -> Tensor",
             _rope, _rope_fake),
    "layer_norm": ("(Tensor input, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) "
                   "-> Tensor", _layer_norm, _layer_norm_fake),
    "softmax": ("(Tensor input, float scale=1.0) -> Tensor", _softmax, _softmax_fake),
    "attention": ("(Tensor query, Tensor key, Tensor value, Tensor? lengths=None, "
                  "float? scale=None, bool causal=False) -> Tensor", _attention, _attention_fake),
}


def _register() -> Any:
    library = torch.library.Library("greta", "DEF")
    compliant = getattr(getattr(torch, "Tag", None), "pt2_compliant_tag", None)
    options = {} if compliant is None else {"tags": (compliant,)}
    for name, (schema, kernel, fake) in SCHEMAS.items():
        library.define(name + schema, **options)
        for place in ("CPU", "CUDA"):
            library.impl(name, kernel, place)
        if hasattr(torch.library, "register_fake"):
            torch.library.register_fake("greta::" + name, fake, lib=library)
        else:  # before torch 2.4
            library.impl(name, fake, "Meta")
    return library


_library = _register()  # the operations exist as long as this object
