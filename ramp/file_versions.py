"""Whether a file or folder has changed since it was last read."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

Content = TypeVar("Content")

Version = tuple[int, int, int]
"""Equal versions mean an unchanged file: time of modification in nanoseconds, inode, and a number that is 0 once the
file is settled and unique before that."""

SETTLED_AFTER_NS: Final = 3_000_000_000
"""The coarsest clock of a common file system ticks every two seconds (FAT); the others are finer."""

_unsettled = itertools.count(1)


def version_of(path: Path) -> Version | None:
    """Return the version of a file or folder; take it before reading the content that is kept for it.

    Two changes within one tick of the file system's clock leave the same time of modification, and a replaced file may
    get the inode of an earlier one. So a file that was modified less than three seconds ago has a new version at each
    call, and whoever keeps its content reads it again (Git's documentation, `racy-git`, has the same problem). None
    means that there is no such file.
    """
    now = time.time_ns()
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    settled = status.st_mtime_ns <= now - SETTLED_AFTER_NS
    return status.st_mtime_ns, status.st_ino, 0 if settled else next(_unsettled)


class CachedFile(Generic[Content]):
    """The content of a file, read again only after a change; `read` is called with the path, which stays the same."""

    def __init__(self, path: Path, read: Callable[[Path], Content]) -> None:
        self.path = path
        self._read = read
        self._known: tuple[Version, Content] | None = None

    def content(self) -> Content | None:
        """Return the content; None where there is no such file. Errors of `read` pass."""
        version = version_of(self.path)
        if version is None:
            return None
        if self._known is None or self._known[0] != version:
            self._known = version, self._read(self.path)
        return self._known[1]
