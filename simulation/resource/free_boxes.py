"""The largest free box of a machine, and how much of it a job destroys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulation.machines.grid import Grid, words_of

WORD_BITS: Final = 64
BOXES_MAX: Final = 400_000
"""Boxes that are listed; machines with more have their dimensions' runs thinned out to powers of two."""


class FreeBoxes:
    """All boxes of a machine, the largest first.

    Args:
        extents: units in each dimension.
        wrap: whether boxes may run over the seam of a ring.
    """

    def __init__(self, extents: tuple[int, ...], *, wrap: bool) -> None:
        grid = Grid(extents)
        sides = [_runs(extent, wrap) for extent in extents]
        count = int(np.prod([len(side) for side in sides]))
        if count > BOXES_MAX:
            sides = [[run for run in side if len(run) & (len(run) - 1) == 0 or len(run) == extent]
                     for side, extent in zip(sides, extents, strict=True)]  # fmt: skip
        boxes = sorted((grid.bits(members) for members in product(*sides)), key=int.bit_count, reverse=True)
        self._words = -(-grid.size // WORD_BITS)
        data = b"".join(box.to_bytes(self._words * 8, "little") for box in boxes)
        self._masks: NDArray[np.uint64] = np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, self._words)
        self._volumes = np.array([box.bit_count() for box in boxes], np.int64)

    def largest(self, busy: int) -> int:
        """Return the units of the largest box without a busy unit; 0 where no unit is free.

        Args:
            busy: bit set.
        """
        words = words_of(busy, self._words)
        free = self._masks[:, 0] & words[0] == 0
        for word in range(1, self._words):
            free &= self._masks[:, word] & words[word] == 0
        first = int(free.argmax())
        return int(self._volumes[first]) if free[first] else 0

    def fragmentation(self, busy: int, units: int) -> float:
        """Share of the largest free box that a job destroys beyond what it takes itself, 0 to 1.

        A job that takes a corner of the largest box, or stands elsewhere, costs only its own units; one in the middle
        leaves pieces. Like the loss of phi (Mukosey and others 2019), but in units and without the job's own.

        Args:
            busy: bit set of what is taken without the job.
            units: bit set of the job.
        """
        before = self.largest(busy)
        if before == 0:
            return 0.0
        lost = before - self.largest(busy | units) - units.bit_count()
        return max(0, lost) / before


@lru_cache(maxsize=32)
def free_boxes(extents: tuple[int, ...], *, wrap: bool) -> FreeBoxes:
    """Return the boxes of machines of those extents, listed once."""
    return FreeBoxes(extents, wrap=wrap)


def _runs(extent: int, wrap: bool) -> list[Sequence[int]]:
    runs: list[Sequence[int]] = [tuple(range(extent))]
    for length in range(1, extent):
        origins = range(extent) if wrap else range(extent - length + 1)
        runs += [tuple((origin + step) % extent for step in range(length)) for origin in origins]
    return runs
