"""The tuner: greta.tune()."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import weakref
from typing import Any, Callable, Iterable, Mapping, TextIO

from . import _abi
from ._folders import default_cache, default_database
from ._handle import Handle
from ._library import beside, tuner_library
from .errors import GretaError, InvalidArgumentError, UnavailableError
from .described import Kernel, compute_reference
from .results import ComparedResults, Result, TuneResult, time_text
from .tensor import path_of

Observer = Callable[[dict[str, Any]], None]


def _problem(operation: str, fields: Mapping[str, Any]) -> str:
    words = [operation]
    for name, value in fields.items():
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        text = str(value)
        if not text or len(text.split()) != 1:
            raise InvalidArgumentError(f"{name} is {value!r}, but it must be one word or number")
        words.append(f"{'out' if name == 'out_dtype' else name}={text}")
    return " ".join(words)


class Progress:
    """An observer that keeps one line about the run up to date, on standard error by default."""

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream if stream is not None else sys.stderr
        self._width = 0

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "trial":
            self._show(f"{event['problem']}: {event['number']} trials, best "
                       f"{time_text(event['best_us'])}, {event['budget_used']:.0%} of the budget")
        elif kind == "phase":
            self._show(f"{event['device']}: {event['phase']}")
        elif kind == "warning":
            self._show(event["text"])
            self._end()
        elif kind == "end":
            self._end()

    def _show(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def _end(self) -> None:
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
        self._width = 0


class Tuner(Handle):
    """Tunes one problem; tune() describes the arguments. stop() may be called from any thread."""

    def __init__(self, operation: str | Kernel, *, budget: str | int = "60s", device: str = "auto",
                 db: str | os.PathLike[str] | None = None, cache: str | os.PathLike[str] | None = None,
                 progress: bool = False, observer: Observer | None = None, strategy: str = "auto",
                 seed: int | None = None, warm: bool = False, flush_mib: float | None = None,
                 naive: bool = False, reject_spills: bool = False, retry_failed: bool = False,
                 objective: str = "time", resume: bool = True, pin: bool = False,
                 lock: bool = True, allow_unsafe: bool = False, shipped: bool = True,
                 allow_vendor: bool = False,
                 in_process: bool = False, worker: Iterable[str | os.PathLike[str]] | None = None,
                 **fields: Any):
        library = tuner_library()
        if objective not in ("time", "energy"):
            raise InvalidArgumentError(f"objective is {objective!r}; there are time, energy")
        self._observers: list[Callable[[dict[str, Any]], Any]] = [
            *([Progress()] if progress else []), *([observer] if observer else [])]
        self._failure: BaseException | None = None
        self._trials: list[dict[str, Any]] = []
        options = library.greta_tune_defaults()
        options.device, options.budget = device.encode(), str(budget).encode()
        options.strategy = strategy.encode()
        options.database = path_of(db if db is not None else default_database())
        options.cache_directory = path_of(cache if cache is not None else default_cache())
        self._describe(options, operation)
        words = [] if in_process else [os.fsencode(word) for word in worker or _worker()]
        options.worker, options.worker_count = (ctypes.c_char_p * len(words))(*words), len(words)
        if flush_mib is not None and not flush_mib > 0:
            raise InvalidArgumentError(f"flush_mib is {flush_mib}, but it must be above 0")
        options.flush_bytes = 0 if flush_mib is None else max(1, int(flush_mib * (1 << 20)))
        if seed is not None:
            options.seed, options.has_seed = seed, 1
        options.warm, options.naive, options.reject_spills = warm, naive, reject_spills
        options.retry_failed, options.for_energy = retry_failed, objective == "energy"
        options.no_resume, options.pin, options.no_lock = not resume, pin, not lock
        options.allow_unsafe, options.no_shipped = allow_unsafe, not shipped
        options.allow_vendor = allow_vendor
        own = weakref.ref(self)  # the callback must not keep the tuner
        self._callback = _abi.OBSERVER(lambda _, event: _pass_on(own, event))
        options.observer = self._callback
        handle = ctypes.c_void_p()
        library.call("greta_tune_open", ctypes.byref(options),
                     _problem(operation if isinstance(operation, str) else operation.name,
                              fields).encode(), ctypes.byref(handle))
        self._own(handle, library.greta_tune_close)
        key = ctypes.c_char_p()
        library.call("greta_tune_problem", handle, ctypes.byref(key))
        self.problem = (key.value or b"").decode()  #: the key, with all fields

    def _describe(self, options: Any, operation: str | Kernel) -> None:
        """Sets the options of a described kernel."""
        if isinstance(operation, str):
            return
        if operation.path is None:
            raise InvalidArgumentError(f"{operation.name} is carried by a database; a kernel is tuned "
                                       "from its description, greta.kernel(\"FILE\")")
        options.kernel = path_of(operation.path)
        given = operation.reference
        if given is None:
            return
        own, function = weakref.ref(self), given.function
        self._reference = _abi.REFERENCE(
            lambda _, problem, operands, count: _compute(own, function, problem, operands, count))
        options.reference = self._reference
        options.absolute, options.relative, options.ulp = given.absolute, given.relative, given.ulp

    def _fail(self, failure: BaseException) -> None:
        """Ends the run, which raises the first failure."""
        if self._failure is None:
            self._failure = failure
        self.stop()

    def _receive(self, event: dict[str, Any]) -> None:
        if event["event"] == "trial":
            self._trials.append(event)
        try:
            if self._failure is None:
                for observer in self._observers:
                    observer(event)
        except BaseException as failure:  # run() raises it
            self._fail(failure)

    def run(self) -> Result:
        """Tunes the problem. Ctrl-C stops it: the trials are kept, and an equal run goes on."""
        self._trials, self._failure = [], None
        outcome: list[Any] = []
        ended = threading.Event()

        def work() -> None:
            text = ctypes.c_char_p()
            try:
                tuner_library().call("greta_tune_run", self._handle, ctypes.byref(text))
                outcome.append(json.loads(text.value or b"null"))
            except GretaError as error:
                outcome.append(error)
            finally:
                ended.set()

        # In a thread of its own, so that this one receives signals.
        threading.Thread(target=work, name="greta-tune", daemon=True).start()
        try:
            while not ended.wait(0.2):
                pass
        except BaseException:
            self.stop()
            _wait_for(ended)
            raise
        if self._failure is not None:
            raise self._failure
        if isinstance(outcome[0], GretaError):
            raise outcome[0]
        return self._result(outcome[0])

    def _result(self, report: dict[str, Any]) -> Result:
        if "results" not in report:
            return TuneResult(report, self._trials)
        return ComparedResults([TuneResult(one, self._trials) for one in report["results"]],
                               report["comparison"])

    def stop(self) -> None:
        """Stops the current run soon, or the next one if there is none."""
        tuner_library().call("greta_tune_stop", self._handle)

    def close(self) -> None:
        """Releases the tuner. May be called again, but not during a run."""
        super().close()


def _wait_for(ended: threading.Event) -> None:
    """Waits for a run that was stopped, whatever interrupts: its handle must not be closed."""
    while True:
        try:
            while not ended.wait(0.2):
                pass
            return
        except KeyboardInterrupt:
            continue


def _pass_on(tuner: weakref.ref[Tuner], event: bytes) -> None:
    found = tuner()
    if found is not None:
        found._receive(json.loads(event))


def _compute(tuner: weakref.ref[Tuner], function: Callable[..., Any], problem: bytes, operands: Any,
             count: int) -> int:
    """Returns 0, or 1 if the reference failed; its exception ends the run."""
    try:
        compute_reference(function, problem.decode(), operands, count)
        return 0
    except BaseException as failure:
        found = tuner()
        if found is not None:
            found._fail(failure)
        return 1


def _worker() -> list[str]:
    """Returns the command that starts a worker process."""
    program = beside(tuner_library(), "bin", "greta-tune")
    if program is None:
        raise UnavailableError(
            f"greta-tune, whose processes run kernels, is not in the prefix of {tuner_library().path}; "
            "worker=[its path, \"worker\"] names it, and in_process=True does without")
    return [program, "worker"]


def tune(operation: str | Kernel, **options: Any) -> Result:
    """Tunes a problem, stores the winner in a database, and returns the result.

        result = greta.tune("gemm", m=4096, n=4096, k=4096, dtype="f16", budget="60s")

    operation: the operation, as `greta-tune operations` lists them. The problem's dimensions, types
    (`dtype`, `out_dtype`) and attributes are keyword arguments (docs/kernels.md); `operation` may
    also be the key of a problem.
    budget: a time ("60s", "10m"), a number of trials (500), or a share of the space ("5%").
    device: "auto", an id, a part of a name, or a list as "hip:0,vulkan:0", whose winners are compared.
    db, cache: the database and the folder of compiled kernels; default_database(), default_cache().
    progress: keep a line on standard error up to date. observer: called with each event as a
    dictionary (docs/json.md, --json-lines); what it raises stops the run, and is raised.
    strategy, seed, naive, reject_spills, retry_failed, pin, allow_unsafe, warm, flush_mib: as the
    options of greta-tune. objective: "time" or "energy". resume=False: start afresh. lock=False:
    don't wait for others that measure on the card. shipped=False: don't try GRETA's own winners.
    allow_vendor=True: also store what hipBLASLt or cuBLASLt compute faster.
    worker: the command of the processes in which kernels run, by default greta-tune of the
    library's installation; in_process=True: kernels run in this process, and a crash ends it.
    """
    with Tuner(operation, **options) as tuner:
        return tuner.run()
