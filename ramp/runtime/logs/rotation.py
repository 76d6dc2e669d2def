"""Rotation of logs that processes write at their end: copied aside and cut, so that nobody has to open them anew."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def rotate(path: Path, *, rotate_bytes: int, keep: int) -> bool:
    """Put a log aside if it is large: as `NAME.1`, and older ones as `NAME.2` and so on; returns whether it was.

    What is written between copy and cut is lost: a few lines at most, once in so many megabytes.

    Args:
        path: of the log; whoever writes it appends (O_APPEND).
        rotate_bytes: at which size.
        keep: how many that were put aside are kept.

    Raises:
        OSError: if there is no room for the copy; the log is as it was then.
    """
    if not path.exists() or path.stat().st_size < rotate_bytes:
        return False
    aside = path.with_name(f"{path.name}.new")
    try:
        shutil.copyfile(path, aside)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    for number in range(keep, 1, -1):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(f"{path.name}.{number - 1}").rename(path.with_name(f"{path.name}.{number}"))
    aside.rename(path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)
    return True


def rotate_all(folder: Path, *, rotate_bytes: int, keep: int) -> None:
    """Rotate every log of a folder; one that cannot be is left as it is."""
    for path in folder.glob("*.log"):
        with contextlib.suppress(OSError):
            rotate(path, rotate_bytes=rotate_bytes, keep=keep)
