"""Selling on a machine whose blocks are listed: which block a buyer gets, what excludes what, resizing, restarts."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, HOUR, MINUTE, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TorusTerms, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from simulation.machine_files import load_machine
from simulation.machines.interface import has_places
from simulation.resource.live_map import view_of_snapshot
from simulation.resource.modelled import ModelledMachine, open_plugin

pytestmark = pytest.mark.loops

NOW = from_iso("2026-11-21T08:00:00Z")
MIDPLANE = 1024
RINGS = "".join(f'[[dimension]]\nname = "{name}"\nring = [0, 1, 3, 2]\n' for name in "xy")
TORI = "LayoutMode=OVERLAP\nBPs=[00x10]\nBPs=[20x30]\nBPs=01\nBPs=[02x13] Type=MESH\nBPs=[02x12] Type=MESH\n"


@pytest.fixture
def machine_file(tmp_path: Path) -> str:
    (tmp_path / "b.conf").write_text(TORI)
    path = tmp_path / "m.toml"
    path.write_text(f'name = "small"\nkind = "cabled-torus"\nprefix = "b"\nbluegene_conf = "b.conf"\n{RINGS}')
    return str(path)


def opened(machine_file: str, state_dir: Path | None = None, **options: Any) -> ModelledMachine:
    given = {"machine": machine_file, "load": 0, **options}
    return open_plugin(PluginSettings("b1", 16 * MIDPLANE, 2, NOW, given, state_dir))


def unit(cores: int, ahead: int = MINUTE, slack: int = 0, **terms: Any) -> RequestUnit:
    start = NOW + ahead
    torus = TorusTerms(**terms) if terms else None
    return RequestUnit(1, 70, start + HOUR + slack, TotalCores(cores), start, HOUR, torus=torus)


def sold(machine: ModelledMachine, key: str, wanted: RequestUnit) -> Slot:
    slot = machine.quote(wanted, NOW)
    assert isinstance(slot, Slot), slot
    assert isinstance(machine.hold(key, wanted, slot, NOW + HOUR, NOW), Reservation)
    assert isinstance(machine.confirm(key, NOW), Reservation)
    return slot


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
    slot = opened(machine_file).quote(unit(midplanes * MIDPLANE, **terms), NOW)
    assert isinstance(slot, Slot), slot
    assert slot.placement == placement
    assert (
        slot.cores == len(json.loads(slot.token)["members"][0]) * len(json.loads(slot.token)["members"][1]) * MIDPLANE
    )


def test_what_no_block_can_serve_is_refused(machine_file: str) -> None:
    refusal = opened(machine_file).quote(unit(5 * MIDPLANE, connection="mesh"), NOW)
    assert isinstance(refusal, Refusal)
    assert refusal.code is RefusalCode.TORUS


def test_two_blocks_that_share_only_cables_are_not_sold_for_one_time(machine_file: str) -> None:
    machine = opened(machine_file)
    wanted = unit(2 * MIDPLANE, connection="torus")
    first = sold(machine, "a", wanted)
    other = machine.quote(wanted, NOW)
    assert isinstance(other, Refusal), "b[20x30] is idle, but both tori need every cable of the line"
    assert other.code is RefusalCode.CORES_TAKEN
    later = machine.quote(unit(2 * MIDPLANE, slack=HOUR, connection="torus"), NOW)
    assert isinstance(later, Slot)
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
    assert isinstance(refused, Refusal)
    assert refused.detail.endswith("expected cores of whole planes of midplanes, 2048")
    smaller = machine.resize("k", 1, 2 * MIDPLANE, slot.end, NOW)
    assert isinstance(smaller, Reservation), smaller
    assert smaller.slot.placement == "b[02x12] 2x1 mesh, cables x 0, block RMP004"
    again = machine.resize("k", 2, 4 * MIDPLANE, slot.end, NOW)
    assert isinstance(again, Reservation), again
    assert again.slot.placement == slot.placement
    sold(machine, "other", unit(MIDPLANE))
    alone = machine.resize("other", 1, 2 * MIDPLANE, slot.end, NOW)
    assert isinstance(alone, Refusal)
    assert alone.detail.endswith("expected cores of whole planes of midplanes, but no size fits")


def test_a_restart_sees_that_the_list_has_changed(machine_file: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    sold(opened(machine_file, state), "k", unit(2 * MIDPLANE, connection="torus"))
    (tmp_path / "b.conf").write_text(TORI.replace("BPs=01", "BPs=31"))
    slot = opened(machine_file, state).quote(unit(MIDPLANE), NOW)
    assert isinstance(slot, Slot)
    assert slot.placement == "b31 1x1, block RMP002"


def test_an_allocator_of_the_market_is_refused(machine_file: str) -> None:
    with pytest.raises(ConfigurationError, match=r"b\.conf lists the blocks of jobs"):
        opened(machine_file, allocator="two-phase")
