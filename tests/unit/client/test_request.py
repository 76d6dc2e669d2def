"""`ramp.request`: terms by keyword, times as people write them."""

from datetime import UTC, datetime, timedelta

import pytest

import ramp
from ramp.client.request import combined, resolved
from ramp.model.instant import HOUR, MINUTE, from_iso
from ramp.model.request import Nodes, TorusTerms, TotalCores, TotalDiskSpace

NOW = from_iso("2026-11-21T08:30:00Z")


def unit(**terms):
    (only,) = ramp.request(price=70, **terms).at(NOW).units
    return only


def test_what_is_left_out_can_be_bought_at_once() -> None:
    only = unit(cores=64, wall_time="30min")
    assert (only.cores, only.cpu_hour_cost, only.not_before) == (TotalCores(64), 70, None)
    assert (only.wall_time, only.deadline) == (30 * MINUTE, NOW + 90 * MINUTE)


def test_times_are_those_of_the_submission() -> None:
    template = ramp.request(cores=1, price=1, wall_time=timedelta(hours=2), start="+10min", slack="0")
    for now in (NOW, NOW + HOUR):
        (only,) = template.at(now).units
        assert (only.not_before, only.deadline) == (now + 10 * MINUTE, now + 10 * MINUTE + 2 * HOUR)


def test_aware_datetimes_are_taken_and_naive_ones_refused() -> None:
    assert unit(cores=1, start=datetime(2026, 12, 1, tzinfo=UTC), end="2026-12-02").deadline == from_iso("2026-12-02")
    with pytest.raises(ramp.ConfigurationError, match="no time zone"):
        unit(cores=1, wall_time="1h", start=datetime(2026, 12, 1))  # noqa: DTZ001


def test_nodes_disks_and_torus_terms() -> None:
    only = unit(nodes=4, node_cores=16, wall_time="1h", disk_gb=9, geometry=(8, 8, 16), connection="mesh")
    assert (only.cores, only.disk) == (Nodes(4, 16), TotalDiskSpace(9))
    assert only.torus == TorusTerms((8, 8, 16), rotate=True, connection="mesh")


def test_several_requests_are_one_with_their_units_in_order() -> None:
    first, second = (ramp.request(cores=cores, price=1, wall_time="1h") for cores in (8, 16))
    both = resolved([second, first.at(NOW)], NOW)
    assert [(each.number, each.cores.total) for each in both.units] == [(1, 16), (2, 8)]
    assert combined([both]) == both
    with pytest.raises(ramp.ConfigurationError, match="at least one request"):
        resolved([], NOW)
