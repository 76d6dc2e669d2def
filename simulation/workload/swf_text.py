"""The text of a workload log in the Standard Workload Format: comments apart, job lines as columns of numbers.

All numbers of a file are parsed in one NumPy call, and the fields of all lines counted in a second one; only a file
that fails these checks is read again line by line, to name the line that is wrong.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError

FIELD_NAMES: Final = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user_id",
    "group_id",
    "executable_number",
    "queue_number",
    "swf_partition_number",
    "preceding_job_number",
    "think_time",
)
"""The 18 fields of a job line in file order."""

FIELD_COUNT: Final = len(FIELD_NAMES)


Int64Array = NDArray[np.int64]

_AVERAGE_CPU_TIME: Final = FIELD_NAMES.index("average_cpu_time")
_NUMBER: Final = re.compile(rb"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(rb"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)")
_LONGEST_NUMBER: Final = 18
"""Digits that always fit 64 bits."""
_JOB_BYTES: Final = np.zeros(256, dtype=np.bool_)
_JOB_BYTES[np.frombuffer(b"0123456789+-. \t\r\n\v\f", dtype=np.uint8)] = True
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def parse_text(data: bytes, source: Path | str) -> tuple[Int64Array, list[bytes], Int64Array]:
    """Parse the text of a log, with or without a byte-order mark before it.

    Args:
        data: the whole text.
        source: what error messages call it.

    Returns:
        Columns, shape (18, jobs); comment lines without ';' and line end; the line of each job, from 1, shape (jobs,).

    Raises:
        WorkloadError: a line is no job line; names the source and the line.
    """
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise WorkloadError("wrong encoding: got UTF-16, expected ASCII or UTF-8; convert the file", path=source)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # line ends of old Macintosh files
    comments, jobs, numbers = _split_comments(data)
    parsed = _parse_at_once(jobs)
    if parsed is None:
        columns, lines = _parse_by_line(data, source)
        return columns, comments, lines
    columns, places = parsed
    return columns, comments, places + numbers if isinstance(numbers, int) else numbers[places]


def _split_comments(data: bytes) -> tuple[list[bytes], bytes, Int64Array | int]:
    """Return comment lines (without ';'), the text without them, and where its lines were.

    That is the number of each of its lines, from 1, or the first one's where no comment stands between them.
    """
    comments: list[bytes] = []
    start = 0
    while data.startswith(b";", start):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        comments.append(data[start + 1 : end].rstrip(b"\r"))
        start = end + 1
    rest = data[start:]
    if b";" not in rest:
        return comments, rest, len(comments) + 1
    kept: list[bytes] = []
    numbers: list[int] = []
    for number, line in enumerate(rest.split(b"\n"), start=len(comments) + 1):
        stripped = line.lstrip()
        if stripped.startswith(b";"):
            comments.append(stripped[1:].rstrip(b"\r"))
        else:
            kept.append(line)
            numbers.append(number)
    return comments, b"\n".join(kept), np.array(numbers, np.int64)


def _parse_at_once(jobs: bytes) -> tuple[Int64Array, Int64Array] | None:
    text = np.frombuffer(jobs, dtype=np.uint8)
    if not _JOB_BYTES[text].all():
        return None
    is_space = text <= ord(" ")
    starts = np.flatnonzero(~is_space & np.concatenate(([True], is_space[:-1])))
    if starts.size == 0:
        return np.empty((FIELD_COUNT, 0), dtype=np.int64), np.empty(0, np.int64)
    line_ends = np.append(np.flatnonzero(text == ord("\n")), text.size)
    fields = np.diff(np.searchsorted(starts, line_ends), prepend=0)
    if not ((fields == FIELD_COUNT) | (fields == 0)).all():
        return None
    columns = _parse_decimals(jobs, starts.size) if b"." in jobs else _parse_integers(jobs, starts.size)
    return None if columns is None else (columns, np.flatnonzero(fields))


def _parse_integers(jobs: bytes, count: int) -> Int64Array | None:
    values = _parse_numbers(jobs, np.dtype(np.int64), count)
    if values is None or (np.abs(values) >= 10**_LONGEST_NUMBER).any():
        return None
    return np.ascontiguousarray(values.reshape(-1, FIELD_COUNT).T)


def _parse_decimals(jobs: bytes, count: int) -> Int64Array | None:
    values = _parse_numbers(jobs, np.dtype(np.float64), count)
    if values is None or (np.abs(values) >= 2.0**53).any():
        return None
    columns = np.ascontiguousarray(values.reshape(-1, FIELD_COUNT).T)
    columns[_AVERAGE_CPU_TIME] = np.rint(columns[_AVERAGE_CPU_TIME])
    whole = columns.astype(np.int64)
    return whole if (whole == columns).all() else None


def _parse_numbers(jobs: bytes, dtype: np.dtype[Any], count: int) -> NDArray[Any] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values = np.fromstring(jobs, dtype=dtype, sep=" ")
        except (ValueError, DeprecationWarning):  # text that is no number: an error or a warning, by NumPy's version
            return None
    return values if values.size == count else None


def _parse_by_line(data: bytes, source: Path | str) -> tuple[Int64Array, Int64Array]:
    jobs: list[list[int]] = []
    lines: list[int] = []
    for line_number, line in enumerate(data.split(b"\n"), start=1):
        words = line.split()
        if not words or words[0].startswith(b";"):
            continue
        if len(words) != FIELD_COUNT:
            raise WorkloadError(
                f"a job line must have {FIELD_COUNT} fields, got {len(words)}", path=source, line_number=line_number
            )
        lines.append(line_number)
        jobs.append([_parse_field(word, field, source, line_number) for field, word in enumerate(words)])
    columns = np.ascontiguousarray(np.array(jobs, dtype=np.int64).reshape(-1, FIELD_COUNT).T)
    return columns, np.array(lines, np.int64)


def _parse_field(word: bytes, field: int, source: Path | str, line_number: int) -> int:
    short = len(word.lstrip(b"+-0")) <= _LONGEST_NUMBER
    if short and _NUMBER.fullmatch(word):
        return int(word)
    if short and _DECIMAL.fullmatch(word) and (field == _AVERAGE_CPU_TIME or float(word).is_integer()):
        return round(float(word))
    raise WorkloadError(
        f"field {field + 1} ({FIELD_NAMES[field]}): got {word.decode('utf-8', errors='replace')!r}, "
        f"expected a whole number of at most {_LONGEST_NUMBER} digits, or -1 for unknown",
        path=source,
        line_number=line_number,
    )
