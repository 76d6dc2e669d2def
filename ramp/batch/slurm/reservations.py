"""List and make Slurm's reservations. scontrol(1), "RESERVATIONS - SPECIFICATIONS FOR ...".

Reservations name nodes with a number of cores each. Slurm 22.05 checks only that form against whole nodes, cores, jobs
and unusable nodes; other forms double-book. But its nodes can never change. So a reservation of whole nodes is made in
steps: a guard in the checked form, then over it the reservation of whole nodes, which ignores cores; then the guard is
deleted. Before such a reservation grows or gets longer, a guard takes the addition.

Lists are read with expressions that name the neighbouring fields, because a reservation may have any name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from ramp.batch.commands import Question
from ramp.batch.node_lists import count_of, expand
from ramp.batch.slurm.times import instant_of, told
from ramp.batch.system import Parts, SystemReservation, WantedReservation
from ramp.launching.worker import JOB_PREFIX
from ramp.model.instant import Instant

NONE_THERE: Final = "No reservations in the system"
MAKER: Final = "scontrol"

_LINE: Final = re.compile(
    r"ReservationName=(?P<name>.*?) StartTime=(?P<start>\S+) EndTime=(?P<end>\S+) Duration=\S+ "
    r"Nodes=(?P<nodes>\S*) NodeCnt=\d+ CoreCnt=(?P<cores>\d+) (?P<rest>.*)"
)
_NODE: Final = re.compile(r"NodeName=(\S+) CoreIDs=([\d,-]+)")
_USERS: Final = re.compile(r" Users=(\S+) ")
_STATE: Final = re.compile(r" State=(\w+)")


def list_question(cores: Mapping[str, int]) -> Question[tuple[SystemReservation, ...]]:
    """Ask for all reservations; parts on nodes without an entry in `cores` are left out."""
    return Question(("scontrol", "-o", "show", "reservation"), lambda text: parse_reservations(text, cores))


def parse_reservations(text: str, cores: Mapping[str, int]) -> tuple[SystemReservation, ...]:
    """Read the lines of `list_question`; `ValueError` at an invalid line."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith(NONE_THERE):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"invalid reservation line: {line[:120]!r}")
        start = instant_of(match["start"])
        if start is None:
            raise ValueError(f"reservation {match['name'][:64]!r} has no start")
        users = _USERS.search(match["rest"])
        state = _STATE.search(match["rest"])
        names = () if users is None or users[1] == "(null)" else tuple(users[1].split(","))
        active = state is not None and state[1] == "ACTIVE"
        parts, told_all = _parts(match["nodes"], match["rest"], cores)
        whole = sum(count for _, count in parts)
        in_all = None if told_all or int(match["cores"]) >= whole else int(match["cores"])
        end = instant_of(match["end"])
        found.append(
            SystemReservation(match["name"], match["name"], start, end, parts, names, active, cores_in_all=in_all)
        )
    return tuple(found)


def _parts(nodes: str, rest: str, cores: Mapping[str, int]) -> tuple[Parts, bool]:
    """Return the cores of each of our nodes, and whether Slurm named them; otherwise all cores of each node.

    Slurm names them for reservations of cores, but during their first seconds gives only the total.
    """
    counted = {name: count_of(ids) for names, ids in _NODE.findall(rest) for name in expand(names)}
    parts = tuple((name, counted.get(name, cores[name])) for name in expand(nodes) if name in cores)
    return parts, bool(counted)


def make_question(wanted: WantedReservation, user: str, partition: str) -> tuple[str, ...]:
    """Return the arguments that make a reservation, after `scontrol` or the site's wrapper, in a fixed order."""
    names = ",".join(name for name, _ in wanted.parts)
    counts = ",".join(str(count) for _, count in wanted.parts)
    return (
        *("create", "reservation", f"ReservationName={wanted.name}", f"PartitionName={partition}"),
        *(f"StartTime={told(wanted.start)}", f"EndTime={told(wanted.end)}"),
        *(f"Nodes={names}", f"CoreCnt={counts}", f"Users={user}"),
    )


def whole_question(wanted: WantedReservation, user: str, partition: str) -> tuple[str, ...]:
    """Return the arguments that reserve whole nodes, which Slurm checks only against whole nodes and jobs."""
    made = make_question(wanted, user, partition)
    return tuple(word for word in made if not word.startswith("CoreCnt="))


def end_question(name: str, end: Instant) -> tuple[str, ...]:
    """Return the arguments that move the end of a reservation."""
    return ("update", f"ReservationName={name}", f"EndTime={told(end)}")


def nodes_question(name: str, end: Instant, parts: Parts) -> tuple[str, ...]:
    """Return the arguments that give a reservation of whole nodes others, and an end."""
    return (*end_question(name, end), f"Nodes={','.join(node for node, _ in parts)}")


def narrow_question(job_id: str, nodes: int) -> tuple[str, ...]:
    """Return the arguments that reduce a running job to its first `nodes` nodes."""
    return ("update", f"JobId={job_id}", f"NumNodes={nodes}")


def guard_name(name: str, number: int) -> str:
    """Return the name of a reservation's guard: with our prefix, and with dots, which no key's name has."""
    prefix = name[: name.rfind(".") + 1]
    return f"{prefix}guard.{number}.{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def users_question(name: str, user: str) -> tuple[str, ...]:
    """Return the arguments that hand a reservation over.

    Slurm checks the nodes anew, and refuses where a job has other cores of them. So jobs are ignored: the reservation
    keeps its cores, which were checked when it was made.
    """
    return ("update", f"ReservationName={name}", f"Users={user}", "Flags=IGNORE_JOBS")


def delete_question(name: str) -> tuple[str, ...]:
    """Return the arguments that delete a reservation."""
    return ("delete", f"ReservationName={name}")


def jobs_question(name: str) -> Question[tuple[str, ...]]:
    """Ask for the jobs that name a reservation, running or waiting."""
    return Question(("squeue", "-h", "-a", "-R", name, "-o", "%A"), _ids)


def launched_question(name: str) -> Question[frozenset[str]]:
    """Ask for the jobs in a reservation that have the names that Resource Agents give to their jobs."""
    return Question(("squeue", "-h", "-a", "-r", "-R", name, "-o", "%i|%j"), _launched)


def _launched(text: str) -> frozenset[str]:
    named = (line.partition("|") for line in text.splitlines())
    return frozenset(job_id for job_id, _, name in named if name.startswith(JOB_PREFIX))


def _ids(text: str) -> tuple[str, ...]:
    ids = tuple(dict.fromkeys(text.split()))
    wrong = [each for each in ids if not each.isascii() or not each.isdigit()]
    if wrong:
        raise ValueError(f"invalid job id: {wrong[0][:40]!r}")
    return ids
