"""Slurm's own topology as places of nodes, from what versions of it print; the source of each text stands with it."""

import itertools

import pytest

from ramp.batch.commands import Completed
from ramp.batch.slurm.topology import placed_options
from ramp.batch.system import Node
from ramp.errors import BatchSystemError, CommandFailed, ConfigurationError
from ramp.model.request import RequestUnit, TorusTerms, TotalCores
from simulation.resource.places.torus import open_places

# Slurm 22.05.8 as Debian has it, recorded
TREE = """\
SwitchName=s0 Level=0 LinkSpeed=1 Nodes=t[1-4]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=t[5-8]
SwitchName=top Level=1 LinkSpeed=1 Nodes=t[1-8] Switches=s[0-1]
"""
NONE = "scontrol: error: No topology information available"

# The read-me file of Crusoe Cloud's "SLURM v2" (Slurm 24.11, which tells the size), its first blocks
BLOCKS = """\
BlockName=block01 BlockIndex=0 Nodes=slurm-compute-node-[000-017] BlockSize=18
BlockName=block02 BlockIndex=1 Nodes=slurm-compute-node-[018-035] BlockSize=18
BlockName=block03 BlockIndex=2 Nodes=slurm-compute-node-[036-053] BlockSize=18
"""

# The notes of a cluster with topology.yaml (its names shortened); `show config` says topology/flat there
AGGREGATED = """\
BlockName=gb300_b0 BlockIndex=0 Nodes=n103,n115 BlockSize=2
BlockName=gb300_b1 BlockIndex=1 Nodes=n112,n120 BlockSize=2
AggregatedBlock=gb300_b[0-1] BlockIndex=2 Nodes=n103,n112,n115,n120 BlockSize=4
"""

# Slurm 26.05: the format of src/plugins/topology/torus3d, the cluster of its test suite's tests of that plug-in
TORUS = """\
TorusName=pod1 Dims=4x4x2 Nodes=node[1-32]
  TorusName=pod1 PlacementDims=2x2x1(4) Anchors=8
  TorusName=pod1 PlacementDims=2x2x2(8) Anchors=4
  TorusName=pod1 PlacementDims=4x4x2(32) Anchors=1
"""
# From that test suite: sub-cubes of 2x2x2 at their anchors
SUB_CUBES = [{1, 2, 5, 6, 17, 18, 21, 22}, {3, 4, 7, 8, 19, 20, 23, 24}]
SUB_CUBES += [{9, 10, 13, 14, 25, 26, 29, 30}, {11, 12, 15, 16, 27, 28, 31, 32}]


def cluster(topology: str, plugin: str = "topology/none", complaint: str = "", code: int = 0):
    """A runner that answers as a cluster does."""

    def run(argv, stdin="", time_limit_s=None):
        if argv == ("scontrol", "show", "topology"):
            return Completed(argv, code, topology, complaint)
        assert argv == ("scontrol", "show", "config")
        return Completed(argv, 0, f"TopologyParam           = (null)\nTopologyPlugin          = {plugin}\n", "")

    return run


def placed(names, run, **options):
    return placed_options({"coordinates": "slurm", **options}, [Node(name, 8) for name in names], run, "here.torus")


def test_blocks_are_rows_in_the_order_of_their_indexes_and_aggregated_ones_are_none():
    names = [f"slurm-compute-node-{number:03d}" for number in range(54)]
    found = placed(names, cluster("\n".join(reversed(BLOCKS.splitlines())), "topology/block"))
    assert found["extents"] == [3, 18]
    assert found["rows"] == {name: [number // 18, number % 18] for number, name in enumerate(names)}
    found = placed(["n103", "n112", "n115", "n120"], cluster(AGGREGATED, "topology/flat"))
    assert found["rows"] == {"n103": [0, 0], "n115": [0, 1], "n112": [1, 0], "n120": [1, 1]}


def test_leaf_switches_are_rows_of_the_nodes_that_are_for_sale():
    found = placed([f"t{number}" for number in range(1, 9)], cluster(TREE, "topology/tree"), allocator="ring")
    assert (found["extents"], found["allocator"]) == ([2, 4], "ring")
    assert found["rows"]["t6"] == [1, 1]
    assert placed(["t2", "t3", "t7", "t8"], cluster(TREE))["rows"] == {
        "t2": [0, 0],
        "t3": [0, 1],
        "t7": [1, 0],
        "t8": [1, 1],
    }


def test_a_torus_has_the_sub_cubes_that_slurms_own_tests_expect():
    names = [f"node{number}" for number in range(1, 33)]
    found = placed(names, cluster(TORUS, "topology/flat"))
    assert found["extents"] == [4, 4, 2]
    at = {tuple(place): int(name.removeprefix("node")) for name, place in found["rows"].items()}
    for cube, (x, y) in zip(SUB_CUBES, ((0, 0), (2, 0), (0, 2), (2, 2)), strict=True):
        assert cube == {at[x + dx, y + dy, dz] for dx, dy, dz in itertools.product(range(2), repeat=3)}


@pytest.mark.slow  # it compiles
def test_what_is_placed_is_sold_as_boxes():
    nodes = [Node(f"node{number}", 8) for number in range(1, 33)]
    run = cluster(TORUS, "topology/flat")
    options = placed_options({"coordinates": "slurm", "extents": [4, 4, 2]}, nodes, run, "here.torus")
    places = open_places(options, nodes, "here.torus")
    unit = RequestUnit(1, 70, 10, TotalCores(8), torus=TorusTerms((2, 2, 2), rotate=False))
    free = {node.name: 8 for node in nodes if int(node.name.removeprefix("node")) in SUB_CUBES[2]}
    assert {name for name, _ in places.choose(unit, free)} == set(free)
    free.pop("node9")
    assert places.choose(unit, free) == ()


def test_the_former_torus_plug_in_lists_nothing_and_has_digits_in_base_36_in_the_names():
    names = [f"bp{x}{y}{z}" for x in "01" for y in "0" for z in "0123456789AB"]
    for code in (0, 1):
        found = placed(names, cluster("", "topology/3d_torus", NONE, code))
        assert found["extents"] == [2, 1, 12]
        assert found["rows"]["bp10B"] == [1, 0, 11]


def test_a_site_that_tells_the_places_itself_is_not_asked_for():
    options = {"extents": [2, 2], "coordinates": "order"}
    assert placed_options(options, [Node("a", 1)], cluster("", code=1), "here.torus") is options


@pytest.mark.parametrize(
    ("names", "topology", "plugin", "options", "says"),
    [
        (["t1"], "", "topology/none", {}, "scontrol shows no topology .TopologyPlugin is topology/none."),
        (["t1", "t2", "t5"], TREE, "topology/tree", {}, "s0, s1, ... have 1 to 2 nodes for sale"),
        (["t1", "t9"], TREE, "topology/tree", {}, "1 nodes are not listed, t9 among them"),
        (["t1"], TREE + "SwitchName=s2 Level=0 Nodes=t1", "topology/tree", {}, "t1 is listed twice"),
        (["t1"], "SwitchName=s0 Level=0 Nodes=t[1-", "topology/tree", {}, "unclosed bracket"),
        (["a1"], "BlockName=b BlockIndex=x Nodes=a1", "topology/block", {}, "invalid block index: 'x'"),
        (["a1"], "TorusName=p Dims=2x2x2 Nodes=a1", "topology/flat", {}, "2x2x2 are 8 places for 1 nodes"),
        (["a1"], "TorusName=p Dims=2x2 Nodes=a1", "topology/flat", {}, "invalid dimensions: '2x2'"),
        (["b1"], "TorusName=p Dims=1x1x1 Nodes=a1", "topology/flat", {}, "the nodes are in 0 tori"),
        (["n-1"], "", "topology/3d_torus", {}, "n-1 does not end with 3 coordinates"),
        (
            ["t1", "t5"],
            TREE,
            "topology/tree",
            {"extents": 2},
            "extents: got 2, expected \\[2, 1\\] .from Slurm's topology",
        ),
        (["t1", "t5"], TREE, "topology/tree", {"extents": [1, 2]}, r"extents: got \[1, 2\], expected \[2, 1\]"),
    ],
)
def test_what_is_no_grid_of_the_nodes_is_refused_with_what_would_be_right(names, topology, plugin, options, says):
    with pytest.raises(ConfigurationError, match=says) as refused:
        placed(names, cluster(topology, plugin), **options)
    assert refused.value.key in {"here.torus.coordinates", "here.torus.extents"}


def test_a_cluster_that_cannot_be_asked_is_no_cluster_without_topology():
    with pytest.raises(CommandFailed):
        placed(["t1"], cluster("", complaint="slurm_load_topo error: Unable to contact slurm controller", code=1))
    with pytest.raises(BatchSystemError):
        placed(["t1"], cluster("a plague on both your houses\n"))
