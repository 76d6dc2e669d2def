"""Allocation decisions on Blue Gene/L a second, against plain loops over the paper's pseudocode."""

import random
from time import perf_counter

from simulation.machine_files import load_machine
from simulation.machines.bluegene.link_sets import build_link_table
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import Connection, JobRequest
from tests.reference.bluegene_loop import W14, Y4, LoopMachine

JOBS = 2_000
RELEASES_A_REFUSAL = 2
LARGE_QUEUE_KINDS = 120


def run() -> list[tuple[str, float, str]]:
    """Measure decisions along one random history of small meshes and tori that keeps the machine nearly full.

    Both sides decide on exactly the same states; a difference between their decisions stops the benchmark.
    """
    machine = load_machine("bgl")
    assert isinstance(machine, BlueGene)
    requests = _requests(JOBS)
    for request in requests:
        machine.place(request)  # lays out the candidates and compiles
    plain = LoopMachine([(8, W14), (4, Y4), (4, Y4)])
    fast, slow, changes = _history(machine, plain, requests)
    kinds = list({request.kind: request for request in requests if machine.place(request) is None}.values())
    begin = perf_counter()
    for _ in range(500):
        machine.place_first(kinds[:LARGE_QUEUE_KINDS])
    scan = (perf_counter() - begin) / 500
    begin = perf_counter()
    for _ in range(2_000):
        machine.copy()
    copy = (perf_counter() - begin) / 2_000
    begin = perf_counter()
    build_link_table.__wrapped__(machine.layout.tables[0].wiring)
    table = perf_counter() - begin
    return [
        ("bluegene: decisions", JOBS / fast, "1/s"),
        ("bluegene: one decision", fast / JOBS * 1e6, "us"),
        ("bluegene: one decision of the plain loop", slow / JOBS * 1e6, "us"),
        ("bluegene: decisions, faster than the plain loop", slow / fast, "x"),
        ("bluegene: allocate and release", changes * 1e6, "us"),
        (f"bluegene: a queue of {min(len(kinds), LARGE_QUEUE_KINDS)} kinds that do not fit", scan * 1e6, "us"),
        ("bluegene: copy of a busy machine", copy * 1e6, "us"),
        ("bluegene: link table of the x-line", table * 1e3, "ms"),
    ]


def _requests(count: int) -> list[JobRequest]:
    chance = random.Random(2005)
    requests = []
    for job in range(count):
        shape = tuple(chance.choices((1, 2, 3, 4), (4, 5, 1, 1), k=3))
        connection = chance.choice((Connection.MESH, Connection.TORUS))
        requests.append(JobRequest(job, shape[0] * shape[1] * shape[2], shape, connection=connection))
    return requests


def _history(machine: BlueGene, plain: LoopMachine, requests: list[JobRequest]) -> tuple[float, float, float]:
    """Seconds of all decisions on either side, and of one allocation with its release."""
    chance = random.Random(1)
    fast = slow = changing = 0.0
    changes = 0
    for request in requests:
        begin = perf_counter()
        placement = machine.place(request)
        middle = perf_counter()
        expected = plain.place(request.shape or (), True, request.connection is Connection.TORUS)
        slow += perf_counter() - middle
        fast += middle - begin
        if placement is None or expected is None:
            assert placement is expected is None, f"job {request.job_id}: {placement} against {expected}"
            for job in chance.sample(sorted(machine.running), min(RELEASES_A_REFUSAL, len(machine.running))):
                plain.release(job)
                begin = perf_counter()
                machine.release(job)
                changing += perf_counter() - begin
            continue
        assert placement.members == tuple(tuple(side) for side in expected[0])
        plain.allocate(request.job_id, expected[0], expected[1])
        begin = perf_counter()
        machine.allocate(placement)
        changing += perf_counter() - begin
        changes += 1
    return fast, slow, changing / changes
