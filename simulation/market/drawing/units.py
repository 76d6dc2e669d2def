"""Drawn units and machines of the swarm: sizes that the seller chooses, whole parts, and queues to join."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import ClassVar, Final

from ramp.model.instant import MINUTE, Instant
from ramp.model.offer import Refusal
from ramp.model.request import MoldableTerms, RequestUnit, TotalCores
from ramp.model.slot import Slot
from simulation.market.faults.late_guests import ForgetfulMachine
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec
from simulation.resource.waiting.drawn_starts import DrawnStarts

LAWS: Final = ("amdahl:0", "amdahl:0.05", "amdahl:0.5", "table:1=100,16=20,64=12,128=12")
"""Speed-up laws of moldable units."""


def draw_sizes(seed: int) -> Random | None:
    """Return the stream for units whose size sellers may choose, in two of three markets; else None."""
    random = stream(seed, "sizes")
    return random if random.random() < 2 / 3 else None


def of_any_size(unit: RequestUnit, sizes: Random) -> RequestUnit:
    """Return the unit with a range of cores around its own in two of three cases; a job in a queue has one size."""
    if sizes.random() < 1 / 3 or unit.start_probability is not None:
        return unit
    cores = unit.cores.total
    least = max(1, cores // sizes.choice((1, 2, 4)))
    return replace(unit, moldable=MoldableTerms(least, cores * sizes.choice((1, 2, 4, 8)), sizes.choice(LAWS)))


def draw_starts(seed: int) -> Random | None:
    """Return the stream for probable starts, in a quarter of the markets; else None."""
    random = stream(seed, "starts")
    return random if random.random() < 0.25 else None


def without_reserving(spec: ResourceSpec, random: Random, seed: int) -> ResourceSpec:
    """Return a machine that sells a place in its queue only."""
    probability = random.choice((0.4, 0.8, 0.95, 1.0))
    return replace(spec, machine=DrawnStarts(spec.machine, probability, seed))


class WholeParts(ForgetfulMachine):
    """A machine that sells parts of 8 cores, and charges for all of them."""

    PART: ClassVar[int] = 8

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        parts = -(-unit.cores.total // self.PART)
        return super().quote(replace(unit, cores=TotalCores(parts * self.PART)), now)


def joining_a_queue(unit: RequestUnit, at: Instant, random: Random) -> RequestUnit:
    """Return the unit as a job that may join a queue, and has to start within minutes."""
    wall = unit.run_from(at)[1]
    deadline = at + random.randint(4, 20) * MINUTE + wall
    asked = random.choice((0.3, 0.7, 0.9))
    return replace(unit, number=1, not_before=None, wall_time=wall, deadline=deadline, start_probability=asked)
