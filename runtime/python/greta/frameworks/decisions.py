"""Decisions, measured once and stored, whether GRETA or the framework runs a problem."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import tempfile

from .._folders import default_database

VERSION = 1


def default_decisions() -> pathlib.Path:
    """Returns ~/.local/share/greta/frameworks.json, beside the user's database."""
    return default_database().with_name("frameworks.json")


@dataclasses.dataclass(frozen=True)
class Decision:
    """The times of a problem in microseconds, as GRETA and as the framework run it: launched one by
    one from Python, and in a captured graph (None: no graphs). They hold for one configuration of
    GRETA and one version of the framework."""
    config: str
    framework: str  #: "torch 2.11.0"
    greta_us: float
    framework_us: float
    greta_graph_us: float | None = None
    framework_graph_us: float | None = None

    def regret(self, in_graph: bool = False) -> float:
        """Returns GRETA's time divided by the framework's, less 1."""
        if in_graph and self.greta_graph_us is not None and self.framework_graph_us is not None:
            return self.greta_graph_us / self.framework_graph_us - 1
        return self.greta_us / self.framework_us - 1


class Decisions:
    """Decisions in a JSON file, by device and problem. Several processes may share the file: each
    write adds to what it has, and replaces it as a whole. An unreadable file is an error."""

    def __init__(self, path: str | os.PathLike[str] | None = None):
        self.path = pathlib.Path(path) if path is not None else default_decisions()
        self._known = self._read()

    def find(self, device: str, problem: str, config: str, framework: str) -> Decision | None:
        """Returns the decision for this configuration and version, if there is one."""
        found = self._known.get((device, problem))
        return found if found and (found.config, found.framework) == (config, framework) else None

    def store(self, device: str, problem: str, decision: Decision) -> None:
        """Adds a decision to the file, or replaces that of the problem."""
        self._known = {**self._read(), **self._known, (device, problem): decision}
        rows = [{"device": key[0], "problem": key[1], **dataclasses.asdict(one)}
                for key, one in sorted(self._known.items())]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name + ".")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump({"greta_frameworks": VERSION, "decisions": rows}, file, indent=1)
                file.write("\n")
            os.replace(fresh, self.path)
        except BaseException:
            os.unlink(fresh)
            raise

    def all(self) -> dict[tuple[str, str], Decision]:
        """Returns the decisions by device and problem."""
        return dict(self._known)

    def _read(self) -> dict[tuple[str, str], Decision]:
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return {}
        from ..errors import FileError
        try:
            content = json.loads(text)
            if content["greta_frameworks"] != VERSION:
                raise ValueError(f"version {content['greta_frameworks']} of the form, not {VERSION}")
            return {(row.pop("device"), row.pop("problem")): Decision(**row)
                    for row in content["decisions"]}
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{self.path}: no decisions of frameworks: {error}") from None
