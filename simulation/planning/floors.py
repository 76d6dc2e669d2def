"""Begins before which jobs of a kind and length need not be looked for, while what is taken only grows.

Taking more never makes anything fit earlier, and a longer job of a kind never fits earlier than a shorter one. So the
earliest begin that a job was found to need holds for all later ones of its kind that are no shorter.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable


class Floors:
    """Floors of all kinds of requests that are planned on one machine; times in microseconds."""

    def __init__(self) -> None:
        self._known: dict[Hashable, list[tuple[int, int]]] = {}  # length and begin, both ascending

    def floor(self, kind: Hashable, length: int, default: int, booked: int | None = None) -> int:
        """Return the first begin that is worth looking at.

        Args:
            kind: of the request.
            length: of the job.
            default: where nothing is known.
            booked: begin of a promise of the job's own. It may have been what stood in the way of the others from the
                begin on at which they would have met it.
        """
        floor = default
        for noted, begin in self._known.get(kind, ()):
            if noted > length:
                break
            floor = max(floor, begin if booked is None else min(begin, booked - noted + 1))
        return floor

    def note(self, kind: Hashable, length: int, begin: int) -> None:
        """Note that jobs of the kind and length begin no earlier; a longer job with an earlier begin adds nothing."""
        pairs = self._known.setdefault(kind, [])
        pairs[:] = [pair for pair in pairs if pair[0] < length or pair[1] > begin]
        insort(pairs, (length, begin))

    def clear(self) -> None:
        """Forget all, as something has been given back."""
        self._known.clear()
