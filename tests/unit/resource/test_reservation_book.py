"""A book of reservations: what it forgets, in memory and on disk; files that are cut, spoilt or shared."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from ramp.errors import PluginError, WrongVersion
from ramp.model.instant import HOUR, SECOND
from ramp.model.slot import Slot
from simulation.resource import reservation_book
from simulation.resource.reservation_book import LINES_PER_KEY, Change, ReservationBook, Standing

NOW = 10**15
SLOT = Slot(NOW + HOUR, NOW + 2 * HOUR, 1, 0.0)
LATER = NOW + 3 * HOUR


def book(folder: Path | None, **more: object) -> ReservationBook:
    return ReservationBook("steady", "m1", folder, **more)  # type: ignore[arg-type]


def hold(opened: ReservationBook, key: str) -> None:
    with opened.writing() as writer:
        writer.hold(key, 1, SLOT, NOW + HOUR, NOW)


def sell(opened: ReservationBook, *keys: str) -> None:
    for key in keys:
        hold(opened, key)
        with opened.writing() as writer:
            writer.confirm(key, NOW)


def forget(opened: ReservationBook, *keys: str, now: int = LATER) -> None:
    with opened.writing() as writer:
        writer.forget(keys, now)


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "m1.reservations.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("durable", [False, True])
def test_what_is_forgotten_is_unknown_here_and_after_a_restart(durable: bool, tmp_path: Path) -> None:
    opened = book(tmp_path if durable else None)
    sell(opened, "a", "b")
    forget(opened, "a", "never heard of")
    for known in (opened, book(tmp_path)) if durable else (opened,):
        assert known.standing("a", LATER) is Standing.UNKNOWN
        assert known.standing("b", LATER) is Standing.FIRM
        assert known.next_reservation_id("c").endswith("-3")


def test_the_file_is_written_anew_once_most_of_it_is_about_the_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process has the old file open, and goes on with the new one."""
    monkeypatch.setattr(reservation_book, "LINES_MIN", 50)
    opened, other = book(tmp_path), book(tmp_path)
    longest = 0
    for number in range(200):
        sell(opened, f"k{number}")
        assert other.standing(f"k{number}", NOW) is Standing.FIRM
        if number >= 5:
            forget(opened, f"k{number - 5}")
        longest = max(longest, len(lines(tmp_path)))
    assert longest <= max(50, LINES_PER_KEY * 6) + 3
    sell(other, "mine")
    numbers = [int(each.reservation_id.rpartition("-")[2]) for each in opened.live(NOW)]
    assert numbers == list(range(196, 202))
    assert other.live(NOW) == opened.live(NOW) == book(tmp_path).live(NOW)
    assert lines(tmp_path)[0]["version"] == 1
    assert book(tmp_path).next_reservation_id("c").endswith("-202")


def test_one_who_waits_for_a_file_that_is_written_anew_writes_to_the_new_one(tmp_path: Path) -> None:
    opened, other = book(tmp_path), book(tmp_path)
    sell(opened, "a", "b")
    path = tmp_path / "m1.reservations.jsonl"
    with opened.writing() as writer:
        writer.forget(["a"], LATER)
        opened._write_anew(path)
    sell(other, "c")
    assert [each.key for each in opened.live(NOW)] == ["b", "c"]
    assert not list(tmp_path.glob(".*"))


def test_a_full_disk_only_puts_the_tidying_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservation_book, "LINES_MIN", 4)
    opened = book(tmp_path)
    sell(opened, "a", "b", "c")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(reservation_book, "write_whole", full)
        forget(opened, "a", "b", "c")
    assert len(lines(tmp_path)) == 8
    assert opened.standing("a", NOW) is book(tmp_path).standing("a", NOW) is Standing.UNKNOWN
    sell(opened, "d")
    assert {line.get("key") for line in lines(tmp_path)[1:]} == {"d"}


@pytest.mark.parametrize(("stated", "got"), [('"version":2,', "2"), ("", "none")])
def test_another_version_is_refused(stated: str, got: str, tmp_path: Path) -> None:
    path = tmp_path / "m1.reservations.jsonl"
    path.write_text(f'{{"format":"ramp-reservations",{stated}"resource":"m1","held_ever":0}}\n')
    told = rf"m1\.reservations\.jsonl: wrong version of this book of reservations: got {got}, expected 1"
    with pytest.raises(WrongVersion, match=told):
        book(tmp_path)


def test_a_machine_that_lives_through_its_history_again_keeps_all_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservation_book, "LINES_MIN", 1)
    seen: list[Change] = []
    opened = book(tmp_path, on_change=seen.append)
    for number in range(20):
        sell(opened, f"k{number}")
        forget(opened, f"k{number}")
    again: list[Change] = []
    assert book(tmp_path, on_change=again.append).standing("k3", NOW) is Standing.UNKNOWN
    assert again == seen
    assert len(again) == 40


def test_a_book_restored_from_a_backup_never_repeats_a_name(tmp_path: Path) -> None:
    sell(book(tmp_path), "a")
    backup = (tmp_path / "m1.reservations.jsonl").read_bytes()
    sell(book(tmp_path), "b", "c")
    lost = {each.reservation_id for each in book(tmp_path).live(NOW)}
    (tmp_path / "m1.reservations.jsonl").write_bytes(backup)
    restored = book(tmp_path)
    sell(restored, "d", "e")
    kept = {each.key: each.reservation_id for each in restored.live(NOW)}
    assert lost & set(kept.values()) == {kept["a"]}
    assert len({*lost, *kept.values()}) == 5


def test_a_line_that_a_crash_cut_short_is_dropped(tmp_path: Path) -> None:
    hold(book(tmp_path), "a")
    journal = tmp_path / "m1.reservations.jsonl"
    whole = journal.read_bytes()
    hold(book(tmp_path), "b")
    for length in range(len(whole), len(journal.read_bytes())):
        journal.write_bytes(journal.read_bytes()[:length])
        assert book(tmp_path).standing("b", NOW) is Standing.UNKNOWN
        hold(book(tmp_path), "b")
        assert [each.key for each in book(tmp_path).live(NOW)] == ["a", "b"]
        assert [line["key"] for line in lines(tmp_path)[1:]] == ["a", "b"]


def test_a_journal_cut_within_its_first_line_begins_anew(tmp_path: Path) -> None:
    journal = tmp_path / "m1.reservations.jsonl"
    journal.write_text('{"format":"ramp-res')
    hold(book(tmp_path), "a")
    assert book(tmp_path).standing("a", NOW) is Standing.HELD


def test_one_sees_what_another_wrote(tmp_path: Path) -> None:
    first, second = book(tmp_path), book(tmp_path)
    hold(first, "a")
    assert second.standing("a", NOW) is Standing.HELD
    before = second.live(NOW)
    hold(first, "b")
    hold(second, "c")
    ids = {each.key: each.reservation_id for each in first.live(NOW)}
    assert {key: each.rpartition("-")[2] for key, each in ids.items()} == {"a": "1", "b": "2", "c": "3"}
    assert second.live(NOW) != before
    assert second.live(NOW) is second.live(NOW + SECOND)


def _hold_many(folder: str, worker: int) -> None:
    opened = book(Path(folder))
    for number in range(20):
        hold(opened, f"{worker}-{number}")


def test_processes_do_not_lose_each_others_reservations(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_hold_many, args=(os.fspath(tmp_path), worker)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    live = book(tmp_path).live(NOW)
    assert len(live) == 60
    assert len({each.reservation_id for each in live}) == 60


@pytest.mark.parametrize("spoil", ["no json\n", '{"op":"hold"}\n', '{"op":"confirm","key":"unknown"}\n', "[]\n"])
def test_a_spoilt_journal_names_file_and_line(tmp_path: Path, spoil: str) -> None:
    hold(book(tmp_path), "a")
    journal = tmp_path / "m1.reservations.jsonl"
    journal.write_text(journal.read_text() + spoil)
    with pytest.raises(PluginError, match=r"m1\.reservations\.jsonl:3: invalid reservation record"):
        book(tmp_path)


def test_another_machines_journal_and_a_shortened_one_are_refused(tmp_path: Path) -> None:
    opened = book(tmp_path)
    hold(opened, "a")
    journal = tmp_path / "m1.reservations.jsonl"
    journal.rename(tmp_path / "m2.reservations.jsonl")
    with pytest.raises(PluginError, match=r"m2.*expected a header of"):
        ReservationBook("steady", "m2", tmp_path)
    with pytest.raises(PluginError, match="the file was removed"):
        opened.live(NOW)
    journal.write_text("")
    with pytest.raises(PluginError, match=r"shrank from .* to 0 bytes"):
        opened.live(NOW)
