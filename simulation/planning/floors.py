"""Begins before which jobs of a kind and length need not be looked for, while what is taken only grows; compiled.

Taking more never makes anything fit earlier, and a longer job of a kind never fits earlier than a shorter one. So the
earliest begin that a job was found to need holds for all later ones of its kind that are no shorter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.machines.interface import JobRequest


class FloorArrays(NamedTuple):
    """For each group of jobs, pairs of a length and the begin that it needs, both ascending.

    Attributes:
        lengths: microseconds, shape (groups, room).
        begins: microseconds, shape (groups, room).
        counts: pairs of each group, shape (groups,).
    """

    lengths: NDArray[np.int64]
    begins: NDArray[np.int64]
    counts: NDArray[np.int64]


@compiled
def floor_of(floors: FloorArrays, group: int, length: int, default: int) -> int:
    """Return the latest begin that a job of the group, no longer than `length`, was found to need."""
    low = 0
    high = floors.counts[group]
    while low < high:
        middle = (low + high) // 2
        if floors.lengths[group, middle] <= length:
            low = middle + 1
        else:
            high = middle
    return max(default, floors.begins[group, low - 1]) if low else default


@compiled
def note_floor(floors: FloorArrays, group: int, length: int, begin: int) -> None:
    """Note that jobs of the group and length begin no earlier; `begin` is not before their floor, and room is left."""
    count = floors.counts[group]
    place = 0
    while place < count and floors.lengths[group, place] < length:
        place += 1
    # a longer job with an earlier begin says nothing that this one does not say better
    last = place
    while last < count and floors.begins[group, last] <= begin:
        last += 1
    shift = place + 1 - last
    if shift > 0:
        for index in range(count - 1, last - 1, -1):
            floors.lengths[group, index + 1] = floors.lengths[group, index]
            floors.begins[group, index + 1] = floors.begins[group, index]
    elif shift < 0:
        for index in range(last, count):
            floors.lengths[group, index + shift] = floors.lengths[group, index]
            floors.begins[group, index + shift] = floors.begins[group, index]
    floors.lengths[group, place] = length
    floors.begins[group, place] = begin
    floors.counts[group] = count + shift


class Floors:
    """Floors of all kinds of requests that are planned on one machine.

    Attributes:
        arrays: the floors.
        examples: a request of each group.
    """

    def __init__(self) -> None:
        self.arrays = FloorArrays(np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int64), np.zeros(0, np.int64))
        self.examples: list[JobRequest] = []
        self._groups: dict[Hashable, int] = {}

    def groups_of(self, requests: Iterable[JobRequest]) -> NDArray[np.int64]:
        """Return the group of each request, by its kind; makes room to note the floor of each."""
        groups = self._groups
        numbers: list[int] = []
        for request in requests:
            kind = request.kind
            group = groups.get(kind)
            if group is None:
                group = groups[kind] = len(groups)
                self.examples.append(request)
            numbers.append(group)
        self._make_room(np.bincount(numbers, minlength=len(groups)))
        return np.array(numbers, np.int64)

    def _make_room(self, added: NDArray[np.int64]) -> None:
        """Let every group have room for that many pairs more."""
        arrays = self.arrays
        new = len(added) - len(arrays.counts)
        counts = np.pad(arrays.counts, (0, new))
        room = arrays.lengths.shape[1]
        needed = int((counts + added).max(initial=0))
        more = max(needed, 2 * room) - room if needed > room else 0
        if new or more:
            self.arrays = FloorArrays(
                np.pad(arrays.lengths, ((0, new), (0, more))), np.pad(arrays.begins, ((0, new), (0, more))), counts
            )
