"""A file's version changes with the file, even between two ticks of the file system's clock."""

import os
import re
import time
from pathlib import Path

import pytest

from ramp.file_versions import SETTLED_AFTER_NS, CachedFile, version_of
from simulation.workload.replay_source import log_digest

ROOT = Path(__file__).parents[2]


def modified(path: Path, seconds_ago: float) -> None:
    when = time.time_ns() - int(seconds_ago * 1e9)
    os.utime(path, ns=(when, when))


def test_a_missing_file_has_no_version(tmp_path: Path) -> None:
    assert version_of(tmp_path / "missing") is None


def test_a_settled_file_keeps_its_version_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    modified(path, 60)
    before = version_of(path)
    assert before == version_of(path) is not None
    modified(path, 30)
    assert version_of(path) != before


@pytest.mark.parametrize("seconds_ago", [0, SETTLED_AFTER_NS / 1e9 - 1, -3600])
def test_a_file_that_may_still_change_within_a_tick_has_a_new_version_each_time(
    tmp_path: Path, seconds_ago: float
) -> None:
    path = tmp_path / "file"
    path.touch()
    modified(path, seconds_ago)
    assert version_of(path) != version_of(path)


def test_a_cached_file_is_read_once_until_it_changes_even_within_the_same_tick(tmp_path: Path) -> None:
    path = tmp_path / "file"
    read: list[str] = []

    def content_of(path: Path) -> str:
        read.append(path.read_text())
        return read[-1]

    cached = CachedFile(path, content_of)
    assert cached.content() is None
    path.write_text("1")
    tick = path.stat().st_mtime_ns
    assert cached.content() == "1"
    path.write_text("2")  # the same inode and length
    os.utime(path, ns=(tick, tick))
    assert cached.content() == "2"
    modified(path, 60)
    assert (cached.content(), cached.content()) == ("2", "2")
    assert read == ["1", "2", "2"]
    path.unlink()
    assert cached.content() is None


def test_a_log_that_changes_within_the_same_tick_is_read_again(tmp_path: Path) -> None:
    log = tmp_path / "a.swf"
    log.write_text("1")
    tick = log.stat().st_mtime_ns
    before = log_digest(log)
    log.write_text("2")
    os.utime(log, ns=(tick, tick))
    assert log_digest(log) != before


SHOWN = ("ramp/client/jobs.py", "ramp/launching/worker.py", "ramp/web/pages/laboratory/overview.py")
"""The times of files of jobs and of results are shown and packed, not compared."""


def test_nothing_else_takes_equal_times_for_unchanged() -> None:
    """Modification times are compared in one place only."""
    asking = {
        path.relative_to(ROOT).as_posix()
        for package in ("ramp", "simulation")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\b(st_mtime|st_mtime_ns|getmtime)\b", path.read_text("utf-8"))
    }
    assert asking == {"ramp/file_versions.py", *SHOWN}
