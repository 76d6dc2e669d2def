"""A machine of numbered nodes whose jobs exclude one another from nodes only, such as a fat tree or a dragonfly.

A kind of machine derives from it and says which free nodes a job gets.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from ramp.errors import MachineError, told
from simulation.machines.interface import JobRequest, NodeState, Placement, Reallocation, Traits


class NodeMachine(ABC):
    """Nodes 0 to `nodes` - 1; a set of nodes is an integer whose bit i stands for node i.

    Args:
        name: shown in tables.
        nodes: number of nodes.
    """

    traits: ClassVar[Traits] = Traits("node", has_places=False)

    def __init__(self, name: str, nodes: int) -> None:
        if nodes < 1:
            raise MachineError(f"{name}: a machine must have at least 1 node, got {nodes}")
        self._name = name
        self._all = (1 << nodes) - 1
        self._taken = 0
        self._out: dict[NodeState, int] = {NodeState.DRAINED: 0, NodeState.DOWN: 0}
        self._running: dict[int, Placement] = {}

    @abstractmethod
    def choose(self, size: int, free: int) -> int | None:
        """Return the nodes for a job; the same arguments always give the same answer.

        Args:
            size: number of nodes.
            free: bit set of the free nodes; at least `size`.

        Returns:
            A bit set of `size` free nodes, or None if the job does not fit now.
        """

    @property
    def name(self) -> str:
        return self._name

    @property
    def extents(self) -> tuple[int, ...]:
        """One dimension of all nodes."""
        return (self._all.bit_length(),)

    @property
    def units_out(self) -> int:
        """Bit set of the drained and down nodes."""
        return self._out[NodeState.DRAINED] | self._out[NodeState.DOWN]

    @property
    def capacity(self) -> int:
        """Nodes in service."""
        return (self._all & ~self.units_out).bit_count()

    @property
    def free(self) -> int:
        """Idle nodes."""
        return self._free.bit_count()

    @property
    def running(self) -> Mapping[int, Placement]:
        return self._running

    def place(self, request: JobRequest) -> Placement | None:
        nodes = self._chosen(request.size, self._free)
        return None if nodes is None else Placement(request.job_id, request.size, nodes)

    def place_first(self, requests: Sequence[JobRequest]) -> tuple[int, Placement] | None:
        for index, request in enumerate(requests):
            if (placement := self.place(request)) is not None:
                return index, placement
        return None

    def allocate(self, placement: Placement) -> None:
        """Take the placement's nodes.

        Raises:
            MachineError: a node is taken or out of service, or the job is already running.
        """
        if placement.job_id in self._running:
            raise MachineError(f"{self._name}: job {placement.job_id} is already running")
        if placement.nodes & ~self._free:
            raise MachineError(f"{self._name}: job {placement.job_id} needs nodes that are taken or out of service")
        self._running[placement.job_id] = placement
        self._taken |= placement.nodes

    def release(self, job_id: int) -> None:
        placement = self._running.pop(job_id, None)
        if placement is None:
            raise MachineError(f"{self._name}: job {job_id} is not running")
        self._taken &= ~placement.nodes

    def reallocate(self, request: JobRequest) -> Reallocation | None:
        """Change the size of a running job; it keeps as many nodes as possible.

        Raises:
            MachineError: the job is not running.
        """
        before = self._running.get(request.job_id)
        if before is None:
            raise MachineError(f"{self._name}: job {request.job_id} is not running")
        more = request.size - before.size
        nodes = self._chosen(more, self._free) if more > 0 else self._chosen(request.size, before.nodes)
        if nodes is None:
            return None
        after = Placement(request.job_id, request.size, nodes | before.nodes if more > 0 else nodes)
        self._running[request.job_id] = after
        self._taken = self._taken & ~before.nodes | after.nodes
        return Reallocation(before, after, (before.nodes & after.nodes).bit_count())

    def fits_ever(self, request: JobRequest) -> bool:
        return self._chosen(request.size, self._all & ~self.units_out) is not None

    def describe(self, placement: Placement) -> dict[str, Any]:
        """Return the trace fields: the numbers of the nodes."""
        numbers = [unit for unit in range(self._all.bit_length()) if placement.nodes >> unit & 1]
        nodes = ",".join(map(str, numbers))
        return {"shape": [placement.size], "origin": [], "connection": [], "nodes": nodes, "links": {}}

    def node_state(self, unit: int) -> NodeState:
        """Return the state of a node.

        Raises:
            MachineError: there is no such node.
        """
        if not 0 <= unit < self._all.bit_length():
            raise MachineError(f"{self._name} has no node {unit}; it has 0 to {self._all.bit_length() - 1}")
        states = {**self._out, NodeState.ALLOCATED: self._taken}
        return next((state for state, units in states.items() if units >> unit & 1), NodeState.IDLE)

    def set_node_state(self, units: int, state: NodeState) -> None:
        self._out = {each: nodes & ~units | (units if each is state else 0) for each, nodes in self._out.items()}

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._running = dict(self._running)
        return twin

    @property
    def _free(self) -> int:
        return self._all & ~self._taken & ~self.units_out

    def _chosen(self, size: int, free: int) -> int | None:
        """Ask for nodes and check the answer.

        Raises:
            MachineError: the answer is invalid, or `choose` failed; with its file and line.
        """
        if size > free.bit_count():
            return None
        try:
            nodes = self.choose(size, free)
        except Exception as error:  # whatever the machine's author raises
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise MachineError(
                f"{last.filename}:{last.lineno}: choose failed on {self._name}: {told(error)}"
            ) from error
        if nodes is None or (type(nodes) is int and nodes & ~free == 0 and nodes.bit_count() == size):
            return nodes
        got = type(nodes).__name__
        if type(nodes) is int:
            got = f"{nodes.bit_count()}, {(nodes & ~free).bit_count()} of them not free"
        code = type(self).choose.__code__
        place = f"{code.co_filename}:{code.co_firstlineno}"
        raise MachineError(f"{place}: wrong answer of choose on {self._name}: got {got}, expected {size} free nodes")
