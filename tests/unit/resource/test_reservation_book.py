"""A book of reservations forgets what the market asks for no more, also on disk, and nothing else."""

import json
from pathlib import Path

import pytest

from ramp.errors import WrongVersion
from ramp.model.instant import HOUR, MINUTE
from ramp.model.slot import Slot
from simulation.resource import reservation_book
from simulation.resource.reservation_book import LINES_PER_KEY, Change, ReservationBook, Standing

NOW = 10**15
SLOT = Slot(NOW + HOUR, NOW + 2 * HOUR, 1, 0.0)
LATER = NOW + 3 * HOUR


def book(folder: Path | None, **more: object) -> ReservationBook:
    return ReservationBook("steady", "m1", folder, **more)  # type: ignore[arg-type]


def sell(opened: ReservationBook, *keys: str) -> None:
    for key in keys:
        with opened.writing() as writer:
            writer.hold(key, 1, SLOT, NOW + MINUTE, NOW)
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
