"""What a Slurm partition allows a job: `scontrol show partition`, and the limits of its QOS.

scontrol(1), slurm.conf(5) ("PARTITION CONFIGURATION"), sacctmgr(1). Who may submit (`AllowGroups`, `AllowAccounts`,
`AllowQos`) and limits of users and accounts are not looked at: they depend on the buyer's account.
"""

from __future__ import annotations

import re
from typing import Final

from ramp.batch.commands import Question
from ramp.batch.slurm.times import duration_of
from ramp.batch.system import Limits
from ramp.model.instant import Duration

_UP: Final = "UP"
_NO_LIMIT: Final = frozenset({"", "UNLIMITED", "INFINITE", "NONE", "N/A"})
_FIELD: Final = re.compile(r"(\w+)=(\S*)")
_KINDS: Final = ("cpu", "node")
_TRES: Final = re.compile(r"\b(cpu|node)=(\d+)")


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
