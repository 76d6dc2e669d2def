"""A machine that was kept goes on as if it had lived through everything; what may not be used is as if it were not."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from ramp.model.instant import DAY, HOUR, MINUTE, Instant, from_iso
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource import modelled
from simulation.resource.modelled import ModelledMachine
from simulation.schedulers.declaration import SCHEDULERS

pytestmark = pytest.mark.loops

OPENING = from_iso("2026-11-21T08:00:00Z")
CORES = {"bgl-half": 64 * 1024, "angara-4x4x2": 32 * 16}


class Counting(ModelledMachine):
    """Counts the records that it lives through."""

    lived = 0

    def _changed(self, change: Any) -> None:
        type(self).lived += 1
        super()._changed(change)


def opened(folder: Path, **options: Any) -> Counting:
    """A start; `Counting.lived` begins at zero."""
    Counting.lived = 0
    options = {"machine": "angara-4x4x2", "base_time_s": 43_200, **options}
    return Counting(PluginSettings("m", CORES[options["machine"]], 2, OPENING, options, folder, seed=7))


def trade(machine: ModelledMachine, begin: Instant, purchases: int, seed: int) -> Instant:
    """Quote, hold, and then confirm, release or let run out; returns the time at the end."""
    draw = random.Random(seed)
    now = begin
    for number in range(purchases):
        now += draw.randrange(4 * HOUR)
        unit = RequestUnit(1, 70, now + 2 * DAY, TotalCores(machine.capacity // draw.choice((2, 4, 8))), now, HOUR)
        slot = machine.quote(unit, now)
        if isinstance(slot, Slot):
            key = f"{seed}-{number}"
            machine.hold(key, unit, slot, now + MINUTE, now)
            fate = draw.choice(("confirm", "confirm", "confirm and release", "nothing"))
            if fate != "nothing":
                machine.confirm(key, now + 1)
            if fate == "confirm and release":
                machine.release(key, now + 2)
    return now


def seen(machine: ModelledMachine, now: Instant) -> list[Any]:
    """What the machine shows and would sell over the days to come."""
    found: list[Any] = []
    for hour in range(0, 96, 7):
        at = now + hour * HOUR
        unit = RequestUnit(1, 70, at + 2 * DAY, TotalCores(machine.capacity // 4), at, 2 * HOUR)
        found += [machine.quote(unit, at), machine.snapshot(at, DAY)]
    return found


QUICK = ("fcfs", "bgl-half")
"""Scheduler and machine that every run tries; the slower tests try all with all."""


@pytest.mark.parametrize(
    ("scheduler", "machine"),
    [
        pytest.param(scheduler, machine, marks=[] if (scheduler, machine) == QUICK else pytest.mark.slow)
        for scheduler in SCHEDULERS.names()
        for machine in CORES
    ],
)
def test_a_kept_machine_sells_what_one_sells_that_lives_through_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, scheduler: str
) -> None:
    monkeypatch.setattr(modelled, "KEEP_CHANGES", 20)
    options = {"machine": machine, "scheduler": scheduler, "torus": 0.5}
    now = trade(opened(tmp_path / "kept", **options), OPENING, 25, seed=1)
    now = trade(opened(tmp_path / "kept", **options), now, 10, seed=2)  # a life in between
    records = (tmp_path / "kept" / "m.reservations.jsonl").read_bytes().count(b"\n") - 1
    shutil.copytree(tmp_path / "kept", tmp_path / "anew")
    (tmp_path / "anew" / "m.life").unlink()

    kept = opened(tmp_path / "kept", **options)
    assert Counting.lived < 23 < records
    of_kept = seen(kept, now)
    anew = opened(tmp_path / "anew", **options)
    assert Counting.lived == records
    assert of_kept == seen(anew, now)


@pytest.mark.slow  # two months of jobs are drawn, three times
def test_a_kept_machine_goes_on_in_the_month_that_it_has_come_to(tmp_path: Path) -> None:
    """Own users' jobs are generated month by month; those of the months before are not generated again."""
    now = OPENING + 70 * DAY
    before = opened(tmp_path / "kept")
    before.snapshot(now, DAY)
    trade(before, now, 1, seed=3)
    kept = opened(tmp_path / "kept")
    assert kept.live.now > 69 * DAY
    (tmp_path / "anew").mkdir()
    shutil.copy(tmp_path / "kept" / "m.reservations.jsonl", tmp_path / "anew")
    assert seen(kept, now + 40 * DAY) == seen(opened(tmp_path / "anew"), now + 40 * DAY)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["life", "header", "book", "options"])
def test_what_may_not_be_used_is_lived_through_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(modelled, "KEEP_CHANGES", 1)
    now = trade(opened(tmp_path), OPENING, 12, seed=1)
    before = seen(opened(tmp_path), now)
    opened(tmp_path)
    assert Counting.lived < 5
    book, life = tmp_path / "m.reservations.jsonl", tmp_path / "m.life"
    records = book.read_bytes().count(b"\n") - 1
    options = {}
    if damage == "life":
        life.write_bytes(life.read_bytes()[:-1] + b"?")
    elif damage == "header":
        life.write_bytes(b"[]" + life.read_bytes())
    elif damage == "book":
        book.write_bytes(book.read_bytes().replace(b'"load":', b'"load": ', 1))
    else:
        options = {"load_of": "cores-and-links"}
    again = opened(tmp_path, **options)
    assert Counting.lived == records
    if damage != "options":
        assert seen(again, now) == before


def test_nothing_but_known_classes_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A life with a class of another package in it is not used."""
    monkeypatch.setattr(modelled, "KEEP_CHANGES", 1)
    machine = opened(tmp_path)
    machine._expiries["far"] = Foreign(2**60)
    trade(machine, OPENING, 12, seed=1)
    opened(tmp_path)
    assert Counting.lived > 20


class Foreign(int):
    """A class of a package that is not the project's."""
