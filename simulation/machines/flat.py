"""A flat machine: processors without places; any free ones fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ramp.errors import MachineError
from simulation.machines.interface import JobRequest, NodeState, Placement, Reallocation, Traits


class FlatMachine:
    """A pool of processors, as in Feitelson's backfilling studies.

    Args:
        processors: number of processors.
        name: shown in tables; `flat:N` by default.
    """

    traits: Final = Traits("processor", has_places=False, interchangeable=True)

    def __init__(self, processors: int, name: str | None = None) -> None:
        if processors < 1:
            raise MachineError(f"a flat machine must have at least 1 processor, got {processors}")
        self._processors = processors
        self._name = name if name is not None else f"flat:{processors}"
        self._free = processors
        self._running: dict[int, Placement] = {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def extents(self) -> tuple[int, ...]:
        """One dimension of all processors."""
        return (self._processors,)

    @property
    def capacity(self) -> int:
        """All processors."""
        return self._processors

    @property
    def free(self) -> int:
        """Idle processors."""
        return self._free

    @property
    def running(self) -> Mapping[int, Placement]:
        return self._running

    def place(self, request: JobRequest) -> Placement | None:
        """Decide whether the request fits now; shape and connection are ignored."""
        if request.size > self._free:
            return None
        return Placement(request.job_id, request.size)

    def place_first(self, requests: Sequence[JobRequest]) -> tuple[int, Placement] | None:
        """Return the index and placement of the first request that fits now."""
        for index, request in enumerate(requests):
            if request.size <= self._free:
                return index, Placement(request.job_id, request.size)
        return None

    def allocate(self, placement: Placement) -> None:
        """Take the placement's processors.

        Raises:
            MachineError: fewer are free, or the job is already running.
        """
        if placement.job_id in self._running:
            raise MachineError(f"{self._name}: job {placement.job_id} is already running")
        if placement.size > self._free:
            raise MachineError(
                f"{self._name}: job {placement.job_id} needs {placement.size} processors, but {self._free} are free"
            )
        self._running[placement.job_id] = placement
        self._free -= placement.size

    def release(self, job_id: int) -> None:
        placement = self._running.pop(job_id, None)
        if placement is None:
            raise MachineError(f"{self._name}: job {job_id} is not running")
        self._free += placement.size

    def reallocate(self, request: JobRequest) -> Reallocation | None:
        """Change the size of a running job; it keeps the smaller number of its two sizes.

        Raises:
            MachineError: the job is not running.
        """
        before = self._running.get(request.job_id)
        if before is None:
            raise MachineError(f"{self._name}: job {request.job_id} is not running")
        if request.size - before.size > self._free:
            return None
        after = Placement(request.job_id, request.size)
        self._running[request.job_id] = after
        self._free -= after.size - before.size
        return Reallocation(before, after, min(before.size, after.size))

    def fits_ever(self, request: JobRequest) -> bool:
        """Return whether the machine has enough processors."""
        return request.size <= self._processors

    def describe(self, placement: Placement) -> dict[str, Any]:
        """Return the trace fields; only the number of processors has a value."""
        return {"shape": [placement.size], "origin": [], "connection": [], "nodes": str(placement.size), "links": {}}

    def node_state(self, unit: int) -> NodeState:
        """Return the state of a processor; the first `capacity - free` processors count as allocated."""
        if not 0 <= unit < self._processors:
            raise MachineError(f"{self._name} has no processor {unit}; it has 0 to {self._processors - 1}")
        return NodeState.ALLOCATED if unit < self._processors - self._free else NodeState.IDLE

    def set_node_state(self, units: int, state: NodeState) -> None:
        """Refuse to change states: processors of a flat machine have no identity.

        Raises:
            MachineError: always.
        """
        raise MachineError(f"{self._name}: processors of a flat machine cannot be set to {state} one by one")

    def copy(self) -> FlatMachine:
        twin = FlatMachine(self._processors, self._name)
        twin._free, twin._running = self._free, dict(self._running)
        return twin
