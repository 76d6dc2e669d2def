"""A Slurm partition: how it is found, its nodes (`sinfo -N`), which of them are for sale, and what it allows a job.

sinfo(1) ("NODE STATE CODES"), scontrol(1), slurm.conf(5) ("PARTITION CONFIGURATION"), sacctmgr(1). Who may submit
(`AllowGroups`, `AllowAccounts`, `AllowQos`) and limits of users and accounts are not looked at: they depend on the
buyer's account.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ramp.batch.commands import Question, Runner, ask
from ramp.batch.slurm.times import duration_of
from ramp.batch.system import Limits, Node
from ramp.errors import BatchSystemError, ConfigurationError
from ramp.model.instant import Duration

CONF_VARIABLE: Final = "SLURM_CONF"
USUAL_CONFS: Final = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf")
"""Where Slurm's commands look by default: the usual place, "configless" clusters, older Debian."""

ARCHITECTURES: Final[Mapping[str, str]] = {
    "x86_64": "x86_64",
    "aarch64": "arm",
    "armv7l": "arm",
    "ppc64le": "powerpc",
    "ppc64": "powerpc",
    "ia64": "ia64",
    "i686": "x86",
}
"""The kernel's names of architectures, and JSDL 1.0's (section 5.2.1)."""

_ARCHITECTURE: Final = re.compile(r"\bArch=(\S+)")
_DEFAULT: Final = "*"
_UP: Final = "UP"
_NO_LIMIT: Final = frozenset({"", "UNLIMITED", "INFINITE", "NONE", "N/A"})
_FIELD: Final = re.compile(r"(\w+)=(\S*)")
_KINDS: Final = ("cpu", "node")
_TRES: Final = re.compile(r"\b(cpu|node)=(\d+)")
_NODE_FIELDS: Final = "%N|%T|%X|%Y|%Z|%c|%m|%G|%f|%E"
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


def listed_nodes(partition: str, choice: Choice, run: Runner) -> NodeList:
    """Return the nodes of a partition that are for sale.

    Raises:
        BatchSystemError: they cannot be read, or the list is empty, as it may be without the controller.
    """
    argv = ("sinfo", "-N", "-h", "-p", partition, "-o", _NODE_FIELDS)
    listed = ask(Question(argv, lambda text: parse_nodes(text, choice)), run)
    if not listed.nodes:
        chosen = "" if choice == ALL else " for sale; see the options nodes, features and gpus"
        raise BatchSystemError(f"sinfo shows no nodes of partition {partition!r}{chosen}")
    return listed


def parse_nodes(text: str, choice: Choice = ALL) -> NodeList:
    """Read the lines of `listed_nodes`.

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


def partition_question(name: str, threads: int) -> Question[tuple[Limits, str]]:
    """Ask for a partition's limits and its QOS, empty without one; a core has `threads` CPUs."""
    return Question(("scontrol", "-o", "show", "partition", name), lambda text: parse_partition(text, threads))


def parse_partition(text: str, threads: int) -> tuple[Limits, str]:
    """Read the line of `partition_question`; `ValueError` if it is invalid."""
    fields = dict(_FIELD.findall(text))
    name, state = fields["PartitionName"], fields["State"]
    closed = "" if state == _UP else f"partition {name} is {state}"
    if not closed and fields.get("RootOnly") == "YES":
        closed = f"partition {name} takes jobs of root only"
    per_node = _number(fields.get("MaxCPUsPerNode", ""))
    limits = Limits(
        closed,
        longest=_length(fields["MaxTime"]),
        nodes=_number(fields.get("MaxNodes", "")),
        cores_per_node=None if per_node is None else per_node // threads,
    )
    qos = fields.get("QoS", "")
    return limits, "" if qos in _NO_LIMIT else qos


def qos_question(name: str, threads: int) -> Question[Limits]:
    """Ask for the limits of a QOS, which needs Slurm's accounting."""
    argv = ("sacctmgr", "-n", "-P", "show", "qos", "where", f"name={name}", "format=MaxWall,MaxTRES,GrpTRES")
    return Question(argv, lambda text: parse_qos(text, threads))


def parse_qos(text: str, threads: int) -> Limits:
    """Read the line of `qos_question`: the length of a job, and its CPUs and nodes or those of all jobs together.

    Raises:
        ValueError: if it is invalid.
    """
    wall, *tres = text.strip().split("|")
    if len(tres) != 2:
        raise ValueError(f"{text[:120]!r} has {len(tres) + 1} of 3 fields")
    counts = _TRES.findall(",".join(tres))
    cpus, nodes = (min((int(count) for each, count in counts if each == kind), default=None) for kind in _KINDS)
    return Limits(longest=_length(wall), cores=None if cpus is None else cpus // threads, nodes=nodes)


def both(one: Limits, other: Limits) -> Limits:
    """Return the limits of a job that has to keep two."""

    def least(first: int | None, second: int | None) -> int | None:
        return min((each for each in (first, second) if each is not None), default=None)

    return Limits(
        one.closed or other.closed,
        least(one.longest, other.longest),
        least(one.cores, other.cores),
        least(one.nodes, other.nodes),
        least(one.cores_per_node, other.cores_per_node),
    )


def _length(text: str) -> Duration | None:
    return None if text in _NO_LIMIT else duration_of(text)


def _number(text: str) -> int | None:
    return None if text in _NO_LIMIT else int(text)


def found_conf(given: str) -> str:
    """Return the `slurm.conf` for the commands; empty if they find it by themselves.

    Raises:
        ConfigurationError: if there is no such file.
    """
    for source, path in (("conf", given), (CONF_VARIABLE, os.environ.get(CONF_VARIABLE, ""))):
        if path:
            if not Path(path).is_file():
                raise ConfigurationError(f"{path} is not a file", key=source)
            return path
    if not any(Path(path).exists() for path in USUAL_CONFS):
        raise ConfigurationError(
            f"no {USUAL_CONFS[0]}; set {CONF_VARIABLE} in the environment or the option conf to its path"
        )
    return ""


def cluster_variables(conf: str) -> dict[str, str]:
    """Return the variables for commands of the cluster of a `slurm.conf`, by default of the agent's environment."""
    conf = conf or os.environ.get(CONF_VARIABLE, "")
    return {CONF_VARIABLE: conf} if conf else {}


def default_partition(run: Runner) -> str:
    """Return the partition for jobs that name no partition.

    Raises:
        BatchSystemError: there is no default partition, or the cluster cannot be asked.
    """
    names = ask(Question(("sinfo", "-h", "-o", "%P"), str.split), run)
    found = next((name.removesuffix(_DEFAULT) for name in names if name.endswith(_DEFAULT)), "")
    if not found:
        raise BatchSystemError(f"no default partition: expected one of {', '.join(names) or 'none'}", transient=False)
    return found


def static_terms(run: Runner, partition: str, choice: Choice = ALL) -> dict[str, Any]:
    """Return the static terms of a partition's nodes for sale, as a table `[machines.NAME]` has them.

    Raises:
        BatchSystemError: the cluster cannot be asked, or the partition has no nodes for sale.
    """
    nodes = listed_nodes(partition, choice, run).nodes
    found: dict[str, Any] = {
        "cores": sum(node.cores for node in nodes),
        "cores_per_node": max(node.cores for node in nodes),
        "operating_system": "LINUX",
    }
    memories = [node.memory_mb // node.cores for node in nodes if node.memory_mb]
    if len(memories) == len(nodes) and min(memories) > 0:
        found["ram_per_core_mb"] = min(memories)
    models = {model for node in nodes for model, _ in node.gpus}
    if all(node.gpus for node in nodes) and len(models) == 1:  # others cannot be sold: a term is one of all nodes
        found["gpus_per_node"] = min(sum(count for _, count in node.gpus) for node in nodes)
        if model := models.pop():
            found["gpu_model"] = model
    shown = ask(Question(("scontrol", "-o", "show", "node", nodes[0].name), str), run)
    architecture = ARCHITECTURES.get((_ARCHITECTURE.search(shown) or ("", ""))[1])
    return found if architecture is None else {**found, "architecture": architecture}
