"""What installed packages declare, read once.

The standard library opens a file of every installed package each time it is asked, some ten milliseconds; a market of
twenty machines asks a hundred times. As there, a folder of the search path is read again when it has changed (Python's
documentation of `importlib.metadata` and `importlib.invalidate_caches`).
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path


def entry_points(group: str) -> list[metadata.EntryPoint]:
    """The entry points of a group, of all packages that can be imported now.

    Args:
        group: `ramp.resource_plugins` and the like.
    """
    return list(_read(group, tuple((folder, _changed_at(Path(folder))) for folder in sys.path)))


def _changed_at(folder: Path) -> int:
    """Nanoseconds since 1970 of a folder's last change; 0 of what cannot be read."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=64)
def _read(group: str, _search_path: tuple[tuple[str, int], ...]) -> list[metadata.EntryPoint]:
    return list(metadata.entry_points(group=group))
