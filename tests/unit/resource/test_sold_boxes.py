"""Sold boxes and listed blocks of live tori: which one a buyer gets, and how they become smaller or larger in place."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, HOUR, MINUTE, Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings
from simulation.machine_files import load_machine
from simulation.machines.interface import has_places
from simulation.resource.live_map import view_of_snapshot
from simulation.resource.modelled import ModelledMachine, open_plugin
from tests import slots
from tests.unit.machines.test_bluegene_conf import listed_blocks
from tests.unit.resource.test_modelled import MIDPLANE, NOW, bgl, shape_of, unit

pytestmark = pytest.mark.loops

NODE = 16


def angara(**options: object) -> ModelledMachine:
    given = {"machine": "angara-4x4x2", "load": 0, **options}
    return open_plugin(PluginSettings("ang1", 32 * NODE, 2, NOW, given))


def sold(machine: ModelledMachine, key: str, wanted: RequestUnit) -> Slot:
    return slots.sold(machine, key, wanted, NOW).slot


def resized(machine: ModelledMachine, step: int, cores: int, until: Instant, now: Instant = NOW) -> Slot:
    return machine.resize("k", step, cores, until, now).slot


def refused(machine: ModelledMachine, step: int, cores: int, until: Instant) -> str:
    answer = machine.resize("k", step, cores, until, NOW)
    assert answer.code is RefusalCode.SLOT_TAKEN
    return answer.detail


def nodes(slot: Slot) -> int:
    return int(json.loads(slot.token)["nodes"], 16)


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
    assert shape_of(slot) == [2, 2, 2]
    # 1, 3 to 8 planes of four along x, 1, 3 or 4 along y and z; no box within has three or five midplanes
    sizes = ", ".join(str(4 * count * MIDPLANE) for count in (1, 3, 4, 5, 6, 7, 8))
    for cores in (5 * MIDPLANE, 9 * MIDPLANE, 4 * MIDPLANE + 1):
        assert refused(machine, 1, cores, slot.end).endswith(f"whole planes of midplanes, {sizes}")
    kept = machine.reservation("k", NOW)
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
    assert sorted(shape_of(slot)) == [1, 2, 4]
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


TORI = "LayoutMode=OVERLAP\nBPs=[00x10]\nBPs=[20x30]\nBPs=01\nBPs=[02x13] Type=MESH\nBPs=[02x12] Type=MESH\n"


@pytest.fixture
def machine_file(tmp_path: Path) -> str:
    return str(listed_blocks(tmp_path, TORI))


def opened(machine_file: str, state_dir: Path | None = None, **options: Any) -> ModelledMachine:
    given = {"machine": machine_file, "load": 0, **options}
    return open_plugin(PluginSettings("b1", 16 * MIDPLANE, 2, NOW, given, state_dir))


@pytest.mark.parametrize(
    ("midplanes", "terms", "placement"),
    [
        (1, {}, "b01 1x1, block RMP002"),
        (2, {}, "b[00x10] 2x1 torus, cables x 0 1 2 3, block RMP000"),
        (2, {"connection": "mesh"}, "b[02x12] 2x1 mesh, cables x 0, block RMP004"),
        (3, {}, "b[02x13] 2x2 mesh, cables x 0, y 2, block RMP003"),
        (5, {}, "b[00x33] 4x4 torus, cables x 0 1 2 3, y 0 1 2 3, block RMP005"),
        (3, {"connection": "torus"}, "b[00x33] 4x4 torus, cables x 0 1 2 3, y 0 1 2 3, block RMP005"),
    ],
)
def test_a_buyer_gets_the_smallest_block_and_pays_all_of_it(
    machine_file: str, midplanes: int, terms: dict[str, Any], placement: str
) -> None:
    slot = slots.quoted(opened(machine_file), unit(midplanes * MIDPLANE, **terms), NOW)
    assert slot.placement == placement
    assert (
        slot.cores == len(json.loads(slot.token)["members"][0]) * len(json.loads(slot.token)["members"][1]) * MIDPLANE
    )


def test_what_no_block_can_serve_is_refused(machine_file: str) -> None:
    refusal = slots.refused(opened(machine_file), unit(5 * MIDPLANE, connection="mesh"), NOW)
    assert refusal.code is RefusalCode.TORUS


def test_two_blocks_that_share_only_cables_are_not_sold_for_one_time(machine_file: str) -> None:
    machine = opened(machine_file)
    wanted = unit(2 * MIDPLANE, connection="torus")
    first = sold(machine, "a", wanted)
    other = machine.quote(wanted, NOW)
    assert isinstance(other, Refusal), "b[20x30] is idle, but both tori need every cable of the line"
    assert other.code is RefusalCode.CORES_TAKEN
    later = slots.quoted(machine, unit(2 * MIDPLANE, slack=HOUR, connection="torus"), NOW)
    assert later.start == first.end
    # what shares neither midplanes nor cables is sold beside it
    assert sold(machine, "b", unit(4 * MIDPLANE, connection="mesh")).placement.endswith("block RMP003")
    assert sold(machine, "c", unit(MIDPLANE)).placement.endswith("block RMP002")


def test_own_users_jobs_run_on_listed_blocks_of_either_connection(machine_file: str) -> None:
    machine = opened(machine_file, load=0.7, base_time_s=20 * 86_400)
    names = set()
    for day in range(8):
        shown = json.loads(json.dumps(machine.snapshot(NOW + day * DAY, DAY)))
        names |= {job["block"] for job in shown["map"]["jobs"]}
    assert {"RMP002", "RMP005"} < names, "tori, and jobs of more midplanes than the largest mesh"
    assert not machine.live.queue.refused
    assert all(each.job.request.shape is None for each in machine.live.queue.running.values())
    grid = load_machine(machine_file)
    assert has_places(grid)
    view = view_of_snapshot(grid, shown)
    states = {block.name: block.state for block in view.blocks}
    busy = {job.block for job in view.jobs if job.state == "R"}
    assert list(states) == [f"RMP00{number}" for number in range(6)]
    assert busy
    assert states == {name: "BUSY" if name in busy else "FREE" for name in states}


def test_a_sold_block_becomes_only_another_listed_one(machine_file: str) -> None:
    machine = opened(machine_file)
    slot = sold(machine, "k", unit(4 * MIDPLANE, connection="mesh"))
    refused = machine.resize("k", 1, MIDPLANE, slot.end, NOW)
    assert refused.detail.endswith("expected cores of whole planes of midplanes, 2048")
    smaller = machine.resize("k", 1, 2 * MIDPLANE, slot.end, NOW)
    assert smaller.slot.placement == "b[02x12] 2x1 mesh, cables x 0, block RMP004"
    again = machine.resize("k", 2, 4 * MIDPLANE, slot.end, NOW)
    assert again.slot.placement == slot.placement
    sold(machine, "other", unit(MIDPLANE))
    alone = machine.resize("other", 1, 2 * MIDPLANE, slot.end, NOW)
    assert alone.detail.endswith("expected cores of whole planes of midplanes, but no size fits")


def test_a_restart_sees_that_the_list_has_changed(machine_file: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    sold(opened(machine_file, state), "k", unit(2 * MIDPLANE, connection="torus"))
    (tmp_path / "b.conf").write_text(TORI.replace("BPs=01", "BPs=31"))
    slot = slots.quoted(opened(machine_file, state), unit(MIDPLANE), NOW)
    assert slot.placement == "b31 1x1, block RMP002"


def test_an_allocator_of_the_market_is_refused(machine_file: str) -> None:
    with pytest.raises(ConfigurationError, match=r"b\.conf lists the blocks of jobs"):
        opened(machine_file, allocator="two-phase")
