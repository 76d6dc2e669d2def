"""A grid of 4x4 emulated nodes sold as a torus: a geometry gets exactly a box of nodes, and no two holds overlap.

Their places are told by the site, or by Slurm's own topology: each row of the grid is a switch.
"""

import itertools
from typing import Any

import pytest

from ramp.batch.node_lists import expand
from ramp.batch.slurm.plugin import open_plugin
from ramp.model.instant import HOUR
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestUnit, TorusTerms, TotalCores
from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.slurm.cluster_fixture import CORES, now_in_seconds, settings_of
from tests.slots import held, refused

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]
SIDE = 4
ROWS = [f"SwitchName=s{row} Nodes=g[{row * SIDE + 1}-{row * SIDE + SIDE}]" for row in range(SIDE)]
TOPOLOGY = "\n".join([*reversed(ROWS), f"SwitchName=top Switches=s[0-{SIDE - 1}]", ""])
CLUSTER = ("g", SIDE * SIDE, "TopologyPlugin=topology/tree", {"topology.conf": TOPOLOGY})


def _is_box(names: frozenset[str], width: int, height: int) -> bool:
    """Whether nodes, numbered along the rows from g1, are a box of those extents, over the seams too."""
    number = {(x, y): f"g{x * SIDE + y + 1}" for x, y in itertools.product(range(SIDE), repeat=2)}
    return any(
        names == {number[(x + dx) % SIDE, (y + dy) % SIDE] for dx in range(width) for dy in range(height)}
        for x, y in number
    )


@pytest.mark.parametrize("torus", [{"extents": [4, 4]}, {"coordinates": "slurm"}], ids=["told", "asked"])
def test_two_by_two_nodes_are_reserved_as_a_box_and_holds_never_overlap(
    cluster: EmulatedCluster, torus: dict[str, Any]
) -> None:
    machine = open_plugin(settings_of(cluster, resource="grid", torus=torus))
    cluster.run("scontrol", "update", "NodeName=g6", "State=DRAIN", "Reason=fan")
    now = now_in_seconds()
    taken: set[str] = set()
    for index, (width, height) in enumerate([(2, 2), (2, 2), (2, 1)]):
        terms = TorusTerms((width, height), rotate=False)
        unit = RequestUnit(1, 70, now + 3 * HOUR, TotalCores(width * height), now + HOUR, HOUR, torus=terms)
        held(machine, f"offer-{index}", unit, now)
        shown = cluster.run("scontrol", "-o", "show", "reservation", f"ramp_grid.offer-{index}")
        names = frozenset(expand(shown.split(" Nodes=")[1].split()[0]))
        assert _is_box(names, width, height), names
        assert f" CoreCnt={len(names) * CORES} " in shown
        assert not names & taken
        assert "g6" not in names
        taken |= names
    too_large = RequestUnit(1, 70, now + 3 * HOUR, TotalCores(1), now + HOUR, HOUR, torus=TorusTerms((5, 1)))
    refusal = refused(machine, too_large, now)
    assert refusal.code is RefusalCode.TORUS
