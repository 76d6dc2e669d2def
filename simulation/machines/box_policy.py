"""What an allocator of boxes is: which shapes it takes, in which order, and how it chooses among the free boxes.

The allocators themselves are one a file in `simulation.machines.allocators`; the measures they rank shapes by are here.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from math import prod
from typing import Any, Protocol

from ramp.errors import MachineError

Shape = tuple[int, ...]


class Choice(enum.IntEnum):
    """How one of the free boxes that would serve a job is chosen; the numbers are those of the compiled search."""

    FIRST = 0
    """The first in rank order."""
    PHI_GREEDY = 1
    """The one after which phi is largest, over the maximal boxes that the published greedy search finds."""
    PHI_EXACT = 2
    """The same over all maximal boxes."""
    ROOM_AHEAD = 3
    """The one that leaves the largest free boxes while the job runs (`simulation.machines.allocators.room_ahead`)."""


class BoxPolicy(Protocol):
    """An allocator of boxes. Frozen dataclasses: their fields are the options that a machine's file may set."""

    @property
    def name(self) -> str:
        """The name under which it is chosen."""
        ...

    @property
    def wrap(self) -> bool:
        """Whether boxes may run over the seam of a ring."""
        ...

    @property
    def choice(self) -> Choice:
        """How one of the free boxes is chosen; anything but the first wants a rank that begins with the volume."""
        ...

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Whether boxes of that shape are given out at all."""
        ...

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Shapes of lower rank come first; among equals lower extents, then lower origins, first dimension first."""
        ...

    def volume_max(self, size: int, volumes: Sequence[int]) -> int:
        """Nodes that a job of `size` may be given at most; `volumes` are those of the admitted shapes, ascending."""
        ...


def make_policy(allocator: Callable[..., BoxPolicy], options: Mapping[str, Any]) -> BoxPolicy:
    """An allocator with options: the fields of its class.

    Raises:
        MachineError: there is no such option, or its value is of the wrong type.
    """
    known = {option.name for option in fields(allocator)}  # type: ignore[arg-type]
    for name, value in options.items():
        if name not in known:
            raise MachineError(f"the allocator has no option {name!r}; there are {', '.join(sorted(known))}")
        wanted = int if name == "transit_max" else bool
        if type(value) is not wanted or (wanted is int and value < 0):
            words = "a number of nodes from 0 on" if wanted is int else "true or false"
            raise MachineError(f"option {name} is {value!r}; wanted is {words}")
    return allocator(**options)


def mean_distance(shape: Shape) -> Fraction:
    """Mean over the pairs of different nodes of a box of the distance as printed in the study, without wrap-around.

    The sum over an extent p of |a - b| over ordered pairs is p (p^2 - 1) / 3, so the mean over all dimensions is
    sum (p^2 - 1) / (3 p) times V / (V - 1). 0 for a single node.
    """
    volume = prod(shape)
    if volume == 1:
        return Fraction(0)
    return sum((Fraction(p * p - 1, 3 * p) for p in shape), Fraction(0)) * volume / (volume - 1)


def mean_torus_distance(shape: Shape, extents: Shape) -> Fraction:
    """The same with distances as packets travel: an extent that fills its ring is a ring, any other one a line."""
    volume = prod(shape)
    if volume == 1:
        return Fraction(0)
    total = Fraction(0)
    for p, extent in zip(shape, extents, strict=True):
        # over ordered pairs a ring of p has p * floor(p^2 / 4)
        total += Fraction(p * (p * p // 4), p * p) if p == extent else Fraction(p * p - 1, 3 * p)
    return total * volume / (volume - 1)


def volume_with_transit(size: int, volumes: Sequence[int], transit_max: int | None) -> int:
    """The smallest volume that holds a job, and so many transit nodes more; everything where `transit_max` is None.

    Counted from the smallest volume instead of the size, so that sizes without a box of their own can run: the study
    prints no limit, and 32 nodes on 4x3x3 need 36.
    """
    if transit_max is None or not volumes:
        return volumes[-1] if volumes else 0
    index = bisect_left(volumes, size)
    return volumes[index] + transit_max if index < len(volumes) else 0
