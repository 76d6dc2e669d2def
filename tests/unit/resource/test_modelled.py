"""The plug-in `modelled`: what it makes of requests, options and restarts; places by hand on small machines."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.errors import ConfigurationError, PluginError
from ramp.model.instant import DAY, HOUR, MINUTE, Instant, from_iso, iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import Nodes, RequestUnit, TorusTerms, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from simulation.machine_files import load_machine
from simulation.machines.grid import Grid
from simulation.machines.interface import has_places
from simulation.resource.free_boxes import FreeBoxes
from simulation.resource.live_map import view_of_snapshot
from simulation.resource.modelled import ModelledMachine, open_plugin
from tests.queue_runs import write_log
from tests.slots import quoted, refused

pytestmark = pytest.mark.loops

NOW = from_iso("2026-11-21T08:00:00Z")
IDLE: dict[str, Any] = {"load": 0}
MIDPLANE = 1024


def bgl(state_dir: Path | None = None, **options: object) -> ModelledMachine:
    given = {"machine": "bgl", **IDLE, **options}
    return open_plugin(PluginSettings("bgl1", 128 * MIDPLANE, 2, NOW, given, state_dir))


def unit(cores: int, run: int = HOUR, ahead: int = MINUTE, slack: int = 0, **terms: Any) -> RequestUnit:
    start = NOW + ahead
    torus = TorusTerms(**terms) if terms else None
    return RequestUnit(1, 70, start + run + slack, TotalCores(cores), start, run, torus=torus)


def slot_of(machine: ModelledMachine, wanted: RequestUnit, now: Instant = NOW) -> Slot:
    return quoted(machine, wanted, now)


def refusal_of(machine: ModelledMachine, wanted: RequestUnit) -> Refusal:
    return refused(machine, wanted, NOW)


def shape_of(slot: Slot) -> list[int]:
    return list(json.loads(slot.token)["shape"])


@pytest.mark.parametrize(
    ("wanted", "charged"),
    [
        *((unit(cores), charged) for cores, charged in ((1, 1), (1024, 1), (1025, 2), (3000, 3), (5 * 1024, 5))),
        # 11 midplanes fit no box of 8x4x4; 12 = 1x3x4 do
        (unit(11 * MIDPLANE), 12),
        # whole nodes count even where a node is not filled
        (replace(unit(1), cores=Nodes(513, 1)), 2),
        # coprocessor mode has one processor a node
        (unit(1024, node_use="virtual"), 1),
        (unit(1024, node_use="coprocessor"), 2),
    ],
    ids=["1", "1024", "1025", "3000", "5120", "no box", "whole nodes", "virtual", "coprocessor"],
)
def test_cores_are_rounded_up_to_boxes_of_whole_midplanes(wanted: RequestUnit, charged: int) -> None:
    assert slot_of(bgl(), wanted).cores == charged * MIDPLANE


def test_geometry_counts_nodes_and_is_rounded_up_to_midplanes() -> None:
    assert shape_of(slot_of(bgl(), unit(1024, geometry=(8, 8, 16)))) == [1, 1, 2]
    fixed = slot_of(bgl(), unit(1024, geometry=(9, 8, 17), rotate=False))
    assert (shape_of(fixed), fixed.cores) == ([2, 1, 3], 6 * MIDPLANE)


def test_rotation_is_allowed_unless_refused() -> None:
    tall = unit(1024, geometry=(8, 8, 64))  # 1x1x8: only along x
    assert shape_of(slot_of(bgl(), tall)) == [8, 1, 1]
    upright = unit(1024, geometry=(8, 8, 64), rotate=False)
    assert refusal_of(bgl(), upright).code is RefusalCode.TORUS


def test_a_geometry_with_too_few_cores_is_refused_with_what_it_holds() -> None:
    refusal = refusal_of(bgl(), unit(5000, geometry=(8, 8, 16)))
    assert (refusal.code, refusal.nearest) == (RefusalCode.TORUS, "2048 cores")


def test_a_geometry_of_more_units_than_there_are_is_refused_with_the_extents() -> None:
    # 64 cores fit, so no number of cores is what would pass: 125 midplanes in a row, and 15 625 of them
    for geometry in ((1000, 8, 8), (1000, 1000, 8)):
        refusal = refusal_of(bgl(), unit(64, geometry=geometry))
        assert (refusal.code, refusal.nearest) == (RefusalCode.TORUS, "within 64x32x32 nodes")


def test_torus_takes_the_cables_of_a_torus() -> None:
    # facts: a y-torus of two takes all four cables of its line, a mesh of two takes one
    mesh = slot_of(bgl(), unit(2048, geometry=(8, 16, 8), rotate=False, connection="mesh"))
    torus = slot_of(bgl(), unit(2048, geometry=(8, 16, 8), rotate=False, connection="torus"))
    assert [len(labels) for labels in json.loads(mesh.token)["links"]] == [0, 1, 0]
    assert [len(labels) for labels in json.loads(torus.token)["links"]] == [0, 4, 0]
    cables = 14 * 16 + 4 * 32 + 4 * 32
    assert (mesh.links_taken, torus.links_taken) == (1 / cables, 4 / cables)
    assert "torus" in torus.placement


def test_two_tori_on_one_line_exclude_each_other_by_cables_alone() -> None:
    machine = bgl()
    wanted = unit(2048, geometry=(8, 16, 8), rotate=False, connection="torus")
    for number in range(32):  # one on each y-line
        slot = slot_of(machine, wanted)
        assert isinstance(machine.hold(f"k{number}", wanted, slot, NOW + HOUR, NOW), Reservation)
    refusal = refusal_of(machine, wanted)
    assert refusal.code is RefusalCode.CORES_TAKEN
    assert refusal.nearest == iso(NOW + MINUTE + HOUR)
    # half the midplanes are free, and meshes of them need none of those cables
    assert slot_of(machine, unit(1024)).cores == MIDPLANE


def test_an_empty_machine_has_no_load_and_a_held_half_is_half() -> None:
    machine = bgl()
    assert slot_of(machine, unit(1)).load == 0
    half = unit(64 * MIDPLANE, run=2 * HOUR)
    machine.hold("half", half, slot_of(machine, half), NOW + HOUR, NOW)
    assert slot_of(machine, unit(1)).load == pytest.approx(0.5)
    # half of it for half of the time
    assert slot_of(machine, unit(1, run=4 * HOUR)).load == pytest.approx(0.25)


def test_load_of_links_is_the_larger_share() -> None:
    machine = bgl(load_of="cores-and-links")
    pair = unit(2048, geometry=(8, 16, 8), rotate=False, connection="torus")
    for number in range(16):  # half of the y-lines, a quarter of the midplanes
        machine.hold(f"k{number}", pair, slot_of(machine, pair), NOW + HOUR, NOW)
    assert slot_of(machine, pair).load == pytest.approx(0.5)
    assert slot_of(machine, unit(1)).load == pytest.approx(0.25), "a single midplane needs no cables"


def test_node_use_means_nothing_on_angara_and_shapes_are_nodes() -> None:
    machine = open_plugin(PluginSettings("a1", 32 * 8, 8, NOW, {"machine": "angara-4x4x2", **IDLE}))
    assert slot_of(machine, unit(9)).cores == 16
    assert sorted(shape_of(slot_of(machine, unit(8, geometry=(4, 2, 1))))) == [1, 2, 4]
    assert refusal_of(machine, unit(8, node_use="virtual")).code is RefusalCode.TORUS


def test_options_are_checked() -> None:
    for wrong, key in (
        ({"machine": "bgl", "sheduler": "easy"}, "sheduler"),
        ({"machine": "bgl", "scheduler": "best"}, "scheduler"),
        ({"machine": "bgl", "load": -1}, "load"),
        ({"machine": "bgl", "log": "no-such-log"}, "log"),
        ({"machine": "flat:64"}, "machine"),
        ({}, "machine"),
        ({"machine": "bgl", "overrun": "never"}, "overrun"),
    ):
        with pytest.raises(ConfigurationError, match=rf"bgl1\.{key}"):
            open_plugin(PluginSettings("bgl1", 128 * MIDPLANE, 2, NOW, wrong))
    with pytest.raises(ConfigurationError, match="must be 131072, got 4096"):
        open_plugin(PluginSettings("bgl1", 4096, 2, NOW, {"machine": "bgl", **IDLE}))


def lived(folder: Path, *jobs: tuple[int, int, int, int], state_dir: Path | None = None, **more: object) -> Any:
    """A machine with own users' jobs of a submission, a run time, midplanes and a requested time each."""
    options = {"machine": "bgl", "log": str(write_log(folder / "users.swf", *jobs)), "base_time_s": 60, **more}
    return open_plugin(PluginSettings("bgl1", 128 * MIDPLANE, 2, NOW, options, state_dir))


def test_running_jobs_count_until_their_request_and_waiting_ones_as_planned(tmp_path: Path) -> None:
    # the whole machine for two hours (it ends after one), then the whole machine again
    machine = lived(tmp_path, (0, 3600, 128, 7200), (10, 3600, 128, 7200))
    wanted = unit(1, slack=DAY)
    # the first is expected to end at 2 h, the second is planned to follow it: free at 4 h less the minute that passed
    assert slot_of(machine, wanted).start == NOW - MINUTE + 4 * HOUR
    # an hour later the first has ended early and the second has begun: until 3 h
    assert slot_of(machine, wanted, NOW + HOUR).start == NOW - MINUTE + 3 * HOUR


def test_waiting_jobs_are_scheduled_around_what_was_sold(tmp_path: Path) -> None:
    machine = lived(tmp_path, (0, 3600, 128, 3600), (7200, 3600, 128, 3600))
    wanted = unit(128 * MIDPLANE, ahead=2 * HOUR)
    slot = slot_of(machine, wanted)
    machine.hold("k", wanted, slot, NOW + HOUR, NOW)
    machine.confirm("k", NOW + MINUTE)
    # the second job comes an hour before the reservation's begin less a minute: one minute short of its request
    (queued,) = machine.jobs(NOW + 7200 * 10**6)[1]
    assert queued["start"] == iso(slot.end)
    machine.release("k", NOW + 7200 * 10**6)
    running, queued_after = machine.jobs(NOW + 7201 * 10**6)
    assert [job["job"] for job in running] == [2]
    assert queued_after == []


def test_a_job_beyond_its_request_gives_way_to_a_reservation(tmp_path: Path) -> None:
    machine = lived(tmp_path, (0, 40 * 3600, 128, 3600), overrun="keep")
    wanted = unit(128 * MIDPLANE, ahead=2 * HOUR)
    machine.hold("k", wanted, slot_of(machine, wanted), NOW + HOUR, NOW)
    machine.confirm("k", NOW)
    assert [job["job"] for job in machine.jobs(NOW + HOUR + 30 * MINUTE)[0]] == [1], "it runs on"
    assert machine.jobs(NOW + 2 * HOUR)[0] == [], "and ends when the reservation begins"
    cut = lived(tmp_path, (0, 40 * 3600, 128, 3600), overrun="cut")
    assert cut.jobs(NOW + HOUR)[0] == [], "cut ends it at its request"


def test_a_restart_with_other_users_jobs_says_so(tmp_path: Path) -> None:
    state = tmp_path / "state"
    before = bgl(state)
    wanted = unit(128 * MIDPLANE, ahead=0)
    before.hold("k", wanted, slot_of(before, wanted), NOW + HOUR, NOW)
    before.confirm("k", NOW)
    with pytest.raises(PluginError, match="options have changed"):
        lived(tmp_path, (0, 40 * 3600, 128, 40 * 3600), state_dir=state)


def test_the_map_shows_jobs_holds_and_reservations(tmp_path: Path) -> None:
    machine = lived(tmp_path, (0, 7200, 64, 7200))
    for key, ahead in (("held", 0), ("firm", 0), ("later", 3 * HOUR)):
        wanted = unit(8 * MIDPLANE, ahead=ahead)
        machine.hold(key, wanted, slot_of(machine, wanted), NOW + HOUR, NOW)
    machine.confirm("firm", NOW)
    shown = json.loads(json.dumps(machine.snapshot(NOW, DAY)))
    grid = load_machine("bgl")
    assert has_places(grid)
    view = view_of_snapshot(grid, shown)
    assert [(job.state, job.size) for job in view.jobs] == [("R", 64), ("RV", 8), ("H", 8), ("H", 8)]
    assert view.jobs[0].user == ""
    assert [(block.name, block.size) for block in view.blocks] == [(view.jobs[0].block, 64)]
    firm, held, later = view.jobs[1:]
    assert held.units.bit_count() == firm.units.bit_count() == 8
    assert not held.units & firm.units
    # in three hours the first job's midplanes are free again: what is booked there hides behind the job now
    assert later.units & view.jobs[0].units == 0
    assert [(each.state, each.size) for each in view.reservations] == [("ACTIVE", 8), ("HELD", 8), ("HELD", 8)]


def test_the_largest_free_box_and_what_a_job_spoils_of_it() -> None:
    grid = Grid((4, 2))
    boxes = FreeBoxes((4, 2), wrap=False)
    assert boxes.largest(0) == 8
    row = grid.bits([range(4), [0]])
    assert boxes.largest(row) == 4
    corner, middle = grid.bits([[0], [0]]), grid.bits([[1], [0]])
    # a corner leaves 3x2 = 6 of 8, one beyond its own; the second column leaves 2x2 or 4x1 = 4, three beyond
    assert boxes.fragmentation(0, corner) == 1 / 8
    assert boxes.fragmentation(0, middle) == 3 / 8
    assert boxes.fragmentation((1 << 8) - 1, corner) == 0


def test_boxes_wrap_only_where_the_machine_does() -> None:
    seam = Grid((4,)).bits([[1]])
    assert FreeBoxes((4,), wrap=False).largest(seam) == 2
    assert FreeBoxes((4,), wrap=True).largest(seam) == 3
