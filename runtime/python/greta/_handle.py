"""Handles of the C interface."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from .errors import InvalidArgumentError


class Handle:
    """Owns a handle, which `close` releases, at the latest when the object is no longer used."""

    def _own(self, handle: ctypes.c_void_p, release: Any) -> None:
        self._owned: ctypes.c_void_p | None = handle
        self._finalizer = weakref.finalize(self, release, handle)

    @property
    def _handle(self) -> ctypes.c_void_p:
        if self._owned is None:
            raise InvalidArgumentError(f"the {type(self).__name__.lower()} is closed")
        return self._owned

    def close(self) -> None:
        """Releases the object. May be called again."""
        self._finalizer()
        self._owned = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
