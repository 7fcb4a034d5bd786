"""The operations as torch computes them: where GRETA has no problem, or is slower, or torch needs
gradients."""

from __future__ import annotations

import math
from typing import Callable

import torch
import torch.nn.functional as functional

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda x: x,
    "silu": functional.silu,
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "swiglu": lambda x: silu_mul_of_torch(x),
}
GATED = ("swiglu",)  #: activations with half as many results
_GREATER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def linear_of_torch(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
                    residual: torch.Tensor | None = None, activation: str = "none",
                    norm_weight: torch.Tensor | None = None, norm_eps: float = 1e-5) -> torch.Tensor:
    """Computes linear() with torch's operations."""
    if norm_weight is not None:
        input = rms_norm_of_torch(input, norm_weight, norm_eps)
    y = functional.linear(input, weight, bias)
    return ACTIVATIONS[activation](y if residual is None else y + residual)


def rms_norm_of_torch(input: torch.Tensor, weight: torch.Tensor | None,
                      eps: float) -> torch.Tensor:
    """Computes rms_norm() with torch's operations."""
    x = input.to(_GREATER.get(input.dtype, input.dtype))
    y = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)).to(input.dtype)
    return y if weight is None else weight * y


def add_rms_norm_of_torch(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None,
                          eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes add_rms_norm() with torch's operations."""
    total = input + residual
    return total, rms_norm_of_torch(total, weight, eps)


def silu_mul_of_torch(input: torch.Tensor) -> torch.Tensor:
    """Computes silu_mul() with torch's operations."""
    gate, up = input.chunk(2, -1)
    return functional.silu(gate) * up


def rope_of_torch(input: torch.Tensor, positions: torch.Tensor, table: torch.Tensor,
                  pairs: str) -> torch.Tensor:
    """Computes rope() with torch's operations."""
    turns = table[positions.long()].reshape(*input.shape[:-2], 1, table.shape[1])
    cos, sin = turns[..., 0::2], turns[..., 1::2]
    x = input.to(_GREATER.get(input.dtype, input.dtype))
    first, second = x.chunk(2, -1) if pairs == "half" else (x[..., 0::2], x[..., 1::2])
    rotated = (first * cos - second * sin, second * cos + first * sin)
    y = torch.cat(rotated, -1) if pairs == "half" else torch.stack(rotated, -1).flatten(-2)
    return y.to(input.dtype)


def layer_norm_of_torch(input: torch.Tensor, weight: torch.Tensor | None,
                        bias: torch.Tensor | None, eps: float) -> torch.Tensor:
    """Computes layer_norm() with torch's operations."""
    return functional.layer_norm(input, (input.shape[-1],), weight, bias, eps)


def softmax_of_torch(input: torch.Tensor, scale: float) -> torch.Tensor:
    """Computes softmax() with torch's operations."""
    return functional.softmax(input if scale == 1 else input * scale, -1)


def attention_of_torch(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                       lengths: torch.Tensor | None, scale: float | None,
                       causal: bool) -> torch.Tensor:
    """Computes the operation `attention` with torch's operations."""
    q, (queries, keys) = query.transpose(1, 2), (query.shape[1], key.shape[2])
    mask = None
    if lengths is not None or (causal and queries != keys):
        ends = lengths if lengths is not None else torch.full((query.shape[0],), keys,
                                                              device=query.device)
        columns = torch.arange(keys, device=query.device)
        rows = ends[:, None] - queries + torch.arange(queries, device=query.device) \
            if causal else (ends - 1)[:, None].expand(-1, queries)
        mask = (columns <= rows[:, :, None])[:, None]
    y = _sdpa(q, key, value, mask, causal and mask is None, scale)
    return y.transpose(1, 2).contiguous()


def _sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None,
          causal: bool, scale: float | None) -> torch.Tensor:
    groups = q.shape[1] // k.shape[1]
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, scale=scale,
            **({"enable_gqa": True} if groups > 1 else {}))
    wide = _GREATER.get(q.dtype, q.dtype)
    k, v = (one.repeat_interleave(groups, 1).to(wide) for one in (k, v))
    scores = q.to(wide) @ k.transpose(2, 3) * (scale or 1 / math.sqrt(q.shape[-1]))
    if causal:
        mask = torch.ones(scores.shape[2:], dtype=torch.bool, device=q.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return (scores.softmax(-1) @ v).to(q.dtype)
