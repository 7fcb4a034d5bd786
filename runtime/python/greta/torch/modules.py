"""patch(): GRETA's operations in place of a Llama's modules, of Hugging Face's transformers."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import torch

from ..errors import InvalidArgumentError, UnavailableError
from .functions import linear, rms_norm, scaled_dot_product_attention

ATTENTION = "greta"  #: the name of the attention implementation in transformers


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
        self.weight, self.eps = other.weight, epsilon_of(other)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns the norm of the last dimension."""
        return rms_norm(input, self.weight, self.eps)


class GatedMLP(torch.nn.Module):
    """A Llama's MLP, down(silu(gate(x)) up(x)), whose gates are activated by their product."""

    def __init__(self, other: Any):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = other.gate_proj, other.up_proj, other.down_proj

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns down(silu(gate(x)) up(x))."""
        gates = linear(x, self.gate_proj.weight, self.gate_proj.bias, activation="silu")
        return self.down_proj(gates * self.up_proj(x))


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
        and all(type(part) in (torch.nn.Linear, Linear) for part in parts)


@dataclasses.dataclass
class Patched:
    """What patch() replaced: the number of modules of each kind. undo() restores the model."""
    model: Any
    linear: int = 0
    rms_norm: int = 0
    mlp: int = 0
    attention: bool = False
    _replaced: list[tuple[Any, str, Any]] = dataclasses.field(default_factory=list, repr=False)
    _implementation: str | None = dataclasses.field(default=None, repr=False)

    def undo(self) -> None:
        """Restores the replaced modules and the attention implementation."""
        for parent, name, module in reversed(self._replaced):
            setattr(parent, name, module)
        self._replaced.clear()
        if self.attention:
            _set_attention(self.model, self._implementation)
        self.linear = self.rms_norm = self.mlp = 0
        self.attention = False


def patch(model: Any, *, linear: bool = True, rms_norm: bool = True, mlp: bool = True,
          attention: bool = True) -> Patched:
    """Replaces modules of a Hugging Face Llama by GRETA's operations, in place: linear layers, RMS
    norms, MLPs (whose gates' activation becomes an epilogue), and attention through transformers'
    attention interface. Parameters are shared and keep their names. A model may be patched before
    torch.compile. Raises InvalidArgumentError if nothing was found to replace."""
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
    if not (patched._replaced or patched.attention):
        raise InvalidArgumentError(f"{type(model).__name__} has no modules that GRETA replaces")
    return patched


def _replace(patched: Patched, chosen: Callable[[Any], bool], made: Callable[[Any], Any]) -> int:
    count = 0
    for parent in list(patched.model.modules()):
        for name, child in list(parent.named_children()):
            if chosen(child):
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


def attention_forward(module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                      attention_mask: torch.Tensor | None, scaling: float | None = None,
                      dropout: float = 0.0, is_causal: bool | None = None,
                      **options: Any) -> tuple[torch.Tensor, None]:
    """The function of transformers' attention interface. Masks that are lengths of caches
    (attention_mask()) are GRETA's; with other masks and options, transformers' own function runs."""
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    lengths = None
    if attention_mask is not None and attention_mask.dtype == torch.int32:
        lengths = attention_mask.to(query.device).reshape(-1)
    queries, keys = query.shape[2], key.shape[2]
    others = (attention_mask is not None and lengths is None) or dropout != 0.0 \
        or options.get("softcap") is not None or options.get("s_aux") is not None \
        or (lengths is None and causal and queries > 1 and queries != keys)
    if others:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout,
                                      scaling=scaling, is_causal=is_causal, **options)
    y = scaled_dot_product_attention(query, key, value, lengths=lengths, scale=scaling,
                                     is_causal=bool(causal) and queries > 1)
    return y.transpose(1, 2), None


def attention_mask(*arguments: Any, **options: Any) -> torch.Tensor | None:
    """The function of transformers' mask interface: the valid lengths of caches that hold more keys,
    i32 [batch, 1, 1, 1], if the mask is causal and nothing is padded; else what `sdpa` uses."""
    from transformers import masking_utils
    lengths = None if arguments else lengths_of(masking_utils.causal_mask_function, options)
    return masking_utils.sdpa_mask(*arguments, **options) if lengths is None else lengths


def lengths_of(causal_mask: Any, options: dict[str, Any]) -> torch.Tensor | None:
    """Returns the lengths that a mask stands for; None where it is not made of lengths alone.
    `options` are those of transformers' mask functions, `causal_mask` its causal pattern."""
    if options.get("mask_function", causal_mask) is not causal_mask \
            or options.get("local_size") is not None or options.get("kv_offset", 0) != 0 \
            or not all(name in options for name in ("batch_size", "q_length", "kv_length")):
        return None
    end, padding = options.get("q_offset", 0) + options["q_length"], options.get("attention_mask")
    if not isinstance(end, torch.Tensor) and end == options["kv_length"]:
        return None  # sdpa_mask() tells whether a mask is needed
    if padding is not None and (_is_traced() or padding.dim() != 2
                                or not bool(padding[:, :int(end)].all())):
        return None
    device = options.get("device", padding.device if padding is not None else "cpu")
    lengths = torch.as_tensor(end, dtype=torch.int32, device=device)
    return lengths.reshape(1, 1, 1, 1).repeat(options["batch_size"], 1, 1, 1)


def _is_traced() -> bool:
    """Returns whether torch.compile traces, or a graph is captured: values can't be read then."""
    compiler = getattr(torch, "compiler", None)
    if compiler is not None and compiler.is_compiling():
        return True
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def register_attention() -> None:
    """Makes `attn_implementation="greta"` known to transformers; patch() does."""
    try:
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface
    except ImportError as error:
        raise UnavailableError(f"transformers with attention interfaces is needed: {error}") from None
    AttentionInterface.register(ATTENTION, attention_forward)
    AttentionMaskInterface.register(ATTENTION, attention_mask)
