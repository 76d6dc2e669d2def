"""Pictures of a torus: the camera sees all of it, and its slices have one point for each unit."""

import math

import pytest

from ramp.web.machines.torus_map import torus_map
from ramp.web.pages.machines.torus import FILLED, FREE, VIEW_DEGREES, camera_for, colours_of, idle, slices_chart
from tests.unit.web.test_torus_map import NOW, job, machine_map, placed, state


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
