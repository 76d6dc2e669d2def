"""Decisions of allocators, jobs of schedulers and auctions of simulated markets a second, against plain loops.

Both sides decide on the same states; a difference between their decisions stops the benchmark.
"""

import random
from collections.abc import Callable
from time import process_time as cpu
from typing import Any

import numpy as np

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, original_price
from ramp.protocol.resource.seller import PriceRange
from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import Connection, JobRequest, Placement
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.queueing.job_table import JobTable, shaped_jobs
from simulation.queueing.queue_simulation import Overrun
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.resource.steady import SteadyMachine
from simulation.schedulers.interface import Job
from tests.queue_runs import ended_jobs, starts_of
from tests.reference import angara_loop
from tests.reference.backfill_loops import PlainConservative, PlainEasy
from tests.reference.bluegene_loop import W14, Y4, LoopMachine

Rows = list[tuple[str, float, str]]

PROCESSORS = 338
TORUS_JOBS = 8_000
BURST_JOBS = 100
AUCTIONS, RESOURCES = 20, 20


def run() -> Rows:
    return [*_allocators(), *_schedulers(), *_market()]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = cpu()
    answer = work()
    return cpu() - began, answer


# -- allocators --------------------------------------------------------------------------------------------------


def _decisions(name: str, machine: Any, plain: Any, requests: list[JobRequest]) -> Rows:
    """One history that keeps a machine nearly full."""
    chance, fast, slow = random.Random(1), 0.0, 0.0
    for request in requests:
        machine.place(request)  # lays out the candidates and compiles
    for request in requests:
        took, placement = _timed(lambda: machine.place(request))  # noqa: B023
        fast += took
        took, expected = _timed(lambda: plain.place(request))  # noqa: B023
        slow += took
        if placement is None or expected is None:
            assert placement is expected is None, f"{name}, job {request.job_id}: {placement} against {expected}"
            for job in chance.sample(sorted(machine.running), min(2, len(machine.running))):
                plain.release(job)
                machine.release(job)
            continue
        plain.allocate(placement, expected)
        machine.allocate(placement)
    return [
        (f"{name}: one decision", 1e6 * fast / len(requests), "us"),
        (f"{name}: plain loop / ours", slow / fast, "x"),
    ]


class _PlainBlueGene(LoopMachine):
    """Decides as the paper's pseudocode does."""

    def place(self, request: JobRequest) -> Any:
        return super().place(request.shape, True, request.connection is Connection.TORUS)

    def allocate(self, placement: Placement, expected: Any) -> None:
        assert placement.members == tuple(tuple(side) for side in expected[0])
        super().allocate(placement.job_id, expected[0], expected[1])


class _PlainAngara:
    """Decides as the study's definitions do."""

    def __init__(self, allocator: str, extents: tuple[int, ...]) -> None:
        self._rules = allocator, extents
        self._held: dict[int, frozenset] = {}

    def place(self, request: JobRequest) -> Any:
        locked = frozenset().union(*self._held.values())
        return angara_loop.place(*self._rules, locked, request.size, transit=None, exact=False)

    def allocate(self, placement: Placement, expected: Any) -> None:
        assert (placement.shape, placement.origin) == expected[:2]
        self._held[placement.job_id] = expected[2]

    def release(self, job: int) -> None:
        del self._held[job]


def _allocators() -> Rows:
    chance = random.Random(2005)
    shapes = [tuple(chance.choices((1, 2, 3, 4), (4, 5, 1, 1), k=3)) for _ in range(2_000)]
    kinds = (Connection.MESH, Connection.TORUS)
    wanted = [
        JobRequest(job, shape[0] * shape[1] * shape[2], shape, connection=chance.choice(kinds))
        for job, shape in enumerate(shapes)
    ]
    lines = [(8, W14), (4, Y4), (4, Y4)]
    rows = _decisions("Blue Gene/L", load_machine("bgl"), _PlainBlueGene(lines), wanted)
    for allocator in ("find-systems", "find-systems-mss"):
        sizes = [JobRequest(job, chance.choice((1, 2, 3, 4, 6, 8, 12))) for job in range(40)]
        machine = load_machine("angara-4x4x2", allocator=allocator)
        rows += _decisions(f"Angara 4x4x2, {allocator}", machine, _PlainAngara(allocator, (4, 4, 2)), sizes)
    return rows


# -- schedulers --------------------------------------------------------------------------------------------------


def _synthetic(count: int) -> JobTable:
    """Jobs that keep the machine at four fifths of its capacity, about as many as CTC's where there are 77 000."""
    rng = random.Random(1)
    size = [min(1 << rng.randrange(0, 8), PROCESSORS) if rng.random() < 0.6 else 1 for _ in range(count)]
    run_time = [int(rng.lognormvariate(7.5, 1.8)) + 1 for _ in range(count)]
    requested = [int(run * rng.uniform(1, 5)) + 1 for run in run_time]
    span = sum(width * length for width, length in zip(size, run_time, strict=True)) / (0.8 * PROCESSORS)
    submit = sorted(int(rng.random() * span) for _ in range(count))
    times = [np.array(column, dtype=np.int64) * SECOND for column in (submit, run_time, requested)]
    return JobTable(np.arange(1, count + 1), *times, np.array(size, dtype=np.int64), np.arange(count))


def _schedulers() -> Rows:
    jobs = _synthetic(77_000)
    rows: Rows = []
    for name in ("fcfs", "first-fit", "window-first-fit", "easy", "conservative"):
        options = SchedulerOptions(name)
        run_log(FlatMachine(PROCESSORS), jobs.select(slice(0, 100)), options)  # compiles
        took, _ = _timed(lambda: run_log(FlatMachine(PROCESSORS), jobs, options))  # noqa: B023
        rows.append((f"flat machine, {name}", len(jobs) / took, "jobs/s"))
    torus_jobs = jobs.select(slice(0, TORUS_JOBS)).with_size(np.maximum(jobs.size[:TORUS_JOBS] // 4, 1))
    shaped = shaped_jobs(torus_jobs, load_machine("bgl"), fat_probability=1, torus_probability=1, seed=1)
    shaped = shaped.with_load(128, 1.0)
    for name in ("first-fit", "easy"):
        options = SchedulerOptions(name, overrun=Overrun.KEEP)
        machine = load_machine("bgl")
        took, _ = _timed(lambda: run_log(machine, shaped.jobs, options, requests=shaped.requests))  # noqa: B023
        rows.append((f"Blue Gene/L, fat tori at full load, {name}", TORUS_JOBS / took, "jobs/s"))
    lengths = zip(shaped.jobs.run_time.tolist(), shaped.jobs.requested_time.tolist(), strict=True)
    burst = [
        Job(request.job_id, 0, run_time, requested, request)
        for request, (run_time, requested) in list(zip(shaped.requests, lengths, strict=True))[:BURST_JOBS]
    ]
    for name, plain in (("easy", PlainEasy), ("conservative", PlainConservative)):
        ours, ended = _timed(lambda: ended_jobs(load_machine("bgl"), name, burst))  # noqa: B023
        theirs, expected = _timed(lambda: ended_jobs(load_machine("bgl"), plain(), burst))  # noqa: B023
        assert starts_of(ended) == starts_of(expected), f"{name} starts jobs at other times"
        rows.append((f"Blue Gene/L, {BURST_JOBS} fat tori at once, {name}: definition / ours", theirs / ours, "x"))
    return rows


# -- markets -----------------------------------------------------------------------------------------------------


def _seller(number: int) -> tuple[float, PriceRange]:
    return number / (2 * RESOURCES), PriceRange(20 + 3 * number, 20 + number)


def _auctions(rounds: int, *, quote_only: bool) -> None:
    resources = []
    for number in range(RESOURCES):
        load, prices = _seller(number)
        machine = SteadyMachine(f"res{number:02}", 10_000, load)
        resources.append(ResourceSpec(machine.resource, machine, StaticTerms(10_000), prices, original_price))
    world = World(resources, [UserSpec("alice", 10**12)], seed=0)
    unit = RequestUnit(1, 70, START + 3 * HOUR, TotalCores(16), not_before=START + 2 * HOUR)
    options = ev.AuctionOptions(rounds=rounds, quote_only=quote_only)
    for number in range(AUCTIONS):
        request = ev.RequestSubmitted(f"r{number}", RequestForQuotation((unit,)), options)
        world.command("alice", request, START + SECOND * (number + 1))
    world.run(limit=MINUTE)
    wanted = "quoted" if quote_only else "committed"
    assert [each.stage for each in world.users["alice"].purchases.values()] == [wanted] * AUCTIONS


def _bidding_alone() -> None:
    """Prices and loads as a plain loop: no messages, machines, journals, commitment or bank."""
    for _ in range(AUCTIONS):
        asking = 70
        own: list[int | None] = [None] * RESOURCES
        for _ in range(10):
            for number, (load, prices) in enumerate(map(_seller, range(RESOURCES))):
                question = PriceQuestion(asking, prices.start_price, prices.minimum_price, load, own_last=own[number])
                bid = original_price(question)
                own[number] = own[number] if isinstance(bid, PriceRefusal) else bid
            asking = min([asking, *(each for each in own if each is not None)])


def _market() -> Rows:
    ten, _ = _timed(lambda: _auctions(10, quote_only=False))
    one, _ = _timed(lambda: _auctions(1, quote_only=True))
    naive, _ = _timed(_bidding_alone)
    return [
        (f"simulated market, one round with {RESOURCES} resources", 1000 * one / AUCTIONS, "ms"),
        ("simulated market, auction of 10 rounds, bought and paid", 1000 * ten / AUCTIONS, "ms"),
        ("simulated market, the same / the bidding alone as a plain loop", ten / naive, "x"),
    ]
