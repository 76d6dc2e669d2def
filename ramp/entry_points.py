"""The entry points of installed packages, read once.

The standard library opens a file of every installed package each time it is asked, which takes some ten milliseconds. A
market of twenty machines asks a hundred times. Packages are read again when a folder of the search path has changed.
"""

from __future__ import annotations

import importlib
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from ramp.file_versions import Version, version_of


def entry_points(group: str) -> list[metadata.EntryPoint]:
    """Return the entry points of a group, of all packages that can be imported now."""
    search_path = tuple((folder, _version(folder)) for folder in sys.path)
    return list(_installed(group, search_path))


def entry_points_by_name(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group by name; the first of each name."""
    return {entry.name: entry for entry in reversed(entry_points(group))}


def _version(folder: str) -> Version | None:
    try:
        return version_of(Path(folder))
    except OSError:
        return None


@lru_cache(maxsize=64)
def _installed(group: str, _search_path: tuple[tuple[str, Version | None], ...]) -> metadata.EntryPoints:
    # importlib keeps what it has found in a folder as long as the folder's time of modification is the same
    importlib.invalidate_caches()
    return metadata.entry_points(group=group)
