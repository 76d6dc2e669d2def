"""What every resource plug-in must do (ramp/plugins/interface.py), whatever drives its machine.

A plug-in joins by an entry in `MACHINES`: how to open it so that, at `NOW` and for a day after it, some cores are free.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.plugins.interface import PluginSettings, Reservation, ResourcePlugin, Slot
from simulation.resource import fake_qstat, modelled, steady
from simulation.workload.swf import SwfLog, write_swf
from simulation.workload.swf_fields import FIELD_COUNT, FIELD_NAMES

NOW = from_iso("2026-11-21T08:00:00Z")
CORES = 64

Open = Callable[[Path | None], ResourcePlugin]


def _log(folder: Path, *, processors: tuple[int, int, int] = (16, 8, 4)) -> Path:
    columns = np.full((FIELD_COUNT, 3), -1, dtype=np.int64)
    jobs = {
        "job_number": (1, 2, 3),
        "submit_time": (500, 510, 520),
        "wait_time": (0, 10, 200_000),
        "run_time": (4000, 50_000, 10),
        "allocated_processors": processors,
        "requested_time": (7200, 90_000, 3600),
    }
    for name, values in jobs.items():
        columns[FIELD_NAMES.index(name)] = values
    path = folder / "contract.swf"
    write_swf(path, SwfLog(columns))
    return path


def _fake_qstat(folder: Path, **options: object) -> Open:
    options = {"log": str(_log(folder)), "base_time_s": 100, **options}
    settings = PluginSettings("contract1", CORES, 8, NOW - MINUTE, options)
    return lambda state_dir: fake_qstat.open_plugin(replace(settings, state_dir=state_dir))


def _fake_qstat_synthetic(_folder: Path) -> Open:
    # A light load, so that there are free cores at once.
    settings = PluginSettings("contract1", CORES, 8, NOW - MINUTE, {"log": "synthetic", "synthetic_load": 0.02}, seed=3)
    return lambda state_dir: fake_qstat.open_plugin(replace(settings, state_dir=state_dir))


def _steady(_folder: Path) -> Open:
    settings = PluginSettings("contract1", CORES, 8, NOW - MINUTE, {"load": 0.25})
    return lambda state_dir: steady.open_plugin(replace(settings, state_dir=state_dir))


_CABLED = """
name = "cube"
kind = "cabled-torus"
prefix = "cub"
cnodes_per_midplane = 1
processors_per_midplane = 8
dimension = [{name = "x", ring = [0, 1]}, {name = "y", ring = [0, 1]}, {name = "z", ring = [0, 1]}]
"""
_ANGARA = """
name = "tesseract"
kind = "angara-torus"
prefix = "tes"
dimension_names = ["x", "y", "z"]
extents = [2, 2, 2]
"""


def _modelled(folder: Path, description: str, **options: object) -> Open:
    # Eight units of eight cores; at the log's second 600 its first two jobs take two pairs of them, which lie side by
    # side, so that all free cores are one box.
    machine = folder / "machine.toml"
    machine.write_text(description, encoding="utf-8")
    log = _log(folder, processors=(16, 16, 8))
    given = {"machine": str(machine), "log": str(log), "size_divisor": 8, "base_time_s": 600, **options}
    settings = PluginSettings("contract1", CORES, 8, NOW - MINUTE, given)
    return lambda state_dir: modelled.open_plugin(replace(settings, state_dir=state_dir))


MACHINES: dict[str, Callable[[Path], Open]] = {
    "fake_qstat": _fake_qstat,
    "fake_qstat at 60 times wall speed": lambda folder: _fake_qstat(folder, speed=60, base_time_s=0),
    "fake_qstat on a synthetic log": _fake_qstat_synthetic,
    "steady": _steady,
    "modelled with cables": lambda folder: _modelled(folder, _CABLED),
    "modelled at 60 times wall speed": lambda folder: _modelled(folder, _CABLED, speed=60, log="synthetic", load=0),
    "modelled Angara": lambda folder: _modelled(folder, _ANGARA, scheduler="conservative", overrun="keep"),
}


@pytest.fixture(params=MACHINES, ids=lambda name: str(name).replace(" ", "-"))
def open_machine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return MACHINES[request.param](tmp_path)


@pytest.fixture
def machine(open_machine: Open) -> ResourcePlugin:
    return open_machine(None)


def unit(cores: int = 8, *, ahead: int = MINUTE, run: int = HOUR, slack: int = 0, now: Instant = NOW) -> RequestUnit:
    start = now + ahead
    return RequestUnit(3, 70, start + run + slack, TotalCores(cores), not_before=start, wall_time=run)


def slot_for(machine: ResourcePlugin, wanted: RequestUnit, now: Instant = NOW) -> Slot:
    slot = machine.quote(wanted, now)
    assert isinstance(slot, Slot), slot
    return slot


def free_cores(machine: ResourcePlugin, now: Instant = NOW) -> int:
    """Most cores that a unit could have in the window that `unit` asks for."""
    return max((n for n in range(1, CORES + 1) if isinstance(machine.quote(unit(n), now), Slot)), default=0)


def code_of(answer: object) -> RefusalCode:
    assert isinstance(answer, Refusal), answer
    return answer.code


def test_every_registered_plugin_is_tested_here() -> None:
    registered = {entry.name for entry in entry_points(group="ramp.resource_plugins")}
    assert registered <= {name.split()[0] for name in MACHINES}


def test_source_is_one_of_the_three(machine: ResourcePlugin) -> None:
    assert machine.source in {"log", "synthetic", "live"}


def test_a_slot_lies_in_the_window_and_is_as_long_as_the_run(machine: ResourcePlugin) -> None:
    wanted = unit(slack=3 * HOUR)
    slot = slot_for(machine, wanted)
    assert wanted.not_before is not None
    assert wanted.not_before <= slot.start
    assert slot.end <= wanted.deadline
    assert slot.end - slot.start == HOUR
    assert slot.cores >= 8
    assert 0 <= slot.load <= 1


def test_nodes_count_with_their_cores(machine: ResourcePlugin) -> None:
    slot = slot_for(machine, replace(unit(), cores=Nodes(2, 4)))
    assert slot.cores >= 8


def test_without_a_start_the_run_begins_as_soon_as_possible_and_without_a_wall_time_it_fills_the_window(
    machine: ResourcePlugin,
) -> None:
    slot = slot_for(machine, RequestUnit(1, 70, NOW + HOUR, TotalCores(4)))
    assert (slot.start, slot.end) == (NOW, NOW + HOUR)


def test_quotes_change_nothing(machine: ResourcePlugin) -> None:
    first = slot_for(machine, unit())
    assert [machine.quote(unit(), NOW) for _ in range(5)] == [first] * 5
    assert machine.reservations(NOW) == ()


def test_more_cores_than_the_machine_has(machine: ResourcePlugin) -> None:
    refusal = machine.quote(unit(CORES + 1), NOW)
    assert code_of(refusal) is RefusalCode.MACHINE_TOO_SMALL
    assert isinstance(refusal, Refusal)
    assert refusal.unit == 3
    assert refusal.nearest == f"{CORES} cores"


def test_a_window_that_is_too_short_names_the_nearest_deadline(machine: ResourcePlugin) -> None:
    wanted = unit(slack=-1)
    refusal = machine.quote(wanted, NOW)
    assert code_of(refusal) is RefusalCode.WINDOW_TOO_SHORT
    assert isinstance(refusal, Refusal)
    slot_for(machine, replace(wanted, deadline=from_iso(refusal.nearest)))


def test_a_window_that_has_passed(machine: ResourcePlugin) -> None:
    assert code_of(machine.quote(unit(), NOW + DAY)) is RefusalCode.WINDOW_PASSED


def test_a_hold_counts_in_every_later_quote_and_the_machine_is_never_sold_twice(machine: ResourcePlugin) -> None:
    free = free_cores(machine)
    assert free > 0
    load = slot_for(machine, unit(1)).load
    slot = slot_for(machine, unit(free))
    assert isinstance(machine.hold("all", unit(free), slot, NOW + HOUR, NOW), Reservation)
    refusal = machine.quote(unit(1), NOW)
    assert code_of(refusal) is RefusalCode.CORES_TAKEN
    assert isinstance(refusal, Refusal)
    later = from_iso(refusal.nearest)
    assert later > slot.start
    nearest = slot_for(machine, RequestUnit(3, 70, later + HOUR, TotalCores(1), later, HOUR))
    assert nearest.start == later
    machine.release("all", NOW)
    assert slot_for(machine, unit(1)).load == load


def test_load_counts_reservations(machine: ResourcePlugin) -> None:
    before = slot_for(machine, unit(1))
    machine.hold("a", unit(4), slot_for(machine, unit(4)), NOW + HOUR, NOW)
    assert slot_for(machine, unit(1)).load > before.load


def test_a_slot_that_has_gone_is_refused(machine: ResourcePlugin) -> None:
    free = free_cores(machine)
    slot = slot_for(machine, unit(free))
    assert isinstance(machine.hold("first", unit(free), slot, NOW + HOUR, NOW), Reservation)
    assert code_of(machine.hold("second", unit(free), slot, NOW + HOUR, NOW)) is RefusalCode.SLOT_TAKEN
    assert machine.reservation("second", NOW) is None


def test_the_same_key_again_is_the_same_reservation(machine: ResourcePlugin) -> None:
    slot = slot_for(machine, unit())
    first = machine.hold("a", unit(), slot, NOW + HOUR, NOW)
    assert machine.hold("a", unit(), slot, NOW + 2 * HOUR, NOW + SECOND) == first
    assert machine.reservations(NOW) == (first,)
    firm = machine.confirm("a", NOW + SECOND)
    assert isinstance(firm, Reservation)
    assert isinstance(first, Reservation)
    assert firm == replace(first, firm=True, held_until=None)
    assert machine.confirm("a", NOW + 2 * SECOND) == firm
    assert machine.hold("a", unit(), slot, NOW + HOUR, NOW + 3 * SECOND) == firm
    assert machine.reservation("a", NOW + 3 * SECOND) == firm


def test_reservation_ids_are_unique_and_never_used_again(machine: ResourcePlugin) -> None:
    seen: set[str] = set()
    for number in range(5):
        answer = machine.hold(f"k{number}", unit(), slot_for(machine, unit()), NOW + HOUR, NOW)
        assert isinstance(answer, Reservation)
        assert answer.key == f"k{number}"
        seen.add(answer.reservation_id)
        machine.release(f"k{number}", NOW)
    assert len(seen) == 5


def test_a_hold_past_its_deadline_is_none_and_its_cores_are_free(machine: ResourcePlugin) -> None:
    free = free_cores(machine)
    until = NOW + 30 * SECOND
    machine.hold("a", unit(free), slot_for(machine, unit(free)), until, NOW)
    assert machine.next_event(NOW) == until
    just_before = until - 1
    assert machine.reservation("a", just_before) is not None
    assert code_of(machine.quote(unit(1), just_before)) is RefusalCode.CORES_TAKEN
    assert machine.reservation("a", until) is None
    assert machine.reservations(until) == ()
    assert machine.next_event(until) is None
    slot_for(machine, unit(1), until)
    assert code_of(machine.confirm("a", until)) is RefusalCode.HOLD_EXPIRED


def test_a_firm_reservation_outlives_its_hold(machine: ResourcePlugin) -> None:
    machine.hold("a", unit(), slot_for(machine, unit()), NOW + SECOND, NOW)
    firm = machine.confirm("a", NOW)
    assert machine.next_event(NOW) is None
    assert machine.reservations(NOW + MINUTE) == (firm,)


def test_confirming_what_never_was(machine: ResourcePlugin) -> None:
    assert code_of(machine.confirm("nothing", NOW)) is RefusalCode.HOLD_EXPIRED


@pytest.mark.parametrize("confirmed", [False, True])
def test_what_was_released_stays_released(machine: ResourcePlugin, confirmed: bool) -> None:
    slot = slot_for(machine, unit())
    machine.hold("a", unit(), slot, NOW + HOUR, NOW)
    if confirmed:
        machine.confirm("a", NOW)
    machine.release("a", NOW)
    machine.release("a", NOW)
    machine.release("unknown", NOW)
    assert machine.reservation("a", NOW) is None
    assert machine.reservations(NOW) == ()
    assert code_of(machine.confirm("a", NOW)) is RefusalCode.CANCELLED
    assert code_of(machine.hold("a", unit(), slot, NOW + HOUR, NOW)) is RefusalCode.CANCELLED
    assert machine.quote(unit(), NOW) == slot


def test_everything_survives_a_restart(open_machine: Open, tmp_path: Path) -> None:
    state = tmp_path / "state"
    before = open_machine(state)
    held = before.hold("held", unit(), slot_for(before, unit()), NOW + HOUR, NOW)
    before.hold("firm", unit(), slot_for(before, unit()), NOW + SECOND, NOW)
    firm = before.confirm("firm", NOW)
    before.hold("gone", unit(), slot_for(before, unit()), NOW + HOUR, NOW)
    before.release("gone", NOW)
    before.hold("short", unit(), slot_for(before, unit()), NOW + SECOND, NOW)
    quoted = before.quote(unit(1), NOW + SECOND)

    after = open_machine(state)
    now = NOW + SECOND
    assert {each.key: each for each in after.reservations(now)} == {"held": held, "firm": firm}
    assert after.quote(unit(1), now) == quoted
    assert after.confirm("firm", now) == firm
    assert code_of(after.confirm("gone", now)) is RefusalCode.CANCELLED
    assert code_of(after.confirm("short", now)) is RefusalCode.HOLD_EXPIRED
    new = after.hold("new", unit(), slot_for(after, unit(), now), NOW + HOUR, now)
    assert isinstance(new, Reservation)
    assert new.reservation_id not in {each.reservation_id for each in (held, firm) if isinstance(each, Reservation)}


def test_reservations_are_listed_by_start(machine: ResourcePlugin) -> None:
    for key, ahead in (("late", 3 * HOUR), ("early", HOUR), ("middle", 2 * HOUR)):
        wanted = unit(2, ahead=ahead)
        machine.hold(key, wanted, slot_for(machine, wanted), NOW + HOUR, NOW)
    assert [each.key for each in machine.reservations(NOW)] == ["early", "middle", "late"]


def test_a_snapshot_is_plain_json_with_all_keys(machine: ResourcePlugin) -> None:
    machine.hold("a", unit(), slot_for(machine, unit()), NOW + HOUR, NOW)
    shown: dict[str, Any] = json.loads(json.dumps(machine.snapshot(NOW, DAY)))
    assert set(shown) >= {
        "resource",
        "source",
        "time",
        "machine_time_s",
        "cores",
        "cores_busy",
        "load",
        "running",
        "queued",
        "reservations",
        "projected_load",
    }
    assert shown["resource"] == "contract1"
    assert shown["source"] == machine.source
    assert from_iso(shown["time"]) == NOW
    assert shown["cores"] == CORES
    assert 0 <= shown["cores_busy"] <= CORES
    assert sum(job["cores"] for job in shown["running"]) <= CORES
    for job in (*shown["running"], *shown["queued"]):
        assert set(job) == {"job", "cores", "start", "end", "submitted", "user"}
        assert from_iso(job["start"]) < from_iso(job["end"])
    (reservation,) = shown["reservations"]
    assert set(reservation) == {"reservation_id", "key", "cores", "start", "end", "firm", "held_until"}
    assert all(0 <= part["load"] <= 1 and from_iso(part["time"]) >= NOW for part in shown["projected_load"])
    assert shown["projected_load"]
