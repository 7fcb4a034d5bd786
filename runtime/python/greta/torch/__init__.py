"""GRETA's operations in PyTorch: custom operations that torch.compile keeps in its graphs.

    import greta.torch

    y = greta.torch.linear(x, weight, activation="silu")
    patched = greta.torch.patch(model)          # a Llama of Hugging Face's transformers
    with greta.torch.capture("shapes.jsonl"):   # for greta-tune from-capture
        model(**inputs)

Tensors are used in place, on torch's current stream, also while it captures a graph. Each problem
is measured once as GRETA and as torch run it, and GRETA runs it if it is not slower; configure()
changes that. docs/python.md describes the module.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    from ..errors import UnavailableError
    raise UnavailableError(f"greta.torch needs PyTorch: {_error}") from None

from ..frameworks import Capture, Decision
from .attention import register_attention
from .capturing import capture
from .execution import Choice, choices, configure
from .functions import (add_rms_norm, layer_norm, linear, rms_norm, rope,
                        scaled_dot_product_attention, silu_mul, softmax)
from .modules import Patched, patch

__all__ = [
    "Capture", "Choice", "Decision", "Patched", "add_rms_norm", "capture", "choices", "configure",
    "layer_norm", "linear", "patch", "register_attention", "rms_norm", "rope",
    "scaled_dot_product_attention", "silu_mul", "softmax",
]
