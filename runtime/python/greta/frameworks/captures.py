"""Captures of the problems that a model runs, for `greta-tune from-capture`."""

from __future__ import annotations

import collections
import json
import os
import pathlib
from typing import Any

VERSION = 1


class Capture:
    """Counts problems, given by their keys. write() makes a file of the form that `greta-run
    --capture` has: a line about the device, then one for each problem, the most frequent first.
    Times are not measured and are written as 0."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()  #: by problem

    def add(self, problem: str) -> None:
        """Counts a run of a problem."""
        self.counts[problem] += 1

    def lines(self, device: dict[str, Any]) -> list[str]:
        """Returns the lines of the file; `device` is Runtime.describe()."""
        head = {"greta_capture": VERSION, "device": device["name"],
                "fingerprint": device["fingerprint"], "greta": device["greta"]}
        rows = sorted(self.counts.items(), key=lambda row: (-row[1], row[0]))
        return [json.dumps(head)] + [
            json.dumps({"problem": problem, "count": count, "device_us": 0.0})
            for problem, count in rows]

    def write(self, path: str | os.PathLike[str], device: dict[str, Any]) -> None:
        """Writes the file and replaces one of this name as a whole."""
        target = pathlib.Path(path)
        fresh = target.with_name(f"{target.name}.{os.getpid()}.part")
        fresh.write_text("\n".join(self.lines(device)) + "\n")
        os.replace(fresh, target)
