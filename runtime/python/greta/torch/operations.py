"""GRETA's operations as custom operations of torch, `torch.ops.greta`, with kernels for tensors on
CPUs and GPUs and fake ones, so that torch.compile keeps them in its graphs."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Callable

import torch
import torch.nn.functional as functional

from .._library import runtime_library
from ..frameworks import problems
from .execution import DTYPES, device_of, inside, packed

ACTIVATIONS = {
    "none": lambda x: x,
    "silu": functional.silu,
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
}
_GREATER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def _run(name: str, key: tuple, first: torch.Tensor, problem: Callable[[], str],
         greta: Callable[[], torch.Tensor], framework: Callable[[], torch.Tensor],
         form: str = "") -> torch.Tensor:
    """Runs a problem as was decided. What GRETA has no types or extents for is torch's. Results are
    packed, as those of the fake kernels."""
    if first.dtype not in DTYPES or first.numel() == 0:
        return framework().contiguous()
    device = device_of(first)
    with inside():
        if device.choose((name, *key), problem, greta, framework, form):
            return greta()
        return framework().contiguous()


def _rows(x: torch.Tensor) -> tuple[int, int]:
    cols = x.shape[-1]
    return x.numel() // cols, cols


# ---- linear ----

def linear_of_torch(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
                    residual: torch.Tensor | None, activation: str) -> torch.Tensor:
    """Computes linear() with torch's operations."""
    y = functional.linear(input, weight, bias)
    return ACTIVATIONS[activation](y if residual is None else y + residual)


def _linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
            residual: torch.Tensor | None = None, activation: str = "none") -> torch.Tensor:
    if input.numel() == 0 or any(one.dtype != input.dtype for one in (weight, bias, residual)
                                 if one is not None):
        return linear_of_torch(input, weight, bias, residual, activation).contiguous()
    (m, k), n, dtype = _rows(input), weight.shape[0], DTYPES.get(input.dtype)

    def greta() -> torch.Tensor:
        device, a, b = device_of(input), packed(input), packed(weight)
        out = torch.empty((*input.shape[:-1], n), dtype=input.dtype, device=input.device)
        held = {name: packed(one) for name, one in (("bias", bias), ("residual", residual))
                if one is not None}
        options = runtime_library().greta_gemm_defaults()
        options.layout = 1  # nt
        options.activation = list(ACTIVATIONS).index(activation)
        if bias is not None:
            options.bias = device.view(held["bias"], (n,))
        if residual is not None:
            options.residual = device.view(held["residual"], (m, n))
        device.call("gemm", [device.view(a, (m, k)), device.view(b, (n, k)),
                             device.view(out, (m, n))], options)
        return out

    key = (m, n, k, dtype, bias is not None, residual is not None, activation)
    return _run("linear", key, input,
                lambda: problems.gemm(m, n, k, dtype=str(dtype), layout="nt",
                                      bias=bias is not None, residual=residual is not None,
                                      activation=activation),
                greta, lambda: linear_of_torch(input, weight, bias, residual, activation))


def _linear_fake(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
                 residual: torch.Tensor | None = None, activation: str = "none") -> torch.Tensor:
    return input.new_empty((*input.shape[:-1], weight.shape[0]))


# ---- norms and softmax ----

def rms_norm_of_torch(input: torch.Tensor, weight: torch.Tensor | None,
                      eps: float) -> torch.Tensor:
    """Computes rms_norm() with torch's operations."""
    x = input.to(_GREATER.get(input.dtype, input.dtype))
    y = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)).to(input.dtype)
    return y if weight is None else weight * y


def _norm(name: str, input: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
          eps: float, problem: Callable[[], str],
          framework: Callable[[], torch.Tensor]) -> torch.Tensor:
    rows, cols = _rows(input) if input.numel() else (0, 0)

    def greta() -> torch.Tensor:
        device, x = device_of(input), packed(input)
        out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
        held = [packed(one) if one is not None else None for one in (weight, bias)]
        options = runtime_library().greta_norm_defaults()
        options.epsilon = eps
        for field, one in zip(("weight", "bias"), held):
            if one is not None:
                setattr(options, field, device.view(one, (cols,)))
        device.call(name, [device.view(x, (rows, cols)), device.view(out, (rows, cols))], options)
        return out

    if any(one is not None and one.dtype != input.dtype for one in (weight, bias)):
        return framework().contiguous()
    key = (rows, cols, input.dtype, weight is not None, bias is not None, eps)
    return _run(name, key, input, problem, greta, framework)


def _rms_norm(input: torch.Tensor, weight: torch.Tensor | None = None,
              eps: float = 1e-5) -> torch.Tensor:
    return _norm("rmsnorm", input, weight, None, eps,
                 lambda: problems.rmsnorm(*_rows(input), dtype=DTYPES[input.dtype],
                                          weight=weight is not None, epsilon=eps),
                 lambda: rms_norm_of_torch(input, weight, eps))


def _rms_norm_fake(input: torch.Tensor, weight: torch.Tensor | None = None,
                   eps: float = 1e-5) -> torch.Tensor:
    return input.new_empty(input.shape)


def _layer_norm(input: torch.Tensor, weight: torch.Tensor | None = None,
                bias: torch.Tensor | None = None, eps: float = 1e-5) -> torch.Tensor:
    def framework() -> torch.Tensor:
        return functional.layer_norm(input, (input.shape[-1],), weight, bias, eps)

    if bias is not None and weight is None:
        return framework().contiguous()
    return _norm("layernorm", input, weight, bias, eps,
                 lambda: problems.layernorm(*_rows(input), dtype=DTYPES[input.dtype],
                                            weight=weight is not None, bias=bias is not None,
                                            epsilon=eps), framework)


def _layer_norm_fake(input: torch.Tensor, weight: torch.Tensor | None = None,
                     bias: torch.Tensor | None = None, eps: float = 1e-5) -> torch.Tensor:
    return input.new_empty(input.shape)


def _softmax(input: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    rows, cols = _rows(input) if input.numel() else (0, 0)

    def greta() -> torch.Tensor:
        device, x = device_of(input), packed(input)
        out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
        options = runtime_library().greta_softmax_defaults()
        options.scale = scale
        device.call("softmax", [device.view(x, (rows, cols)), device.view(out, (rows, cols))],
                    options)
        return out

    return _run("softmax", (rows, cols, input.dtype, scale), input,
                lambda: problems.softmax(rows, cols, dtype=DTYPES[input.dtype], scale=scale),
                greta, lambda: functional.softmax(input if scale == 1 else input * scale, -1))


def _softmax_fake(input: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    return input.new_empty(input.shape)


# ---- attention ----

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


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
               lengths: torch.Tensor | None = None, scale: float | None = None,
               causal: bool = False) -> torch.Tensor:
    batch, queries, heads, dim = query.shape
    kv_heads, keys, v_dim = key.shape[1], key.shape[2], value.shape[3]
    plain = scale is None or abs(scale * math.sqrt(dim) - 1) < 1e-6
    extents = (batch, heads, kv_heads, queries, keys, dim)

    def greta() -> torch.Tensor:
        device = device_of(query)
        q, k, v = packed(query), packed(key), packed(value)
        out = torch.empty((batch, queries, heads, v_dim), dtype=query.dtype, device=query.device)
        ends = lengths if lengths is not None else torch.full(
            (batch,), keys, dtype=torch.int32, device=query.device)
        ends = packed(ends.to(torch.int32))
        options = runtime_library().greta_attention_defaults()
        options.scale = 0.0 if plain else scale
        options.causal = int(causal)
        device.call("attention", [
            device.view(q, q.shape), device.view(k, k.shape), device.view(v, v.shape),
            device.view(ends, (batch,)), device.view(out, out.shape)], options)
        return out

    def framework() -> torch.Tensor:
        return attention_of_torch(query, key, value, lengths, scale, causal)

    if key.dtype != query.dtype or value.dtype != query.dtype or heads % max(kv_heads, 1) != 0:
        return framework()
    choice = (*extents, v_dim, query.dtype, lengths is not None, plain or scale, causal)
    return _run("attention", choice, query,
                lambda: problems.attention(*extents, dtype=DTYPES[query.dtype], v_dim=v_dim,
                                           scale=None if plain else scale, causal=causal),
                greta, framework, form=" with lengths" if lengths is not None else "")


def _attention_fake(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                    lengths: torch.Tensor | None = None, scale: float | None = None,
                    causal: bool = False) -> torch.Tensor:
    return query.new_empty((*query.shape[:3], value.shape[3]))


# ---- registration ----

SCHEMAS = {
    "linear": ("(Tensor input, Tensor weight, Tensor? bias=None, Tensor? residual=None, "
               "str activation=\"none\") -> Tensor", _linear, _linear_fake),
    "rms_norm": ("(Tensor input, Tensor? weight=None, float eps=1e-05) -> Tensor",
                 _rms_norm, _rms_norm_fake),
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
