"""Journals keep records in order, survive a restart and a torn end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from ramp.errors import StateDamaged, StorageFailed
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
    process.join(300)
    assert process.exitcode == -signal.SIGKILL
    assert list(SqliteJournal(path).records()) == RECORDS


def test_a_file_that_is_no_journal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_text("this is no database, and long enough to be seen as none" * 10)
    with pytest.raises(StateDamaged, match=r"journal\.sqlite: invalid or damaged journal"):
        SqliteJournal(path)


def rewritten(path: Path, row: int, text: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal SET record = ? WHERE sequence = ?", (text, row))


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ('{"offer_id":"secret', "not JSON"),
        ('{"offer_id":"secret","type":"HoldMade"}', "this HoldMade cannot be read"),
        ('{"offer_id":"secret","type":"<Secret>"}', "of no known type"),
        ('["secret"]', "of no known type"),
    ],
)
def test_an_unreadable_record_is_named_by_its_row_and_not_shown(tmp_path: Path, text: str, finding: str) -> None:
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal(path)
    for record in RECORDS:
        journal.append(record)
    rewritten(path, 2, text)
    with pytest.raises(StateDamaged, match=f"journal.sqlite: row 2 of the journal: .*{finding}.*backup") as raised:
        journal.records()
    assert "ecret" not in str(raised.value)


def test_a_record_that_finds_no_room_is_not_written_at_all(tmp_path: Path) -> None:
    """SQLite's own limit stands for the disk's."""
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal(path)
    journal.append(RECORDS[0])
    (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
    journal._connection.execute(f"PRAGMA max_page_count={pages}")
    large = SlotReleased("o1", "", RefusalCode.CANCELLED, "x" * 100_000, 0, None, 20)
    with pytest.raises(StorageFailed, match=f"disk full: {path}"):
        journal.append(large)
    assert list(journal.records()) == [RECORDS[0]]
    journal.close()
    assert list(SqliteJournal(path).records()) == [RECORDS[0]]
