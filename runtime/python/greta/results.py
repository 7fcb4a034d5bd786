"""The results of greta.tune()."""

from __future__ import annotations

import html
from collections import Counter
from typing import Any, Iterable, Union

from .errors import UnavailableError


class TuneResult:
    """The result of tuning a problem on a device. Its repr is a report; `report` is the JSON object
    of `greta-tune --json` (docs/json.md)."""

    def __init__(self, report: dict[str, Any], trials: Iterable[dict[str, Any]]):
        self.report = report
        self.trials = [one for one in trials if one["device"] == report["device"]["id"]]
        self.problem: str = report["problem"]["key"]
        self.device: str = report["device"]["id"]
        self.database: str = report["database"]
        self.outcome: str = report["outcome"]
        self.notes: list[str] = report["notes"]
        self.winner: dict[str, Any] | None = report["winner"]

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

    def rows(self) -> list[dict[str, Any]]:
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
            failures = Counter(one["message"] for one in self.trials if one["message"])
            lines += [("failed", f"{count} of {len(self.trials)}: {message}")
                      for message, count in failures.most_common(3)]
        else:
            low, high = self.time_interval_us or (0, 0)
            lines.append(("winner", self.config or ""))
            lines.append(("time", f"{time_text(self.time_us)} (95 % interval {time_text(low)} to {time_text(high)})"))
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
        compared = "as fast" if self.speedup < 1 else "faster"
        return f"{self.speedup:.3f} times {compared} (95 % interval {low:.3f} to {high:.3f})"

    def __repr__(self) -> str:
        return "\n".join([self.problem, *(f"  {name:<11}{text}" for name, text in self.lines())])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                       f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
                       for name, text in self.lines())
        return f"<table><caption>{html.escape(self.problem)}</caption>{rows}</table>"


class ComparedResults:
    """The results of several devices, and how they compare (docs/json.md)."""

    def __init__(self, results: list[TuneResult], comparison: dict[str, Any] | None):
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


def time_text(us: float | None) -> str:
    """Returns a time in microseconds with a unit that suits it."""
    if us is None:
        return "unknown"
    for factor, unit in ((1e6, "s"), (1e3, "ms"), (1, "us")):
        if us >= factor:
            return f"{us / factor:.3g} {unit}"
    return f"{us * 1e3:.3g} ns"
