"""Runs GRETA's operations on torch tensors: in their memory, and on torch's current stream."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import dataclasses
import os
import threading
import time
from typing import Any, Callable, Iterator, Sequence

import torch

from .. import _abi
from .._library import runtime_library
from ..errors import InvalidArgumentError
from ..frameworks import Capture, Decision, Decisions
from ..runtime import Queue, Runtime
from ..tune import default_cache, default_database

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32"}
_NUMBERS = {one: list(_abi.DTYPE).index("GRETA_" + name.upper()) for one, name in DTYPES.items()}
FRAMEWORK = f"torch {torch.__version__}"
MODES = ("measured", "greta", "torch")
_ALIGNMENT = 16  # bytes, which kernels of any configuration may need
_NO_RELEASE = _abi.RELEASE()
_MOST_VIEWS = 8192


@dataclasses.dataclass
class Settings:
    """What configure() sets."""
    mode: str = "measured"
    most_regret: float = 0.0
    db: str | os.PathLike | None = None
    cache: str | os.PathLike | None = None
    decisions: str | os.PathLike | None = None
    shipped: bool = True


@dataclasses.dataclass
class Choice:
    """Who runs a problem: the answer of GRETA's look-up, the decision, and why."""
    problem: str  #: key
    answer: dict | None  #: of Runtime.lookup(); None: GRETA does not run the problem
    decision: Decision | None
    why: str
    greta: bool  #: when launched one by one
    greta_in_graphs: bool


class Device:
    """A torch device with GRETA's runtime, which shares its memory and streams."""

    def __init__(self, device: torch.device, settings: Settings, decisions: Decisions):
        name = f"hip:{device.index}" if device.type == "cuda" else "hip-host:0"
        db = settings.db
        if db is None and default_database().is_file():
            db = default_database()
        self.torch_device = device
        self.settings = settings
        self.decisions = decisions
        self.runtime = Runtime(name, db=db, cache=settings.cache or default_cache(),
                               shipped=settings.shipped)
        self.about = self.runtime.describe()
        self.lock = threading.RLock()
        self.choices: dict[Any, Choice] = {}  # by the operation's key
        self._queues: dict[tuple[int, bool], Queue] = {}
        self._views: collections.OrderedDict[tuple, ctypes.c_void_p] = collections.OrderedDict()

    def view(self, tensor: torch.Tensor, shape: Sequence[int]) -> ctypes.c_void_p:
        """Returns GRETA's tensor of these extents in a contiguous tensor's memory. It is a view of
        an address: torch owns the memory, and its allocator orders reuse by the stream."""
        key = (tensor.data_ptr(), tensor.dtype, *shape)
        found = self._views.get(key)
        if found is None:
            found = ctypes.c_void_p()
            runtime_library().call(
                "greta_tensor_wrap", self.runtime._handle, _NUMBERS[tensor.dtype],
                (ctypes.c_int64 * len(shape))(*shape), None, len(shape), key[0], _NO_RELEASE, None,
                ctypes.byref(found))
            self._views[key] = found
            if len(self._views) > _MOST_VIEWS:
                runtime_library().greta_tensor_release(self._views.popitem(last=False)[1])
        return found

    def queue(self) -> Queue:
        """Returns the queue on torch's current stream. Captures have one of their own, since graphs
        keep the addresses of its workspace."""
        if self.torch_device.type != "cuda":
            return self.runtime.default_queue
        stream = torch.cuda.current_stream(self.torch_device).cuda_stream
        key = (stream, torch.cuda.is_current_stream_capturing())
        if key not in self._queues:
            self._queues[key] = self.runtime.queue(stream=stream)
        return self._queues[key]

    def call(self, name: str, operands: Sequence[ctypes.c_void_p | None], options: Any) -> None:
        """Runs an operation of greta.h on views."""
        with self.lock, unrestricted_capture(self.torch_device):
            queue = self.queue()
            arguments = [] if options is None else [ctypes.byref(options)]
            runtime_library().call("greta_" + name, queue._receiver, *operands, *arguments)
            if self.torch_device.type == "cuda":
                queue.submit()
            else:
                queue.synchronize()

    def choose(self, key: Any, problem: Callable[[], str], greta: Callable[[], Any],
               framework: Callable[[], Any], form: str = "") -> bool:
        """Returns whether GRETA runs a problem. The first call of a problem looks it up and, unless
        that is stored, measures both ways; in a capture, what is not known is torch's. form: what
        torch's time depends on beside the problem."""
        capturing = is_capturing(self.torch_device)
        choice = self.choices.get(key)
        if choice is None:
            if capturing:
                return self.settings.mode == "greta"
            with self.lock:
                choice = self.choices[key] = self._decide(problem(), greta, framework, form)
        for capture in captures:
            capture.add(choice.problem)
        return choice.greta_in_graphs if capturing else choice.greta

    def _decide(self, problem: str, greta: Callable[[], Any], framework: Callable[[], Any],
                form: str) -> Choice:
        try:
            answer = self.runtime.lookup(problem)
        except InvalidArgumentError as error:
            return Choice(problem, None, None, str(error), False, False)
        key, config = answer["problem"], answer["config"]
        if self.settings.mode != "measured":
            wanted = self.settings.mode == "greta"
            return Choice(key, answer, None, f"mode {self.settings.mode}", wanted, wanted)
        bucket = answer["bucket"] + form  # whose problems have about the same regret
        decision = self.decisions.find(self.about["name"], bucket, config, FRAMEWORK)
        why = "stored"
        if decision is None:
            decision = measure(self.torch_device, config, greta, framework)
            self.decisions.store(self.about["name"], bucket, decision)
            why = "measured"
        most = self.settings.most_regret
        return Choice(key, answer, decision, why, decision.regret() <= most,
                      decision.regret(in_graph=True) <= most)


captures: list[Capture] = []  # those of capture() that are active
_state = threading.local()


@contextlib.contextmanager
def inside() -> Iterator[None]:
    """Marks calls of torch's functions as parts of GRETA's operations, which captures() count."""
    before, _state.inside = is_inside(), True
    try:
        yield
    finally:
        _state.inside = before


def is_inside() -> bool:
    """Returns whether this thread runs one of GRETA's operations."""
    return getattr(_state, "inside", False)


_settings = Settings()
_devices: dict[torch.device, Device] = {}
_earlier: list[Device] = []  # captured graphs use their kernels and workspace
_devices_lock = threading.Lock()


def configure(*, mode: str = "measured", most_regret: float = 0.0,
              db: str | os.PathLike | None = None, cache: str | os.PathLike | None = None,
              decisions: str | os.PathLike | None = None, shipped: bool = True) -> None:
    """Sets how operations run, and looks everything up anew. Graphs that were captured before stay
    valid.

    mode: "measured": each problem is measured once as GRETA and as torch run it, and GRETA runs it
    if its time is at most 1 + most_regret times torch's; "greta" and "torch": always one of them.
    db, cache: as those of Runtime, by default default_database() and default_cache(). decisions: the
    file of what was measured, by default default_decisions(). shipped: also use the databases that
    GRETA ships.
    """
    global _settings
    if mode not in MODES:
        raise InvalidArgumentError(f"mode is {mode!r}; there are {', '.join(MODES)}")
    with _devices_lock:
        _settings = Settings(mode, most_regret, db, cache, decisions, shipped)
        _earlier.extend(_devices.values())
        _devices.clear()


def device_of(tensor: torch.Tensor) -> Device:
    """Returns the device of a tensor, opened when it is first needed."""
    found = _devices.get(tensor.device)
    if found is None:
        with _devices_lock:
            found = _devices.get(tensor.device)
            if found is None:
                decisions = Decisions(_settings.decisions)
                found = _devices[tensor.device] = Device(tensor.device, _settings, decisions)
    return found


def choices() -> list[Choice]:
    """Returns what was decided about the problems that ran since configure()."""
    return [choice for device in _devices.values() for choice in device.choices.values()]


def packed(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor if kernels can use it in place, else a packed copy."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()


def is_capturing(device: torch.device) -> bool:
    """Returns whether torch's current stream records a graph."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


@contextlib.contextmanager
def unrestricted_capture(device: torch.device) -> Iterator[None]:
    """While the stream records a graph, lets this thread allocate workspace and load kernels, which
    the driver refuses otherwise. Neither becomes a part of the graph."""
    if not is_capturing(device):
        yield
        return
    if torch.version.hip:
        exchange = ctypes.CDLL(None).hipThreadExchangeStreamCaptureMode
    else:
        exchange = ctypes.CDLL("libcuda.so.1").cuThreadExchangeStreamCaptureMode
    mode = ctypes.c_int(2)  # relaxed
    exchange(ctypes.byref(mode))
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))


def measure(device: torch.device, config: str, greta: Callable[[], Any],
            framework: Callable[[], Any]) -> Decision:
    """Measures a problem both ways, in turns."""
    with torch.no_grad():
        ours, theirs = _in_turns(device, greta, framework)
        graphs: tuple[float | None, float | None] = (None, None)
        if device.type == "cuda":
            graphs = _in_turns(device, _recorded(device, greta), _recorded(device, framework),
                               launches=GRAPH_LAUNCHES)
    return Decision(config, FRAMEWORK, ours, theirs, *graphs)


GRAPH_LAUNCHES = 8
_ROUNDS = 7
_ROUND_US = 400.0


def _recorded(device: torch.device, run: Callable[[], Any]) -> Callable[[], None]:
    """Returns a function that replays a graph of several runs."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream(device).wait_stream(stream)
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(GRAPH_LAUNCHES):
            run()
    return graph.replay


def _in_turns(device: torch.device, first: Callable[[], Any], second: Callable[[], Any],
              launches: int = 1) -> tuple[float, float]:
    """Returns the medians of both times of a launch in microseconds."""
    times: tuple[list[float], list[float]] = ([], [])
    counts = []
    for run in (first, second):
        run()
        once = max(_time(device, run, 1), 0.1)
        counts.append(max(1, min(100, int(_ROUND_US / once))))
    for _ in range(_ROUNDS):
        for run, count, each in zip((first, second), counts, times):
            each.append(_time(device, run, count) / launches)
    ours, theirs = (sorted(each)[_ROUNDS // 2] for each in times)
    return ours, theirs


def _time(device: torch.device, run: Callable[[], Any], count: int) -> float:
    if device.type != "cuda":
        begin = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - begin) * 1e6 / count
    torch.cuda.synchronize(device)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / count
