"""The compiled two-phase search against plain loops over the paper's pseudocode, over random histories."""

import random
import tomllib
from functools import cache
from itertools import product

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.machine_files import machine_directory
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.description import BuildOptions, build_machine
from simulation.machines.grid import bits_of
from simulation.machines.interface import Connection, JobRequest, NodeState
from tests.reference import bluegene_loop as loop
from tests.reference.bluegene_loop import cables_of

pytestmark = pytest.mark.loops

LINES = {
    "bgl": [(8, loop.W14), (4, loop.Y4), (4, loop.Y4)],
    "torus3d": [
        (8, [f"{i}.2>{(i + 1) % 8}.5" for i in range(8)]),
        (4, [f"{i}.2>{(i + 1) % 4}.5" for i in range(4)]),
        (4, [f"{i}.2>{(i + 1) % 4}.5" for i in range(4)]),
    ],
}
TABLES: dict[str, dict] = {name: {} for name in LINES}


@cache
def built(name: str, allocator: str | None = None, **options: str) -> BlueGene:
    """A machine of the project, its tables made here, once, and not taken from the user's cache."""
    text = (machine_directory() / f"{name}.toml").read_text(encoding="utf-8")
    return build_machine(tomllib.loads(text), source=name, options=BuildOptions(allocator, options))


shapes = st.tuples(*[st.integers(1, 4)] * 3) | st.sampled_from([(8, 1, 1), (8, 2, 1), (1, 4, 8), (8, 4, 4), (2, 2, 5)])
steps = st.lists(
    st.tuples(shapes, st.booleans(), st.booleans(), st.integers(0, 3), st.integers(0, 1 << 30)),
    min_size=10,
    max_size=60,
)
long_histories = st.integers(0, 1 << 32).map(lambda seed: long_history(seed))
failures = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1 << 30), st.integers(0, 1 << 30)), max_size=6)


def long_history(seed: int) -> list:
    """Many small jobs, so that the machine is nearly full most of the time and cables are contended for."""
    chance = random.Random(seed)
    return [
        (tuple(chance.choices((1, 2, 3, 4), (4, 5, 1, 1), k=3)), chance.random() < 0.8, chance.random() < 0.5,
         chance.choice((0, 1, 1, 2, 5)), chance.getrandbits(30))
        for _ in range(100)
    ]  # fmt: skip


def reference(name: str) -> loop.LoopMachine:
    plain = loop.LoopMachine(LINES[name])
    plain.tables = TABLES[name]  # link sets depend on the wiring alone
    return plain


def fail_both(machine: BlueGene, plain: loop.LoopMachine, failed: list, drained: list[int]) -> None:
    for dimension, line_seed, label_seed in failed:
        lines = list(product(*[range(extent) for i, extent in enumerate(plain.extents) if i != dimension]))
        line = lines[line_seed % len(lines)]
        label = label_seed % len(plain.lines[dimension][1])
        machine.fail_links(dimension, line, [label])
        plain.taken_links.add((dimension, line, label))
    for unit in drained:
        machine.set_node_state(1 << unit, NodeState.DRAINED)
        plain.taken_units.add(machine.grid.coordinates(unit))


@pytest.mark.parametrize("name", ["bgl", pytest.param("torus3d", marks=pytest.mark.slow)])
@settings(max_examples=examples(20))
@given(steps=long_histories, failed=failures, drained=st.lists(st.integers(0, 127), max_size=3))
def test_every_decision_agrees_with_the_plain_loop(name, steps, failed, drained):
    agree(name, "links", steps, failed, drained)


@pytest.mark.parametrize("merit", ["corner", "fragmentation"])
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1 << 32), drained=st.lists(st.integers(0, 127), max_size=3))
def test_every_decision_by_another_merit_agrees_with_the_plain_loop(merit, seed, drained):
    agree("bgl", merit, long_history(seed)[:40], [], drained)


def agree(name, merit, steps, failed, drained):
    machine, plain = built(name, merit=merit).copy(), reference(name)
    fail_both(machine, plain, failed, drained)
    for job, (shape, rotate, torus, releases, victim) in enumerate(steps):
        volume = shape[0] * shape[1] * shape[2]
        connection = Connection.TORUS if torus else Connection.MESH
        got = machine.place(JobRequest(job, volume, shape, rotate, connection))
        want = plain.place(shape, rotate, torus, merit)
        if want is None:
            assert got is None
        else:
            box, chosen, links = want
            assert got is not None
            assert got.members == tuple(tuple(side) for side in box)
            assert got.links == tuple(tuple(sorted(labels)) for labels in chosen)
            assert got.link_count == links
            machine.allocate(got)
            plain.allocate(job, box, chosen)
        for _ in range(releases if want is None else 0):
            if plain.jobs:
                out = sorted(plain.jobs)[victim % len(plain.jobs)]
                plain.release(out)
                machine.release(out)
    assert machine.free == 128 - len(plain.taken_units)


@settings(max_examples=examples(25))
@given(steps=steps, allocator=st.sampled_from(["two-phase", "first-found", "noncontiguous"]), failed=failures)
def test_no_unit_or_cable_is_ever_shared(steps, allocator, failed):
    machine = built("bgl", allocator).copy()
    fail_both(machine, reference("bgl"), failed, [])
    broken = {
        (dimension, line, label)
        for dimension, line, label in (
            (d, tuple(machine.grid.line_coordinates(d, s % machine.grid.line_count(d))), t % len(LINES["bgl"][d][1]))
            for d, s, t in failed
        )
    }
    for job, (shape, rotate, torus, releases, victim) in enumerate(steps):
        connection = Connection.TORUS if torus else Connection.MESH
        request = JobRequest(job, shape[0] * shape[1] * shape[2], shape, rotate, connection)
        placement = machine.place(request)
        if placement is not None:
            machine.allocate(placement)
        elif releases and machine.running:
            machine.release(sorted(machine.running)[victim % len(machine.running)])
        units = [unit for held in machine.running.values() for unit in bits_of(held.nodes)]
        cables = [cable for held in machine.running.values() for cable in cables_of(held)]
        assert len(units) == len(set(units)) == 128 - machine.free
        assert len(cables) == len(set(cables))
        assert not broken & set(cables)


@settings(max_examples=examples(25))
@given(steps=steps)
def test_place_first_is_the_loop_over_place(steps):
    machine = built("bgl").copy()
    requests = [
        JobRequest(job, s[0] * s[1] * s[2], s, rotate, Connection.NAV if torus else Connection.MESH)
        for job, (s, rotate, torus, _, _) in enumerate(steps)
    ]
    while requests:
        found = machine.place_first(requests)
        one_by_one = [(index, machine.place(request)) for index, request in enumerate(requests)]
        fitting = [entry for entry in one_by_one if entry[1] is not None]
        assert found == (fitting[0] if fitting else None)
        if found is None:
            break
        machine.allocate(found[1])
        del requests[: found[0] + 1]


@settings(max_examples=examples(25))
@given(steps=steps)
def test_copies_decide_as_the_original_did(steps):
    machine = built("bgl").copy()
    requests = [JobRequest(job, s[0] * s[1] * s[2], s, r, Connection.TORUS) for job, (s, r, *_) in enumerate(steps)]
    half = len(requests) // 2
    fill(machine, requests[:half])
    twin = machine.copy()
    assert fill(twin, requests[half:]) == fill(machine, requests[half:])


def fill(machine: BlueGene, requests: list[JobRequest]) -> list:
    placed = []
    for request in requests:
        placement = machine.place(request)
        placed.append(placement)
        if placement is not None:
            machine.allocate(placement)
        elif machine.running:
            machine.release(min(machine.running))
    return placed
