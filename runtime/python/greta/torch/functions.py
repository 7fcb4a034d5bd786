"""The functions of greta.torch. Where torch needs gradients, torch's operations run."""

from __future__ import annotations

import torch

from ..errors import InvalidArgumentError
from . import operations


def _differentiates(*tensors: torch.Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(
        one is not None and one.requires_grad for one in tensors)


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *,
           residual: torch.Tensor | None = None, activation: str = "none") -> torch.Tensor:
    """Returns activation(input weightᵀ + bias + residual), as torch's linear with an epilogue.

    weight [out, in], bias [out], residual of the result's shape. activation: "none", "silu" or
    "gelu" (its tanh form)."""
    if activation not in operations.ACTIVATIONS:
        raise InvalidArgumentError(
            f"activation is {activation!r}; there are {', '.join(operations.ACTIVATIONS)}")
    if _differentiates(input, weight, bias, residual):
        return operations.linear_of_torch(input, weight, bias, residual, activation)
    return torch.ops.greta.linear(input, weight, bias, residual, activation)


def rms_norm(input: torch.Tensor, weight: torch.Tensor | None = None,
             eps: float = 1e-5) -> torch.Tensor:
    """Returns the RMS norm of the last dimension, times the weight."""
    if _differentiates(input, weight):
        return operations.rms_norm_of_torch(input, weight, eps)
    return torch.ops.greta.rms_norm(input, weight, eps)


def layer_norm(input: torch.Tensor, weight: torch.Tensor | None = None,
               bias: torch.Tensor | None = None, eps: float = 1e-5) -> torch.Tensor:
    """Returns the layer norm of the last dimension, with scale and offset."""
    if _differentiates(input, weight, bias):
        return torch.nn.functional.layer_norm(input, (input.shape[-1],), weight, bias, eps)
    return torch.ops.greta.layer_norm(input, weight, bias, eps)


def softmax(input: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """Returns the softmax of scale × input over the last dimension."""
    if _differentiates(input):
        return torch.nn.functional.softmax(input * scale, -1)
    return torch.ops.greta.softmax(input, scale)


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *,
                                 lengths: torch.Tensor | None = None, is_causal: bool = False,
                                 scale: float | None = None) -> torch.Tensor:
    """Returns attention of query [batch, heads, q, dim] over key and value [batch, kv_heads, keys,
    dim], as torch's function of this name with enable_gqa.

    lengths i32 [batch]: key and value are caches, of which the first `lengths` keys of a sequence
    are valid; then, and where there are more keys than queries, causal queries are the last ones of
    the sequence. scale None: 1 / sqrt(dim)."""
    q = query.transpose(1, 2)
    if _differentiates(query, key, value):
        y = operations.attention_of_torch(q, key, value, lengths, scale, is_causal)
    else:
        y = torch.ops.greta.attention(q, key, value, lengths, scale, is_causal)
    return y.transpose(1, 2)
