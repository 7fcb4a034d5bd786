"""Modules in few launches: parameters of projections of one input are joined, so that they are one
product, with the norm before it and the activation of gates after it where there are few tokens."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import torch

from .attention import ATTENTION, attention_forward, is_compiling
from .functions import linear, rope


class Joined:
    """A part of a module's class: joined parameters of its projections, in buffers that the
    parameters view. `_joined` names the buffers and the projections of each."""

    _joined: dict[str, tuple[Any, ...]]

    def join(self) -> None:
        """Joins the weights and biases of each group, unless they are."""
        for name, parts in self._joined.items():
            for kind in ("weight", "bias"):
                given = [getattr(part, kind) for part in parts]
                self._join(f"{name}_{kind}", given)

    def _join(self, name: str, given: list[Any]) -> None:
        module: Any = self
        if given[0] is None:
            module.register_buffer(name, None, persistent=False)
            return
        whole, rows = getattr(module, name, None), 0
        if whole is None or any(
                one.data_ptr() != whole.data_ptr() + whole.element_size() * whole.stride(0) * first
                for one, first in zip(given, _firsts(given))):
            whole = torch.cat([one.data for one in given])
            module.register_buffer(name, whole, persistent=False)
            for one in given:
                one.data = whole[rows:rows + one.shape[0]]
                rows += one.shape[0]

    def separate(self) -> None:
        """Gives parameters memory of their own again."""
        module: Any = self
        for name, parts in self._joined.items():
            for kind in ("weight", "bias"):
                module._non_persistent_buffers_set.discard(f"{name}_{kind}")
                if module._buffers.pop(f"{name}_{kind}", None) is not None:
                    for part in parts:
                        getattr(part, kind).data = getattr(part, kind).data.clone()

    def _apply(self, *arguments: Any, **options: Any) -> Any:
        result = super()._apply(*arguments, **options)  # type: ignore[misc]
        self.join()  # the parameters were moved or converted one by one
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self.join()  # a copy has parameters of its own


def _firsts(given: list[Any]) -> list[int]:
    """Returns the number of rows before each tensor."""
    return [sum(one.shape[0] for one in given[:count]) for count in range(len(given))]


def _loaded(module: Any, _: Any) -> None:
    module.join()


def has_hooks(module: Any) -> bool:
    """Returns whether something watches a module's calls."""
    return bool(module._forward_hooks or module._forward_pre_hooks)


def can_join(*parts: Any) -> bool:
    """Returns whether parameters of linear layers can be joined: they are alike, of these layers
    alone, and nothing hooks into the layers."""
    weights = [part.weight for part in parts]
    return len({(one.dtype, one.device, one.shape[1:], one.requires_grad) for one in weights}) == 1 \
        and len({part.bias is None for part in parts}) == 1 \
        and len({id(one) for one in weights}) == len(weights) \
        and all(type(one) is torch.nn.Parameter and one.is_contiguous() for one in weights) \
        and not any(map(has_hooks, parts))


class GatedMLP(Joined, torch.nn.Module):
    """A Llama's MLP, down(silu(gate(x)) up(x)), with gates and up in one product."""

    def __init__(self, other: Any):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = other.gate_proj, other.up_proj, other.down_proj
        self._joined = {"gate_up": (self.gate_proj, self.up_proj)}
        self.join()
        self.register_load_state_dict_post_hook(_loaded)

    def forward(self, x: torch.Tensor, norm_weight: torch.Tensor | None = None, norm_eps: float = 0.0,
                residual: torch.Tensor | None = None) -> torch.Tensor:
        """Returns down(silu(gate(x)) up(x)) + residual, of x or its RMS norm."""
        weight: Any = self.gate_up_weight
        bias: Any = self.gate_up_bias
        if torch.is_grad_enabled():  # of the parameters
            gates = linear(x, self.gate_proj.weight, self.gate_proj.bias, activation="silu")
            return self.down_proj(gates * self.up_proj(x))
        y = linear(x, weight, bias, norm_weight=norm_weight, norm_eps=norm_eps, activation="swiglu")
        return linear(y, self.down_proj.weight, self.down_proj.bias, residual=residual)


class FusedLayer(Joined):
    """The methods of a decoder layer of a Llama. A fused layer's class derives from this one and
    from the layer's own."""

    def forward(self, hidden_states: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        """Computes the layer. Where torch needs gradients, and with another implementation of
        attention, its modules do."""
        layer: Any = self
        attention = layer.self_attn
        if arguments or torch.is_grad_enabled() \
                or attention.config._attn_implementation != ATTENTION:
            return super().forward(hidden_states, *arguments, **options)  # type: ignore[misc]
        before, after = layer.input_layernorm, layer.post_attention_layernorm
        x = hidden_states
        heads = linear(x, layer.qkv_weight, layer.qkv_bias, norm_weight=before.weight, norm_eps=before.eps)
        y = attend(attention, heads.view(*x.shape[:-1], -1, attention.head_dim), **options)
        x = linear(y.reshape(*x.shape[:-1], -1), attention.o_proj.weight, attention.o_proj.bias,
                   residual=x)
        return layer.mlp(x, after.weight, after.eps, x)


def attend(module: Any, heads: torch.Tensor, *, attention_mask: torch.Tensor | None = None,
           position_embeddings: Any, past_key_values: Any = None, cache_position: Any = None,
           use_cache: bool = False, position_ids: Any = None, **options: Any) -> torch.Tensor:
    """Returns attention [batch, tokens, heads, dim] of a Llama's attention module over the cache,
    to which it adds keys and values. heads [batch, tokens, heads + 2 kv_heads, dim]: queries, keys
    and values."""
    dim = module.head_dim
    sizes = [one.weight.shape[0] // dim for one in (module.q_proj, module.k_proj, module.v_proj)]
    q, k, v = heads.split(sizes, -2)
    cos, sin = position_embeddings[:2]
    if len(position_embeddings) == 4:
        positions, table = position_embeddings[2:]
        q, k = rope(q, positions, table), rope(k, positions, table)
    else:
        q, k = (_rotated(one, cos.unsqueeze(-2), sin.unsqueeze(-2)) for one in (q, k))
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    if past_key_values is not None:
        more = () if cache_position is None else (
            {"sin": sin, "cos": cos, "cache_position": cache_position},)
        k, v = past_key_values.update(k, v, module.layer_idx, *more)
    dropout = module.attention_dropout if module.training else 0.0
    return attention_forward(module, q, k, v, attention_mask, scaling=module.scaling,
                             dropout=dropout, **options)[0]


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The rotary embedding in torch's operations, which torch.compile joins with others."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Rotary:
    """The method of a Llama's rotary embedding whose layers are all fused."""

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor, *arguments: Any,
                **options: Any) -> tuple[torch.Tensor, ...]:
        """Returns cos and sin, and except for torch.compile also positions and a table for rope()."""
        cos, sin = super().forward(x, position_ids, *arguments, **options)  # type: ignore[misc]
        if torch.is_grad_enabled() or is_compiling():
            return cos, sin
        half, (batch, tokens) = cos.shape[-1] // 2, x.shape[:2]
        table = torch.stack((cos[..., :half], sin[..., :half]), -1).float()
        table = table.expand(batch, *table.shape[1:]).reshape(batch * tokens, 2 * half)
        return cos, sin, torch.arange(batch * tokens, dtype=torch.int32, device=x.device), table


_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj", "head_dim", "scaling", "layer_idx",
              "attention_dropout", "config")


def is_layer(module: Any, norm: type, linears: tuple[type, ...]) -> bool:
    """Returns whether a module is a decoder layer of a Llama, whose norms and MLP were replaced."""
    attention: Any = getattr(module, "self_attn", None)
    if type(module).__name__ != "LlamaDecoderLayer" or type(attention).__name__ != "LlamaAttention":
        return False
    parts = [getattr(attention, name, None) for name in _ATTENTION[:4]]
    arguments = inspect.signature(type(module).forward).parameters
    return {name for name, _ in module.named_children()} == \
        {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"} \
        and {"past_key_values", "position_embeddings"} <= set(arguments) \
        and all(hasattr(attention, name) for name in _ATTENTION) \
        and {name for name, _ in attention.named_children()} == set(_ATTENTION[:4]) \
        and all(type(part) in linears for part in parts) and can_join(*parts[:3]) \
        and isinstance(module.mlp, GatedMLP) \
        and isinstance(module.input_layernorm, norm) \
        and isinstance(module.post_attention_layernorm, norm) \
        and not any(has_hooks(one) for one in module.modules() if one is not module)


def fuse(layer: Any) -> Callable[[], None]:
    """Fuses a decoder layer in place, and returns a function that undoes it."""
    own = type(layer)
    layer.__class__ = type(own.__name__, (FusedLayer, own), {"__module__": own.__module__})
    layer._joined = {"qkv": tuple(getattr(layer.self_attn, name) for name in _ATTENTION[:3])}
    layer.join()
    hook = layer.register_load_state_dict_post_hook(_loaded)

    def undo() -> None:
        hook.remove()
        layer.separate()
        del layer._joined
        layer.__class__ = own

    return undo


def fuse_rotary(rotary: Any) -> Callable[[], None]:
    """Makes a rotary embedding return what fused layers use, and returns a function that undoes it."""
    own = type(rotary)
    rotary.__class__ = type(own.__name__, (Rotary, own), {"__module__": own.__module__})

    def undo() -> None:
        rotary.__class__ = own

    return undo
