"""patch(): GRETA's operations in place of a Llama's modules, of Hugging Face's transformers."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import torch

from ..errors import InvalidArgumentError
from .attention import ATTENTION, register_attention
from .functions import linear, rms_norm
from .layers import GatedMLP, can_join, fuse, fuse_rotary, has_hooks, is_layer


class Linear(torch.nn.Module):
    """A linear layer with the parameters of another one."""

    def __init__(self, other: torch.nn.Linear):
        super().__init__()
        self.in_features, self.out_features = other.in_features, other.out_features
        self.weight, self.bias = other.weight, other.bias

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns input weightᵀ + bias."""
        return linear(input, self.weight, self.bias)


class RMSNorm(torch.nn.Module):
    """An RMS norm with the weight of another one."""

    def __init__(self, other: Any):
        super().__init__()
        self.weight, self.eps = other.weight, epsilon_of(other) or 0.0

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns the norm of the last dimension."""
        return rms_norm(input, self.weight, self.eps)


def epsilon_of(module: Any) -> float | None:
    """Returns the epsilon of a module that is an RMS norm of a Llama by its form; None if it isn't."""
    names = [name for name, _ in module.named_parameters(recurse=False)]
    if not type(module).__name__.endswith("RMSNorm") or names != ["weight"]:
        return None
    return getattr(module, "variance_epsilon", getattr(module, "eps", None))


def _is_gated_mlp(module: Any) -> bool:
    parts = [getattr(module, name, None) for name in ("gate_proj", "up_proj", "down_proj")]
    activation = type(getattr(module, "act_fn", None)).__name__
    return activation in ("SiLU", "SiLUActivation") and {name for name, _ in module.named_children()} \
        <= {"gate_proj", "up_proj", "down_proj", "act_fn"} \
        and all(type(part) in (torch.nn.Linear, Linear) for part in parts) and can_join(*parts[:2])


@dataclasses.dataclass
class Patched:
    """What patch() replaced: the number of modules of each kind. undo() restores the model."""
    model: Any
    linear: int = 0
    rms_norm: int = 0
    mlp: int = 0
    layers: int = 0
    attention: bool = False
    _replaced: list[tuple[Any, str, Any]] = dataclasses.field(default_factory=list, repr=False)
    _implementation: str | None = dataclasses.field(default=None, repr=False)
    _undo: list[Callable[[], None]] = dataclasses.field(default_factory=list, repr=False)

    def undo(self) -> None:
        """Restores the replaced modules and the attention implementation."""
        for undo in self._undo:
            undo()
        self._undo.clear()
        for parent, name, module in reversed(self._replaced):
            current = getattr(parent, name)
            if isinstance(current, GatedMLP):
                current.separate()
            setattr(parent, name, module)
        self._replaced.clear()
        if self.attention:
            _set_attention(self.model, self._implementation)
        self.linear = self.rms_norm = self.mlp = self.layers = 0
        self.attention = False


def patch(model: Any, *, linear: bool = True, rms_norm: bool = True, mlp: bool = True,
          attention: bool = True, layers: bool = True) -> Patched:
    """Replaces modules of a Hugging Face Llama by GRETA's operations, in place: linear layers, RMS
    norms, MLPs (gates and up become one product with its activation), attention through
    transformers' attention interface, and, where all of these were replaced, decoder layers (queries,
    keys and values become one product, and residuals are added by the products before them).
    Modules with hooks stay.
    Parameters are shared and keep their names; joined ones get memory of their own again by undo().
    A model may be patched before torch.compile. Raises InvalidArgumentError if nothing was found to
    replace."""
    patched = Patched(model)
    if linear:
        patched.linear = _replace(patched, lambda one: type(one) is torch.nn.Linear, Linear)
    if rms_norm:
        patched.rms_norm = _replace(patched, lambda one: epsilon_of(one) is not None
                                    and not isinstance(one, RMSNorm), RMSNorm)
    if mlp:
        patched.mlp = _replace(patched, _is_gated_mlp, GatedMLP)
    if attention and hasattr(model, "config") and hasattr(model.config, "_attn_implementation"):
        register_attention()
        patched._implementation = model.config._attn_implementation
        _set_attention(model, ATTENTION)
        patched.attention = True
        if layers:
            _fuse(patched)
    if not (patched._replaced or patched.attention):
        raise InvalidArgumentError(f"{type(model).__name__} has no modules that GRETA replaces")
    return patched


def _fuse(patched: Patched) -> None:
    """Fuses decoder layers, and rotary embeddings if there are no others."""
    all_layers = [one for one in patched.model.modules() if type(one).__name__ == "LlamaDecoderLayer"]
    chosen = [one for one in all_layers if is_layer(one, RMSNorm, (torch.nn.Linear, Linear))]
    patched._undo += [fuse(one) for one in chosen]
    patched.layers = len(chosen)
    if chosen and len(chosen) == len(all_layers):
        patched._undo += [fuse_rotary(one) for one in patched.model.modules()
                          if type(one).__name__ == "LlamaRotaryEmbedding"]


def _replace(patched: Patched, chosen: Callable[[Any], bool], made: Callable[[Any], Any]) -> int:
    count = 0
    for parent in list(patched.model.modules()):
        for name, child in list(parent.named_children()):
            if chosen(child) and not has_hooks(child):
                new = made(child)
                new.train(child.training)
                setattr(parent, name, new)
                patched._replaced.append((parent, name, child))
                count += 1
    return count


def _set_attention(model: Any, name: str | None) -> None:
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation(name)
    else:
        model.config._attn_implementation = name
