"""capture(): records the problems that a model runs, for `greta-tune from-capture`."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Iterator

import torch
import torch.nn.functional as functional
from torch.overrides import TorchFunctionMode

from ..errors import InvalidArgumentError
from ..frameworks import Capture, problems
from . import execution
from .execution import DTYPES


def _linear(input: Any, weight: Any, bias: Any = None) -> str:
    return problems.gemm(input.numel() // input.shape[-1], weight.shape[0], weight.shape[1],
                         dtype=DTYPES[input.dtype], layout="nt", bias=bias is not None)


def _matmul(a: Any, b: Any) -> str | None:
    if b.dim() != 2 or a.dim() < 2:
        return None
    transposed = not b.is_contiguous() and b.t().is_contiguous()
    return problems.gemm(a.numel() // a.shape[-1], b.shape[1], b.shape[0], dtype=DTYPES[a.dtype],
                         layout="nt" if transposed else "nn")


def _softmax(input: Any, dim: int | None = None, *_: Any, **options: Any) -> str | None:
    if dim not in (-1, input.dim() - 1) or options.get("dtype") not in (None, input.dtype):
        return None
    return problems.softmax(input.numel() // input.shape[-1], input.shape[-1],
                            dtype=DTYPES[input.dtype])


def _layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None,
                eps: float = 1e-5, *_: Any) -> str | None:
    if len(normalized_shape) != 1 or (bias is not None and weight is None):
        return None
    return problems.layernorm(input.numel() // input.shape[-1], input.shape[-1],
                              dtype=DTYPES[input.dtype], weight=weight is not None,
                              bias=bias is not None, epsilon=eps)


def _rms_norm(input: Any, normalized_shape: Any, weight: Any = None,
              eps: float | None = None) -> str | None:
    if len(normalized_shape) != 1:
        return None
    return problems.rmsnorm(input.numel() // input.shape[-1], input.shape[-1],
                            dtype=DTYPES[input.dtype], weight=weight is not None,
                            epsilon=torch.finfo(input.dtype).eps if eps is None else eps)


def _attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
               is_causal: bool = False, scale: float | None = None,
               enable_gqa: bool = False) -> str | None:
    if attn_mask is not None or dropout_p != 0 or query.dim() != 4:
        return None
    if is_causal and query.shape[2] != key.shape[2]:
        return None  # torch's mask begins with the first key, GRETA's ends with the last
    return problems.attention(query.shape[0], query.shape[1], key.shape[1], query.shape[2],
                              key.shape[2], query.shape[3], dtype=DTYPES[query.dtype],
                              v_dim=value.shape[3], scale=scale, causal=is_causal)


_PROBLEMS: dict[Callable[..., Any], Callable[..., str | None]] = {
    functional.linear: _linear, torch.mm: _matmul, torch.matmul: _matmul,
    torch.Tensor.matmul: _matmul, torch.Tensor.__matmul__: _matmul,
    functional.softmax: _softmax, torch.softmax: _softmax, torch.Tensor.softmax: _softmax,
    functional.layer_norm: _layer_norm,
}
_NEWER: tuple[tuple[str, Callable[..., str | None]], ...] = (
    ("rms_norm", _rms_norm), ("scaled_dot_product_attention", _attention))
for _name, _problem in _NEWER:
    if hasattr(functional, _name):
        _PROBLEMS[getattr(functional, _name)] = _problem


class _Functions(TorchFunctionMode):
    """Sees the functions of torch that a model calls. What is GRETA's is counted where it runs."""

    def __init__(self, capture: Capture):
        super().__init__()
        self.capture = capture

    def __torch_function__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        problem = _PROBLEMS.get(function)
        if problem is not None and not execution.is_inside() and args and getattr(args[0], "dtype", None) in DTYPES \
                and args[0].numel() > 0:
            text = problem(*args, **(kwargs or {}))
            if text is not None:
                self.capture.add(text)
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def capture(path: str | os.PathLike[str] | None = None,
            device: torch.device | str | None = None) -> Iterator[Capture]:
    """Records the problems that run within: those of GRETA's operations, also in models that are
    patched or compiled, and in others those of torch's linear, matmul, softmax, layer_norm,
    rms_norm and scaled_dot_product_attention, as far as GRETA has the operation.

        with greta.torch.capture("shapes.jsonl"):
            model.generate(**inputs)

    At the end the file is written, if a path is given; `greta-tune from-capture` tunes it.
    device: that of the model, by default the current GPU, else the CPU.
    """
    recorded = _Canonical(device)
    execution.captures.append(recorded)
    try:
        with _Functions(recorded):
            yield recorded
    finally:
        execution.captures.remove(recorded)
    if path is not None:
        recorded.write(path, recorded.runtime.describe())


class _Canonical(Capture):
    """A capture that spells problems as databases do. Problems that GRETA can't run are left out,
    and listed in `refused` with the reason."""

    def __init__(self, device: torch.device | str | None):
        super().__init__()
        if device is None:
            device = f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "cpu"
        self.refused: dict[str, str] = {}
        self.runtime = execution.device_of(torch.empty(0, device=device)).runtime
        self._keys: dict[str, str | None] = {}

    def add(self, problem: str) -> None:
        if problem not in self._keys:
            try:
                self._keys[problem] = self.runtime.problem(problem)
            except InvalidArgumentError as error:
                self._keys[problem] = None
                self.refused[problem] = str(error)
        key = self._keys[problem]
        if key is not None:
            super().add(key)
