"""Calls of operations on torch tensors. The first one with tensors of some shapes decides what runs
and makes a Call; each further one finds it, and passes addresses to the prepared problem."""

from __future__ import annotations

import dataclasses
import struct
from typing import Any, Callable, Sequence, Tuple

import torch

from .execution import (DTYPES, Device, calls, captures, device_of, inside, is_capturing,
                        is_inside, unrestricted_capture)

_ALIGNMENT = 16  # bytes, which kernels of any configuration may need
_PLAIN = (torch.Tensor, torch.nn.Parameter, type(None))
Tensors = Tuple[Any, ...]  # tensors, or None for those that are omitted


@dataclasses.dataclass(frozen=True)
class Plan:
    """How GRETA computes an operation on tensors of some shapes."""
    problem: str  #: as Runtime.lookup() takes it
    key: tuple[Any, ...]  #: of the decision, which tensors of other shapes may share
    operands: tuple[int, ...]  #: the tensors' indices in the problem's order; results follow
    results: tuple[Sequence[int], ...]  #: their shapes; they have the first tensor's type
    lengths: tuple[int, int] | None = None  #: operand -1: the number of its elements, and their value
    form: str = ""  #: what torch's time depends on beside the problem
    strided: bool = False  #: whether the first tensor is used with its strides, as the problem says


@dataclasses.dataclass(frozen=True, eq=False)
class Operation:
    """An operation on tensors, with options. plan() returns None for what GRETA has no problem for;
    framework() computes it otherwise."""
    name: str  #: in torch.ops.greta, whose arguments are the tensors, then the options
    plan: Callable[[Tensors, tuple[Any, ...]], Plan | None]
    framework: Callable[[Tensors, tuple[Any, ...]], Any]
    arguments: int | None = None  #: the number of options that are arguments; None: all


class Call:
    """What runs for tensors of known shapes, types and devices."""

    def __init__(self, device: Device, plan: Plan):
        self.device, self.plan, self.is_gpu = device, plan, device.is_gpu
        self.problem = plan.problem
        self.greta = (True, True)  #: whether GRETA runs it, launched one by one and in graphs
        self.count = len(plan.operands) + len(plan.results)
        self.pack = struct.Struct(f"={self.count}Q").pack
        self.prepared: Any = None

    def run(self, tensors: Tensors, capturing: bool) -> Any:
        """Runs GRETA's kernels, with results from torch's allocator."""
        prepared = self.prepared
        if prepared is None:
            prepared = self.prepared = self.device.prepare(self.plan.problem)
        addresses: list[int] = []
        copies = []
        for index in self.plan.operands:
            one: Any = tensors[index] if index >= 0 \
                else self.device.lengths(*(self.plan.lengths or (0, 0)), capturing)
            address = one.data_ptr()
            if address % _ALIGNMENT or not (one.is_contiguous() or (index == 0 and self.plan.strided)):
                one = one.clone(memory_format=torch.contiguous_format)
                address = one.data_ptr()
                copies.append(one)  # until the launch; the stream orders what reuses the memory
            addresses.append(address)
        first = tensors[0]
        results = [first.new_empty(shape) for shape in self.plan.results]
        for one in results:
            addresses.append(one.data_ptr())
        self.device.launch(prepared, self.pack(*addresses), self.count, capturing)
        return results[0] if len(results) == 1 else tuple(results)


def is_plain(tensors: Tensors) -> bool:
    """Returns whether the tensors are torch's own on CPUs and GPUs, and not of a subclass."""
    return all(type(one) in _PLAIN and (one is None or one.device.type in ("cpu", "cuda"))
               for one in tensors)


def call(operation: Operation, tensors: Tensors, options: tuple[Any, ...]) -> Any:
    """Runs an operation from outside of torch's dispatcher, which knows what to do with subclasses
    of tensors and with other devices."""
    key = (operation, options, *[one if one is None else (one.shape, one.dtype, one.device, type(one))
                                 for one in tensors])
    found = calls.get(key)
    if found is None and key not in calls and not is_plain(tensors):
        return getattr(torch.ops.greta, operation.name)(*tensors, *options[:operation.arguments])
    return _run(operation, tensors, options, key, found)


def run(operation: Operation, tensors: Tensors, options: tuple[Any, ...]) -> Any:
    """Runs an operation as was decided. Results are packed, as those of the fake kernels."""
    key = (operation, options, *[one if one is None else (one.shape, one.dtype, one.device, type(one))
                                 for one in tensors])
    return _run(operation, tensors, options, key, calls.get(key))


def _run(operation: Operation, tensors: Tensors, options: tuple[Any, ...], key: tuple[Any, ...],
         found: Call | None) -> Any:
    if found is None and key not in calls:
        first = tensors[0]
        found = _first(operation, tensors, options)
        if is_plain(tensors) and not is_capturing(first.device):
            calls[key] = found
    if found is None:
        return operation.framework(tensors, options)
    if captures and not is_inside():
        for capture in captures:
            capture.add(found.problem)
    capturing = found.is_gpu and torch.cuda.is_current_stream_capturing()
    if found.greta[capturing]:
        return found.run(tensors, capturing)
    if not captures:
        return operation.framework(tensors, options)
    with inside():
        return operation.framework(tensors, options)


def _first(operation: Operation, tensors: Tensors, options: tuple[Any, ...]) -> Call | None:
    """Makes the call of tensors, or returns None where torch runs them: those that GRETA has no
    problem for, and in a capture, those that nothing is known about."""
    first = tensors[0]
    if first.dtype not in DTYPES or any(
            one is not None and (one.numel() == 0 or one.device != first.device) for one in tensors):
        return None
    plan = operation.plan(tensors, options)
    if plan is None:
        return None
    device, capturing = device_of(first), is_capturing(first.device)
    key = (operation.name, *plan.key)
    if capturing and key not in device.choices and device.settings.mode != "greta":
        return None
    with unrestricted_capture(capturing):
        made = Call(device, plan)
        with inside():
            choice = device.choose(
                key, plan.problem, lambda: made.run(tensors, is_capturing(first.device)),
                lambda: operation.framework(tensors, options), plan.form)
    made.problem, made.greta = choice.problem, (choice.greta, choice.greta_in_graphs)
    return made
