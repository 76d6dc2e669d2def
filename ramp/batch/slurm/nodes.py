"""Slurm's nodes: `sinfo -N`, and which of them are for sale. sinfo(1), "NODE STATE CODES"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ramp.batch.commands import Question
from ramp.batch.system import Node

_FIELDS: Final = "%N|%T|%X|%Y|%Z|%c|%m|%G|%f|%E"
_STATE: Final = re.compile(r"([a-z_]+)([^a-z_]*)")
_USABLE: Final = frozenset({"idle", "mixed", "allocated", "reserved", "planned", "completing"})
_SILENT: Final = "*"
"""Suffix of a node that does not answer. After `SlurmdTimeout` Slurm calls the node down; that, or its drain, is
another state before the suffix.
"""

_AWAY: Final = frozenset(f"{_SILENT}@^")
"""Suffixes of nodes that do not answer, or will restart soon."""

_GPUS: Final = re.compile(r"(?:^|,)gpu(?::([^:,(]*[^:,(\d][^:,(]*))?(?::(\d+))?(?=[:,(]|$)")
"""GPUs in `sinfo`'s words: `gpu:4`, `gpu:a100:4(S:0-1)`; `gpu` and `gpu:a100` are one."""

_NOT_SEEN: Final = "unknown"
"""State of a node that has not answered a controller since the controller's start."""


@dataclass(frozen=True, slots=True)
class NodeList:
    """The nodes of a partition, and the hardware threads (Slurm's CPUs) of each core."""

    nodes: tuple[Node, ...]
    threads: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Which nodes of a partition are for sale.

    Attributes:
        names: their names; empty for all.
        features: features that each must have.
        gpus: whether nodes with GPUs are among them.
    """

    names: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    gpus: bool = True

    def takes(self, name: str, features: str, resources: str) -> bool:
        """Whether a node is for sale, by its name, and its features and generic resources in `sinfo`'s words."""
        named = not self.names or name in self.names
        return named and self.features <= set(features.split(",")) and (self.gpus or not _GPUS.search(resources))


ALL: Final = Choice()


def nodes_question(partition: str, choice: Choice = ALL) -> Question[NodeList]:
    """Ask for the nodes of a partition that are for sale, a line each."""
    argv = ("sinfo", "-N", "-h", "-p", partition, "-o", _FIELDS)
    return Question(argv, lambda text: parse_nodes(text, choice))


def parse_nodes(text: str, choice: Choice = ALL) -> NodeList:
    """Read the lines of `nodes_question`.

    Raises:
        ValueError: if a line is invalid, a node is repeated, or cores have different numbers of threads.
    """
    nodes: list[Node] = []
    threads: set[int] = set()
    for line in text.splitlines():
        words = line.strip().split("|", 9)
        if len(words) != 10:
            raise ValueError(f"{line[:120]!r} has {len(words)} of 10 fields")
        name, state, sockets, cores, per_core, cpus, memory, resources, features, reason = words
        if not choice.takes(name, features, resources):
            continue
        match = _STATE.match(state)
        if match is None:
            raise ValueError(f"invalid node state: {state[:40]!r}")
        threads.add(int(per_core))
        usable = match[1] in _USABLE and not _AWAY & set(match[2])
        waited_for = match[1] == _NOT_SEEN or (match[1] in _USABLE and _SILENT in match[2])
        count = min(int(sockets) * int(cores), int(cpus) // int(per_core))
        why = "" if reason == "none" else reason
        gpus = tuple((model, int(n or 1)) for model, n in _GPUS.findall(resources))
        nodes.append(Node(name, count, usable, state, why, int(memory), waited_for, gpus))
    if len({node.name for node in nodes}) < len(nodes):
        raise ValueError("a node is listed twice")
    if len(threads) > 1:
        raise ValueError(f"cores have different numbers of threads: {sorted(threads)}")
    return NodeList(tuple(nodes), threads.pop() if threads else 1)
