"""The functions of greta.torch. Where torch needs gradients, torch's operations run. Where nothing
watches the calls of torch's operations, GRETA's run without torch's dispatcher, which takes longer
than all the rest of a call."""

from __future__ import annotations

from typing import Any, Callable

import torch

from ..errors import InvalidArgumentError
from . import fallbacks, operations
from .calls import call

# What watches calls: compilers, modes, transformations and tracers. torch says so for its own code;
# a version that lacks one of these functions has calls through the dispatcher.
_WATCHERS: tuple[Callable[[], Any], ...] = tuple(
    getattr(torch._C, name, lambda: True) for name in (
        "_len_torch_function_stack", "_len_torch_dispatch_stack",
        "_are_functorch_transforms_active", "_get_tracing_state"))
_functions, _dispatches, _transforms, _tracing = _WATCHERS
_is_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling",
                                            lambda: False)


def _is_watched() -> bool:
    """Returns whether calls must be those of torch.ops.greta."""
    return bool(_is_compiling() or _functions() or _dispatches() or _transforms() or _tracing())


def _differentiates(*tensors: torch.Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(
        one is not None and one.requires_grad for one in tensors)


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *,
           residual: torch.Tensor | None = None, activation: str = "none",
           norm_weight: torch.Tensor | None = None, norm_eps: float = 1e-5) -> torch.Tensor:
    """Returns activation(input weightᵀ + bias + residual), as torch's linear with an epilogue.

    input [.., in], weight [out, in], bias [out], residual [.., out], result [.., out], all of one
    type. activation: "none", "silu", "gelu" (its tanh form), or "swiglu": silu of the first half of
    the columns times the second half, so that the result has half as many. norm_weight [in]: the
    input is replaced by its RMS norm with this weight and norm_eps."""
    if activation not in fallbacks.ACTIVATIONS:
        raise InvalidArgumentError(
            f"activation is {activation!r}; there are {', '.join(fallbacks.ACTIVATIONS)}")
    if residual is not None and activation in fallbacks.GATED:
        raise InvalidArgumentError(f"activation {activation!r} takes no residual")
    if _differentiates(input, weight, bias, residual, norm_weight):
        return fallbacks.linear_of_torch(input, weight, bias, residual, activation, norm_weight,
                                         norm_eps)
    if _is_watched():
        return torch.ops.greta.linear(input, weight, bias, residual, norm_weight, activation, norm_eps)
    return call(operations.LINEAR, (input, weight, bias, residual, norm_weight),
                (activation, norm_eps))


def silu_mul(input: torch.Tensor) -> torch.Tensor:
    """Returns silu of the first half of the columns times the second half: input [.., 2 n], result
    [.., n]."""
    if _differentiates(input):
        return fallbacks.silu_mul_of_torch(input)
    if _is_watched():
        return torch.ops.greta.silu_mul(input)
    return call(operations.SILU_MUL, (input,), ())


def rms_norm(input: torch.Tensor, weight: torch.Tensor | None = None,
             eps: float = 1e-5) -> torch.Tensor:
    """Returns the RMS norm of the last dimension, times the weight: input and result [.., n],
    weight [n], of one type."""
    if _differentiates(input, weight):
        return fallbacks.rms_norm_of_torch(input, weight, eps)
    if _is_watched():
        return torch.ops.greta.rms_norm(input, weight, eps)
    return call(operations.RMS_NORM, (input, weight), (eps,))


def add_rms_norm(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None = None,
                 eps: float = 1e-5) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns input + residual, and its RMS norm, times the weight: all [.., n], weight [n], of one
    type."""
    if _differentiates(input, residual, weight):
        return fallbacks.add_rms_norm_of_torch(input, residual, weight, eps)
    if _is_watched():
        return torch.ops.greta.add_rms_norm(input, residual, weight, eps)
    return call(operations.ADD_RMS_NORM, (input, residual, weight), (eps,))


def rope(input: torch.Tensor, positions: torch.Tensor, table: torch.Tensor, *,
         pairs: str = "half") -> torch.Tensor:
    """Returns the rotary embedding of input [.., tokens, heads, dim], which may be a part of each
    token, by the rows `positions` (i32, one for each token) of table f32 [positions, dim], which hold
    the cosine and sine of each pair. pairs: "half", elements i and i + dim / 2, or "interleaved"."""
    if pairs not in ("half", "interleaved"):
        raise InvalidArgumentError(f"pairs is {pairs!r}; there are half, interleaved")
    if _differentiates(input):
        return fallbacks.rope_of_torch(input, positions, table, pairs)
    if _is_watched() or input.dim() < 3:
        return torch.ops.greta.rope(input, positions, table, pairs)
    return call(operations.ROPE, (input, positions, table), (pairs, operations.token_stride(input)))


def layer_norm(input: torch.Tensor, weight: torch.Tensor | None = None,
               bias: torch.Tensor | None = None, eps: float = 1e-5) -> torch.Tensor:
    """Returns the layer norm of the last dimension, with scale and offset: input and result [.., n],
    weight and bias [n], of one type."""
    if _differentiates(input, weight, bias):
        return fallbacks.layer_norm_of_torch(input, weight, bias, eps)
    if _is_watched():
        return torch.ops.greta.layer_norm(input, weight, bias, eps)
    return call(operations.LAYER_NORM, (input, weight, bias), (eps,))


def softmax(input: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """Returns the softmax of scale × input over the last dimension, of the input's shape and type."""
    if _differentiates(input):
        return fallbacks.softmax_of_torch(input, scale)
    if _is_watched():
        return torch.ops.greta.softmax(input, scale)
    return call(operations.SOFTMAX, (input,), (scale,))


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *,
                                 lengths: torch.Tensor | None = None, is_causal: bool = False,
                                 scale: float | None = None) -> torch.Tensor:
    """Returns attention [batch, heads, q, v_dim] of query [batch, heads, q, dim] over key [batch,
    kv_heads, keys, dim] and value [batch, kv_heads, keys, v_dim] of one type, as torch's function of
    this name with enable_gqa.

    lengths i32 [batch]: key and value are caches, of which the first `lengths` keys of a sequence
    are valid; then, and where there are more keys than queries, causal queries are the last ones of
    the sequence. scale None: 1 / sqrt(dim)."""
    q = query.transpose(1, 2)
    if _differentiates(query, key, value):
        y = fallbacks.attention_of_torch(q, key, value, lengths, scale, is_causal)
    elif _is_watched() or (lengths is not None and lengths.dtype != torch.int32):
        y = torch.ops.greta.attention(q, key, value, lengths, scale, is_causal)
    else:
        y = call(operations.ATTENTION, (q, key, value, lengths), (scale, is_causal))
    return y.transpose(1, 2)
