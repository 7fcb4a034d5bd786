"""What bindings to frameworks such as greta.torch share, and what needs no framework: the problems
of their operations, stored decisions, and captures."""

from .captures import Capture
from .decisions import Decision, Decisions, default_decisions
from .problems import (add_rmsnorm, attention, gemm, layernorm, rmsnorm, rope, silu_mul,
                       softmax)

__all__ = [
    "Capture", "Decision", "Decisions", "add_rmsnorm", "attention", "default_decisions", "gemm",
    "layernorm", "rmsnorm", "rope", "silu_mul", "softmax",
]
