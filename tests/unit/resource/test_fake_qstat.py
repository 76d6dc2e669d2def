"""The plug-in's options, clock and book; its answers are held against a reference in tests/property."""

import json
import multiprocessing
import os
from fractions import Fraction
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError, PluginError
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource.fake_qstat import FakeQstat, open_plugin
from simulation.resource.machine_clock import FAR, MachineClock
from simulation.resource.reservation_book import ReservationBook, Standing
from tests.slots import quoted, refused

NOW = from_iso("2026-11-21T08:00:00Z")
LOG = """\
1 1000 0 500 6 -1 -1 6 600 -1 1 7 -1 -1 -1 -1 -1 -1
2 1010 490 50 8 -1 -1 8 100 -1 1 -1 -1 -1 -1 -1 -1 -1
"""
SLOT = Slot(NOW + HOUR, NOW + 2 * HOUR, 2, 0.5)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "small.swf"
    path.write_text(LOG)
    return str(path)


def machine(log: str, **options: object) -> FakeQstat:
    return open_plugin(PluginSettings("m1", 10, 1, NOW, {"log": log, **options}))


def asap(cores: int, run: int, now: int = NOW) -> RequestUnit:
    return RequestUnit(1, 70, now + 100 * HOUR, TotalCores(cores), wall_time=run)


def test_quotes_by_hand(log: str) -> None:
    # At log time 20 s job 1 (6 cores) is to end at 600 s and job 2 (8 cores) to follow it until 700 s.
    queue = machine(log, base_time_s=20)
    begin = NOW - 20 * SECOND
    assert queue.source == "log"
    assert queue.quote(asap(4, 580 * SECOND), NOW) == Slot(NOW, NOW + 580 * SECOND, 4, 0.6)
    assert queue.quote(asap(4, 581 * SECOND), NOW) == Slot(begin + 700 * SECOND, begin + 1281 * SECOND, 4, 0.0)
    slot = quoted(queue, asap(2, 680 * SECOND), NOW)
    assert slot.start == NOW
    assert slot.load == pytest.approx((580 * 0.6 + 100 * 0.8) / 680)


def test_the_clock_moves_the_queue_on(log: str) -> None:
    queue = machine(log, base_time_s=20, speed=60)
    # 8 s of the wall later the log stands at 500 s: job 1 has ended, job 2 runs until 600 s as far as it asked for.
    slot = quoted(queue, asap(4, SECOND), NOW + 8 * SECOND)
    # 100 s of the log are 1.67 s of the wall, rounded up to a microsecond.
    assert slot.start == NOW + 8 * SECOND + 1_666_667


def test_a_job_that_is_planned_to_start_now_takes_no_cores_yet(log: str) -> None:
    Path(log).write_text(LOG.splitlines()[-1] + "\n")  # job 2 alone, which waits 490 s in the log
    shown = machine(log, base_time_s=20).snapshot(NOW, 24 * MINUTE)
    assert (shown["running"], [job["start"] for job in shown["queued"]]) == ([], ["2026-11-21T08:00:00Z"])
    assert (shown["cores_busy"], shown["load"], shown["projected_load"][0]["load"]) == (0, 0.0, 0.8)


def test_snapshot_by_hand(log: str) -> None:
    shown = machine(log, base_time_s=20).snapshot(NOW, 24 * MINUTE)
    assert shown["machine_time_s"] == 20
    assert (shown["cores_busy"], shown["load"]) == (6, 0.6)
    assert shown["running"] == [
        {
            "job": 1,
            "cores": 6,
            "start": "2026-11-21T07:59:40Z",
            "end": "2026-11-21T08:09:40Z",
            "submitted": "2026-11-21T07:59:40Z",
            "user": 7,
        }
    ]
    (queued,) = shown["queued"]
    assert queued["start"] == "2026-11-21T08:09:40Z"
    assert queued["user"] is None
    loads = [part["load"] for part in shown["projected_load"]]
    assert loads[:9] == [0.6] * 9
    assert loads[9] == pytest.approx((40 * 0.6 + 20 * 0.8) / 60)
    assert loads[12:] == [0.0] * 12
    assert shown["projected_load"][1]["time"] == "2026-11-21T08:01:00Z"


def test_a_slot_whose_start_has_passed_can_be_held_while_its_rest_is_free(log: str) -> None:
    queue = machine(log, base_time_s=20)
    unit = asap(4, 100 * SECOND)
    slot = quoted(queue, unit, NOW)
    held = queue.hold("a", unit, slot, NOW + MINUTE, NOW + 2 * SECOND)
    assert held.slot == slot
    late = queue.hold("b", unit, slot, NOW + HOUR, NOW + 100 * SECOND)
    assert late.code is RefusalCode.SLOT_TAKEN


def test_windows_at_the_end_of_the_calendar(log: str) -> None:
    end_of_time = from_iso("9999-12-31T23:59:59Z")
    queue = machine(log, speed=10_000, base_time_s=0)
    whole = RequestUnit(1, 70, end_of_time, TotalCores(10))
    refusal = refused(queue, whole, NOW)
    assert refusal.code is RefusalCode.CORES_TAKEN
    assert from_iso(refusal.nearest) > NOW
    late = RequestUnit(1, 70, end_of_time, TotalCores(10), end_of_time - HOUR, HOUR)
    assert isinstance(queue.quote(late, NOW), Slot)
    too_long = RequestUnit(1, 70, end_of_time, TotalCores(10), NOW, 10**6 * 365 * 24 * HOUR)
    assert isinstance(queue.quote(too_long, NOW), Refusal)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"m1\.log: is missing; expected the name or path"),
        ({"log": "nowhere"}, r"m1\.log: no copy of the log 'nowhere'"),
        ({"log": "/nowhere/x.swf"}, r"m1\.log: no copy"),
        ({"log": "synthetic", "base_time": 5}, r"m1\.base_time: unknown; did you mean 'base_time_s'"),
        ({"log": "synthetic", "base_time_s": -1}, r"m1\.base_time_s: got -1, expected a whole number from 0"),
        ({"log": "synthetic", "base_time_s": 1.5}, r"m1\.base_time_s: got 1\.5"),
        ({"log": "synthetic", "speed": 0.5}, r"m1\.speed: got 0\.5, expected a number from 1"),
        ({"log": "synthetic", "speed": "fast"}, r"m1\.speed: got 'fast', expected a number"),
        ({"log": "synthetic", "synthetic_load": 0}, r"m1\.synthetic_load: got 0, expected a number above 0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        open_plugin(PluginSettings("m1", 10, 1, NOW, options))


def test_clock_and_back() -> None:
    clock = MachineClock(NOW, 100 * SECOND, Fraction("2.5"))
    assert clock.log_time(NOW) == 100 * SECOND
    assert clock.log_time(NOW + 2 * SECOND) == 105 * SECOND
    assert clock.log_time(NOW + 1) == 100 * SECOND + 2
    assert clock.instant(105 * SECOND) == NOW + 2 * SECOND
    # The first instant at which the log stands there or later.
    assert clock.log_time(clock.instant(100 * SECOND + 3)) >= 100 * SECOND + 3
    assert clock.log_time(clock.instant(100 * SECOND + 3) - 1) < 100 * SECOND + 3
    assert clock.log_time(NOW + 10**30) == FAR


def book(folder: Path | None) -> ReservationBook:
    return ReservationBook("fake_qstat", "m1", folder)


def hold(opened: ReservationBook, key: str, until: int = NOW + HOUR) -> None:
    with opened.writing() as writer:
        writer.hold(key, 1, SLOT, until, NOW)


def test_a_line_that_a_crash_cut_short_is_dropped(tmp_path: Path) -> None:
    hold(book(tmp_path), "a")
    journal = tmp_path / "m1.reservations.jsonl"
    whole = journal.read_bytes()
    hold(book(tmp_path), "b")
    for length in range(len(whole), len(journal.read_bytes())):
        journal.write_bytes(journal.read_bytes()[:length])
        assert book(tmp_path).standing("b", NOW) is Standing.UNKNOWN
        again = book(tmp_path)
        hold(again, "b")
        assert [each.key for each in book(tmp_path).live(NOW)] == ["a", "b"]
        assert [json.loads(line)["key"] for line in journal.read_text().splitlines()[1:]] == ["a", "b"]


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
    opened = ReservationBook("fake_qstat", "m1", Path(folder))
    for number in range(20):
        with opened.writing() as writer:
            writer.hold(f"{worker}-{number}", 1, SLOT, NOW + HOUR, NOW)


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
        ReservationBook("fake_qstat", "m2", tmp_path)
    with pytest.raises(PluginError, match="the file was removed"):
        opened.live(NOW)
    journal.write_text("")
    with pytest.raises(PluginError, match=r"shrank from .* to 0 bytes"):
        opened.live(NOW)
