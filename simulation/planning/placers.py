"""Where a request would go if a given set of units and cables were taken: what a search in space and time asks.

numba keeps compiled functions until their own file changes: after a change of step_table.py or
simulation/machines/bluegene/search.py, touch this file.

A state is a vector of words: the machine's units, one bit each, then whatever else its jobs exclude one another from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.bluegene.search import Tables, first_fit
from simulation.machines.grid import Grid, units_of, words_of
from simulation.machines.interface import JobRequest, Machine, NodeState, Placement, emptied, has_cables, units_out
from simulation.planning.step_table import Steps, next_window, step_at


@compiled
def earliest_place(
    steps: Steps,
    count: int,
    tables: Tables,
    kinds: NDArray[np.int64],
    size: int,
    length: int,
    not_before: int,
    latest: int,
    union: NDArray[np.uint64],
    answer: NDArray[np.int64],
) -> int:
    """Find the earliest begin in [not_before, latest] of a window of `length` with a place.

    Args:
        steps: what is taken when.
        count: number of steps.
        tables: of the machine.
        kinds: kinds to try at each begin, in order.
        size: units wanted.
        length: microseconds, at least 1.
        not_before: microseconds, not before the first step.
        latest: microseconds.
        union: out: all that is taken at any time of the window found.
        answer: out: as of `first_fit`.

    Returns:
        The begin, or -1.
    """
    time = not_before
    step = step_at(steps.times, count, time)
    failed = np.zeros_like(union)
    failed_before = False
    while True:
        step = next_window(steps, count, tables.units[0], size, step, time, length, latest, union)
        if step < 0:
            return -1
        time = max(time, int(steps.times[step]))
        # where all is taken that was taken when nothing fitted before, nothing fits again
        anew = False
        for word in range(union.shape[0]):
            if failed[word] & ~union[word]:
                anew = True
                break
        if anew or not failed_before:
            found = first_fit(union, kinds, tables, answer)
            if found >= 0:
                return time
            for word in range(union.shape[0]):  # a loop: numba takes seconds to compile an assignment to a slice
                failed[word] = union[word]
            failed_before = True
        step += 1
        if step >= count:
            return -1
        time = int(steps.times[step])


StateVector = NDArray[np.uint64]
WORD_BITS = 64
ALWAYS = 1 << 61
"""Later than every time of a machine; sums of two still fit 64 bits."""


class CabledPlacer:
    """Placer of a machine of cabled lines: complete in midplanes and in cables.

    Attributes:
        units: of the machine.
        out: what is out of service.
        unit_words: words of a state that are units.
    """

    def __init__(self, machine: BlueGene) -> None:
        self._machine = machine.copy()
        self.units = machine.grid.size
        self.out = machine.out_of_service()
        self.unit_words = -(-self.units // WORD_BITS)
        self._union = np.zeros_like(self.out)
        self._answer: NDArray[np.int64] = np.zeros(1 + 2 * len(machine.extents), np.int64)

    def mask(self, placement: Placement) -> StateVector:
        """Return what a placement holds."""
        return self._machine.mask_of(placement)

    def place(self, busy: StateVector, request: JobRequest) -> Placement | None:
        """Return where the request would go with just that taken, or None."""
        return self._machine.place_within(busy, request)

    def earliest(
        self, steps: Steps, count: int, request: JobRequest, length: int, not_before: int, latest: int
    ) -> tuple[int, Placement] | None:
        """Return the earliest begin in [not_before, latest] of a window of `length` with a place, and the place."""
        catalogue = self._machine.catalogue
        kinds = catalogue.kinds_of(request)
        begin = earliest_place(
            steps,
            count,
            self._machine.catalogue.tables,
            kinds,
            request.size,
            length,
            not_before,
            latest,
            self._union,
            self._answer,
        )
        return None if begin < 0 else (begin, catalogue.placement(self._answer, request.job_id))


class UnitPlacer:
    """As `CabledPlacer`, of a machine whose jobs exclude one another from units only.

    Taken units are drained on a copy.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine: Any = emptied(machine)
        self.units = Grid(machine.extents).size
        self.unit_words = -(-self.units // WORD_BITS)
        out = units_out(machine)
        self._serviceable = (1 << self.units) - 1 & ~out
        self.out = words_of(out, self.unit_words)
        self._union = np.zeros_like(self.out)

    def mask(self, placement: Placement) -> StateVector:
        return words_of(placement.nodes, self.unit_words)

    def place(self, busy: StateVector, request: JobRequest) -> Placement | None:
        taken = units_of(busy) & self._serviceable
        self._machine.set_node_state(self._serviceable & ~taken, NodeState.IDLE)
        self._machine.set_node_state(taken, NodeState.DRAINED)
        placement: Placement | None = self._machine.place(request)
        return placement

    def earliest(
        self, steps: Steps, count: int, request: JobRequest, length: int, not_before: int, latest: int
    ) -> tuple[int, Placement] | None:
        time = not_before
        step = step_at(steps.times, count, time)
        while True:
            step = next_window(steps, count, self.units, request.size, step, time, length, latest, self._union)
            if step < 0:
                return None
            time = max(time, int(steps.times[step]))
            placement = self.place(self._union, request)
            if placement is not None:
                return time, placement
            step += 1
            if step >= count:
                return None
            time = int(steps.times[step])


Placer = CabledPlacer | UnitPlacer
"""Places requests on any state of one machine, and at the earliest time on a table of its states."""


def placer_of(machine: Machine) -> Placer:
    """Return the placer of a machine in its present state of service."""
    return CabledPlacer(machine) if has_cables(machine) else UnitPlacer(machine)
