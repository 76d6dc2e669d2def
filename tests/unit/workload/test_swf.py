"""Reader and writer of the Standard Workload Format."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from ramp.errors import ConfigurationError, WorkloadError
from simulation.workload.swf import FIELD_NAMES, SwfLog, format_swf, parse_swf, read_swf, write_swf

JOB = "1 0 5 60 4 -1 -1 8 120 -1 1 2 3 4 5 6 -1 -1"
TEXT = f"""; Version: 2.2
; MaxProcs: 338 (batch)
; Note: one
;	and more
; Note: two
{JOB}
  2 10 -1 30 -1 12.50 -1 2 -1 -1 0 2 3 -1 1 1 1 7

; a comment between jobs
3 10 0 30 1 -1 -1 -1 -1 -1 0 2 3 -1 1 1 1 7
"""


def test_columns_carry_the_18_fields_in_file_order() -> None:
    log = parse_swf(" ".join(str(field) for field in range(1, 19)).encode())
    assert [int(getattr(log, name)[0]) for name in FIELD_NAMES] == list(range(1, 19))
    assert len(log) == 1


def test_header_comments_and_blank_lines() -> None:
    log = parse_swf(TEXT.encode())
    assert log.header["Note"] == ("one", "two")
    assert log.header_integer("MaxProcs") == 338
    assert log.header_integer("MaxNodes") is None
    assert log.job_number.tolist() == [1, 2, 3]
    assert log.requested_time.tolist() == [120, -1, -1]


def test_average_cpu_time_is_rounded_to_even() -> None:
    assert parse_swf(TEXT.encode()).average_cpu_time.tolist() == [-1, 12, -1]


def test_processors_fall_back_to_the_request() -> None:
    assert parse_swf(TEXT.encode()).processors.tolist() == [4, 2, 1]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"; h: 1\n{JOB}\n1 2 3\n", ":3: a job line must have 18 fields, got 3"),
        (f"{JOB}\n{JOB} 19\n", ":2: a job line must have 18 fields, got 19"),
        (f"{JOB}\n\n{JOB.replace('60', 'sixty')}\n", ":3: field 4 (run_time): got 'sixty'"),
        (f"{JOB}\n{JOB.replace('60', '60.5')}\n", ":2: field 4 (run_time): got '60.5'"),
        (f"{JOB}\n{JOB.replace('60', '6-0')}\n", ":2: field 4 (run_time): got '6-0'"),
        (f"{JOB}\n{JOB.replace('60', '-')}\n", ":2: field 4 (run_time): got '-'"),
        (f"{JOB}\n{JOB.replace('60', '99999999999999999999')}\n", ":2: field 4 (run_time): got '9"),
        (f"{JOB}\n; c\n{JOB.replace('60', '60;')}\n", ":3: field 4 (run_time): got '60;'"),
        (f"{JOB}\n{JOB.replace('60', 'nan')}\n", ":2: field 4 (run_time): got 'nan'"),
    ],
)
def test_a_bad_line_is_named(text: str, where: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_swf(text.encode(), source="bad.swf")
    assert f"bad.swf{where}" in str(caught.value)


def test_two_wrong_lines_that_have_36_fields_together_are_still_wrong() -> None:
    words = (JOB + " " + JOB).split()
    text = " ".join(words[:17]) + "\n" + " ".join(words[17:])
    with pytest.raises(WorkloadError, match=":1: a job line must have 18 fields, got 17"):
        parse_swf(text.encode())


@pytest.mark.parametrize("text", ["", "\n\n", "; Version: 2.2", "; a\n; b\n"])
def test_a_log_without_jobs(text: str) -> None:
    assert len(parse_swf(text.encode())) == 0


def test_carriage_returns_and_a_missing_last_line_end() -> None:
    log = parse_swf(f"; Version: 2.2\r\n{JOB}\r\n{JOB}".encode())
    assert log.header["Version"] == ("2.2",)
    assert len(log) == 2


def test_line_ends_of_old_macintosh_files() -> None:
    log = parse_swf(TEXT.replace("\n", "\r").encode())
    assert log.columns.tolist() == parse_swf(TEXT.encode()).columns.tolist()
    assert (log.comments, log.lines.tolist()) == (parse_swf(TEXT.encode()).comments, [6, 7, 10])


def test_partial_executions_count_once(tmp_path: Path) -> None:
    """The standard's note: a line for the whole job, then one a part, of which only the first has a submission."""
    rows = [  # number, submission, wait, run, status
        (1, 0, 5, 90, 0), (1, 0, 5, 60, 2), (1, -1, 20, 30, 4),
        (2, 3, 0, 7, 1),
        (3, 4, 8, 50, 2), (3, -1, 9, -1, 2), (3, -1, 9, 25, 3),
        (4, 6, 1, 10, 2), (4, -1, 1, 5, 4),
        (5, 7, 2, 3, 2),
    ]  # fmt: skip
    path = tmp_path / "parts.swf"
    path.write_text("".join(f"{n} {s} {w} {r} 4 -1 -1 4 99 -1 {c} 1 1 1 1 1 -1 -1\n" for n, s, w, r, c in rows))
    log = read_swf(path)
    found = [log.job_number, log.submit_time, log.wait_time, log.run_time, log.status]
    assert np.array(found).T.tolist() == [
        [1, 0, 5, 90, 0], [2, 3, 0, 7, 1], [3, 4, 8, 75, 1], [4, 6, 1, 15, 0], [5, 7, 2, 3, -1]
    ]  # fmt: skip
    assert (log.partial, log.lines.tolist()) == (8, [1, 4, 5, 8, 10])
    assert len(parse_swf(path.read_bytes())) == len(rows)


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
def test_written_file_reads_back(tmp_path: Path, name: str) -> None:
    log = parse_swf(TEXT.encode())
    write_swf(tmp_path / name, log)
    again = read_swf(tmp_path / name)
    assert np.array_equal(log.columns, again.columns)
    assert again.comments == log.comments
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_compression_is_told_by_content(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert len(read_swf(path)) == 3


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"nowhere\.swf"):
        read_swf(tmp_path / "nowhere.swf")
    cut = tmp_path / "cut.swf.gz"
    cut.write_bytes(gzip.compress(TEXT.encode())[:-20])
    with pytest.raises(WorkloadError, match=r"cut\.swf\.gz"):
        read_swf(cut)
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_swf(tmp_path / "no" / "folder.swf", parse_swf(TEXT.encode()))


def test_columns_are_checked_and_cannot_be_changed() -> None:
    log = parse_swf(TEXT.encode())
    with pytest.raises(ValueError, match="read-only"):
        log.run_time[0] = 1
    with pytest.raises(WorkloadError, match="18 int64 columns"):
        SwfLog(np.zeros((17, 2), dtype=np.int64))


def test_a_byte_order_mark_is_no_job_line() -> None:
    """Before a comment, before a job, and in a log that is read line by line for another reason."""
    for text in (TEXT, TEXT[TEXT.index("1 0 5") :], TEXT.replace("-1 12.50", "+1 12.50")):
        marked = parse_swf(b"\xef\xbb\xbf" + text.encode())
        assert marked.job_number.tolist() == [1, 2, 3]
        assert marked.comments == parse_swf(text.encode()).comments
    with pytest.raises(WorkloadError, match=r"wide\.swf: wrong encoding: got UTF-16"):
        parse_swf(TEXT.encode("utf-16"), source="wide.swf")


def test_bytes_of_the_header_that_are_no_utf_8_survive() -> None:
    """Some logs of the archive are written in Latin-1."""
    data = "; Installation: Universität Zürich\n".encode("latin-1") + JOB.encode() + b"\n"
    assert format_swf(parse_swf(data)) == data


def test_each_job_knows_its_line() -> None:
    """With blank lines and comments between, at once and line by line; a selection keeps them."""
    assert parse_swf(TEXT.encode()).lines.tolist() == [6, 7, 10]
    assert parse_swf(TEXT.replace(" 12.50 ", " +12.50 ").encode()).lines.tolist() == [6, 7, 10]
    assert parse_swf(f"; a\n\n{JOB}\n\n{JOB}".encode()).select(np.array([1])).lines.tolist() == [5]


def test_select_keeps_order_and_comments() -> None:
    log = parse_swf(TEXT.encode())
    picked = log.select(np.array([2, 0]))
    assert picked.job_number.tolist() == [3, 1]
    assert picked.comments == log.comments
    assert format_swf(picked).decode().splitlines()[-1] == JOB


@pytest.mark.slow
@pytest.mark.logs
@pytest.mark.parametrize(
    ("name", "jobs", "cores"),
    [
        ("LLNL-Atlas-2006-2.1-cln", 43_778, 9216),
        ("RICC-2010-2", 447_794, None),
        ("CTC-SP2-1996-3.1-cln", 77_222, 338),
        ("SDSC-SP2-1998-4.2-cln", 59_715, 128),
    ],
)
def test_real_logs_have_their_published_sizes(name: str, jobs: int, cores: int | None) -> None:
    folder = os.environ.get("RAMP_LOGS")
    if not folder:
        pytest.skip("RAMP_LOGS names no folder of real workload logs")
    path = Path(folder) / f"{name}.swf.gz"
    if not path.is_file():
        pytest.skip(f"{name} is not in RAMP_LOGS")
    log = read_swf(path)
    assert len(log) == jobs
    assert log.header_integer("MaxProcs") == cores


def test_what_is_no_regular_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """Of root, /dev/null would become a file for everybody otherwise; a link keeps leading to its file."""
    log = parse_swf(TEXT.encode())
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        write_swf(pipe, log)
        assert pipe.is_fifo()
        assert os.read(reader, 100_000) == format_swf(log)
    finally:
        os.close(reader)
    file.write_bytes(b"")
    link.symlink_to(file)
    write_swf(link, log)
    assert link.is_symlink()
    assert file.read_bytes() == format_swf(log)
