"""Kernels of your own, which description files describe (docs/your-kernel.md)."""

from __future__ import annotations

import ctypes
import dataclasses
import inspect
import json
import math
import os
import pathlib
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _abi
from ._folders import default_cache, default_database
from ._library import runtime_library
from .errors import InvalidArgumentError
from .tensor import DTYPES, NUMPY, Tensor, numpy_module, path_of

if TYPE_CHECKING:
    from ._calls import Operand
    from .runtime import Pipeline, Queue, Runtime

_READ = (_abi.ROLE["GRETA_TUNE_INPUT"], _abi.ROLE["GRETA_TUNE_INPUT_OUTPUT"])


@dataclasses.dataclass(frozen=True)
class Reference:
    """A Python function that computes which results of a kernel are correct, and how far from it
    an element may be: absolute + relative |reference|, and units in the last place."""
    function: Callable[..., Any]
    absolute: float = 0.0
    relative: float = 0.0
    ulp: float = 0.0


class Kernel:
    """A kernel that a file describes. kernel() makes kernels.

    A call runs it on all operands in the description's order, outputs included:

        add = greta.kernel("vector_add.jsonc", device="hip-host:0")
        add(a, b, c)

    Dimensions that are an extent of an operand are taken from its shape; others are keyword
    arguments, or have the description's defaults. `on` is a runtime, queue or pipeline that
    receives the operation, with operands used in place as those of other operations. Without it,
    the kernel runs on a runtime of its own and has finished when the call returns; arrays in host
    memory that the device can't use are copied to it, and outputs back.
    """

    def __init__(self, path: str | os.PathLike[str], runtime: Runtime):
        carried = isinstance(path, str) and not {".", "/"} & set(path)
        #: of the description; None: the kernel is one that a database carries
        self.path: pathlib.Path | None = None if carried else pathlib.Path(path).resolve()
        self.runtime = runtime  #: the kernel's own
        self.reference: Reference | None = None  #: of reference(); None: that of the description
        self._source = self.path or str(path)
        self.about: dict[str, Any] = _load(runtime, self._source)  #: names: the JSON object of greta_operation_load()
        self.name: str = self.about["name"]  #: of the operation
        self.operands: list[dict[str, Any]] = self.about["operands"]  #: with name, role, dtype and shape
        self.dimensions: list[dict[str, Any]] = self.about["dimensions"]  #: with name, default, least and most

    def problem(self, **dimensions: int) -> str:
        """Returns the key of the problem with these dimensions, as databases have it."""
        unknown = set(dimensions) - {one["name"] for one in self.dimensions}
        if unknown:
            raise InvalidArgumentError(
                f"{self.name} has no dimension {', '.join(sorted(unknown))}; there are "
                f"{', '.join(one['name'] for one in self.dimensions)}")
        words = [self.name, f"dtype={self.about['dtype']}", f"out={self.about['out']}"]
        for one in self.dimensions:
            extent = dimensions.get(one["name"], one["default"])
            if extent is None:
                raise InvalidArgumentError(
                    f"{self.name}: the dimension {one['name']} is not an operand's extent, so it "
                    f"must be given: {one['name']}=…")
            words.append(f"{one['name']}={extent}")
        return " ".join(words)

    def _dimensions(self, operands: Sequence[Any], given: dict[str, int]) -> dict[str, int]:
        if len(operands) != len(self.operands):
            raise InvalidArgumentError(
                f"{self.name} has {len(self.operands)} operands, "
                f"{', '.join(one['name'] for one in self.operands)}; {len(operands)} are given")
        names = {one["name"] for one in self.dimensions}
        found: dict[str, int] = {}
        for one, operand in zip(self.operands, operands):
            shape = _shape_of(operand, one["name"])
            if len(one["shape"]) == 1:
                shape = (math.prod(shape),)  # every view of the elements is fine
            if len(shape) != len(one["shape"]):
                continue
            for formula, extent in zip(one["shape"], shape):
                if formula in names:
                    found.setdefault(formula, extent)
        return {**found, **given}

    def __call__(self, *operands: Operand, on: Runtime | Queue | Pipeline | None = None,
                 **dimensions: int) -> None:
        """Runs the kernel on its operands in order."""
        problem = self.problem(**self._dimensions(operands, dimensions))
        if on is not None:
            _load(on._runtime, self._source)
            return on.run(problem, operands)
        runtime = self.runtime
        in_place = runtime.device.startswith(("hip:", "hip-host:"))
        held, results = [], []
        for one, operand in zip(self.operands, operands):
            copied = not isinstance(operand, Tensor) and not in_place
            held.append(_copy(runtime, operand, one) if copied else operand)
            if copied and one["role"] != "input":
                results.append((_writable(operand, one["name"]), held[-1]))
        runtime.run(problem, held)
        runtime.synchronize()
        for memory, tensor in results:
            memory[:] = tensor.download()  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = ", ".join(one["name"] for one in self.operands)
        return f"<greta.Kernel {self.name}({names}) on {self.runtime.device}>"


def _shape_of(operand: Any, name: str) -> tuple[int, ...]:
    shape: Any = getattr(operand, "shape", None)
    if shape is not None:
        return tuple(shape)
    try:
        return tuple(memoryview(operand).shape or ())
    except TypeError:
        raise InvalidArgumentError(
            f"{name} is of type {type(operand).__name__}, but it must be an array or a "
            "tensor") from None


def _copy(runtime: Runtime, operand: Any, described: dict[str, Any]) -> Tensor:
    return runtime.tensor(operand, "bf16" if described["dtype"] == "bf16" else None)


def _writable(operand: Any, name: str) -> memoryview:
    """Returns the bytes of an array that receives results."""
    memory = memoryview(operand)
    if memory.readonly or not memory.c_contiguous:
        reason = "is read-only" if memory.readonly else "is not contiguous"
        raise InvalidArgumentError(f"{name} receives results, but it {reason}")
    return memory.cast("B")


def _load(runtime: Runtime, path: pathlib.Path | str) -> dict[str, Any]:
    """Makes a description's operation known to a runtime, once."""
    if path not in runtime._kernels:
        text = ctypes.c_char_p()
        runtime_library().call("greta_operation_load", runtime._handle, path_of(path),
                               ctypes.byref(text))
        runtime._kernels[path] = json.loads(text.value or b"null")
    return runtime._kernels[path]


def kernel(path: str | os.PathLike[str], device: str = "auto", **options: Any) -> Kernel:
    """Returns the kernel that a file describes, for calls on arrays and for tune(). A name without
    '.' and '/' is that of a kernel that one of the runtime's databases carries.

    device, and further options such as db, cache: those of the kernel's own Runtime. Without `db`
    and `cache`, that runtime uses default_database(), where tune() stores winners, and
    default_cache(). A database that does not exist yet has no winners.
    """
    from .runtime import Runtime
    database = options.setdefault("db", default_database())
    if database is not None and not pathlib.Path(database).is_file():
        del options["db"]  # tune() creates it
    options.setdefault("cache", default_cache())
    return Kernel(path, Runtime(device, **options))


def reference(kernel: Kernel, *, absolute: float = 0.0, relative: float = 0.0,
              ulp: float = 0.0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a Python function the reference of a kernel: what tune() verifies results with.

        @greta.reference(add, relative=1e-6)
        def sum_of(a, b):
            return a.astype("float64") + b

    The function receives numpy arrays of the operands that the kernel reads, in order (bf16 as
    float32), and returns an array for each output, also in order: float64 arrays are not rounded to
    the output's type. Keyword-only parameters are dimensions of the problem: `def f(a, b, *, n)`.
    absolute, relative, ulp: how far an element may be from the function's, absolute + relative
    |reference|, and units in the last place; without them, the description says.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel.reference = Reference(function, absolute, relative, ulp)
        return function
    return decorate


def compute_reference(function: Callable[..., Any], problem: str, operands: Any,
                      count: int) -> None:
    """Calls a reference with the operands that greta_tune.h passes, and writes its results."""
    numpy = numpy_module()
    inputs, outputs = [], []
    for operand in operands[:count]:
        shape = tuple(operand.shape[:operand.rank])
        elements = 1
        for extent in shape:
            elements *= extent
        if operand.role in _READ:
            kind = numpy.dtype(NUMPY[DTYPES[operand.dtype]])
            content = ctypes.string_at(operand.input, elements * kind.itemsize)
            array = numpy.frombuffer(content, kind).reshape(shape)
            if DTYPES[operand.dtype] == "bf16":
                array = (array.astype("uint32") << 16).view("float32")
            inputs.append(array)
        if operand.expected:
            outputs.append((operand.name.decode(), shape,
                            numpy.ctypeslib.as_array(operand.expected, (elements,))))
    extents = dict(word.split("=", 1) for word in problem.split()[1:])
    named = {name: int(extents[name]) for name in _keywords(function) if name in extents}
    results = function(*inputs, **named)
    results = results if isinstance(results, (tuple, list)) else (results,)
    if len(results) != len(outputs):
        raise InvalidArgumentError(
            f"the reference returns {len(results)} arrays for {len(outputs)} outputs")
    for result, (name, shape, expected) in zip(results, outputs):
        array = numpy.asarray(result, dtype="float64")
        if array.shape != shape:
            raise InvalidArgumentError(
                f"the reference returns {name} of shape {list(array.shape)}, not {list(shape)}")
        expected[:] = array.reshape(-1)


def _keywords(function: Callable[..., Any]) -> list[str]:
    return [name for name, one in inspect.signature(function).parameters.items()
            if one.kind is one.KEYWORD_ONLY]
