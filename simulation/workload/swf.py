"""Reader and writer of workload logs in the Standard Workload Format (SWF), version 2.2.

Format: one job a line, 18 whitespace-separated integers, -1 = unknown; lines that start with ';' are comments, of
which those of the form `; Key: value` are the header. Source: D. G. Feitelson and others, "The Standard Workload
Format", Parallel Workloads Archive, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

from __future__ import annotations

import gzip
import re
import warnings
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError
from ramp.runtime.atomic_writes import write_output

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


UNKNOWN: Final = -1
_CONTINUED, _LAST_COMPLETED, _LAST_FAILED = 2, 3, 4
_RUN_TIME, _STATUS = FIELD_NAMES.index("run_time"), FIELD_NAMES.index("status")


class _Field:
    """A column of a log by the name of its field."""

    def __init__(self, row: int) -> None:
        self._row = row

    def __get__(self, log: SwfLog, owner: type[SwfLog]) -> Int64Array:
        column: Int64Array = log.columns[self._row]
        return column


@dataclass(frozen=True, slots=True, eq=False)
class SwfLog:
    """A workload log by columns.

    Attributes:
        columns: shape (18, jobs), int64, one row a field in the order of `FIELD_NAMES`, -1 = unknown; times in seconds
            (submit time from the log's start), memory in kB a processor. Not writeable.
        comments: the comment lines in file order, without the leading ';' and the line end; bytes that are no UTF-8 are
            kept as Python's surrogate escapes.
        source: where it was read.
        lines: the line of each job there, from 1, shape (jobs,); None where it was not read.
        partial: lines of partial executions that `whole_jobs` has left out or joined.
    """

    columns: Int64Array
    comments: tuple[str, ...] = ()
    source: Path | str = "<memory>"
    lines: Int64Array | None = None
    partial: int = 0

    job_number = _Field(0)
    """Field 1: number of the job, counted from 1."""
    submit_time = _Field(1)
    """Field 2: seconds from the log's start to the submission."""
    wait_time = _Field(2)
    """Field 3: seconds from the submission to the job's start."""
    run_time = _Field(3)
    """Field 4: seconds from the job's start to its end."""
    allocated_processors = _Field(4)
    """Field 5: processors the job was given."""
    average_cpu_time = _Field(5)
    """Field 6: processor time used, averaged over the processors, rounded to whole seconds."""
    used_memory = _Field(6)
    """Field 7: memory used a processor, kB."""
    requested_processors = _Field(7)
    """Field 8: processors the job asked for."""
    requested_time = _Field(8)
    """Field 9: run time the job asked for, seconds."""
    requested_memory = _Field(9)
    """Field 10: memory asked for a processor, kB."""
    status = _Field(10)
    """Field 11: 1 completed, 0 failed, 5 cancelled; 2, 3, 4 parts of a job that was checkpointed."""
    user_id = _Field(11)
    """Field 12: number that stands for the user."""
    group_id = _Field(12)
    """Field 13: number that stands for the group."""
    executable_number = _Field(13)
    """Field 14: number that stands for the application."""
    queue_number = _Field(14)
    """Field 15: number of the queue (the header's `Queue` lines name them)."""
    swf_partition_number = _Field(15)
    """Field 16: number of the SWF partition (the header's `Partition` lines name them)."""
    preceding_job_number = _Field(16)
    """Field 17: the job whose end this one waited for before it was submitted."""
    think_time = _Field(17)
    """Field 18: seconds between the preceding job's end and this job's submission."""

    def __post_init__(self) -> None:
        if self.columns.ndim != 2 or self.columns.shape[0] != FIELD_COUNT or self.columns.dtype != np.int64:
            raise WorkloadError(
                f"a log must have {FIELD_COUNT} int64 columns, got {self.columns.dtype} in shape {self.columns.shape}"
            )
        columns = np.ascontiguousarray(self.columns).view()
        columns.setflags(write=False)
        object.__setattr__(self, "columns", columns)

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    @property
    def header(self) -> dict[str, tuple[str, ...]]:
        """Values of the comments that state a key, by key, in file order (Note and Queue occur several times)."""
        header: dict[str, tuple[str, ...]] = {}
        for comment in self.comments:
            key, colon, value = comment.partition(":")
            key = key.strip()
            if colon and key and " " not in key and "\t" not in key:
                header[key] = (*header.get(key, ()), value.strip())
        return header

    def header_integer(self, key: str) -> int | None:
        """Return the leading whole number of a header value such as `MaxProcs: 338`.

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
    def processors(self) -> Int64Array:
        """Processors of each job: those it was given, where unknown those it asked for, else -1."""
        allocated, requested = self.allocated_processors, self.requested_processors
        return np.where(allocated > 0, allocated, np.where(requested > 0, requested, UNKNOWN)).astype(np.int64)

    def select(self, jobs: NDArray[Any]) -> SwfLog:
        """Return a log of some of the jobs.

        Args:
            jobs: indexes, or a mask of shape (jobs,), of the jobs to keep, in the order wanted.

        Returns:
            A log with the same comments.
        """
        lines = None if self.lines is None else self.lines[jobs]
        return SwfLog(self.columns[:, jobs], self.comments, self.source, lines, self.partial)

    def whole_jobs(self) -> SwfLog:
        """Return the log with one line a job, where lines of status 2, 3 and 4 tell of its partial executions.

        The format gives such a job a summary line too, and recommends it for studies of workloads: the partial lines
        are left out. Those of a job without a summary line are joined: the first one with the sum of the run times.
        """
        partial = (self.status >= _CONTINUED) & (self.status <= _LAST_FAILED)
        if not partial.any():
            return self
        numbers = self.job_number
        keep, columns = ~partial, self.columns.copy()
        parts = np.flatnonzero(partial & ~np.isin(numbers, numbers[keep]))
        _, first, job = np.unique(numbers[parts], return_index=True, return_inverse=True)
        run_time, last = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
        np.add.at(run_time, job, np.maximum(self.run_time[parts], 0))
        last[job] = self.status[parts]  # of several assignments the last one holds
        joined = parts[first]
        columns[_RUN_TIME, joined] = run_time
        columns[_STATUS, joined] = np.select([last == _LAST_FAILED, last == _LAST_COMPLETED], [0, 1], UNKNOWN)
        keep[joined] = True
        return replace(replace(self, columns=columns).select(keep), partial=int(partial.sum()))


def read_swf(path: Path | str) -> SwfLog:
    """Read a log, plain or gzip-compressed (told by its content, not by its name).

    Args:
        path: the file.

    Returns:
        The log in the order of its lines, without partial executions of jobs (`SwfLog.whole_jobs`).

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
    return parse_swf(data, source=path).whole_jobs()


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
    columns, comments, lines = parse_text(data, source)
    texts = tuple(comment.decode("utf-8", errors="surrogateescape") for comment in comments)
    return SwfLog(columns, texts, source, lines)


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
    return ("\n".join(lines) + "\n").encode("utf-8", errors="surrogateescape") if lines else b""


def write_swf(path: Path | str, log: SwfLog) -> None:
    """Write a log to a file, compressed where the name ends in `.gz`; the file appears whole or not at all.

    What is no regular file, such as /dev/stdout or a named pipe, is written to and stays what it is.

    Args:
        path: the file; overwritten. Of a link, the file it leads to.
        log: the log.

    Raises:
        ConfigurationError: its folder does not exist.
        StorageFailed: it cannot be written.
    """
    path = Path(path)
    data = format_swf(log)
    write_output(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
