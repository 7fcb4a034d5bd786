"""Tensors in device memory."""

from __future__ import annotations

import ctypes
import itertools
import os
import weakref
from typing import TYPE_CHECKING, Any, Sequence

from . import _abi
from ._dlpack import FORMATS, SIZES, Foreign, describe
from ._library import runtime_library
from .errors import InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from .runtime import Runtime

DTYPES = tuple(SIZES)  # in the order of greta_dtype
NUMPY = {"f32": "float32", "f16": "float16", "bf16": "uint16", "i32": "int32", "f64": "float64",
          "i64": "int64", "u32": "uint32", "i8": "int8", "u8": "uint8"}
_TYPESTR = {"f32": "<f4", "f16": "<f2", "bf16": "<V2", "i32": "<i4", "f64": "<f8", "i64": "<i8",
            "u32": "<u4", "i8": "|i1", "u8": "|u1"}
_FORMAT = {"f32": "f", "f16": "e", "i32": "i", "f64": "d", "i64": "q", "u32": "I", "i8": "b", "u8": "B"}

# The foreign memory that GRETA uses, by the number that is passed with its release function.
_in_use: dict[int, Foreign] = {}
_numbers = itertools.count(1)


@_abi.RELEASE  # type: ignore[misc]
def _release(number: int) -> None:
    _in_use.pop(number).release()


def choose(names: Sequence[str], given: str, what: str) -> int:
    """Returns the number of a name. Raises InvalidArgumentError for other names."""
    if given not in names:
        raise InvalidArgumentError(f"{what} is {given!r}; there are {', '.join(names)}")
    return names.index(given)


def extents(shape: Sequence[int]) -> Any:
    """Returns the extents of a shape as an array of int64_t."""
    try:
        return (ctypes.c_int64 * len(shape))(*shape)
    except TypeError:
        raise InvalidArgumentError(f"shape is {shape!r}, but it must be a list of integers") from None


def packed(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides in elements of a packed row-major tensor."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Tensor:
    """A view of memory: element type, shape of up to four dimensions, strides in elements.

    Runtime.empty(), tensor() and wrap() and Pipeline.temporary() make tensors. Slices and reshape()
    are views of the same memory. A tensor keeps its runtime's device open.
    """

    def __init__(self, runtime: Runtime, handle: Any, dtype: str, shape: Sequence[int],
                 strides: Sequence[int] | None = None):
        self.runtime = runtime
        self.dtype = dtype
        self.shape = tuple(shape)
        self.strides = tuple(strides) if strides is not None else packed(self.shape)
        self._owned = handle
        self._finalizer = weakref.finalize(self, runtime_library().greta_tensor_release, handle)

    @property
    def _handle(self) -> Any:
        # An operand that may be absent is None: a released tensor must not be taken for that.
        if self._owned is None:
            raise InvalidArgumentError(f"{self!r} is released")
        return self._owned

    @property
    def nbytes(self) -> int:
        """The size of the elements when packed."""
        bytes_ = ctypes.c_size_t()
        runtime_library().call("greta_tensor_describe", self._handle, None, None, None,
                               ctypes.byref(bytes_))
        return bytes_.value

    @property
    def contiguous(self) -> bool:
        """Whether the elements are packed and row-major."""
        return all(extent == 1 or stride == expected for extent, stride, expected
                   in zip(self.shape, self.strides, packed(self.shape)))

    @property
    def address(self) -> int:
        """The device address of the first element."""
        address = ctypes.c_uint64()
        runtime_library().call("greta_tensor_address", self._handle, ctypes.byref(address))
        return address.value

    def release(self) -> None:
        """Releases the tensor now; otherwise Python does when it is no longer used."""
        self._finalizer()
        self._owned = None

    def __getitem__(self, index: Any) -> Tensor:
        """Returns the view of a range of each dimension: `x[2:6, :8]`. Steps are 1."""
        ranges = index if isinstance(index, tuple) else (index,)
        if len(ranges) > len(self.shape) or not all(isinstance(one, slice) for one in ranges):
            raise InvalidArgumentError(
                f"[{index!r}] of a tensor of shape {list(self.shape)}: there is a range for each "
                "dimension, as [2:6, :8]")
        view = self
        for dim, one in enumerate(ranges):
            first, end, step = one.indices(self.shape[dim])
            if step != 1:
                raise InvalidArgumentError(f"a step of {step} in dimension {dim}: steps are 1")
            if first >= end:
                raise InvalidArgumentError(
                    f"{one.start}:{one.stop} has no index of dimension {dim} of {self!r}")
            if (first, end) != (0, self.shape[dim]):
                view = view._part(dim, first, end - first)
        return view

    def _part(self, dim: int, first: int, count: int) -> Tensor:
        handle = ctypes.c_void_p()
        runtime_library().call("greta_tensor_slice", self._handle, dim, first, count,
                               ctypes.byref(handle))
        shape = self.shape[:dim] + (count,) + self.shape[dim + 1:]
        return Tensor(self.runtime, handle, self.dtype, shape, self.strides)

    def reshape(self, *shape: Any) -> Tensor:
        """Returns a view with other extents and the same elements in order."""
        wanted = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        handle = ctypes.c_void_p()
        runtime_library().call("greta_tensor_reshape", self._handle, extents(wanted), len(wanted),
                               ctypes.byref(handle))
        return Tensor(self.runtime, handle, self.dtype, wanted)

    def upload(self, data: Any) -> Tensor:
        """Copies packed elements from a buffer, and returns the tensor. Waits for the runtime's
        queues before."""
        content = memoryview(data).tobytes()
        self.runtime.settle()
        runtime_library().call("greta_tensor_upload", self._handle, content, len(content))
        return self

    def download(self) -> bytearray:
        """Returns a copy of the packed elements. Waits for the runtime's queues before."""
        content = bytearray(self.nbytes)
        self.runtime.settle()
        pointer = (ctypes.c_char * len(content)).from_buffer(content)
        runtime_library().call("greta_tensor_download", self._handle, pointer, len(content))
        return content

    def numpy(self) -> Any:
        """Returns a copy as a numpy array; of bf16, as float32, which has all its values."""
        numpy = numpy_module()
        array = numpy.frombuffer(self.download(), dtype=NUMPY[self.dtype]).reshape(self.shape)
        if self.dtype == "bf16":
            return (array.astype("uint32") << 16).view("float32")
        return array

    def host(self) -> memoryview:
        """Returns the elements in place, for staging memory and devices that share the host's; of
        bf16, as bytes. The view is valid as long as the tensor. Raises InvalidArgumentError for
        other memory. Synchronise queues before."""
        pointer = ctypes.c_void_p()
        runtime_library().call("greta_tensor_host", self._handle, ctypes.byref(pointer))
        if not self.contiguous:
            raise InvalidArgumentError(f"{self!r} has strides {list(self.strides)}; only packed "
                                       "tensors have a host view")
        array = (ctypes.c_char * self.nbytes).from_address(pointer.value or 0)
        setattr(array, "_tensor", self)  # the memory exists as long as the view
        view = memoryview(array).cast("B")
        return view.cast(_FORMAT[self.dtype], self.shape) if self.dtype in _FORMAT else view

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Describes the memory to libraries of HIP and CUDA, as torch.as_tensor() reads it."""
        if not self.runtime.device.startswith("hip:"):
            raise AttributeError(f"{self.runtime.device} has no memory of HIP or CUDA")
        size = SIZES[self.dtype]
        return {"version": 3, "shape": self.shape, "typestr": _TYPESTR[self.dtype],
                "data": (self.address, False), "stream": None,
                "strides": tuple(stride * size for stride in self.strides)}

    def __repr__(self) -> str:
        return f"<greta.Tensor {self.dtype} {list(self.shape)} on {self.runtime.device}>"


def numpy_module() -> Any:
    """Returns numpy. Raises UnavailableError if it is not installed."""
    try:
        import numpy
    except ImportError:
        raise UnavailableError("numpy is not installed; download() returns bytes without it") from None
    return numpy


def allocate(runtime: Runtime, handle: Any, shape: int | Sequence[int], dtype: str,
             staging: bool) -> Tensor:
    """Allocates an uninitialised tensor."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    made = ctypes.c_void_p()
    runtime_library().call("greta_tensor_allocate", handle, choose(DTYPES, dtype, "dtype"),
                           extents(shape), len(shape), int(staging), ctypes.byref(made))
    return Tensor(runtime, made, dtype, shape)


def content_of(data: Any, dtype: str | None) -> tuple[str, tuple[int, ...], bytes]:
    """Returns the type, shape and packed elements of a buffer, which f32 to bf16 converts."""
    try:
        view: Any = memoryview(data)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"data is a {type(data).__name__} without a buffer ({error}); wrap() uses memory of a "
            "GPU in place") from None
    types = FORMATS | ({"H": "bf16"} if dtype == "bf16" else {})
    found = types.get(view.format)
    if found is None or dtype not in (None, found, "bf16"):
        raise InvalidArgumentError(
            f"data has elements of format {view.format!r}, which are no {dtype or ', '.join(DTYPES)}")
    if dtype == "bf16" and found != "bf16":
        return "bf16", tuple(view.shape), _rounded(view, found)
    return found, tuple(view.shape), view.tobytes()


def _rounded(view: memoryview, found: str) -> bytes:
    """Converts f32 to bf16, to nearest even."""
    if found != "f32":
        raise InvalidArgumentError(f"data of {found} can't become bf16; f32 can")
    numpy = numpy_module()
    values = numpy.frombuffer(view.tobytes(), dtype="float32")
    bits = values.view("uint32").astype("uint64")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return numpy.where(numpy.isnan(values), 0x7FC0, rounded).astype("uint16").tobytes()


def wrap(runtime: Runtime, handle: Any, given: Any, stream: int | None, what: str) -> Tensor:
    """Returns a tensor in another library's memory, which it uses in place."""
    foreign = describe(given, stream, what)
    try:
        _check_place(runtime, foreign, what)
        strides = None if foreign.strides is None else extents(foreign.strides)
        number = next(_numbers)
        made = ctypes.c_void_p()
        _in_use[number] = foreign
        try:
            runtime_library().call(
                "greta_tensor_wrap", handle, DTYPES.index(foreign.dtype), extents(foreign.shape),
                strides, len(foreign.shape), foreign.address, _release, number, ctypes.byref(made))
        except BaseException:
            del _in_use[number]
            raise
    except BaseException:
        foreign.release()
        raise
    return Tensor(runtime, made, foreign.dtype, foreign.shape, foreign.strides)


def _check_place(runtime: Runtime, foreign: Foreign, what: str) -> None:
    """Raises InvalidArgumentError if the memory is of another device; greta_tensor_wrap() refuses
    that of other APIs."""
    kind, _, index = runtime.device.partition(":")
    if not foreign.on_gpu and kind != "hip-host":
        raise InvalidArgumentError(f"{what} is in host memory, which {runtime.device} does not use "
                                   "in place; runtime.tensor() copies it")
    if foreign.on_gpu and kind == "hip-host":
        raise InvalidArgumentError(f"{what} is in memory of a GPU, which {runtime.device} does not "
                                   "reach")
    if kind == "hip" and foreign.index is not None and foreign.index != int(index):
        raise InvalidArgumentError(f"{what} is on GPU {foreign.index}, not on {runtime.device}")


def path_of(path: str | os.PathLike[str] | None) -> bytes | None:
    """Returns a path as the C interface takes it."""
    return None if path is None else os.fsencode(path)
