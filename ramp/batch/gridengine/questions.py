"""Questions to Grid Engine: the command line of each, and its parser.

Argument lists follow the manual pages of Grid Engine 8.1. Times are UTC, because commands run with `TZ=UTC`. Orders
(make, change, delete) are not questions: the caller reads their output, because exit codes tell too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from ramp.batch.commands import Question, Runner, ask
from ramp.batch.gridengine.answers import (
    read_queues,
    read_reservation_of_jobs,
    read_reservations,
    read_settings,
    read_usersets,
)
from ramp.batch.gridengine.records import AdvanceReservation
from ramp.model.instant import Instant, to_datetime

ANSWER_S: Final = 4.0
"""Time limit of a question; with qmaster well each takes a tenth of a second, and a guest has 5 s for all quotes."""

ORDER_S: Final = 8.0
"""Time limit of an order; a guest has 30 s for a hold, which is two or three of them."""


_ABSENT: Final = ("does not exist", "is not a parallel environment", "matches the phrase", "list defined")

Answer = TypeVar("Answer")


def ask_of_some(question: Question[Answer], run: Runner) -> Answer:
    """Ask about things that may not exist: qconf then prints the others and ends with exit code 1, as after a failure.

    Raises:
        BatchSystemError: see `ramp.batch.commands.ask`; also if it failed for another reason.
    """
    done = run(question.argv, question.stdin, question.time_limit_s)
    absent = done.code == 1 and any(words in done.stdout + done.stderr for words in _ABSENT)
    return ask(question, lambda *_: replace(done, code=0) if absent else done)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


QUEUES: Final = Question(("qstat", "-f", "-r", "-xml", "-u", "*"), read_queues, time_limit_s=ANSWER_S)
"""All queue instances and jobs, with the resources that these requested."""

RESERVATIONS: Final = Question(("qrstat", "-xml", "-u", "*"), read_reservations, time_limit_s=ANSWER_S)
"""All advance reservations, without their slots and users."""

USERSET_NAMES: Final = Question(("qconf", "-sul"), _words, time_limit_s=ANSWER_S)
MANAGERS: Final = Question(("qconf", "-sm"), _words, time_limit_s=ANSWER_S)
OPERATORS: Final = Question(("qconf", "-so"), _words, time_limit_s=ANSWER_S)
SCHEDULER: Final = Question(("qconf", "-ssconf"), read_settings, time_limit_s=ANSWER_S)
"""The scheduler's configuration, sched_conf(5)."""


def full_reservations(numbers: Sequence[int]) -> Question[tuple[AdvanceReservation, ...]]:
    """Ask for some advance reservations in full; those that are gone are left out."""
    argv = ("qrstat", "-ar", ",".join(map(str, numbers)), "-xml")
    return Question(argv, read_reservations, time_limit_s=ANSWER_S)


def reservations_of_jobs(jobs: Sequence[int]) -> Question[dict[int, int]]:
    """Ask for the number of the advance reservation that each job names."""
    argv = ("qstat", "-j", ",".join(map(str, jobs)), "-xml")
    return Question(argv, read_reservation_of_jobs, time_limit_s=ANSWER_S)


def usersets(names: Sequence[str]) -> Question[dict[str, tuple[str, ...]]]:
    """Ask for the members of usersets; unknown usersets are left out."""
    return Question(("qconf", "-su", ",".join(names)), read_usersets, time_limit_s=ANSWER_S)


def settings(kind: str, name: str) -> Question[dict[str, str]]:
    """Ask for a parallel environment (`-sp`, sge_pe(5)) or cluster queue (`-sq`, queue_conf(5)); empty without it."""
    return Question(("qconf", kind, name), read_settings, time_limit_s=ANSWER_S)


def reserving(
    environment: str, slots: int, instances: Sequence[str], start: Instant | None, end: Instant
) -> tuple[str, ...]:
    """Return the arguments of `qrsub` that verifying and making have in common.

    Args:
        environment: parallel environment.
        slots: slots in all.
        instances: queue instances that provide them.
        start: None for at once.
        end: end of the reservation.
    """
    begin = () if start is None else ("-a", moment(start))
    return ("qrsub", *begin, "-e", moment(end), "-pe", environment, str(slots), "-q", ",".join(instances))


def moment(instant: Instant) -> str:
    """Return a time as Grid Engine's commands take it."""
    return f"{to_datetime(instant):%Y%m%d%H%M.%S}"
