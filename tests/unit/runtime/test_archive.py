"""What is over moves from the journal to the archive, and nothing is lost wherever that is cut off."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ramp.errors import StateDamaged, StorageFailed, WrongVersion
from ramp.model.offer import RefusalCode
from ramp.protocol.records import HoldMade, Record, SlotReleased, reference_of
from ramp.runtime.archive import Archive
from ramp.runtime.journal import MemoryJournal, SqliteJournal


def made(number: int) -> list[Record]:
    """An offer's records."""
    released = SlotReleased(f"o{number}", "", RefusalCode.HOLD_EXPIRED, "no CONFIRM came", 0, None, 20)
    return [HoldMade(f"o{number}", f"R{number}", 20, 10), released]


def filled(path: Path, offers: int = 3) -> SqliteJournal:
    journal = SqliteJournal(path)
    for place in range(2):
        for number in range(offers):
            journal.append(made(number)[place])
    return journal


def references(journal: SqliteJournal) -> list[str]:
    return [reference_of(record) for record in journal.records()]


def archived(path: Path) -> dict[str, list[str]]:
    """References and kinds of the records in a journal's archive."""
    found: dict[str, list[str]] = {}
    archive = path.with_suffix(".archive.sqlite")
    if archive.exists():
        with sqlite3.connect(archive) as connection:
            for reference, kind in connection.execute("SELECT reference, kind FROM archived ORDER BY number"):
                found.setdefault(reference, []).append(kind)
        connection.close()
    return found


def test_records_move_by_reference_and_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = filled(path)
    assert archived(path) == {}
    journal.archive(["o2", "o0", "never heard of"])
    assert journal.records() == tuple(made(1))
    assert archived(path) == {"o0": ["HoldMade", "SlotReleased"], "o2": ["HoldMade", "SlotReleased"]}
    journal.append(made(4)[0])
    journal.close()
    again = SqliteJournal(path)
    assert again.records() == (*made(1), made(4)[0])
    assert again.records_of("o4") == (made(4)[0],)
    assert [record["type"] for record in Archive(path.with_suffix(".archive.sqlite")).of_reference("o2")] == [
        "HoldMade",
        "SlotReleased",
    ]


def test_a_journal_knows_its_newest_time_and_agreements_also_once_they_are_archived(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal(path)
    memory = MemoryJournal()
    for each in (journal, memory):
        assert (each.newest(), each.mentions("R-7")) == (0, False)
        each.append(HoldMade("o1", "R-6", 20, 10))
        each.append(HoldMade("o2", "R-7", 40, 30))
        assert (each.newest(), each.mentions("R-7"), each.mentions("R-8")) == (30, True, False)
        each.archive(["o2"])
        each.archive(["o1"])
        assert (each.newest(), each.mentions("R-7"), each.mentions("R-8")) == (30, True, False)
    journal.close()
    path.with_suffix(".archive.sqlite").unlink()  # its owner may move it away
    again = SqliteJournal(path)
    assert (again.newest(), again.mentions("R-7")) == (30, False)


def test_memory_does_the_same() -> None:
    journal = MemoryJournal()
    for record in (*made(0), *made(1)):
        journal.append(record)
    journal.archive(["o0"])
    assert (list(journal.records()), journal.archived) == (made(1), made(0))
    assert list(journal.records_of("o1")) == made(1)


def test_more_references_than_one_step_takes(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = filled(path, offers=450)
    journal.archive([f"o{number}" for number in range(449)])
    assert references(journal) == ["o449", "o449"]
    assert len(archived(path)) == 449


def _meet(monkeypatch: pytest.MonkeyPatch, fail: Callable[[], None], when: str) -> None:
    """Let something happen before the archive has the records, before the journal lets them go, or after."""
    add, let_go = Archive.add, SqliteJournal._let_go

    def adding(self: Archive, rows: list[object]) -> None:
        if when == "before":
            fail()
        add(self, rows)  # type: ignore[arg-type]

    def letting(self: SqliteJournal, rows: list[object]) -> None:
        if when == "between":
            fail()
        let_go(self, rows)  # type: ignore[arg-type]
        if when == "after":
            fail()

    monkeypatch.setattr(Archive, "add", adding)
    monkeypatch.setattr(SqliteJournal, "_let_go", letting)


def _archive_and_die(path: Path, when: str) -> None:
    journal = filled(path)
    with pytest.MonkeyPatch.context() as patch:
        _meet(patch, lambda: os.kill(os.getpid(), signal.SIGKILL), when)
        journal.archive(["o0", "o1"])


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_killed_anywhere_all_is_there_and_archived_once(tmp_path: Path, when: str) -> None:
    path = tmp_path / "journal.sqlite"
    process = multiprocessing.get_context("fork").Process(target=_archive_and_die, args=(path, when))
    process.start()
    process.join(300)
    assert process.exitcode == -signal.SIGKILL
    again = SqliteJournal(path)
    assert set(references(again)) | set(archived(path)) == {"o0", "o1", "o2"}
    assert set(references(again)) == ({"o2"} if when == "after" else {"o0", "o1", "o2"})
    again.archive(["o0", "o1"])
    assert references(again) == ["o2", "o2"]
    assert archived(path) == {name: ["HoldMade", "SlotReleased"] for name in ("o0", "o1")}


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_a_write_that_fails_anywhere_loses_nothing(tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.sqlite"
    journal = filled(path)

    def fail() -> None:
        raise StorageFailed("disk full", path=path)

    with monkeypatch.context() as patch:
        _meet(patch, fail, when)
        with pytest.raises(StorageFailed, match="disk full"):
            journal.archive(["o0"])
    assert {"o0", "o1", "o2"} == set(references(journal)) | set(archived(path))
    journal.archive(["o0"])
    assert set(references(journal)) == {"o1", "o2"}
    assert archived(path) == {"o0": ["HoldMade", "SlotReleased"]}


def test_a_full_disk_leaves_archive_and_journal_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's own limit stands for the disk's."""
    path = tmp_path / "journal.sqlite"
    journal = filled(path)
    journal.archive(["o0"])
    long = SlotReleased("o9", "", RefusalCode.CANCELLED, "x" * 1_000_000, 0, None, 20)
    journal.append(long)
    opened = Archive._open

    def small(self: Archive) -> sqlite3.Connection:
        connection = opened(self)
        connection.execute("PRAGMA max_page_count=10")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(Archive, "_open", small)
        with pytest.raises(StorageFailed, match=r"disk full.*archive"):
            journal.archive(["o1", "o9"])
    assert references(journal) == ["o1", "o2", "o1", "o2", "o9"]
    assert set(archived(path)) == {"o0"}


def test_a_journal_put_back_from_a_backup_is_archived_beside_what_came_later(tmp_path: Path) -> None:
    """The numbers of its records are met twice; no record may be taken for another."""
    path = tmp_path / "journal.sqlite"
    journal = filled(path, offers=1)
    journal.close()
    backup = path.read_bytes()
    for number in (1, 2):
        path.write_bytes(backup)
        journal = SqliteJournal(path)
        journal.append(HoldMade("o0", f"life {number}", 20, 10))
        journal.archive(["o0"])
        journal.close()
    records = list(Archive(path.with_suffix(".archive.sqlite")).of_reference("o0"))
    assert sorted(record.get("reservation_id", "-") for record in records) == ["-", "R0", "life 1", "life 2"]


def test_a_damaged_archive_is_named_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    filled(path).close()
    path.with_suffix(".archive.sqlite").write_text("this is no database, and long enough to be seen as none" * 10)
    with pytest.raises(StateDamaged, match=r"journal\.archive\.sqlite: invalid or damaged archive"):
        SqliteJournal(path)


def test_the_start_reads_nothing_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.sqlite"
    journal = filled(path)
    journal.archive(["o0"])
    journal.close()
    asked: list[str] = []
    opened = Archive._open

    def traced(self: Archive) -> sqlite3.Connection:
        connection = opened(self)
        connection.set_trace_callback(asked.append)
        return connection

    monkeypatch.setattr(Archive, "_open", traced)
    assert references(SqliteJournal(path)) == ["o1", "o2", "o1", "o2"]
    assert asked == []


@pytest.mark.parametrize(("mark", "got"), [("PRAGMA user_version=2", "2"), ("PRAGMA user_version=0", "none")])
def test_a_journal_or_archive_of_another_version_is_refused(mark: str, got: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = filled(path)
    journal.archive(["o0"])
    journal.close()
    for file, what in ((path.with_suffix(".archive.sqlite"), "archive"), (path, "journal")):
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute(mark)
        before = file.read_bytes()
        with pytest.raises(WrongVersion) as refused:
            SqliteJournal(path)
        assert f"wrong version of this {what}: got {got}, expected 1; start with an empty" in str(refused.value)
        assert file.read_bytes() == before
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA user_version=1")
