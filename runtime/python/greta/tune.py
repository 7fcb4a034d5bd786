"""The tuner: greta.tune() and the result that it returns."""

from __future__ import annotations

import ctypes
import html
import json
import os
import pathlib
import pwd
import sys
import threading
import weakref
from typing import Any, Callable, Iterable, Mapping, TextIO, Union

from . import _abi
from ._library import beside, tuner_library
from .errors import GretaError, InvalidArgumentError, UnavailableError
from .tensor import path_of

Observer = Callable[[dict], None]


def _home() -> pathlib.Path:
    return pathlib.Path(pwd.getpwuid(os.geteuid()).pw_dir)


def default_database() -> pathlib.Path:
    """Returns ~/.local/share/greta/tuned.db, the database of the command line tools."""
    return _home() / ".local/share/greta/tuned.db"


def default_cache() -> pathlib.Path:
    """Returns ~/.cache/greta, the cache of the command line tools."""
    return _home() / ".cache/greta"


class TuneResult:
    """The result of tuning a problem on a device. Its repr is a report; `report` is the JSON object
    of `greta-tune --json` (docs/json.md)."""

    def __init__(self, report: dict, trials: Iterable[dict]):
        self.report = report
        self.trials = [one for one in trials if one["device"] == report["device"]["id"]]
        self.problem: str = report["problem"]["key"]
        self.device: str = report["device"]["id"]
        self.database: str = report["database"]
        self.outcome: str = report["outcome"]
        self.notes: list[str] = report["notes"]
        self.winner: dict | None = report["winner"]

    def _of_winner(self, field: str) -> Any:
        value = None if self.winner is None else self.winner.get(field)
        return None if isinstance(value, str) and field != "config_text" else value

    @property
    def config(self) -> str | None:
        """The winner, as reports write it; None if there is none."""
        return self._of_winner("config_text")

    @property
    def time_us(self) -> float | None:
        """The winner's median time in microseconds."""
        return self._of_winner("median_us")

    @property
    def time_interval_us(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the time."""
        return None if self.winner is None else (self.winner["low_us"], self.winner["high_us"])

    @property
    def speedup(self) -> float | None:
        """The default's time divided by the winner's; None if the default failed."""
        return self._of_winner("speedup")

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """The confidence interval of the speedup."""
        if self.speedup is None:
            return None
        return self._of_winner("speedup_low"), self._of_winner("speedup_high")

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its end."""
        return self.outcome == "interrupted"

    def rows(self) -> list[dict]:
        """Returns the trials of this run with their configurations in columns: `variant`, then a
        column for each parameter."""
        rows = []
        for trial in self.trials:
            variant, *values = trial["config"].split()
            row = {key: trial[key] for key in (
                "number", "status", "median_us", "low_us", "high_us", "compile_s", "verify_s",
                "measure_s", "message")}
            row["variant"] = variant
            for name, value in (text.split("=", 1) for text in values):
                row[name] = int(value) if value.lstrip("-").isdigit() else value
            rows.append(row)
        return rows

    def to_pandas(self) -> Any:
        """Returns rows() as a pandas.DataFrame. Raises UnavailableError without pandas."""
        try:
            import pandas
        except ImportError:
            raise UnavailableError(
                "pandas is not installed; rows() returns the same as dictionaries") from None
        return pandas.DataFrame(self.rows())

    def lines(self) -> list[tuple[str, str]]:
        """Returns the report as pairs of a name and a text."""
        device = self.report["device"]
        lines = [("device", f"{device['id']} {device['name']}")]
        if self.winner is None:
            lines.append(("winner", f"none: {self.outcome}"))
        else:
            low, high = self.time_interval_us or (0, 0)
            lines.append(("winner", self.config or ""))
            lines.append(("time", f"{_time(self.time_us)} (95 % interval {_time(low)} to {_time(high)})"))
            lines.append(("vs default", self._speedup_text()))
        trials = self.report["trials"]
        lines.append(("trials", f"{trials['ok']} of {trials['total']} passed"))
        lines += [("note", note) for note in self.notes]
        lines.append(("stored in", self.database))
        return lines

    def _speedup_text(self) -> str:
        if self.speedup is None or self.speedup_interval is None:
            return "the default failed"
        if self.winner is not None and self.winner["is_default"]:
            return "nothing is significantly faster than the default"
        low, high = self.speedup_interval
        return f"{self.speedup:.3f} times faster (95 % interval {low:.3f} to {high:.3f})"

    def __repr__(self) -> str:
        return "\n".join([self.problem, *(f"  {name:<11}{text}" for name, text in self.lines())])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                       f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
                       for name, text in self.lines())
        return f"<table><caption>{html.escape(self.problem)}</caption>{rows}</table>"


class ComparedResults:
    """The results of several devices, and how they compare (docs/json.md)."""

    def __init__(self, results: list[TuneResult], comparison: dict | None):
        self.results = results
        self.comparison = comparison

    @property
    def fastest(self) -> TuneResult | None:
        """The result of the fastest device; None unless two devices have a winner."""
        if self.comparison is None:
            return None
        return next(one for one in self.results if one.device == self.comparison["fastest"])

    def __repr__(self) -> str:
        texts = [repr(one) for one in self.results]
        if self.comparison is not None:
            proof = "significantly" if self.comparison["sure"] else "not significantly"
            texts.append(f"fastest: {self.comparison['fastest']}, {proof}")
        return "\n".join(texts)


Result = Union[TuneResult, ComparedResults]


def _time(us: float | None) -> str:
    if us is None:
        return "unknown"
    for factor, unit in ((1e6, "s"), (1e3, "ms"), (1, "us")):
        if us >= factor:
            return f"{us / factor:.3g} {unit}"
    return f"{us * 1e3:.3g} ns"


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

    def __call__(self, event: dict) -> None:
        kind = event["event"]
        if kind == "trial":
            self._show(f"{event['problem']}: {event['number']} trials, best "
                       f"{_time(event['best_us'])}, {event['budget_used']:.0%} of the budget")
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


class Tuner:
    """Tunes one problem; tune() describes the arguments. stop() may be called from any thread."""

    def __init__(self, operation: str, *, budget: str | int = "60s", device: str = "auto",
                 db: str | os.PathLike | None = None, cache: str | os.PathLike | None = None,
                 progress: bool = False, observer: Observer | None = None, strategy: str = "auto",
                 seed: int | None = None, warm: bool = False, flush_mib: float | None = None,
                 naive: bool = False, reject_spills: bool = False, retry_failed: bool = False,
                 objective: str = "time", resume: bool = True, pin: bool = False,
                 lock: bool = True, allow_unsafe: bool = False, shipped: bool = True,
                 in_process: bool = False, worker: Iterable[str | os.PathLike] | None = None,
                 **fields: Any):
        library = tuner_library()
        if objective not in ("time", "energy"):
            raise InvalidArgumentError(f"objective is {objective!r}; there are time, energy")
        self._observers = [*([Progress()] if progress else []), *([observer] if observer else [])]
        self._failure: BaseException | None = None
        self._trials: list[dict] = []
        options = library.greta_tune_defaults()
        options.device, options.budget = device.encode(), str(budget).encode()
        options.strategy = strategy.encode()
        options.database = path_of(db if db is not None else default_database())
        options.cache_directory = path_of(cache if cache is not None else default_cache())
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
        own = weakref.ref(self)  # the callback must not keep the tuner
        self._callback = _abi.OBSERVER(lambda _, event: _pass_on(own, event))
        options.observer = self._callback
        handle = ctypes.c_void_p()
        library.call("greta_tune_open", ctypes.byref(options),
                     _problem(operation, fields).encode(), ctypes.byref(handle))
        self._handle: Any = handle
        self._finalizer = weakref.finalize(self, library.greta_tune_close, handle)
        key = ctypes.c_char_p()
        library.call("greta_tune_problem", handle, ctypes.byref(key))
        self.problem = (key.value or b"").decode()  #: the key, with all fields

    def _receive(self, event: dict) -> None:
        if event["event"] == "trial":
            self._trials.append(event)
        try:
            if self._failure is None:
                for observer in self._observers:
                    observer(event)
        except BaseException as failure:  # run() raises it
            self._failure = failure
            self.stop()

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

    def _result(self, report: dict) -> Result:
        if "results" not in report:
            return TuneResult(report, self._trials)
        return ComparedResults([TuneResult(one, self._trials) for one in report["results"]],
                               report["comparison"])

    def stop(self) -> None:
        """Stops the current run soon, or the next one if there is none."""
        tuner_library().call("greta_tune_stop", self._handle)

    def close(self) -> None:
        """Releases the tuner. May be called again, but not during a run."""
        self._finalizer()
        self._handle = None

    def __enter__(self) -> Tuner:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


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


def _worker() -> list[str]:
    """Returns the command that starts a worker process."""
    program = beside(tuner_library(), "bin", "greta-tune")
    if program is None:
        raise UnavailableError(
            f"greta-tune, whose processes run kernels, is not in the prefix of {tuner_library().path}; "
            "worker=[its path, \"worker\"] names it, and in_process=True does without")
    return [program, "worker"]


def tune(operation: str, **options: Any) -> Result:
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
    worker: the command of the processes in which kernels run, by default greta-tune of the
    library's installation; in_process=True: kernels run in this process, and a crash ends it.
    """
    with Tuner(operation, **options) as tuner:
        return tuner.run()
