"""Sold boxes of live tori that become smaller or larger where they are, by hand on Blue Gene/L and an Angara torus."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramp.model.instant import HOUR, MINUTE, Instant, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TorusTerms, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource.modelled import ModelledMachine, open_plugin

pytestmark = pytest.mark.loops

NOW = from_iso("2026-11-21T08:00:00Z")
MIDPLANE = 1024
NODE = 16


def bgl(state_dir: Path | None = None, **options: object) -> ModelledMachine:
    given = {"machine": "bgl", "load": 0, **options}
    return open_plugin(PluginSettings("bgl1", 128 * MIDPLANE, 2, NOW, given, state_dir))


def angara(state_dir: Path | None = None, **options: object) -> ModelledMachine:
    given = {"machine": "angara-4x4x2", "load": 0, **options}
    return open_plugin(PluginSettings("ang1", 32 * NODE, 2, NOW, given, state_dir))


def unit(cores: int, ahead: int = MINUTE, **terms: Any) -> RequestUnit:
    start = NOW + ahead
    return RequestUnit(1, 70, start + HOUR, TotalCores(cores), start, HOUR, torus=TorusTerms(**terms))


def sold(machine: ModelledMachine, key: str, wanted: RequestUnit) -> Slot:
    slot = machine.quote(wanted, NOW)
    assert isinstance(slot, Slot), slot
    assert isinstance(machine.hold(key, wanted, slot, NOW + HOUR, NOW), Reservation)
    assert isinstance(machine.confirm(key, NOW), Reservation)
    return slot


def resized(
    machine: ModelledMachine, step: int, cores: int, until: Instant, now: Instant = NOW, key: str = "k"
) -> Slot:
    answer = machine.resize(key, step, cores, until, now)
    assert isinstance(answer, Reservation), answer
    return answer.slot


def refused(machine: ModelledMachine, step: int, cores: int, until: Instant) -> str:
    answer = machine.resize("k", step, cores, until, NOW)
    assert isinstance(answer, Refusal), answer
    assert answer.code is RefusalCode.SLOT_TAKEN
    return answer.detail


def nodes(slot: Slot) -> int:
    return int(json.loads(slot.token)["nodes"], 16)


def shape(slot: Slot) -> list[int]:
    return list(json.loads(slot.token)["shape"])


def test_half_of_a_box_is_given_back_and_sold_to_another() -> None:
    machine = bgl()
    sold(machine, "rest", unit(96 * MIDPLANE))
    whole = sold(machine, "k", unit(32 * MIDPLANE))
    assert isinstance(machine.quote(unit(1), NOW), Refusal)
    half = resized(machine, 1, 16 * MIDPLANE, whole.end)
    assert (half.cores, half.start, half.end) == (16 * MIDPLANE, whole.start, whole.end)
    assert nodes(half) & ~nodes(whole) == 0
    other = sold(machine, "other", unit(16 * MIDPLANE))
    assert nodes(other) == nodes(whole) & ~nodes(half)
    assert half.placement != whole.placement
    why = refused(machine, 2, 32 * MIDPLANE, whole.end)
    assert "another reservation occupies it" in why


def test_only_whole_planes_come_and_go_and_a_refusal_says_which() -> None:
    machine = bgl()
    slot = sold(machine, "k", unit(8 * MIDPLANE, geometry=(16, 16, 16), rotate=False))
    assert shape(slot) == [2, 2, 2]
    # 1, 3 to 8 planes of four along x, 1, 3 or 4 along y and z; no box within has three or five midplanes
    sizes = ", ".join(str(4 * count * MIDPLANE) for count in (1, 3, 4, 5, 6, 7, 8))
    for cores in (5 * MIDPLANE, 9 * MIDPLANE, 4 * MIDPLANE + 1):
        assert refused(machine, 1, cores, slot.end).endswith(f"whole planes of midplanes, {sizes}")
    kept = machine.reservation("k", NOW)
    assert kept is not None
    assert kept.slot == slot


def test_a_plane_comes_where_there_is_room_and_goes_again() -> None:
    machine = angara()
    slot = sold(machine, "k", unit(8 * NODE))
    larger = resized(machine, 1, 16 * NODE, slot.end)
    assert nodes(larger) & nodes(slot) == nodes(slot)
    assert larger.cores == 16 * NODE
    assert resized(machine, 2, 8 * NODE, slot.end) == slot, "what was added goes, and nothing else"


def test_what_was_given_up_comes_back_where_it_was() -> None:
    machine = bgl()
    slot = sold(machine, "k", unit(8 * MIDPLANE))
    half = resized(machine, 1, 4 * MIDPLANE, slot.end)
    assert half.cores == 4 * MIDPLANE
    assert resized(machine, 2, 8 * MIDPLANE, slot.end) == slot


def test_a_torus_stays_one_and_the_cables_come_along() -> None:
    machine = bgl()
    wanted = unit(2 * MIDPLANE, geometry=(8, 16, 8), rotate=False, connection="torus")
    slot = sold(machine, "k", wanted)
    square = resized(machine, 1, 4 * MIDPLANE, slot.end)
    joined = json.loads(square.token)
    assert (joined["shape"], joined["connection"][:2]) == ([2, 2, 1], ["torus", "torus"])
    # a torus of two takes all four cables of each y-line (Aridor et al. 2005), and some of each x-line
    assert [len(json.loads(each.token)["links"][1]) for each in (slot, square)] == [4, 4]
    assert joined["links"][0]
    back = resized(machine, 2, 2 * MIDPLANE, slot.end)
    assert json.loads(back.token)["links"] == json.loads(slot.token)["links"]


def test_an_angara_torus_keeps_its_rings_whole_and_a_box_need_not() -> None:
    """On such a torus a ring is joined where it is whole; 4x2 nodes are two whole rings, 2x4x2 are none along x."""
    machine = angara()
    slot = sold(machine, "k", unit(8 * NODE, connection="torus"))
    assert sorted(shape(slot)) == [1, 2, 4]
    for cores in (16 * NODE, 6 * NODE):
        assert "whole planes" in refused(machine, 1, cores, slot.end)
    assert resized(machine, 2, 32 * NODE, slot.end).cores == 32 * NODE
    assert resized(machine, 3, 4 * NODE, slot.end).cores == 4 * NODE


def test_another_end_is_had_where_nobody_comes_after() -> None:
    machine = bgl()
    slot = sold(machine, "k", unit(64 * MIDPLANE))
    sold(machine, "after", unit(128 * MIDPLANE, ahead=2 * HOUR + MINUTE))
    assert resized(machine, 1, 64 * MIDPLANE, slot.end + HOUR).end == slot.end + HOUR
    assert "another reservation occupies it" in refused(machine, 2, 64 * MIDPLANE, slot.end + HOUR + MINUTE)
    shorter = resized(machine, 3, 64 * MIDPLANE, slot.end - 30 * MINUTE)
    assert nodes(shorter) == nodes(slot)


def test_a_machine_that_is_started_again_has_the_boxes_as_they_are(tmp_path: Path) -> None:
    machine = bgl(tmp_path)
    slot = sold(machine, "k", unit(8 * MIDPLANE))
    half = resized(machine, 1, 4 * MIDPLANE, slot.end)
    again = bgl(tmp_path)
    kept = again.reservation("k", NOW)
    assert kept is not None
    assert kept.slot == half
    (reserved,) = again.live.reservations().values()
    assert reserved.placement.nodes == nodes(half)
    assert resized(again, 2, 8 * MIDPLANE, slot.end) == slot


def test_who_waits_gets_what_is_given_back_in_mid_slot_and_nothing_else() -> None:
    machine = angara(load=3.0, scheduler="easy")
    slot = sold(machine, "k", unit(32 * NODE, ahead=24 * HOUR))
    begun = slot.start + MINUTE
    machine.advance(begun)
    assert not machine.live.queue.running
    waiting = machine.live.queue.waiting
    assert waiting
    half = resized(machine, 1, 16 * NODE, slot.end, begun)
    started = machine.live.queue.running.values()
    assert started, "half of the machine is idle, and the queue is long"
    for job in started:
        assert job.placement.nodes & nodes(half) == 0
