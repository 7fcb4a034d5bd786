"""GRETA's attention in transformers' attention interface."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UnavailableError
from .functions import scaled_dot_product_attention

ATTENTION = "greta"  #: the name of the attention implementation in transformers


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
    if padding is not None and (is_traced() or padding.dim() != 2
                                or not bool(padding[:, :int(end)].all())):
        return None
    device = options.get("device", padding.device if padding is not None else "cpu")
    lengths = torch.as_tensor(end, dtype=torch.int32, device=device)
    return lengths.reshape(1, 1, 1, 1).repeat(options["batch_size"], 1, 1, 1)


def is_compiling() -> bool:
    """Returns whether torch.compile traces."""
    compiler = getattr(torch, "compiler", None)
    return compiler is not None and bool(compiler.is_compiling())


def is_traced() -> bool:
    """Returns whether torch.compile traces, or a graph is captured: values can't be read then."""
    if is_compiling():
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
