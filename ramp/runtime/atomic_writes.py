"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Create a folder that only its owner can enter, and its parents, if they are missing."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_whole(path: Path, data: bytes, *, private: bool) -> None:
    """Write a file completely or not at all; others can never read a private one, not even during the write."""
    make_folder(path.parent)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names of the files in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
