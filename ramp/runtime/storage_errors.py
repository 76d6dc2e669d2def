"""Failed writes of durable data, with their causes in plain words."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ramp.errors import LedgerUnavailable, StorageFailed

ROOM_BYTES: Final = 262_144
"""Free space that an agent needs to start; with less it would soon fail to write a record."""

STORAGE_ERRORS: Final = (OSError, sqlite3.Error, StorageFailed, LedgerUnavailable)
"""Errors of failed writes, which are no bugs of RAMP."""

_BY_ERRNO: Final = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk quota exceeded",
    errno.EROFS: "read-only file system",
    errno.EACCES: "no permission to write",
    errno.EPERM: "no permission to write",
    errno.EIO: "input/output error",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files",
}

_BY_SQLITE: Final = {
    sqlite3.SQLITE_FULL: "disk full",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_IOERR: "input/output error",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
}
"""By primary result code (https://sqlite.org/rescode.html)."""


def reason_of(error: BaseException) -> str:
    """Describe one of `STORAGE_ERRORS`, or an error caused by one, in few words with the file if known."""
    if isinstance(error, StorageFailed):
        return str(error)
    if isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)
        return _BY_SQLITE.get(code & 0xFF, str(error)) if code is not None else str(error)
    if isinstance(error, OSError):
        words = _BY_ERRNO.get(error.errno or 0) or error.strerror or str(error)
        return f"{words}: {error.filename}" if error.filename else words
    inner = getattr(error, "orig", None) or error.__cause__  # SQLAlchemy keeps the driver's error in `orig`
    return reason_of(inner) if isinstance(inner, BaseException) else str(error)


def is_storage_failure(error: BaseException | None) -> bool:
    """Return whether an error, or any of its causes, is a failure to write to a medium."""
    while error is not None:
        if isinstance(error, StorageFailed | LedgerUnavailable):
            return True
        if isinstance(error, OSError) and error.errno in _BY_ERRNO:
            return True
        if isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in _BY_SQLITE:
            return True
        error = error.__cause__
    return False


def check_room(folder: Path) -> None:
    """Check that `ROOM_BYTES` can be written to a folder; `StorageFailed` otherwise."""
    probe = folder / f".room-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        with storing(folder), probe.open("wb") as file:
            file.write(bytes(ROOM_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Raise `StorageFailed` with the file instead of errors of the system or SQLite."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        plain = OSError(error.errno, error.strerror) if isinstance(error, OSError) else error
        raise StorageFailed(reason_of(plain), path=path) from error
