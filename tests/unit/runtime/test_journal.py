"""Journals keep records in order, survive a restart and a torn end."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError
from ramp.model.offer import RefusalCode
from ramp.protocol.records import HoldMade, SlotReleased
from ramp.runtime.journal import MemoryJournal, SqliteJournal

RECORDS = [
    HoldMade("o1", "R1", 20, 10),
    SlotReleased("o1", "", RefusalCode.HOLD_EXPIRED, "no CONFIRM came — “late”", 0, None, 20),
    HoldMade("o2", "R2", 40, 30),
]


def test_records_come_back_in_order(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.sqlite")
    for record in RECORDS:
        journal.append(record)
    assert list(journal.records()) == RECORDS
    journal.close()
    again = SqliteJournal(tmp_path / "journal.sqlite")
    again.append(RECORDS[0])
    assert list(again.records()) == [*RECORDS, RECORDS[0]]


def test_memory_does_the_same() -> None:
    journal = MemoryJournal()
    for record in RECORDS:
        journal.append(record)
    assert list(journal.records()) == RECORDS


def test_every_append_is_a_durable_transaction(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.sqlite")
    (mode,) = journal._connection.execute("PRAGMA synchronous").fetchone()
    assert mode == 2  # FULL: the log is synced at every commit
    assert not journal._connection.in_transaction


def _write_and_die(path: Path) -> None:
    journal = SqliteJournal(path)
    for record in RECORDS:
        journal.append(record)
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_was_appended_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    process = multiprocessing.get_context("fork").Process(target=_write_and_die, args=(path,))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert list(SqliteJournal(path).records()) == RECORDS


def test_a_file_that_is_no_journal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_text("this is no database, and long enough to be seen as none" * 10)
    with pytest.raises(ConfigurationError, match=r"journal\.sqlite: the journal cannot be opened"):
        SqliteJournal(path)
