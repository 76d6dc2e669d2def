"""Rotation of logs by copying and truncating, so that their writers need not open them again."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def rotate(path: Path, *, rotate_bytes: int, keep: int) -> bool:
    """Rotate a log if it is large: to `NAME.1`, older ones to `NAME.2` and so on; return whether it was rotated.

    Lines written between copy and cut are lost: a few lines at most.

    Args:
        path: the log; its writers append (O_APPEND).
        rotate_bytes: size at which to rotate.
        keep: number of rotated logs to keep.

    Raises:
        OSError: the copy cannot be written; the log is unchanged.
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
    """Rotate every log of a folder; skip one with an error."""
    for path in folder.glob("*.log"):
        with contextlib.suppress(OSError):
            rotate(path, rotate_bytes=rotate_bytes, keep=keep)
