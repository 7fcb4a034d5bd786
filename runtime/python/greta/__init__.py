"""GRETA in Python: tuned operations on tensors in device memory, and the tuner.

    import greta

    with greta.Runtime(device="auto") as runtime:
        a, b = runtime.tensor(x), runtime.tensor(y)     # copies of numpy arrays
        c = runtime.empty((64, 48), "f32")
        runtime.gemm(a, b, c, layout="nt")
        print(c.numpy())

    result = greta.tune("gemm", m=64, n=48, k=40, budget="10s")

docs/python.md is a tutorial. The package is pure Python over libgreta.so and libgreta-tuner.so.
"""

from . import errors
from ._folders import default_cache, default_database
from ._library import load, version
from .errors import (CompileError, ConstraintsError, CrashError, DeadlineError, DeviceLostError,
                     FileError, GretaError, InternalError, InterruptedRunError,
                     InvalidArgumentError, LaunchError, OutOfMemoryError, UnavailableError)
from .described import Kernel, Reference, kernel, reference
from .operations import Operations
from .results import ComparedResults, TuneResult
from .runtime import Graph, Pipeline, Queue, Runtime
from .tensor import Tensor
from .tune import Progress, Tuner, tune

__all__ = [
    "ComparedResults", "CompileError", "ConstraintsError", "CrashError", "DeadlineError", "DeviceLostError",
    "FileError", "Graph", "GretaError", "InternalError", "InterruptedRunError",
    "InvalidArgumentError", "Kernel", "LaunchError", "Operations", "OutOfMemoryError", "Pipeline",
    "Progress", "Queue", "Reference", "Runtime", "Tensor", "TuneResult", "Tuner", "UnavailableError",
    "default_cache", "default_database", "errors", "kernel", "load", "reference", "tune", "version",
]
