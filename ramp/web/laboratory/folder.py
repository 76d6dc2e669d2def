"""The folder of results: `ramp experiment run --out` writes it, the pages read it and nothing outside it.

Names come from browsers and files from whoever writes there. So a name is one component of plain characters, a folder
is opened once and what is in it by that descriptor, symbolic links are refused wherever they stand (`openat` with
`O_NOFOLLOW`, open(2)), and what is too large or no regular file is not read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.errors import RampError

ENTRIES_MAX: Final = 2000
"""Entries of a folder that are looked at."""

TRACE_SUFFIX: Final = ".jsonl"
"""Of the traces that `ramp simulate --trace` writes, as far as they are shown."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What experiments, and their files, are called; no separator and no hidden name is among them."""

_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Nonblocking, or a named pipe would hold the server until somebody writes into it."""


class ResultsError(RampError):
    """Something of the folder of results is not there, or is not what it should be."""

    exit_code = 1


def is_plain_name(name: str) -> bool:
    """Whether a name is one component of letters, digits, `.`, `_` and `-`, and no hidden one."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class ResultsFolder:
    """The folder of results.

    Attributes:
        path: of the folder; it may not be there yet.
    """

    path: Path

    def experiments(self) -> tuple[str, ...]:
        """Names of the folders in it, sorted; each may hold an experiment's results."""
        with self._opened() as folder:
            return () if folder is None else _names(folder, folders=True)

    def traces(self) -> tuple[str, ...]:
        """Names of the traces in it, sorted."""
        with self._opened() as folder:
            found = () if folder is None else _names(folder, folders=False)
        return tuple(name for name in found if name.endswith(TRACE_SUFFIX))

    def files(self, experiment: str) -> tuple[str, ...]:
        """Names of the files of an experiment's results, sorted; none where there are no such results."""
        with contextlib.suppress(ResultsError), self._opened(experiment) as folder:
            return () if folder is None else _names(folder, folders=False)
        return ()

    def read(self, name: str, most: int, experiment: str = "") -> bytes:
        """The content of a file.

        Args:
            name: of the file.
            most: bytes that it may have.
            experiment: in whose results it is; empty for a file of the folder itself.

        Raises:
            ResultsError: if it is not there, a symbolic link, no regular file or too large.
        """
        shown = f"{experiment}/{name}" if experiment else name
        if not is_plain_name(name):
            raise ResultsError(f"{name!r} is no name of a file of results")
        with self._opened(experiment) as folder:
            if folder is None:
                raise ResultsError(f"there is no {shown} among the results")
            try:
                opened = os.open(name, _READ, dir_fd=folder)
            except OSError as error:
                raise ResultsError(f"{shown} cannot be read: {_reason(error)}") from error
            with open(opened, "rb") as stream:  # noqa: PTH123 - a descriptor
                told = os.fstat(opened)
                if not stat.S_ISREG(told.st_mode):
                    raise ResultsError(f"{shown} is no regular file")
                content = stream.read(most + 1)
        if len(content) > most:
            raise ResultsError(f"{shown} has more than the {most} bytes that are shown")
        return content

    def modified(self, name: str, experiment: str = "") -> tuple[int, int]:
        """When a file was written, in nanoseconds of the epoch, and its size in bytes; zeros where there is none."""
        with contextlib.suppress(ResultsError, OSError), self._opened(experiment) as folder:
            if folder is not None and is_plain_name(name):
                told = os.stat(name, dir_fd=folder, follow_symlinks=False)
                return told.st_mtime_ns, told.st_size
        return 0, 0

    @contextlib.contextmanager
    def _opened(self, experiment: str = "") -> Iterator[int | None]:
        """A descriptor of the folder, or of an experiment's in it; None where there is no folder of results yet."""
        if experiment and not is_plain_name(experiment):
            raise ResultsError(f"{experiment!r} is no name of an experiment")
        try:
            found = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            raise ResultsError(f"the folder of results {self.path} cannot be read: {error.strerror}") from error
        try:
            if experiment:
                outer = found
                try:
                    found = os.open(experiment, _READ | os.O_DIRECTORY, dir_fd=outer)
                except OSError as error:
                    raise ResultsError(f"there are no results of {experiment}: {_reason(error)}") from error
                finally:
                    if found != outer:
                        os.close(outer)
            yield found
        finally:
            os.close(found)


def _names(folder: int, *, folders: bool) -> tuple[str, ...]:
    found = []
    with os.scandir(folder) as entries:
        for looked_at, entry in enumerate(entries):
            if looked_at == ENTRIES_MAX:
                break
            right = entry.is_dir(follow_symlinks=False) if folders else entry.is_file(follow_symlinks=False)
            if right and is_plain_name(entry.name):
                found.append(entry.name)
    return tuple(sorted(found))


def _reason(error: OSError) -> str:
    """What the system says; of a symbolic link it would say that there are too many levels of them."""
    told = {errno.ELOOP: "it is a symbolic link", errno.ENOTDIR: "it is no folder, or a symbolic link"}
    return told.get(error.errno or 0, str(error.strerror))
