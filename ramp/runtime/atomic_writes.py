"""Files that are written completely or not at all, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ramp.errors import ConfigurationError
from ramp.runtime.storage_errors import storing


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, which is made if it is missing, and hold it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_whole(path: Path, data: bytes, *, private: bool) -> None:
    """Write a file completely or not at all; others can never read a private one, not even during the write."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
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


def write_output(path: Path, data: str | bytes) -> None:
    """Write a file that a person has named: completely or not at all, but a device or a pipe as it is.

    Raises:
        ConfigurationError: if its folder does not exist.
        StorageFailed: if it cannot be written.
    """
    content = data.encode() if isinstance(data, str) else data
    with storing(path):
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        elif not path.resolve().parent.is_dir():
            raise ConfigurationError("cannot be written: there is no such folder", path=path)
        else:
            write_whole(path.resolve(), content, private=False)
