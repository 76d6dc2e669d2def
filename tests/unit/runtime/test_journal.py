"""Journals keep records in order, survive a restart and a torn end; records are readable JSON."""

import contextlib
import json
import multiprocessing
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError, StateDamaged, StorageFailed, WrongVersion
from ramp.model.instant import HOUR
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import NodeDiskSpace, RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.slot import Slot
from ramp.protocol.records import HoldIntended, HoldMade, Record, SlotReleased, reference_of
from ramp.runtime.journal import Archive, MemoryJournal, SqliteJournal, record_from_json, record_to_json

RECORDS: list[Record] = [
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


def test_every_append_is_a_durable_transaction(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.sqlite")
    (mode,) = journal._connection.execute("PRAGMA synchronous").fetchone()
    assert mode == 2  # FULL: the log is synced at every commit
    assert not journal._connection.in_transaction


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
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal SET record = ? WHERE sequence = 2", (text,))
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


SEAL = Seal("bank", Role.BANK, "res", "r1", 6, "sealed")
RECORD = SlotReleased("o1", "a1", RefusalCode.CANCELLED, "gave it back", 500, SEAL, 7)


def test_the_text_names_the_record_and_its_fields() -> None:
    assert json.loads(record_to_json(RECORD)) == {
        "type": "SlotReleased",
        "offer_id": "o1",
        "agreement_id": "a1",
        "code": "cancelled",
        "detail": "gave it back",
        "refund": 500,
        "seal": {
            "signer": "bank",
            "role": "bank",
            "receiver": "res",
            "conversation_id": "r1",
            "signed_at": 6,
            "text": "sealed",
        },
        "at": 7,
    }
    assert "\n" not in record_to_json(RECORD)


def test_unions_name_their_class() -> None:
    unit = RequestUnit(1, 70, HOUR, TotalCores(16), disk=NodeDiskSpace(3))
    offer = Offer("o", "r", 1, "res", 60, 0, HOUR, 16, 0.25, HOUR)
    record = HoldIntended(offer, unit, Slot(0, HOUR, 16, 0.25), "alice", 5, SEAL, 1, "")
    told = json.loads(record_to_json(record))["unit"]
    assert told["cores"] == {"type": "TotalCores", "total": 16}
    assert told["disk"] == {"type": "NodeDiskSpace", "gigabytes": 3}
    assert record_from_json(record_to_json(record)) == record


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"type":"Unheard"}',
        '{"offer_id":"o1"}',
        record_to_json(RECORD).replace('"refund":500,', ""),
        record_to_json(RECORD).replace('"refund":500', '"refund":500,"added":1'),
        record_to_json(RECORD).replace('"cancelled"', '"no_such_code"'),
        record_to_json(RECORD).replace('"role":"bank"', '"role":"queen"'),
    ],
)
def test_what_is_no_record_is_shown(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"not JSON|cannot be read as a record"):
        record_from_json(text)


# What is over is archived by reference: no start reads it, readers find it


BOTH = ["HoldMade", "SlotReleased"]


def made(number: int) -> list[Record]:
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


def kinds(path: Path, reference: str) -> list[str]:
    return [type(record).__name__ for record in Archive(path).of_reference(reference)]


def test_records_are_archived_by_reference_and_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    assert kinds(path, "o0") == []
    journal = filled(path)
    assert kinds(path, "o0") == []
    journal.archive(["o2", "o0", "never heard of"])
    assert journal.records() == tuple(made(1))
    assert (kinds(path, "o0"), kinds(path, "o1"), kinds(path, "o2")) == (BOTH, [], BOTH)
    assert [record.offer_id for record in Archive(path).of_kind(HoldMade)] == ["o0", "o2"]
    journal.append(made(4)[0])
    journal.close()
    again = SqliteJournal(path)
    assert again.records() == (*made(1), made(4)[0])
    assert again.records_of("o4") == (made(4)[0],)
    assert again.records_of("o2") == ()


def test_what_is_recorded_later_of_an_archived_reference_is_open(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = filled(path, offers=1)
    journal.archive(["o0"])
    later = HoldMade("o0", "later", 20, 30)
    journal.append(later)
    assert (journal.records(), kinds(path, "o0")) == ((later,), BOTH)
    journal.archive(["o0"])
    assert (journal.records(), kinds(path, "o0")) == ((), [*BOTH, "HoldMade"])


def test_a_journal_knows_its_newest_time_and_agreements_also_once_they_are_archived(tmp_path: Path) -> None:
    for each in (SqliteJournal(tmp_path / "journal.sqlite"), MemoryJournal()):
        assert (each.newest(), each.mentions("R-7")) == (0, False)
        each.append(HoldMade("o1", "R-6", 20, 10))
        each.append(HoldMade("o2", "R-7", 40, 30))
        assert (each.newest(), each.mentions("R-7"), each.mentions("R-8")) == (30, True, False)
        each.archive(["o2"])
        each.archive(["o1"])
        assert (each.newest(), each.mentions("R-7"), each.mentions("R-8")) == (30, True, False)


def test_a_journal_in_memory_does_the_same() -> None:
    journal = MemoryJournal()
    for record in (*made(0), *made(1)):
        journal.append(record)
    journal.archive(["o0"])
    assert (list(journal.records()), journal.archived) == (made(1), made(0))
    assert list(journal.records_of("o1")) == made(1)


def _archive_and_die(path: Path) -> None:
    journal = filled(path)
    journal.archive(["o0", "o1"])
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_was_appended_and_archived_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    process = multiprocessing.get_context("fork").Process(target=_archive_and_die, args=(path,))
    process.start()
    process.join(300)
    assert process.exitcode == -signal.SIGKILL
    assert references(SqliteJournal(path)) == ["o2", "o2"]
    assert (kinds(path, "o0"), kinds(path, "o1")) == (BOTH, BOTH)


def test_a_write_that_fails_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = filled(path)
    journal._connection.execute("PRAGMA query_only=1")
    with pytest.raises(StorageFailed):
        journal.archive(["o0"])
    assert references(journal) == ["o0", "o1", "o2"] * 2
    journal._connection.execute("PRAGMA query_only=0")
    journal.archive(["o0"])
    assert (references(journal), kinds(path, "o0")) == (["o1", "o2"] * 2, BOTH)


def test_the_start_reads_nothing_of_the_archive(tmp_path: Path) -> None:
    journal = filled(tmp_path / "journal.sqlite")
    journal.archive(["o0"])
    query = "EXPLAIN QUERY PLAN SELECT sequence, record FROM journal WHERE NOT archived ORDER BY sequence"
    plan = " ".join(row[3] for row in journal._connection.execute(query))
    assert ("USING INDEX open_records" in plan, "TEMP B-TREE" in plan) == (True, False)


@pytest.mark.parametrize(("mark", "got"), [("PRAGMA user_version=2", "2"), ("PRAGMA user_version=0", "none")])
def test_a_journal_of_another_version_is_refused(mark: str, got: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    filled(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(mark)
    before = path.read_bytes()
    for read in (SqliteJournal, lambda path: Archive(path).requests()):
        with pytest.raises(WrongVersion) as refused:
            read(path)
        assert f"wrong version of this journal: got {got}, expected 1; start with an empty" in str(refused.value)
    assert path.read_bytes() == before


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_text("this is no database, and long enough to be seen as none" * 10)
    for read in (SqliteJournal, lambda path: Archive(path).requests()):
        with pytest.raises(StateDamaged, match=r"journal\.sqlite: invalid or damaged journal"):
            read(path)
