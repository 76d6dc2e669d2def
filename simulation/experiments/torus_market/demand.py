"""What is asked of a market on live torus machines: a stream of requests, drawn from a seed.

Every request draws the same numbers whatever the case, so that cases differ only where they say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from ramp.model.instant import DAY, HOUR, MINUTE, Instant
from ramp.model.request import MoldableTerms, RequestUnit, TorusTerms, TotalCores
from simulation.market.random_streams import stream

SMALLER: Final = 2
"""The least size of a moldable request is the size asked divided by this, rounded up."""
LARGER: Final = 4
"""Factor from the size asked to the greatest size."""
SERIAL_SHARE_MAX: Final = 0.5
"""Share of the run at the size asked that stays serial, under Amdahl's law; uniform from 0 to this.

Of the run with one core it would be nothing or everything to requests of thousands of cores.
"""
PARALLELISM_BITS: Final = 2.0
"""Downey's average parallelism is the size asked times two to the power of a uniform number from 0 to this."""
VARIANCE_MAX: Final = 2.0
"""His variance of parallelism (sigma) is uniform from 0 to this."""


@dataclass(frozen=True, slots=True)
class MarketCase:
    """One market to run.

    Attributes:
        swarm: name of a shipped swarm; its machines are on the market.
        cores: sizes of requests, drawn with equal probability.
        torus_share: share of requests that want a torus; the others say nothing of it.
        pricing: pricing strategy of all machines.
        days: for how long requests come.
        requests_a_day: mean rate, Poisson.
        price: most that the users pay, credits per core hour.
        seed: of all that is drawn.
        load: offered load of the live machines' own users; None leaves the swarm's.
        moldable_share: probability that a request leaves its size to the seller. Those that do so at a share do so at
            every larger one. Those that want a torus may as well: a range of cores excludes only a stated shape, which
            nobody has here.
    """

    swarm: str
    cores: tuple[int, ...]
    torus_share: float
    pricing: str
    days: int
    requests_a_day: float
    price: int
    seed: int
    load: float | None = None
    moldable_share: float = 0.0


def request_id(number: int) -> str:
    """Name of the request of that number, from 1."""
    return f"request{number}"


def requests_of(case: MarketCase, opening: Instant) -> list[tuple[Instant, RequestUnit]]:
    """When each request comes, and its only unit; in order of time.

    Args:
        case: what market it is.
        opening: when requests may begin to come, microseconds since 1970; the last comes an hour before the case's days
            are over.
    """
    random = stream(case.seed, f"torus-market/{case.requests_a_day}")
    # a stream of its own: the other numbers are what they are without moldable requests
    shapes = stream(case.seed, f"torus-market/moldable/{case.requests_a_day}")
    asked: list[tuple[Instant, RequestUnit]] = []
    at = opening
    while True:
        at += int(random.expovariate(case.requests_a_day) * DAY)
        if at >= opening + case.days * DAY - HOUR:
            return asked
        asked.append((at, _unit(case, at, random, shapes)))


def _unit(case: MarketCase, at: Instant, random: Random, shapes: Random) -> RequestUnit:
    size, torus, ahead, length, slack = (random.random() for _ in range(5))
    start = at + 10 * MINUTE + int(ahead * 6 * HOUR)
    wall_time = (1 + int(length * 8)) * HOUR
    cores = case.cores[int(size * len(case.cores))]
    terms = TorusTerms(connection="torus") if torus < case.torus_share else None
    deadline = start + wall_time + int(slack * 12) * HOUR
    moldable = _moldable(cores, case.moldable_share, shapes)
    return RequestUnit(1, case.price, deadline, TotalCores(cores), start, wall_time, torus=terms, moldable=moldable)


def _moldable(cores: int, share: float, random: Random) -> MoldableTerms | None:
    """The sizes that will do and a speed-up law, half of them Amdahl's and half Downey's; None where one size does."""
    chosen, kind, serial, parallelism, variance = (random.random() for _ in range(5))
    if chosen >= share:
        return None
    if kind < 0.5:
        here = serial * SERIAL_SHARE_MAX
        law = f"amdahl:{here / (here + cores * (1 - here)):.6f}"  # of the run with one core, as the law is written
    else:
        law = f"downey:{cores * 2 ** (PARALLELISM_BITS * parallelism):.3f}:{VARIANCE_MAX * variance:.3f}"
    return MoldableTerms(-(-cores // SMALLER), LARGER * cores, law)
