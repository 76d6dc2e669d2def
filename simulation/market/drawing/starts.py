"""Machines that reserve nothing, and requests that join their queues, as a seed draws them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ramp.model.instant import MINUTE, Instant
from ramp.model.request import RequestUnit
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec
from simulation.resource.waiting.drawn_starts import DrawnStarts


def draw_starts(seed: int) -> Random | None:
    """In a quarter of the markets some machines sell probable starts; of these this stream draws all there is."""
    random = stream(seed, "starts")
    return random if random.random() < 0.25 else None


def without_reserving(spec: ResourceSpec, random: Random, seed: int) -> ResourceSpec:
    """A machine that sells a place in its queue only."""
    probability = random.choice((0.4, 0.8, 0.95, 1.0))
    return replace(spec, machine=DrawnStarts(spec.machine, probability, seed))


def joining_a_queue(unit: RequestUnit, at: Instant, random: Random) -> RequestUnit:
    """The unit as a job that may join a queue, and has to start within minutes."""
    wall = unit.run_duration(at)
    deadline = at + random.randint(4, 20) * MINUTE + wall
    asked = random.choice((0.3, 0.7, 0.9))
    return replace(unit, number=1, not_before=None, wall_time=wall, deadline=deadline, start_probability=asked)
