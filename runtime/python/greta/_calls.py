"""How methods call the operations of greta.h."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Union

from ._library import runtime_library
from .tensor import Tensor, wrap

if TYPE_CHECKING:
    from .runtime import Runtime

# A tensor, or an object whose memory is used in place (Runtime.wrap()).
Operand = Union[Tensor, Any]


class Calls:
    """Calls operations with what receives them: a runtime, a queue or a pipeline."""

    _runtime: Runtime
    _receiver: Any
    _stream: int | None  # for which libraries of other operands wait

    def _recorded(self) -> None:
        """Called after each operation."""

    def _operand(self, given: Operand | None, name: str) -> Tensor | None:
        if given is None or isinstance(given, Tensor):
            return given
        return wrap(self._runtime, self._runtime._handle, given, self._stream, name)

    def _call(self, name: str, operands: dict[str, Operand | None], *rest: Any,
              options: dict[str, Any] | None = None) -> None:
        """Calls an operation. `options` are the fields of its struct; tensors among them are
        operands."""
        library = runtime_library()
        held = [self._operand(given, key) for key, given in operands.items()]
        arguments = [one._handle if one is not None else None for one in held]
        if options is not None:
            kind = {"layernorm": "norm", "rmsnorm": "norm", "add_rmsnorm": "norm",
                    "layernorm_rmsnorm": "norm", "quantized_gemm_fused": "quantized_gemm"}.get(name, name)
            struct = getattr(library, f"greta_{kind}_defaults")()
            fields = dict(struct._fields_)
            for key, value in options.items():
                if fields[key] is ctypes.c_void_p:
                    held.append(self._operand(value, key))
                    value = held[-1]._handle if held[-1] is not None else None
                setattr(struct, key, value)
            rest += (ctypes.byref(struct),)
        library.call("greta_" + name, self._receiver, *arguments, *rest)
        self._recorded()
