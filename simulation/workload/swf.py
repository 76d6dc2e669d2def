"""Reader and writer of workload logs in the Standard Workload Format (SWF), version 2.2.

Format: one job a line, 18 whitespace-separated integers, -1 = unknown; lines that start with ';' are comments, of
which those of the form `; Key: value` are the header. Source: D. G. Feitelson and others, "The Standard Workload
Format", Parallel Workloads Archive, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.

The reader parses all numbers of a file in one NumPy call and counts the fields of all lines in a second one; only a
file that fails these checks is read again line by line, to name the line that is wrong.
"""

from __future__ import annotations

import gzip
import os
import re
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError

Int64Array = NDArray[np.int64]

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
UNKNOWN: Final = -1

_AVERAGE_CPU_TIME: Final = FIELD_NAMES.index("average_cpu_time")
_NUMBER: Final = re.compile(rb"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(rb"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)")
_LONGEST_NUMBER: Final = 18
"""Digits that always fit 64 bits."""
_JOB_BYTES: Final = np.zeros(256, dtype=np.bool_)
_JOB_BYTES[np.frombuffer(b"0123456789+-. \t\r\n\v\f", dtype=np.uint8)] = True


@dataclass(frozen=True, slots=True, eq=False)
class SwfLog:
    """A workload log by columns.

    Attributes:
        columns: shape (18, jobs), int64, one row a field in the order of `FIELD_NAMES`, -1 = unknown; times in seconds
            (submit time from the log's start), memory in kB a processor. Not writeable.
        comments: the comment lines in file order, without the leading ';' and the line end.
    """

    columns: Int64Array
    comments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.columns.ndim != 2 or self.columns.shape[0] != FIELD_COUNT or self.columns.dtype != np.int64:
            raise WorkloadError(
                f"a log has {FIELD_COUNT} int64 columns, not {self.columns.dtype} in shape {self.columns.shape}"
            )
        columns = np.ascontiguousarray(self.columns).view()
        columns.setflags(write=False)
        object.__setattr__(self, "columns", columns)

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def _column(self, field: int) -> Int64Array:
        column: Int64Array = self.columns[field]
        return column

    @property
    def header(self) -> dict[str, tuple[str, ...]]:
        """The `; Key: value` comments: key -> values in file order (Note, Queue and others occur several times)."""
        header: dict[str, tuple[str, ...]] = {}
        for comment in self.comments:
            key, colon, value = comment.partition(":")
            key = key.strip()
            if colon and key and " " not in key and "\t" not in key:
                header[key] = (*header.get(key, ()), value.strip())
        return header

    def header_integer(self, key: str) -> int | None:
        """The leading whole number of a header value such as `MaxProcs: 338`.

        Args:
            key: header key, for example "MaxProcs", "UnixStartTime".

        Returns:
            The number, or None where the key is missing or its value starts with no number.
        """
        for value in self.header.get(key, ()):
            match = re.match(r"-?[0-9]+", value)
            if match:
                return int(match.group())
        return None

    @property
    def job_number(self) -> Int64Array:
        """Field 1: number of the job, counted from 1."""
        return self._column(0)

    @property
    def submit_time(self) -> Int64Array:
        """Field 2: seconds from the log's start to the submission."""
        return self._column(1)

    @property
    def wait_time(self) -> Int64Array:
        """Field 3: seconds from the submission to the job's start."""
        return self._column(2)

    @property
    def run_time(self) -> Int64Array:
        """Field 4: seconds from the job's start to its end."""
        return self._column(3)

    @property
    def allocated_processors(self) -> Int64Array:
        """Field 5: processors the job was given."""
        return self._column(4)

    @property
    def average_cpu_time(self) -> Int64Array:
        """Field 6: processor time used, averaged over the processors, rounded to whole seconds."""
        return self._column(5)

    @property
    def used_memory(self) -> Int64Array:
        """Field 7: memory used a processor, kB."""
        return self._column(6)

    @property
    def requested_processors(self) -> Int64Array:
        """Field 8: processors the job asked for."""
        return self._column(7)

    @property
    def requested_time(self) -> Int64Array:
        """Field 9: run time the job asked for, seconds."""
        return self._column(8)

    @property
    def requested_memory(self) -> Int64Array:
        """Field 10: memory asked for a processor, kB."""
        return self._column(9)

    @property
    def status(self) -> Int64Array:
        """Field 11: 1 completed, 0 failed, 5 cancelled; 2, 3, 4 parts of a job that was checkpointed."""
        return self._column(10)

    @property
    def user_id(self) -> Int64Array:
        """Field 12: number that stands for the user."""
        return self._column(11)

    @property
    def group_id(self) -> Int64Array:
        """Field 13: number that stands for the group."""
        return self._column(12)

    @property
    def executable_number(self) -> Int64Array:
        """Field 14: number that stands for the application."""
        return self._column(13)

    @property
    def queue_number(self) -> Int64Array:
        """Field 15: number of the queue (the header's `Queue` lines name them)."""
        return self._column(14)

    @property
    def swf_partition_number(self) -> Int64Array:
        """Field 16: number of the SWF partition (the header's `Partition` lines name them)."""
        return self._column(15)

    @property
    def preceding_job_number(self) -> Int64Array:
        """Field 17: the job whose end this one waited for before it was submitted."""
        return self._column(16)

    @property
    def think_time(self) -> Int64Array:
        """Field 18: seconds between the preceding job's end and this job's submission."""
        return self._column(17)

    @property
    def processors(self) -> Int64Array:
        """Processors of each job: those it was given, where unknown those it asked for, else -1."""
        allocated, requested = self.allocated_processors, self.requested_processors
        return np.where(allocated > 0, allocated, np.where(requested > 0, requested, UNKNOWN)).astype(np.int64)

    def select(self, jobs: NDArray[Any]) -> SwfLog:
        """A log of some of the jobs.

        Args:
            jobs: indexes, or a mask of shape (jobs,), of the jobs to keep, in the order wanted.

        Returns:
            A log with the same comments.
        """
        return SwfLog(self.columns[:, jobs], self.comments)


def read_swf(path: Path | str) -> SwfLog:
    """Read a log, plain or gzip-compressed (told by its content, not by its name).

    Args:
        path: the file.

    Returns:
        The log in the order of its lines.

    Raises:
        WorkloadError: the file cannot be read, or a line is no job line; names the file and the line.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise WorkloadError(f"cannot be read: {error}", path=path) from error
    return parse_swf(data, source=path)


def parse_swf(data: bytes, *, source: Path | str = "<memory>") -> SwfLog:
    """Parse the text of a log.

    Args:
        data: the whole text.
        source: what error messages call it.

    Returns:
        The log in the order of its lines.

    Raises:
        WorkloadError: a line is no job line; names the source and the line.
    """
    comments, jobs = _split_comments(data)
    columns = _parse_at_once(jobs)
    if columns is None:
        columns = _parse_by_line(data, source)
    return SwfLog(columns, tuple(comment.decode("utf-8", errors="replace") for comment in comments))


def format_swf(log: SwfLog) -> bytes:
    """Write a log as text: its comments first, then one job a line.

    Args:
        log: the log.

    Returns:
        The text; `parse_swf` gives the same log back.
    """
    template = " ".join(["%d"] * FIELD_COUNT)
    lines = [f";{comment}" for comment in log.comments]
    lines += [template % tuple(job) for job in log.columns.T.tolist()]
    return ("\n".join(lines) + "\n").encode() if lines else b""


def write_swf(path: Path | str, log: SwfLog) -> None:
    """Write a log to a file, compressed where the name ends in `.gz`; the file appears whole or not at all.

    What is no regular file, such as /dev/stdout or a named pipe, is written to and stays what it is.

    Args:
        path: the file; overwritten. Of a link, the file it leads to.
        log: the log.

    Raises:
        WorkloadError: the file cannot be written.
    """
    path = Path(path)
    data = format_swf(log)
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    target = path.resolve()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        unfinished.write_bytes(data)
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise WorkloadError(f"cannot be written: {error}", path=path) from error


def _split_comments(data: bytes) -> tuple[list[bytes], bytes]:
    """Comment lines (without ';') and the text without them."""
    comments: list[bytes] = []
    start = 0
    while data.startswith(b";", start):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        comments.append(data[start + 1 : end].rstrip(b"\r"))
        start = end + 1
    rest = data[start:]
    if b";" not in rest:
        return comments, rest
    kept: list[bytes] = []
    for line in rest.split(b"\n"):
        stripped = line.lstrip()
        if stripped.startswith(b";"):
            comments.append(stripped[1:].rstrip(b"\r"))
        else:
            kept.append(line)
    return comments, b"\n".join(kept)


def _parse_at_once(jobs: bytes) -> Int64Array | None:
    """Columns of well-formed job lines, or None if anything is unusual."""
    text = np.frombuffer(jobs, dtype=np.uint8)
    if not _JOB_BYTES[text].all():
        return None
    is_space = text <= ord(" ")
    starts = np.flatnonzero(~is_space & np.concatenate(([True], is_space[:-1])))
    if starts.size == 0:
        return np.empty((FIELD_COUNT, 0), dtype=np.int64)
    line_ends = np.append(np.flatnonzero(text == ord("\n")), text.size)
    fields = np.diff(np.searchsorted(starts, line_ends), prepend=0)
    if not ((fields == FIELD_COUNT) | (fields == 0)).all():
        return None
    if b"." in jobs:
        return _parse_decimals(jobs, starts.size)
    values = _parse_numbers(jobs, np.dtype(np.int64), starts.size)
    if values is None or (np.abs(values) >= 10**_LONGEST_NUMBER).any():
        return None
    return np.ascontiguousarray(values.reshape(-1, FIELD_COUNT).T)


def _parse_decimals(jobs: bytes, count: int) -> Int64Array | None:
    """As `_parse_at_once` for text with decimals, which occur as average processor time only."""
    values = _parse_numbers(jobs, np.dtype(np.float64), count)
    if values is None or (np.abs(values) >= 2.0**53).any():
        return None
    columns = np.ascontiguousarray(values.reshape(-1, FIELD_COUNT).T)
    columns[_AVERAGE_CPU_TIME] = np.rint(columns[_AVERAGE_CPU_TIME])
    whole = columns.astype(np.int64)
    return whole if (whole == columns).all() else None


def _parse_numbers(jobs: bytes, dtype: np.dtype[Any], count: int) -> NDArray[Any] | None:
    """All numbers of a text, or None unless there are exactly `count`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values = np.fromstring(jobs, dtype=dtype, sep=" ")
        except (ValueError, DeprecationWarning):  # text that is no number: an error or a warning, by NumPy's version
            return None
    return values if values.size == count else None


def _parse_by_line(data: bytes, source: Path | str) -> Int64Array:
    """Parse line by line, to find the line that is wrong."""
    jobs: list[list[int]] = []
    for line_number, line in enumerate(data.split(b"\n"), start=1):
        words = line.split()
        if not words or words[0].startswith(b";"):
            continue
        if len(words) != FIELD_COUNT:
            raise WorkloadError(
                f"{len(words)} fields where a job line has {FIELD_COUNT}", path=source, line_number=line_number
            )
        jobs.append([_parse_field(word, field, source, line_number) for field, word in enumerate(words)])
    return np.ascontiguousarray(np.array(jobs, dtype=np.int64).reshape(-1, FIELD_COUNT).T)


def _parse_field(word: bytes, field: int, source: Path | str, line_number: int) -> int:
    """The value of one field."""
    short = len(word.lstrip(b"+-0")) <= _LONGEST_NUMBER
    if short and _NUMBER.fullmatch(word):
        return int(word)
    if short and _DECIMAL.fullmatch(word) and (field == _AVERAGE_CPU_TIME or float(word).is_integer()):
        return round(float(word))
    raise WorkloadError(
        f"field {field + 1} ({FIELD_NAMES[field]}) is {word.decode('utf-8', errors='replace')!r}; "
        f"a whole number of at most {_LONGEST_NUMBER} digits is wanted, -1 for unknown",
        path=source,
        line_number=line_number,
    )
