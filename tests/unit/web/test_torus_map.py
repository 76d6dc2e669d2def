"""The map in a snapshot, read into places, cables and pictures; expected numbers are counted by hand."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest

from ramp.client.machine_state import parse_snapshot
from ramp.errors import MarketRefused
from ramp.web.pages.charts import lowest_bars, taken_in
from ramp.web.pages.machines.torus import FILLED, FREE, IDLE, VIEW_DEGREES, camera_for, colours_of, slices_chart
from ramp.web.pages.machines.torus_map import Kind, torus_map

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def moment(hours):
    return (NOW + timedelta(hours=hours)).isoformat()


def job(number, cores=8, start=-1, end=1):
    return {
        "job": number, "cores": cores, "start": moment(start), "end": moment(end),
        "submitted": moment(start), "user": 3,
    }  # fmt: skip


def slot(name, cores=8, start=1, end=2, firm=True):
    return {
        "reservation_id": name, "key": name, "cores": cores, "start": moment(start), "end": moment(end), "firm": firm,
        "held_until": None,
    }  # fmt: skip


def placed(name, nodes, key="job_number", **more):
    return {key: name, "nodes": nodes, "connection": ["mesh"], "links": {}, **more}


def state(cores=64, running=(), queued=(), reservations=(), **more):
    told = {
        "resource": "r", "source": "live", "time": moment(0), "cores": cores, "cores_busy": 8, "load": 0.1,
        "running": list(running), "queued": list(queued), "reservations": list(reservations),
        "running_total": len(running), "queued_total": len(queued), "projected_load": [], **more,
    }  # fmt: skip
    return parse_snapshot(json.dumps(told), "r")


def machine_map(extents=(4, 2, 2), cores_a_unit=8, **more):
    return {"extents": list(extents), "cores_a_unit": cores_a_unit, "jobs": [], "booked": [], **more}


def test_boxes_lists_and_single_units_are_read():
    jobs = [placed(1, "bgl[000x101]"), placed(2, "bgl[200,311]"), placed(3, "bgl310")]
    drawn = torus_map(state(map=machine_map(jobs=jobs)))
    assert [each.places for each in drawn.occupants] == [
        ((0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)),
        ((2, 0, 0), (3, 1, 1)),
        ((3, 1, 0),),
    ]
    assert (drawn.units, len(list(drawn.places)), drawn.left_out) == (16, 16, 0)


@pytest.mark.parametrize(
    "entry",
    [
        "no object", {}, placed(1, "bgl[000x"), placed(1, "bgl400"), placed(1, "bgl00"), placed(1, ""),
        placed(1, "bgl000", links={"x": [7]}), placed(1, "bgl000", links={"x": ["a"]}), placed(1, "bgl000", links=[1]),
        placed(1, "bgl[" + ",".join(["000x311"] * 300) + "]"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_left_out_and_the_rest_drawn(entry):
    drawn = torus_map(state(map=machine_map(jobs=[entry, placed(2, "bgl000")], cables={"x": [[0, 1]]})))
    assert (drawn.left_out, [each.name for each in drawn.occupants]) == (1, ["2"])


@pytest.mark.parametrize("extents", [None, [], [0, 2], [37, 1, 1], [36, 36, 36], ["4"], [True, 2]])
def test_extents_that_cannot_be_drawn_are_said(extents):
    with pytest.raises(ValueError, match="extents"):
        torus_map(state(map={**machine_map(), "extents": extents}))


def test_a_machine_without_a_map_and_one_with_something_else():
    assert torus_map(state()) is None
    with pytest.raises(ValueError, match="not a JSON object"):
        torus_map(state(map=[]))


def test_jobs_go_at_their_ends_and_the_markets_slots_come():
    told = machine_map(
        jobs=[placed(1, "bgl[000x001]")],
        booked=[placed("sold-1", "bgl000", "name", firm=True), placed("held-1", "bgl300", "name", firm=False)],
    )
    slots = [slot("sold-1", start=1, end=2), slot("held-1", start=3, end=4, firm=False)]
    drawn = torus_map(state(map=told, running=[job(1, end=1)], reservations=slots))
    then = [
        {place: each.name for place, each in drawn.occupied(NOW + timedelta(hours=h)).items()} for h in (0, 1, 2, 3)
    ]
    assert then == [{(0, 0, 0): "1", (0, 0, 1): "1"}, {(0, 0, 0): "sold-1"}, {}, {(3, 0, 0): "held-1"}]
    booked = [{each.kind for each in drawn.booked(NOW + timedelta(hours=h)).values()} for h in (0, 2, 4)]
    assert booked == [{Kind.SOLD, Kind.HELD}, {Kind.HELD}, set()]


def test_cables_lie_on_every_line_that_the_job_has():
    # two midplanes along X on two lines of Y: each of both cables twice
    told = machine_map(
        jobs=[placed(1, "bgl[000x110]", links={"x": [0, 1], "y": []})], cables={"x": [[0, 1], [1, 0]], "y": [[0, 1]]}
    )
    drawn = torus_map(state(map=told))
    assert sorted(drawn.wires(drawn.occupants[0])) == [
        ((0, 0, 0), (1, 0, 0)), ((0, 1, 0), (1, 1, 0)), ((1, 0, 0), (0, 0, 0)), ((1, 1, 0), (0, 1, 0)),
    ]  # fmt: skip


def test_four_dimensions_are_slices_side_by_side_and_one_is_a_row():
    drawn = torus_map(state(map=machine_map(extents=(2, 3, 2, 2), jobs=[placed(1, "a[1000x1211]")])))
    assert (drawn.slices, drawn.size) == (((0,), (1,)), (7.5, 2.0, 2.0))
    assert (len(drawn.occupants[0].places), drawn.point((1, 0, 0, 0)), drawn.point((0, 2, 1, 1))) == (
        12, (4.5, 0, 0), (2, 1, 1),
    )  # fmt: skip
    row = torus_map(state(map=machine_map(extents=(5,), jobs=[placed(1, "n3")])))
    assert (row.extents, row.dimensions, row.occupants[0].places) == ((5, 1, 1), 1, ((3, 0, 0),))


def test_bars_fill_gaps_and_never_overlap():
    running = [job(1, 16, end=4), job(2, 16, end=1), job(3, 16, end=4)]
    shown = state(64, running, [job(9, 40, start=1, end=3)], [slot("s", 8, 0, 24)])
    drawn = lowest_bars(taken_in(shown), 64, shown.time, NOW + timedelta(hours=2))
    told = [(bar.name, bar.kind, bar.first_core, bar.cores, bar.cores_in_all) for bar in drawn]
    # job 9 finds 16 cores where job 2 was, and 8 above the slot; what is more than the machine has is not drawn
    assert told == [
        ("1", "running", 0, 16, 16), ("2", "running", 16, 16, 16), ("3", "running", 32, 16, 16),
        ("s", "sold", 48, 8, 8), ("9", "waiting", 16, 16, 40), ("9", "waiting", 56, 8, 40),
    ]  # fmt: skip
    assert {bar.end for bar in drawn} == {NOW + timedelta(hours=1), NOW + timedelta(hours=2)}


def test_a_time_without_an_offset_is_refused():
    with pytest.raises(MarketRefused, match=r"\$\.time"):
        state(time="2026-11-21T08:00:00")


def seen(camera, point, aspect):
    """Where a point is in the picture, by a pinhole camera whose up is z: 1 is the edge, sideways and upwards."""
    at, looks_at = camera
    ahead = [b - a for a, b in zip(at, looks_at, strict=True)]
    length = math.hypot(*ahead)
    ahead = [each / length for each in ahead]
    flat = math.hypot(ahead[0], ahead[1])
    right = (ahead[1] / flat, -ahead[0] / flat, 0.0)
    up = (
        right[1] * ahead[2] - right[2] * ahead[1],
        right[2] * ahead[0] - right[0] * ahead[2],
        right[0] * ahead[1] - right[1] * ahead[0],
    )
    to = [b - a for a, b in zip(at, point, strict=True)]
    distance = sum(a * b for a, b in zip(to, ahead, strict=True))
    assert distance > 0, "it is behind the camera"
    edge = distance * math.tan(math.radians(VIEW_DEGREES / 2))
    sideways = sum(a * b for a, b in zip(to, right, strict=True)) / (edge * aspect)
    return sideways, sum(a * b for a, b in zip(to, up, strict=True)) / edge


@pytest.mark.parametrize("aspect", [0.7, 1.0, 2.9])
@pytest.mark.parametrize("high", [(7.0, 3.0, 3.0), (0.0, 0.0, 0.0), (3.0, 3.0, 63.0), (35.0, 3.0, 1.0)])
def test_all_corners_are_in_the_picture_and_one_is_at_its_margin(high, aspect):
    low, high = (-0.5, -0.5, -0.5), tuple(each + 0.5 for each in high)
    camera = camera_for(low, high, aspect)
    corners = [(x, y, z) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
    furthest = max(abs(each) for corner in corners for each in seen(camera, corner, aspect))
    assert furthest == pytest.approx(FILLED)


def test_every_unit_has_a_place_of_its_own_and_its_occupant():
    drawn = torus_map(state(running=[job(1)], map=machine_map(jobs=[placed(1, "bgl[000x101]")])))
    series = {each["name"]: each for each in slices_chart(drawn, NOW, "")["series"]}
    assert set(series) == {"1", FREE}
    points = {point["name"]: point for each in series.values() for point in each["data"]}
    assert len(points) == len({each["value"] for each in points.values()}) == drawn.units == 16
    assert "1,0,1: 1" in points
    assert series["1"]["itemStyle"]["color"] == colours_of(drawn)["1"]
    assert series[FREE]["itemStyle"]["color"] == IDLE.color
    assert points["0,0,1: 1"]["value"][0] > points["3,0,0: (free)"]["value"][0]  # the next slice is beside


def test_slices_of_four_dimensions_are_apart():
    drawn = torus_map(state(map=machine_map(extents=(2, 2, 2, 2), cores_a_unit=4)))
    (series,) = slices_chart(drawn, NOW, "")["series"]
    assert len({each["value"] for each in series["data"]}) == 16
