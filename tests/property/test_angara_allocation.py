"""The compiled allocators of boxes against plain loops over the study's definitions, over random histories."""

from functools import cache
from math import prod

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.machines.allocator_declaration import make_policy
from simulation.machines.angara import AngaraMachine, TorusLayout
from simulation.machines.boxes.policy import BoxPolicy
from simulation.machines.boxes.ranked import RankedBoxes
from simulation.machines.boxes.search import greedy_boxes, phi_of_boxes
from simulation.machines.grid import bits_of
from simulation.machines.interface import JobRequest
from tests.reference import angara_loop as loop

pytestmark = pytest.mark.loops

PRINTED = ("base", "base-no-wrap", "base-ring", "find-systems", "find-systems-mss", "torus-distance")
TORI = [(4, 3, 2), (3, 3, 2, 2), (5, 2), (4, 4, 2)]
steps = st.lists(st.tuples(st.integers(1, 12), st.booleans(), st.integers(0, 1 << 30)), min_size=5, max_size=25)


@cache
def boxes(extents: tuple[int, ...], allocator: str, exact: bool = False) -> RankedBoxes:
    return RankedBoxes(extents, make_policy(allocator, {"exact": True} if exact else {}, BoxPolicy))


def empty(extents: tuple[int, ...], allocator: str, exact: bool = False) -> AngaraMachine:
    names = tuple("xyzw"[: len(extents)])
    return AngaraMachine(TorusLayout("t", "t", names, extents), boxes(extents, allocator, exact))


def cells(machine: AngaraMachine, units: int) -> frozenset:
    return frozenset(machine.grid.coordinates(unit) for unit in bits_of(units))


def history(machine: AngaraMachine, moves: list):
    """Places and releases jobs as the moves say; yields each request with what came of it, before it is allocated."""
    for number, (size, leaves, which) in enumerate(moves):
        if leaves and machine.running:
            machine.release(sorted(machine.running)[which % len(machine.running)])
        request = JobRequest(number, min(size, machine.grid.size))
        placement = machine.place(request)
        yield request, placement
        if placement is not None:
            machine.allocate(placement)


@pytest.mark.parametrize("allocator", [*PRINTED, pytest.param("find-systems-mss exact", marks=pytest.mark.slow)])
@given(extents=st.sampled_from(TORI), moves=steps)
@settings(max_examples=examples(12))
def test_every_decision_is_that_of_the_plain_loop(allocator: str, extents: tuple[int, ...], moves: list) -> None:
    name, _, how = allocator.partition(" ")
    machine = empty(extents, name, exact=bool(how))
    transit = {"base-ring": 4, "base-no-wrap": 0}.get(name)
    for request, placement in history(machine, moves):
        locked = frozenset().union(*(cells(machine, held.nodes) for held in machine.running.values()))
        expected = loop.place(name, extents, locked, request.size, transit=transit, exact=bool(how))
        if expected is None:
            assert placement is None
        else:
            assert placement is not None
            assert (placement.shape, placement.origin) == expected[:2]
            assert cells(machine, placement.nodes) == expected[2]


@pytest.mark.parametrize("allocator", ["base", "base-ring", "torus-distance"])
def test_of_equally_near_shapes_the_smallest_is_taken(allocator: str) -> None:
    """Three nodes on 4x2x2x2: on a line of 3 as in a square of 4 the mean distance is 4/3."""
    placement = empty((4, 2, 2, 2), allocator).place(JobRequest(1, 3))
    assert placement is not None
    expected = {"base": (3, 1, 1, 1), "base-ring": (1, 1, 2, 2), "torus-distance": (3, 1, 1, 1)}[allocator]
    assert placement.shape == expected  # base-ring gives out no 3 of a ring of 4


@pytest.mark.parametrize("allocator", PRINTED)
@given(extents=st.sampled_from(TORI), moves=steps)
@settings(max_examples=examples(15))
def test_jobs_share_no_node_and_no_route_leaves_its_job(allocator: str, extents: tuple[int, ...], moves: list) -> None:
    machine = empty(extents, allocator)
    for request, placement in history(machine, moves):
        if placement is not None:
            assert placement.size >= request.size
            assert placement.nodes.bit_count() == placement.size == prod(placement.shape)
            assert machine.grid.bits(placement.members) == placement.nodes
            assert loop.is_routable(cells(machine, placement.nodes), extents)
            assert machine.fabric.is_routable(placement.nodes)
        taken = [held.nodes for held in machine.running.values()]
        assert sum(nodes.bit_count() for nodes in taken) == machine.grid.size - machine.free
        union = 0
        for nodes in taken:
            assert not nodes & union
            union |= nodes


@given(extents=st.sampled_from(TORI), moves=steps)
@settings(max_examples=examples(40))
def test_greedy_boxes_and_their_phi_are_those_of_the_plain_loop(extents: tuple[int, ...], moves: list) -> None:
    machine = empty(extents, "find-systems-mss")
    arrays, table, found = machine.boxes.arrays, machine.boxes.table, np.empty(machine.grid.size, np.int64)
    for _ in history(machine, moves):
        locked = frozenset().union(*(cells(machine, held.nodes) for held in machine.running.values()))
        busy = sum(held.nodes for held in machine.running.values())
        count = greedy_boxes(arrays, table.words_of(busy), found)
        greedy = [cells(machine, table.units_of(int(box))) for box in found[:count]]
        assert greedy == loop.greedy_boxes(extents, locked)
        assert phi_of_boxes(arrays, found, count) == loop.phi(extents, locked, exact=False)


@given(moves=steps)
@settings(max_examples=examples(15))
def test_the_first_request_that_fits_is_found(moves: list) -> None:
    machine = empty((4, 4, 2), "find-systems")
    for _ in history(machine, moves):
        requests = [JobRequest(100 + size, size) for size in (32, 24, 16, 9, 4, 1)]
        found = machine.place_first(requests)
        expected = next(((i, p) for i, p in enumerate(map(machine.place, requests)) if p is not None), None)
        assert found == expected
