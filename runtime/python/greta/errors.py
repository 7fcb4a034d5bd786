"""Failures as exceptions: one class for each status of greta.h, with the library's one line."""


class GretaError(Exception):
    """A failed call. `str()` is the one line of greta_last_error()."""

    status = "GRETA_INTERNAL"


class ConstraintsError(GretaError):
    """There is no valid configuration."""
    status = "GRETA_CONSTRAINTS"


class CompileError(GretaError):
    """The kernel compiler failed."""
    status = "GRETA_COMPILE"


class LaunchError(GretaError):
    """The device rejected a launch."""
    status = "GRETA_LAUNCH"


class DeadlineError(GretaError, TimeoutError):
    """Work did not finish in time; the runtime must be opened again."""
    status = "GRETA_TIMEOUT"


class CrashError(GretaError):
    """A compiler process crashed."""
    status = "GRETA_CRASH"


class OutOfMemoryError(GretaError, MemoryError):
    """The device or the host has too little memory."""
    status = "GRETA_OUT_OF_MEMORY"


class UnavailableError(GretaError):
    """A device, a feature or a library is missing."""
    status = "GRETA_UNAVAILABLE"


class InvalidArgumentError(GretaError, ValueError):
    """The call is invalid."""
    status = "GRETA_INVALID_ARGUMENT"


class DeviceLostError(GretaError):
    """The device failed; the runtime must be opened again."""
    status = "GRETA_DEVICE_LOST"


class FileError(GretaError, OSError):
    """A file could not be read or written."""
    status = "GRETA_IO"


class InternalError(GretaError):
    """A defect of GRETA."""
    status = "GRETA_INTERNAL"


class InterruptedRunError(GretaError):
    """A tuning run was stopped before it began to search."""
    status = "GRETA_INTERRUPTED"


CLASSES = {
    one.status: one for one in (
        ConstraintsError, CompileError, LaunchError, DeadlineError, CrashError, OutOfMemoryError,
        UnavailableError, InvalidArgumentError, DeviceLostError, FileError, InternalError,
        InterruptedRunError)
}
