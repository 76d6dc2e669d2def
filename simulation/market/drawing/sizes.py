"""Units whose size the seller chooses, in markets of the swarm."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from ramp.model.request import MoldableTerms, RequestUnit
from simulation.market.random_streams import stream

LAWS: Final = ("amdahl:0", "amdahl:0.05", "amdahl:0.5", "table:1=100,16=20,64=12,128=12")
"""Speed-up laws of moldable units."""


def draw_sizes(seed: int) -> Random | None:
    """In two of three markets sellers may choose the size of some units, drawn from this stream."""
    random = stream(seed, "sizes")
    return random if random.random() < 2 / 3 else None


def of_any_size(unit: RequestUnit, sizes: Random) -> RequestUnit:
    """The unit with a range of cores around its own in two of three cases; a job in a queue has one size."""
    if sizes.random() < 1 / 3 or unit.start_probability is not None:
        return unit
    cores = unit.cores.total
    least = max(1, cores // sizes.choice((1, 2, 4)))
    return replace(unit, moldable=MoldableTerms(least, cores * sizes.choice((1, 2, 4, 8)), sizes.choice(LAWS)))
