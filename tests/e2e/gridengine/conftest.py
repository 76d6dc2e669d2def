"""One real Grid Engine for the tests of a file, and the plug-in over it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the module beside this one

from cluster import LIBRARY, Cluster, why_not

from ramp.batch.gridengine.plugin import open_plugin
from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import RequestUnit, TotalCores
from ramp.plugins.interface import PluginSettings

SLOTS = 64


@pytest.fixture(scope="module")
def cluster():
    """A running Grid Engine with one host of 64 slots; what a test leaves there, the next one finds."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cluster(SLOTS) as started:
        yield started


@pytest.fixture
def settings(cluster, tmp_path):
    """Settings of the plug-in over the cluster."""

    def make(**options):
        return PluginSettings(
            "ge1", SLOTS, 1, now(), {**options_of(cluster), "snapshot_age_s": 0.0, **options}, tmp_path / "reservations"
        )

    return make


@pytest.fixture
def machine(settings, cluster):
    """The plug-in over the cluster, opened; afterwards nothing of it is left there."""
    opened = open_plugin(settings())
    yield opened
    for each in opened.reservations(now()):
        opened.release(each.key, now())


def options_of(cluster):
    """The plug-in's options by which its commands find a cluster."""
    environment = {key: value for key, value in cluster.environment.items() if key.endswith("_PORT")}
    return {"root": str(cluster.root), "commands": str(LIBRARY), "environment": environment}


def now():
    """The time now, in microseconds."""
    return time.time_ns() // 1000


def unit(cores, after=0, run=HOUR, slack=10 * HOUR):
    """A request for cores that begins at the earliest so much later than now."""
    begin = now() + after
    return RequestUnit(
        1, 70, begin + run + slack, TotalCores(cores), not_before=begin if after else None, wall_time=run
    )


def held(machine, key, cores=8, after=HOUR, run=HOUR):
    """A slot quoted and held."""
    request = unit(cores, after, run)
    slot = machine.quote(request, now())
    return machine.hold(key, request, slot, now() + 10 * MINUTE, now())
