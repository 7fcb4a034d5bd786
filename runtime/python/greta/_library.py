"""Finds, loads and checks libgreta.so and libgreta-tuner.so."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
import threading
from typing import Any, Callable, NoReturn

from . import _abi
from .errors import CLASSES, InternalError, UnavailableError

_NAMES = {_abi.STATUS[name]: error for name, error in CLASSES.items()}
PACKAGE = pathlib.Path(__file__).resolve().parent


def candidates(name: str, package: pathlib.Path = PACKAGE) -> list[pathlib.Path]:
    """Returns the files that may be the library `libNAME.so`: beside the package, then in the
    library folders of the prefixes that contain the package, the innermost first."""
    file = f"lib{name}.so.{_abi.ABI_VERSION}"
    places = [package / file]
    for prefix in package.parents:
        for folder in ("lib", "lib64"):
            if (prefix / folder).is_dir():
                places += [prefix / folder / file, *sorted((prefix / folder).glob(f"*-linux-*/{file}"))]
    return [place for place in places if place.is_file()]


def find(name: str) -> str:
    """Returns the path or the name of a library. Raises UnavailableError if there is none."""
    for place in candidates(name):
        return str(place)
    found = ctypes.util.find_library(name)
    if found is None:
        raise UnavailableError(
            f"lib{name}.so is not beside the package {PACKAGE}, in its prefix, or known to the "
            "system's loader; greta.load() takes its path")
    return found


class Library:
    """A loaded library: its functions by name, and its checks of statuses."""

    def __init__(self, path: str, functions: dict[str, Any], version: str, last_error: str):
        self.path = path
        try:
            self._library = ctypes.CDLL(path)
            for name, (result, arguments) in functions.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            raise UnavailableError(f"{path}: can't be loaded: {error}") from None
        found = getattr(self._library, version)()
        if found != _abi.ABI_VERSION:
            raise UnavailableError(
                f"{path}: has version {found} of the binary interface; this package needs "
                f"{_abi.ABI_VERSION}")
        self._last_error = getattr(self._library, last_error)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(self._library, name)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status. Raises the status's exception."""
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            self.fail(status)

    def fail(self, status: int) -> NoReturn:
        """Raises the exception of a status."""
        message = (self._last_error() or b"").decode(errors="replace")
        raise _NAMES.get(status, InternalError)(message)

    def quick(self, name: str, arguments: list[Any]) -> Callable[..., int]:
        """Returns a function with other types of arguments, which take less time to convert. It
        returns its status, which the caller checks."""
        function = self._library[name]
        function.restype, function.argtypes = ctypes.c_int32, arguments
        return function


_lock = threading.Lock()
_loaded: dict[str, Library] = {}
_KINDS = {
    "greta": (_abi.RUNTIME, "greta_abi_version", "greta_last_error"),
    "greta-tuner": (_abi.TUNER, "greta_tune_abi_version", "greta_tune_last_error"),
}


def _load(name: str, path: str | os.PathLike[str] | None) -> Library:
    with _lock:
        loaded = _loaded.get(name)
        if loaded is None:
            loaded = _loaded[name] = Library(os.fspath(path) if path else find(name), *_KINDS[name])
        elif path and os.path.realpath(path) != os.path.realpath(loaded.path):
            raise UnavailableError(f"{loaded.path} is loaded already, so that {path} can't be")
        return loaded


def load(library: str | os.PathLike[str] | None = None,
         tuner: str | os.PathLike[str] | None = None) -> None:
    """Loads the libraries from these paths. Without this call, the first use loads them from where
    they are found: beside the package, in its install prefix, or by the system's loader."""
    if library is not None:
        _load("greta", library)
    if tuner is not None:
        _load("greta-tuner", tuner)


def runtime_library() -> Library:
    """Returns libgreta.so."""
    return _load("greta", None)


def tuner_library() -> Library:
    """Returns libgreta-tuner.so."""
    return _load("greta-tuner", None)


def beside(library: Library, *names: str) -> str | None:
    """Returns the program of this name in the prefix or build tree of a library, e.g. ("bin",
    "greta-tune"); None if there is none."""
    for folder in list(pathlib.Path(os.path.realpath(library.path)).parents)[:5]:
        program = folder.joinpath(*names)
        if os.access(program, os.X_OK) and program.is_file():
            return str(program)
    return None


def version() -> str:
    """Returns the version of libgreta.so, e.g. "0.1.0"."""
    return runtime_library().greta_version().decode()
