"""Runs GRETA's operations on torch tensors: in their memory, and on torch's current stream."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import threading
import time
from typing import Any, Callable, Iterator

import torch

from .._library import runtime_library
from ..errors import InvalidArgumentError
from ..frameworks import Capture, Decision, Decisions
from ..runtime import Queue, Runtime
from .._folders import default_cache, default_database

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32"}
FRAMEWORK = f"torch {torch.__version__}"
MODES = ("measured", "greta", "torch")


@dataclasses.dataclass
class Settings:
    """What configure() sets."""
    mode: str = "measured"
    most_regret: float = 0.0
    db: str | os.PathLike[str] | None = None
    cache: str | os.PathLike[str] | None = None
    decisions: str | os.PathLike[str] | None = None
    shipped: bool = True


@dataclasses.dataclass
class Choice:
    """Who runs a problem: the answer of GRETA's look-up, the decision, and why."""
    problem: str  #: key
    answer: dict[str, Any] | None  #: of Runtime.lookup(); None: GRETA does not run the problem
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
        self.is_gpu = device.type == "cuda"
        self.settings = settings
        self.decisions = decisions
        self.runtime = Runtime(name, db=db, cache=settings.cache or default_cache(),
                               shipped=settings.shipped)
        self.about = self.runtime.describe()
        self.lock = threading.RLock()
        self.choices: dict[Any, Choice] = {}  # by the operation's key
        self._queues: dict[tuple[int, bool], Queue] = {}
        self._lengths: dict[tuple[int, int], dict[int, torch.Tensor]] = {}  # then by the stream
        # The addresses are passed as bytes, which take less time than an array.
        self._run = runtime_library().quick("greta_queue_run", [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t])

    def queue(self, capturing: bool) -> Queue:
        """Returns the queue on torch's current stream. Captures have one of their own, since graphs
        keep the addresses of its workspace."""
        if not self.is_gpu:
            return self.runtime.default_queue
        key = (_stream_of(self.torch_device.index), capturing)
        found = self._queues.get(key)
        if found is None:
            found = self._queues[key] = self.runtime.queue(stream=key[0])
        return found

    def lengths(self, count: int, value: int, capturing: bool) -> torch.Tensor:
        """Returns i32 [count] of one value. It exists as long as this object, which captured graphs
        need. A capture takes that of any stream, whose work has finished before."""
        made = self._lengths.setdefault((count, value), {})
        stream = _stream_of(self.torch_device.index) if self.is_gpu else 0
        found = made.get(stream)
        if found is None and capturing:
            found = next(iter(made.values()), None)
        if found is None:
            found = torch.full((count,), value, dtype=torch.int32, device=self.torch_device)
            if not capturing:
                made[stream] = found
        return found

    def prepare(self, problem: str) -> ctypes.c_void_p:
        """Returns the problem for launch()."""
        prepared = ctypes.c_void_p()
        with self.lock:
            runtime_library().call("greta_runtime_prepare", self.runtime._handle, problem.encode(),
                                   ctypes.byref(prepared))
        return prepared

    def launch(self, prepared: ctypes.c_void_p, addresses: bytes, count: int,
               capturing: bool) -> None:
        """Runs a prepared problem on `count` operands at these addresses (uint64), on torch's
        current stream. torch owns the memory, and its allocator orders reuse by the stream."""
        with self.lock:
            if capturing:
                with unrestricted_capture(True):
                    status = self._run(self.queue(True)._handle, prepared, addresses, count)
            else:
                queue = self.queue(False)
                status = self._run(queue._handle, prepared, addresses, count)
                if not self.is_gpu:
                    queue.synchronize()
        if status != 0:
            runtime_library().fail(status)

    def choose(self, key: Any, problem: str, greta: Callable[[], Any],
               framework: Callable[[], Any], form: str = "") -> Choice:
        """Returns who runs a problem. The first call of a key looks it up and, unless that is
        stored, measures both ways. form: what torch's time depends on beside the problem."""
        with self.lock:
            choice = self.choices.get(key)
            if choice is None:
                choice = self.choices[key] = self._decide(problem, greta, framework, form)
        return choice

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


calls: dict[Any, Any] = {}  # those of the module calls, which hold for these settings
_settings = Settings()
_devices: dict[torch.device, Device] = {}
_earlier: list[Device] = []  # captured graphs use their kernels and workspace
_devices_lock = threading.Lock()


def configure(*, mode: str = "measured", most_regret: float = 0.0,
              db: str | os.PathLike[str] | None = None, cache: str | os.PathLike[str] | None = None,
              decisions: str | os.PathLike[str] | None = None, shipped: bool = True) -> None:
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
        calls.clear()


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


def is_capturing(device: torch.device) -> bool:
    """Returns whether torch's current stream records a graph."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def _current_stream(index: int) -> int:
    return torch.cuda.current_stream(index).cuda_stream


# The number of a GPU's current stream. torch's own compiled code asks for it with the first one.
_stream_of: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", _current_stream)


@contextlib.contextmanager
def unrestricted_capture(capturing: bool) -> Iterator[None]:
    """While a stream records a graph, lets this thread allocate workspace and load kernels, which
    the driver refuses otherwise. Neither becomes a part of the graph."""
    if not capturing:
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
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(count):
        run()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) * 1e3 / count
