"""Reads memory that other libraries describe: DLPack, __cuda_array_interface__, and buffers."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Callable

from .errors import InvalidArgumentError

CPU = (1,)  # kDLCPU
GPU = (2, 10, 13)  # kDLCUDA, kDLROCM, kDLCUDAManaged


class _Tensor(ctypes.Structure):
    """DLTensor"""
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    """DLManagedTensor"""


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]

_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.restype = ctypes.c_int
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_USED = b"used_dltensor"  # the capsule's name must outlive it

# Kinds: 0 int, 1 unsigned, 2 float, 4 bfloat.
_CODES = {(2, 32): "f32", (2, 16): "f16", (4, 16): "bf16", (0, 32): "i32", (2, 64): "f64",
          (0, 64): "i64", (1, 32): "u32", (0, 8): "i8", (1, 8): "u8"}
_TYPES = {"<f4": "f32", "<f2": "f16", "<i4": "i32", "<f8": "f64", "<i8": "i64", "<u4": "u32",
          "|i1": "i8", "|u1": "u8"}
FORMATS = {"f": "f32", "e": "f16", "i": "i32", "d": "f64", "l": "i64", "q": "i64", "I": "u32",
           "b": "i8", "B": "u8"}
SIZES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "f64": 8, "i64": 8, "u32": 4, "i8": 1, "u8": 1}


@dataclass
class Foreign:
    """A tensor in another library's memory."""
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None: packed
    address: int
    on_gpu: bool
    index: int | None  # of the GPU, if it is known
    release: Callable[[], None]  # ends the use of the memory


def _one_of(types: dict[Any, str], found: Any, what: str) -> str:
    if found not in types:
        raise InvalidArgumentError(
            f"{what} has elements of type {found}; there are {', '.join(SIZES)}")
    return types[found]


def _from_dlpack(given: Any, stream: int | None, what: str) -> Foreign:
    kind, index = given.__dlpack_device__()
    if kind not in CPU + GPU:
        raise InvalidArgumentError(f"{what} is on a device of DLPack's kind {kind}, which GRETA "
                                   "does not use")
    on_gpu = kind in GPU
    try:
        capsule = given.__dlpack__(stream=stream) if on_gpu and stream is not None \
            else given.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as error:
        raise InvalidArgumentError(f"{what}: {' '.join(str(error).split())}") from error
    pointer = _api.PyCapsule_GetPointer(capsule, b"dltensor")
    managed = ctypes.cast(pointer, ctypes.POINTER(_Managed))
    _api.PyCapsule_SetName(capsule, _USED)

    def release() -> None:
        if managed.contents.deleter:
            managed.contents.deleter(managed)

    tensor = managed.contents.tensor
    try:
        dtype = _one_of(_CODES, (tensor.code, tensor.bits) if tensor.lanes == 1 else None, what)
    except InvalidArgumentError:
        release()
        raise
    shape = tuple(tensor.shape[:tensor.ndim])
    strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else None
    return Foreign(dtype, shape, strides, (tensor.data or 0) + tensor.byte_offset, on_gpu,
                   index, release)


def _from_array_interface(given: Any, what: str) -> Foreign:
    interface = given.__cuda_array_interface__
    dtype = _one_of(_TYPES, interface["typestr"], what)
    strides = interface.get("strides")
    if strides is not None:
        if any(stride % SIZES[dtype] for stride in strides):
            raise InvalidArgumentError(f"{what}: strides of {strides} bytes are not whole elements")
        strides = tuple(stride // SIZES[dtype] for stride in strides)
    keep = [given]
    return Foreign(dtype, tuple(interface["shape"]), strides, interface["data"][0], True, None,
                   keep.clear)


def _from_buffer(given: Any, what: str) -> Foreign:
    view: Any = memoryview(given)
    dtype = _one_of(FORMATS, view.format, what)
    if view.readonly:
        view.release()
        raise InvalidArgumentError(f"{what} is read-only memory, which kernels could write")
    strides = tuple(stride // view.itemsize for stride in view.strides)
    exact = all(stride % view.itemsize == 0 for stride in view.strides)
    shape = tuple(view.shape)
    if not exact or view.nbytes == 0:
        view.release()
        raise InvalidArgumentError(f"{what}: {shape} with strides of {strides} elements can't be "
                                   "used in place")
    # The buffer's address is that of its first element, which may be part of a larger one.
    pointer = _Buffer()
    _api.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(pointer), _STRIDED)
    address = pointer.buf

    def release() -> None:
        _api.PyBuffer_Release(ctypes.byref(pointer))
        view.release()

    return Foreign(dtype, shape, strides, address, False, None, release)


class _Buffer(ctypes.Structure):
    """Py_buffer"""
    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)), ("internal", ctypes.c_void_p)]


_STRIDED = 0x0018 | 0x0004  # PyBUF_STRIDES | PyBUF_FORMAT
_api.PyObject_GetBuffer.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
_api.PyBuffer_Release.argtypes = [ctypes.c_void_p]
_api.PyBuffer_Release.restype = None


def is_foreign(given: Any) -> bool:
    """Returns whether an object describes memory in one of the three ways."""
    if hasattr(given, "__dlpack__") or hasattr(given, "__cuda_array_interface__"):
        return True
    try:
        memoryview(given).release()
    except TypeError:
        return False
    return True


def describe(given: Any, stream: int | None, what: str) -> Foreign:
    """Describes an object's memory without a copy. `stream` is that of the work that will use it,
    for which a GPU's library waits, if it knows how. Raises InvalidArgumentError."""
    if hasattr(given, "__dlpack__") and given.__dlpack_device__()[0] not in CPU:
        return _from_dlpack(given, stream, what)
    if hasattr(given, "__cuda_array_interface__"):
        return _from_array_interface(given, what)
    try:
        memoryview(given).release()
    except TypeError:
        if hasattr(given, "__dlpack__"):
            return _from_dlpack(given, None, what)
        raise InvalidArgumentError(
            f"{what} is a {type(given).__name__}, which has neither DLPack nor "
            "__cuda_array_interface__ nor a buffer") from None
    except ValueError as error:
        raise InvalidArgumentError(f"{what}: {error}") from None
    return _from_buffer(given, what)
