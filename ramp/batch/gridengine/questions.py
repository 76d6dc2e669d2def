"""Questions to Grid Engine: the command line of each, and its parser.

Argument lists follow the manual pages of Grid Engine 8.1. Times are UTC, because commands run with `TZ=UTC`. Orders
(make, change, delete) are not questions: the caller reads their output, because exit codes tell too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from ramp.batch.commands import Question, Runner, ask
from ramp.batch.gridengine.answers import read_queues, read_reservation_of_jobs, read_reservations
from ramp.batch.gridengine.records import AdvanceReservation, QueueReport
from ramp.batch.gridengine.texts import read_settings, read_usersets
from ramp.batch.system import Parts
from ramp.model.instant import Instant, to_datetime

ANSWER_S: Final = 4.0
"""Time limit of a question; with qmaster well each takes a tenth of a second, and a guest has 5 s for all quotes."""

ORDER_S: Final = 8.0
"""Time limit of an order; a guest has 30 s for a hold, which is two or three of them."""


_ABSENT: Final = ("does not exist", "is not a parallel environment", "matches the phrase", "list defined")

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Programs:
    """Names of the commands on this computer.

    Attributes:
        qstat: prints queues and jobs.
        qrstat: prints advance reservations.
        qrsub: makes a reservation.
        qrdel: deletes a reservation.
        qconf: shows and changes the configuration.
    """

    qstat: tuple[str, ...] = ("qstat",)
    qrstat: tuple[str, ...] = ("qrstat",)
    qrsub: tuple[str, ...] = ("qrsub",)
    qrdel: tuple[str, ...] = ("qrdel",)
    qconf: tuple[str, ...] = ("qconf",)


def programs_in(folder: str) -> Programs:
    """Return the commands in a folder; an empty one stands for those on the PATH."""
    names = ("qstat", "qrstat", "qrsub", "qrdel", "qconf")
    return Programs(*((str(Path(folder) / name) if folder else name,) for name in names))


def ask_of_some(question: Question[Answer], run: Runner) -> Answer:
    """Ask about things that may not exist: qconf then prints the others and ends with exit code 1, as after a failure.

    Raises:
        BatchSystemError: see `ramp.batch.commands.ask`; also if it failed for another reason.
    """
    done = run(question.argv, question.stdin, question.time_limit_s)
    absent = done.code == 1 and any(words in done.stdout + done.stderr for words in _ABSENT)
    return ask(question, lambda *_: replace(done, code=0) if absent else done)


def queues(programs: Programs) -> Question[QueueReport]:
    """Ask for all queue instances and jobs, with the resources that these requested."""
    return Question((*programs.qstat, "-f", "-r", "-xml", "-u", "*"), read_queues, time_limit_s=ANSWER_S)


def listed_reservations(programs: Programs) -> Question[tuple[AdvanceReservation, ...]]:
    """Ask for all advance reservations, without their slots and users."""
    return Question((*programs.qrstat, "-xml", "-u", "*"), read_reservations, time_limit_s=ANSWER_S)


def full_reservations(programs: Programs, numbers: Sequence[int]) -> Question[tuple[AdvanceReservation, ...]]:
    """Ask for some advance reservations in full; those that are gone are left out."""
    argv = (*programs.qrstat, "-ar", ",".join(map(str, numbers)), "-xml")
    return Question(argv, read_reservations, time_limit_s=ANSWER_S)


def reservations_of_jobs(programs: Programs, jobs: Sequence[int]) -> Question[dict[int, int]]:
    """Ask for the number of the advance reservation that each job names."""
    argv = (*programs.qstat, "-j", ",".join(map(str, jobs)), "-xml")
    return Question(argv, read_reservation_of_jobs, time_limit_s=ANSWER_S)


def usersets(programs: Programs, names: Sequence[str]) -> Question[dict[str, tuple[str, ...]]]:
    """Ask for the members of usersets; unknown usersets are left out."""
    return Question((*programs.qconf, "-su", ",".join(names)), read_usersets, time_limit_s=ANSWER_S)


def userset_names(programs: Programs) -> Question[tuple[str, ...]]:
    """Ask for the names of all usersets."""
    return Question((*programs.qconf, "-sul"), lambda text: tuple(text.split()), time_limit_s=ANSWER_S)


def scheduler_settings(programs: Programs) -> Question[dict[str, str]]:
    """Ask for the scheduler's configuration, sched_conf(5)."""
    return Question((*programs.qconf, "-ssconf"), read_settings, time_limit_s=ANSWER_S)


def environment_settings(programs: Programs, name: str) -> Question[dict[str, str]]:
    """Ask for a parallel environment, sge_pe(5); the answer is empty if it does not exist."""
    return Question((*programs.qconf, "-sp", name), read_settings, time_limit_s=ANSWER_S)


def queue_settings(programs: Programs, name: str) -> Question[dict[str, str]]:
    """Ask for a cluster queue, queue_conf(5); the answer is empty if it does not exist."""
    return Question((*programs.qconf, "-sq", name), read_settings, time_limit_s=ANSWER_S)


def administrators(programs: Programs) -> tuple[Question[tuple[str, ...]], Question[tuple[str, ...]]]:
    """Ask for the managers and operators."""
    manager, operator = (
        Question((*programs.qconf, verb), lambda text: tuple(text.split()), time_limit_s=ANSWER_S)
        for verb in ("-sm", "-so")
    )
    return manager, operator


def reserving(
    programs: Programs, environment: str, slots: int, instances: Sequence[str], start: Instant | None, end: Instant
) -> tuple[str, ...]:
    """Return the arguments of `qrsub` that verifying and making have in common.

    Args:
        programs: names of the commands.
        environment: parallel environment.
        slots: slots in all.
        instances: queue instances that provide them.
        start: None for at once.
        end: end of the reservation.
    """
    begin = () if start is None else ("-a", _moment(start))
    return (*programs.qrsub, *begin, "-e", _moment(end), "-pe", environment, str(slots), "-q", ",".join(instances))


def userset_text(name: str, users: Sequence[str]) -> str:
    """Write a userset as in access_list(5)."""
    return f"name    {name}\ntype    ACL\nfshare  0\noticket 0\nentries {','.join(users) or 'NONE'}\n"


def cores_of(parts: Parts) -> int:
    """Return the number of slots in all."""
    return sum(count for _, count in parts)


def _moment(instant: Instant) -> str:
    return f"{to_datetime(instant):%Y%m%d%H%M.%S}"
