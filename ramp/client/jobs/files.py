"""The files of a job: the list that its site reports, the archive of larger inputs, and saving files locally."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError, ControlLineError
from ramp.model.contents.jobs import ARCHIVE_BYTES_MAX, UNPACKED_BYTES_MAX, path_problem
from ramp.model.instant import INSTANT_END, to_datetime

FETCHED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Maximum bytes that are fetched from a job at once."""

LISTED_MAX: Final = 20_000
"""Maximum entries of a list of files, above what a site's worker lists; its site may be wrong, or worse."""


@dataclass(frozen=True, slots=True)
class JobFile:
    """A stream or a file of a job.

    Attributes:
        path: `stdout`, `stderr`, or its path in the job's folder.
        size: in bytes.
        changed: time of the last change, by the clock of its site.
    """

    path: str
    size: int
    changed: datetime


def files_of(lines: bytes) -> tuple[JobFile, ...]:
    """Read a list of files as a site has written it.

    Raises:
        ControlLineError: if it is invalid.
    """
    found = []
    for line in lines.splitlines():
        try:
            path, size, changed = json.loads(line)
        except (ValueError, TypeError) as error:
            raise ControlLineError("the site's list of files is invalid: expected path, size and time") from error
        right = isinstance(path, str) and type(size) is int and type(changed) is int
        if not right or path_problem(path) or size < 0 or not 0 <= changed < INSTANT_END:
            raise ControlLineError(f"the site's list of files is invalid: got {line[:80]!r}")
        found.append(JobFile(path, size, to_datetime(changed)))
    return tuple(found)


def files_below(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield an input file, or all files of an input folder, with their paths in the job's folder.

    Raises:
        ConfigurationError: if there is something else, such as a link to a folder.
    """
    name = path.name or path.resolve().name
    try:
        is_file = not path.is_dir()
        if is_file and path.exists() and not path.is_file():  # a pipe would be waited for
            raise _not_staged(path)
    except OSError as error:  # no file can have such a name
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=path) from error
    if is_file:
        yield name, path
        return
    for here, folders, files in os.walk(path):
        folders.sort()
        for each in sorted(files) + [each for each in folders if (Path(here) / each).is_symlink()]:
            found = Path(here) / each
            if not found.is_file():
                raise _not_staged(found)
            yield str(Path(name) / found.relative_to(path)), found


def archive_of(files: Mapping[str, Path], starter: str | None = None) -> bytes:
    """Return input files, by their paths in the job's folder, as a compressed archive; `starter` is made executable.

    Raises:
        ConfigurationError: if a file cannot be read, or they are too large.
    """
    packed, size = io.BytesIO(), 0
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, path in files.items():
            try:
                with path.open("rb") as content:
                    entry = tarfile.TarInfo(name)
                    found = os.fstat(content.fileno())
                    entry.size, entry.mtime = found.st_size, int(found.st_mtime)
                    entry.mode = stat.S_IMODE(found.st_mode) | (0o100 if name == starter else 0)
                    size += 512 * (2 + -(-entry.size // 512))
                    if size <= UNPACKED_BYTES_MAX:
                        archive.addfile(entry, content)
            except OSError as error:
                raise ConfigurationError(f"cannot be read: {error.strerror or error}", path=path) from error
            if size > UNPACKED_BYTES_MAX or packed.tell() > ARCHIVE_BYTES_MAX:
                raise _too_large(path)
    if len(packed.getbuffer()) > ARCHIVE_BYTES_MAX:
        raise _too_large(path)
    return packed.getvalue()


def _not_staged(path: Path) -> ConfigurationError:
    return ConfigurationError("cannot be staged: expected files, folders, or links to files", path=path)


def _too_large(path: Path) -> ConfigurationError:
    right = f"{ARCHIVE_BYTES_MAX // 2**20} MiB compressed and {UNPACKED_BYTES_MAX // 2**20} MiB in all"
    return ConfigurationError(f"makes the input files too large: expected at most {right}", path=path)


def save(folder: Path, path: str, data: bytes) -> Path:
    """Save a file of a job below a local folder.

    Raises:
        ConfigurationError: if its path leads elsewhere, for example over a link, or it cannot be written.
    """
    problem = path_problem(path)
    target = folder / path
    if problem:
        raise ConfigurationError(problem)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or not target.parent.resolve().is_relative_to(folder.resolve()):
            raise ConfigurationError("is not written: a link leads out of the folder", path=target)
        target.write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"cannot be written: {error.strerror}", path=target) from error
    return target
