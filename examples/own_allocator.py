r"""An allocator of one's own for tori of boxes: stand in the way of as few other places as possible.

ramp simulate --machine angara-4x4x4 --log synthetic --max-jobs 300 --scheduler easy \
    --allocator examples/own_allocator.py:LeastInTheWay
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulation import BoxPolicy, FreeBox


@dataclass(frozen=True, slots=True)
class LeastInTheWay(BoxPolicy):
    """Of the free boxes, smallest volume first, the one that meets the fewest others where the job could run.

    Attributes:
        looked_at: boxes that are compared.
    """

    looked_at: int = 200

    def choose(self, boxes: Sequence[FreeBox], busy: int) -> int:
        """Index of the box to take."""
        smallest = boxes[0].nodes.bit_count()
        among = [box.nodes for box in boxes[: self.looked_at] if box.nodes.bit_count() == smallest]
        met = [sum(1 for other in among if nodes & other) for nodes in among]
        return met.index(min(met))
