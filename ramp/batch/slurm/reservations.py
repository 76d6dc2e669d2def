"""Slurm's reservations: how they are listed and made. scontrol(1), "RESERVATIONS - SPECIFICATIONS FOR ...".

They are made as nodes with a count of cores each, for that form alone is checked against whole nodes, cores, jobs and
nodes out of service; every other double-books (22.05). It is also the one that can never get other nodes. So what has
whole nodes is made in two steps: a guard in that form, and over it the reservation of whole nodes, which sees no cores;
then the guard goes. Where such a reservation grows or gets longer, a guard takes first what it gets.

Lists are read with expressions that name the fields around, for an administrator may call a reservation anything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from ramp.batch.commands import Question
from ramp.batch.node_lists import expand
from ramp.batch.slurm.times import instant_of, told
from ramp.batch.system import Parts, SystemReservation, WantedReservation
from ramp.launching.psij_jobs import JOB_PREFIX
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
    """All reservations.

    Args:
        cores: cores of our nodes; parts on others are left out.
    """
    return Question(("scontrol", "-o", "show", "reservation"), lambda text: parse_reservations(text, cores))


def parse_reservations(text: str, cores: Mapping[str, int]) -> tuple[SystemReservation, ...]:
    """Read the lines of `list_question`.

    Raises:
        ValueError: if a line is none.
    """
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
    """Cores of each of our nodes, and whether Slurm has told them; all of each node's where it has not.

    It tells them of reservations of cores, but for the first seconds of each only how many there are in all.
    """
    counted = {name: _core_ids(ids) for names, ids in _NODE.findall(rest) for name in expand(names)}
    parts = tuple((name, counted.get(name, cores[name])) for name in expand(nodes) if name in cores)
    return parts, bool(counted)


def _core_ids(text: str) -> int:
    """How many cores a list such as `0-3,7` has."""
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def make_question(wanted: WantedReservation, user: str, partition: str) -> tuple[str, ...]:
    """The arguments that make a reservation, behind `scontrol` or the site's wrapper: only fixed fields, in order."""
    names = ",".join(name for name, _ in wanted.parts)
    counts = ",".join(str(count) for _, count in wanted.parts)
    return (
        *("create", "reservation", f"ReservationName={wanted.name}", f"PartitionName={partition}"),
        *(f"StartTime={told(wanted.start)}", f"EndTime={told(wanted.end)}"),
        *(f"Nodes={names}", f"CoreCnt={counts}", f"Users={user}"),
    )


def whole_question(wanted: WantedReservation, user: str, partition: str) -> tuple[str, ...]:
    """The arguments that make a reservation of whole nodes, which is checked against whole nodes and jobs alone."""
    made = make_question(wanted, user, partition)
    return tuple(word for word in made if not word.startswith("CoreCnt="))


def end_question(name: str, end: Instant) -> tuple[str, ...]:
    """The arguments that give a reservation another end."""
    return ("update", f"ReservationName={name}", f"EndTime={told(end)}")


def nodes_question(name: str, end: Instant, parts: Parts) -> tuple[str, ...]:
    """The arguments that give a reservation of whole nodes others, and an end."""
    return (*end_question(name, end), f"Nodes={','.join(node for node, _ in parts)}")


def narrow_question(job_id: str, nodes: int) -> tuple[str, ...]:
    """The arguments that let a running job keep the first so many of its nodes."""
    return ("update", f"JobId={job_id}", f"NumNodes={nodes}")


def guard_name(name: str, number: int) -> str:
    """What a guard of a reservation is called: ours by its beginning, and no name that a key has, for its dots."""
    prefix = name[: name.rfind(".") + 1]
    return f"{prefix}guard.{number}.{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def users_question(name: str, user: str) -> tuple[str, ...]:
    """The arguments that hand a reservation over."""
    return ("update", f"ReservationName={name}", f"Users={user}")


def delete_question(name: str) -> tuple[str, ...]:
    """The arguments that delete a reservation."""
    return ("delete", f"ReservationName={name}")


def jobs_question(name: str) -> Question[tuple[str, ...]]:
    """The jobs that name a reservation, running or waiting."""
    return Question(("squeue", "-h", "-a", "-R", name, "-o", "%A"), _ids)


def launched_question(name: str) -> Question[frozenset[str]]:
    """The jobs in a reservation that bear the names that Resource Agents give to what they launch."""
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
