"""The user's folders, the only part of the package that reads the environment."""

from __future__ import annotations

import os
import pathlib
import pwd


def _folder(variable: str, below_home: str) -> pathlib.Path:
    """Returns a folder of the XDG Base Directory Specification, which ignores relative paths."""
    def absolute(name: str) -> str:
        return value if (value := os.environ.get(name, "")).startswith("/") else ""
    home = absolute("HOME") or pwd.getpwuid(os.geteuid()).pw_dir
    return pathlib.Path(absolute(variable) or pathlib.Path(home) / below_home) / "greta"


def default_database() -> pathlib.Path:
    """Returns $XDG_DATA_HOME/greta/tuned.db, else ~/.local/share/greta/tuned.db: the database of the
    command line tools."""
    return _folder("XDG_DATA_HOME", ".local/share") / "tuned.db"


def default_cache() -> pathlib.Path:
    """Returns $XDG_CACHE_HOME/greta, else ~/.cache/greta: the cache of the command line tools."""
    return _folder("XDG_CACHE_HOME", ".cache")
