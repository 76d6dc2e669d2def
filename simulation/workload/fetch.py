"""Download of workload logs: resumable, verified, and in place all at once or not at all."""

from __future__ import annotations

import fcntl
import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from ramp.errors import WorkloadError
from simulation.workload.logs import KnownLog

Progress = Callable[[int, int | None], None]
"""Told the bytes that are here and the bytes there are in all (None = unknown)."""

ATTEMPTS: Final = 5
"""How often a broken transfer is taken up again before it is reported."""
TIMEOUT_S: Final = 30
"""Longest silence of the server, seconds."""
_CHUNK: Final = 64 * 1024


def fetch_log(log: KnownLog, folder: Path, *, source: str | None = None, progress: Progress | None = None) -> Path:
    """Download a log and verify it; a copy that is there already is only verified.

    A transfer that breaks is taken up where it ended, at once or by the next call (the unfinished file
    `<name>.swf.gz.part` stays). A file with a wrong checksum is removed.

    Args:
        log: the log.
        folder: where to put it; made if missing.
        source: address of a folder that has the file, or of the file itself, in place of the archive's.
        progress: told as bytes arrive.

    Returns:
        The file, verified.

    Raises:
        WorkloadError: the server or the file system refuses, the transfer breaks, or the checksum is wrong.
    """
    address = _address(log, source)
    target = folder / log.file_name
    unfinished = folder / f"{log.file_name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f".{log.file_name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if target.is_file() and log.verify(target) is None:
                return target
            _download(address, unfinished, progress)
            fault = log.verify(unfinished)
            if fault is not None:
                unfinished.unlink()
                raise WorkloadError(
                    f"{address} does not contain the log {log.name}: {fault}; removed the file", path=unfinished
                )
            unfinished.replace(target)
    except OSError as error:
        raise WorkloadError(f"cannot be written: {error}", path=target) from error
    return target


def _address(log: KnownLog, source: str | None) -> str:
    if source is None:
        return log.address
    if urlsplit(source).scheme not in {"http", "https"}:
        raise WorkloadError(f"invalid address {source!r}; expected http://... or https://...")
    return source if source.endswith(".gz") else f"{source.rstrip('/')}/{log.file_name}"


def _download(address: str, unfinished: Path, progress: Progress | None) -> None:
    reason = ""
    for _ in range(ATTEMPTS):
        with unfinished.open("ab") as file:
            before = file.tell()
            try:
                if _transfer(address, file, progress):
                    os.fsync(file.fileno())
                    return
                reason = "the connection ended early"
            except urllib.error.HTTPError as error:
                raise WorkloadError(f"{address}: the server answered {error.code} {error.reason}") from error
            except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
                reason = str(getattr(error, "reason", error)) or type(error).__name__
                if before == file.tell() == 0:
                    raise WorkloadError(f"{address}: {reason}") from error
    size = unfinished.stat().st_size
    raise WorkloadError(f"{address}: {reason}; {size} bytes received, repeat the command to continue")


def _transfer(address: str, file: BinaryIO, progress: Progress | None) -> bool:
    request = urllib.request.Request(address, headers={"User-Agent": "ramp-logs"})  # noqa: S310 - scheme is checked
    have = file.tell()
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310 - scheme is checked
    except urllib.error.HTTPError as error:
        if have and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            total = re.fullmatch(r"bytes \*/([0-9]+)", error.headers.get("Content-Range", ""))
            if total and int(total.group(1)) == have:
                return True
            file.truncate(0)  # what is here belongs to another file: begin anew
            return False
        raise
    with response:
        total_bytes = _total(response, file)
        received = file.tell()
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            received += len(chunk)
            if progress is not None:
                progress(received, total_bytes)
        file.flush()
    return total_bytes is None or received == total_bytes


def _total(response: http.client.HTTPResponse, file: BinaryIO) -> int | None:
    """Return the length of the whole file; empty the unfinished one unless the server continues exactly behind it."""
    match = re.fullmatch(r"bytes ([0-9]+)-[0-9]+/([0-9]+)", response.headers.get("Content-Range", ""))
    if response.status == http.HTTPStatus.PARTIAL_CONTENT and match and int(match.group(1)) == file.tell():
        return int(match.group(2))
    file.truncate(0)
    file.seek(0)
    length = response.headers.get("Content-Length")
    return int(length) if length is not None else None
