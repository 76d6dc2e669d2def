"""One real Grid Engine for the tests of a file, and the plug-in over it."""

import pytest

from ramp.batch.gridengine.plugin import open_plugin
from ramp.plugins.interface import PluginSettings
from tests.e2e.gridengine.gridengine_cell import Cluster
from tests.e2e.gridengine.gridengine_selling import SLOTS, now, options_of


@pytest.fixture(scope="module")
def cluster():
    """A running Grid Engine with one host of 64 slots; what a test leaves there, the next one finds."""
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
