"""Runtimes, queues, pipelines and graphs."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import weakref
from typing import Any, Iterable, Sequence

from . import tensor as tensors
from ._handle import Handle
from ._library import beside, runtime_library
from .errors import InvalidArgumentError
from .operations import Operations
from .tensor import DTYPES, Tensor, choose, extents, path_of


class Queue(Handle, Operations):
    """Runs operations immediately and in order. Runtime.queue() makes queues.

    On a stream of another library each operation is submitted at once, so that the stream's order
    holds for both; memory of that library must exist until the stream has passed the work.
    """

    def __init__(self, runtime: Runtime, handle: ctypes.c_void_p, foreign: bool):
        self._own(handle, runtime_library().greta_queue_close)
        self._runtime = runtime
        self._foreign = foreign
        self._pending = False
        has_stream = runtime.device.startswith(("hip:", "hip-host:"))
        self._stream = self.stream if has_stream else None

    @property
    def _receiver(self) -> Any:
        return runtime_library().greta_queue_operations(self._handle)

    def _recorded(self) -> None:
        self._pending = True
        if self._foreign:
            self.submit()

    @property
    def stream(self) -> int:
        """The queue's hipStream_t or CUstream as a number, as torch.cuda.ExternalStream takes it.
        Raises UnavailableError for devices of other APIs."""
        stream = ctypes.c_void_p()
        runtime_library().call("greta_queue_stream", self._handle, ctypes.byref(stream))
        return stream.value or 0

    def submit(self) -> None:
        """Hands all work to the device and returns immediately."""
        runtime_library().call("greta_queue_submit", self._handle)

    def synchronize(self, seconds: float = 60.0) -> None:
        """Waits until all work has finished. Raises DeadlineError after `seconds`."""
        runtime_library().call("greta_queue_synchronize", self._handle, seconds)
        self._pending = False

    def replay(self, graph: Graph) -> None:
        """Runs a graph."""
        runtime_library().call("greta_queue_replay", self._handle, graph._handle)
        self._pending = True

    def settle(self) -> None:
        """Waits for the queue if it has work."""
        if self._pending and self._owned is not None:
            self.synchronize()

    def __repr__(self) -> str:
        return f"<greta.Queue on {self._runtime.device}>"


class Graph(Handle):
    """Recorded operations, which Queue.replay() or replay() runs any number of times."""

    def __init__(self, runtime: Runtime, handle: ctypes.c_void_p):
        self._own(handle, runtime_library().greta_graph_release)
        self._runtime = runtime

    def replay(self) -> None:
        """Runs the graph on the runtime's own queue."""
        self._runtime.default_queue.replay(self)

    def explain(self) -> str:
        """Returns a line for each operation: label, problem, configuration, its origin, speedup."""
        text = ctypes.c_char_p()
        runtime_library().call("greta_graph_explain", self._handle, ctypes.byref(text))
        return (text.value or b"").decode()

    @property
    def memory(self) -> tuple[int, int]:
        """The bytes of the temporaries and of the kernels' workspace."""
        temporaries, workspace = ctypes.c_size_t(), ctypes.c_size_t()
        runtime_library().call("greta_graph_memory", self._handle, ctypes.byref(temporaries),
                               ctypes.byref(workspace))
        return temporaries.value, workspace.value


class Pipeline(Handle, Operations):
    """Records operations, of which finish() makes a graph. Runtime.pipeline() makes pipelines."""

    _stream = None

    def __init__(self, runtime: Runtime, handle: ctypes.c_void_p):
        self._own(handle, runtime_library().greta_pipeline_release)
        self._runtime = runtime

    @property
    def _receiver(self) -> Any:
        return runtime_library().greta_pipeline_operations(self._handle)

    def temporary(self, shape: Sequence[int], dtype: str = "f32") -> Tensor:
        """Returns a tensor that shares memory with temporaries that are live at other times."""
        handle = ctypes.c_void_p()
        runtime_library().call("greta_pipeline_temporary", self._handle,
                               choose(DTYPES, dtype, "dtype"), extents(shape), len(shape),
                               ctypes.byref(handle))
        return Tensor(self._runtime, handle, dtype, shape)

    def keep(self, temporary: Tensor) -> None:
        """Keeps a temporary's contents until the end of each replay, so that it can be read."""
        runtime_library().call("greta_pipeline_keep", self._handle, temporary._handle)

    def label(self, text: str) -> None:
        """Sets the label of the operations that follow."""
        runtime_library().call("greta_pipeline_label", self._handle, text.encode())

    def finish(self, as_graph: bool = True) -> Graph:
        """Compiles missing kernels and returns a graph; the pipeline is empty afterwards.
        `as_graph=False`: replays launch the operations one by one."""
        handle = ctypes.c_void_p()
        runtime_library().call("greta_pipeline_finish", self._handle, int(as_graph),
                               ctypes.byref(handle))
        return Graph(self._runtime, handle)


class Runtime(Handle, Operations):
    """A device with its databases and compiled kernels. Operations of the runtime itself run on a
    queue of its own; a runtime and its objects belong to one thread at a time.

    device: "auto", "vulkan:0", or a part of a device's name.
    db: the user's database of winners; None: none.
    application: further databases, in order after it. shipped: also those that GRETA ships.
    cache: a folder of compiled kernels; None: none.
    allow_vendor: also run what hipBLASLt or cuBLASLt compute faster, where tune(allow_vendor=True)
    found that.
    overlap: launches of a pipeline may begin while those before them end, where the device can.
    compile_helper: greta-compile-helper; None: that of libgreta.so's installation.
    use: rules that decide which configuration runs, as use() takes them.
    """

    def __init__(self, device: str = "auto", db: str | os.PathLike[str] | None = None, *,
                 application: Iterable[str | os.PathLike[str]] = (), shipped: bool = True,
                 cache: str | os.PathLike[str] | None = None, allow_vendor: bool = False,
                 overlap: bool = True, compile_helper: str | os.PathLike[str] | None = None,
                 use: Iterable[str] = ()):
        if isinstance(use, str):
            raise InvalidArgumentError("use is one text, but it must be a list of rules")
        library = runtime_library()
        options = library.greta_runtime_defaults()
        files = [path_of(file) for file in application]
        helper = compile_helper or beside(library, "libexec", "greta", "greta-compile-helper")
        options.device = device.encode()
        options.database, options.cache_directory = path_of(db), path_of(cache)
        options.compile_helper = path_of(helper)
        options.application = (ctypes.c_char_p * len(files))(*files)
        options.application_count = len(files)
        options.no_shipped, options.allow_vendor = int(not shipped), int(allow_vendor)
        options.no_overlap = int(not overlap)
        handle = ctypes.c_void_p()
        library.call("greta_runtime_open", ctypes.byref(options), ctypes.byref(handle))
        self._own(handle, runtime_library().greta_runtime_close)
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._default: Queue | None = None
        self._kernels: dict[pathlib.Path | str, dict[str, Any]] = {}  # the described kernels that were loaded
        found, name = ctypes.c_char_p(), ctypes.c_char_p()
        library.call("greta_runtime_device", handle, ctypes.byref(found), ctypes.byref(name))
        self.device = (found.value or b"").decode()  #: the id, e.g. "vulkan:0"
        self.name = (name.value or b"").decode(errors="replace")  #: the driver's name of the device
        for rule in use:
            self.use(rule)

    @property
    def default_queue(self) -> Queue:
        """The queue on which the runtime's own operations run."""
        if self._default is None:
            self._default = self.queue()
        return self._default

    @property
    def _receiver(self) -> Any:
        return self.default_queue._receiver

    @property
    def _runtime(self) -> Runtime:  # type: ignore[override]
        return self

    @property
    def _stream(self) -> int | None:  # type: ignore[override]
        return self.default_queue._stream

    def _recorded(self) -> None:
        self.default_queue._recorded()

    def queue(self, stream: int | None = None) -> Queue:
        """Returns a queue: on a stream of its own, or on one of another library, such as
        `torch.cuda.current_stream().cuda_stream`. Queues run concurrently."""
        handle = ctypes.c_void_p()
        if stream is None:
            runtime_library().call("greta_queue_open", self._handle, ctypes.byref(handle))
        else:
            runtime_library().call("greta_queue_open_on", self._handle, stream,
                                   ctypes.byref(handle))
        queue = Queue(self, handle, stream is not None)
        self._queues.add(queue)
        return queue

    def pipeline(self) -> Pipeline:
        """Returns an empty pipeline."""
        handle = ctypes.c_void_p()
        runtime_library().call("greta_pipeline_begin", self._handle, ctypes.byref(handle))
        return Pipeline(self, handle)

    def empty(self, shape: int | Sequence[int], dtype: str = "f32", *,
              staging: bool = False) -> Tensor:
        """Allocates an uninitialised tensor; `staging`: in memory that the host writes."""
        return tensors.allocate(self, self._handle, shape, dtype, staging)

    def tensor(self, data: Any, dtype: str | None = None, *, staging: bool = False) -> Tensor:
        """Returns a copy of a buffer, such as a numpy array of float32, float16 or int32.
        `dtype="bf16"` rounds float32, and takes the bits of uint16."""
        found, shape, content = tensors.content_of(data, dtype)
        return self.empty(shape, found, staging=staging).upload(content)

    def wrap(self, given: Any, stream: int | None = None) -> Tensor:
        """Returns a tensor in the memory of an object with DLPack, __cuda_array_interface__ or a
        buffer, without a copy: memory of a GPU for `hip`, of the host for `hip-host`. Raises
        InvalidArgumentError or UnavailableError for others. `stream` is the stream of the work that
        will use it, for which the other library's pending work is waited for, if it can.
        Operations do the same with such operands."""
        return tensors.wrap(self, self._handle, given, stream, "the object")

    def describe(self) -> dict[str, Any]:
        """Returns the device and the library: `id`, `name`, `fingerprint` and `greta`, the version."""
        return self._json("greta_runtime_describe")

    def problem(self, text: str) -> str:
        """Returns the key of a problem, as "gemm m=64 n=48 k=40 dtype=f16", where fields that have
        a default may be missing."""
        key = ctypes.c_char_p()
        runtime_library().call("greta_runtime_problem", self._handle, text.encode(),
                               ctypes.byref(key))
        return (key.value or b"").decode()

    def use(self, rule: str) -> None:
        """Adds a rule that decides which configuration runs for the problems that it matches, in
        place of the databases: "gemm m<=64 dtype=f16: tiled BM=64 BN=64". "@FILE" adds those of a
        file. The first of several that match decides (docs/lookup.md). Raises
        InvalidArgumentError for what does not exist, and for problems that have run."""
        runtime_library().call("greta_runtime_use", self._handle, rule.encode())

    def rules(self) -> list[dict[str, Any]]:
        """Returns the rules: `rule`, its text, `matched`, whether it matched a problem so far, and
        `decided`, whether it decided about one."""
        text = ctypes.c_char_p()
        runtime_library().call("greta_runtime_rules", self._handle, ctypes.byref(text))
        return json.loads(text.value or b"[]")

    def lookup(self, problem: str) -> dict[str, Any]:
        """Returns what runs for a problem, given as that of problem(): `problem`, the key, `bucket`,
        that of the problem that stands for others of about its extents, `config`, `origin`, `expected_regret` and `speedup`, None if unknown. Compiles the kernels. Of a chain
        (docs/fusion.md), `config` is the alternative that pipelines record for it."""
        return self._json("greta_runtime_lookup", problem.encode())

    def packing(self, products: Iterable[str], weights: Iterable[float] | None = None,
                predict: bool = False) -> dict[str, Any]:
        """Returns whether the weights of products should be rows or panels, by what would run with both.

        `products` are problems of quantized_gemm in rows, as of several m; `weights` the share of each
        one's time, in any unit. Panels are chosen only if winners of both packings of all products were
        measured on this device; with `predict`, products without winners are predicted. The result has
        `packing`, "rows" or "panels", `measured`, `ratio`, the mean time of panels over that of rows or
        None, `reason`, and of each of `products` what is known. Compiles nothing."""
        if isinstance(products, str):
            raise InvalidArgumentError("products is one text, but it must be a list")
        keys = [key.encode() for key in products]
        shares = None if weights is None else [float(weight) for weight in weights]
        if shares is not None and len(shares) != len(keys):
            raise InvalidArgumentError(f"weights has {len(shares)} numbers for {len(keys)} products")
        return self._json("greta_runtime_packing", (ctypes.c_char_p * len(keys))(*keys),
                          None if shares is None else (ctypes.c_double * len(shares))(*shares),
                          len(keys), int(predict))

    def _json(self, name: str, *arguments: Any) -> dict[str, Any]:
        text = ctypes.c_char_p()
        runtime_library().call(name, self._handle, *arguments, ctypes.byref(text))
        return json.loads(text.value or b"null")

    def precompile(self, problems: Iterable[str], jobs: int = 0) -> None:
        """Compiles the kernels of problems, given as problem() takes them, with `jobs` threads
        (0: all cores)."""
        if isinstance(problems, str):
            raise InvalidArgumentError("problems is one text, but it must be a list")
        keys = [key.encode() for key in problems]
        runtime_library().call("greta_runtime_precompile", self._handle,
                               (ctypes.c_char_p * len(keys))(*keys), len(keys), jobs)

    def submit(self) -> None:
        """Hands the work of the runtime's own queue to the device."""
        self.default_queue.submit()

    def synchronize(self, seconds: float = 60.0) -> None:
        """Waits until the runtime's own queue has finished."""
        self.default_queue.synchronize(seconds)

    def settle(self) -> None:
        """Waits for all queues that have work, as copies to and from the host do."""
        for queue in list(self._queues):
            queue.settle()

    def close(self) -> None:
        """Waits for the runtime's own queue and closes it and the runtime. Other objects of the
        runtime keep the device open."""
        if self._default is not None:
            self._default.close()
            self._default = None
        super().close()

    def __repr__(self) -> str:
        return f"<greta.Runtime on {self.device}, {self.name}>"
