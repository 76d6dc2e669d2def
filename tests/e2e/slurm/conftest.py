"""The cluster of a module's tests, which its constant CLUSTER describes as `running_cluster` takes it."""

from collections.abc import Iterator

import pytest

from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.slurm.cluster_fixture import cleared, running_cluster


@pytest.fixture(scope="module")
def one_cluster(request: pytest.FixtureRequest) -> Iterator[EmulatedCluster]:
    with running_cluster(*request.module.CLUSTER) as started:
        yield started


@pytest.fixture
def cluster(one_cluster: EmulatedCluster) -> EmulatedCluster:
    """The cluster of all tests of the module, as at its start."""
    return cleared(one_cluster)
