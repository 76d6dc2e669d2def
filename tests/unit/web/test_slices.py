"""The flat slices of a torus: one point for each unit, none upon another, in the colours of the scene."""

from ramp.web.machines.torus_map import torus_map
from ramp.web.pages.machines.torus import FREE, colours_of, idle, slices_chart
from tests.unit.web.test_torus_map import NOW, job, machine_map, placed, state


def test_every_unit_has_a_place_of_its_own_and_its_occupant():
    drawn = torus_map(state(running=[job(1)], map=machine_map(jobs=[placed(1, "bgl[000x101]")])))
    series = {each["name"]: each for each in slices_chart(drawn, NOW, "", dark=False)["series"]}
    assert set(series) == {"1", FREE}
    points = {point["name"]: point for each in series.values() for point in each["data"]}
    assert len(points) == len({each["value"] for each in points.values()}) == drawn.units == 16
    assert "1,0,1: 1" in points
    assert series["1"]["itemStyle"]["color"] == colours_of(drawn)["1"]
    assert series[FREE]["itemStyle"]["color"] == idle(dark=False).color
    assert points["0,0,1: 1"]["value"][0] > points["3,0,0: (free)"]["value"][0]  # the next slice is beside


def test_slices_of_four_dimensions_are_apart():
    drawn = torus_map(state(map=machine_map(extents=(2, 2, 2, 2), cores_a_unit=4)))
    (series,) = slices_chart(drawn, NOW, "", dark=True)["series"]
    assert len({each["value"] for each in series["data"]}) == 16
