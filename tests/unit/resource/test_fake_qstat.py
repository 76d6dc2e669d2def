"""The plug-in's options, clock and book; its answers are held against a reference in tests/property."""

from fractions import Fraction
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource.fake_qstat import FakeQstat, open_plugin
from simulation.resource.machine_clock import FAR, MachineClock
from tests.slots import quoted, refused

NOW = from_iso("2026-11-21T08:00:00Z")
LOG = """\
1 1000 0 500 6 -1 -1 6 600 -1 1 7 -1 -1 -1 -1 -1 -1
2 1010 490 50 8 -1 -1 8 100 -1 1 -1 -1 -1 -1 -1 -1 -1
"""


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
    queue = machine(log, base_time_s=20)
    assert queue.source == "log"
    shown = queue.snapshot(NOW, 24 * MINUTE)
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
