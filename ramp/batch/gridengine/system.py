"""A live Grid Engine as a `ramp.batch.system.BatchSystem`: a hold is an advance reservation with its own userset.

An advance reservation cannot be changed, but its userset can. With the market's own user in it, it is a hold; with the
buyer's account, it is the buyer's. Both carry the name in the book. Names need not be unique, and a reservation that
was ordered while qmaster hung may appear later. So reservations of one name are distinguished by number, and all but
the first are deleted when they are seen.
"""

from __future__ import annotations

import logging
import pwd
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ramp.batch.commands import Completed, Runner, ask
from ramp.batch.gridengine import questions
from ramp.batch.gridengine.questions import granted_number, verified_slots
from ramp.batch.gridengine.records import AdvanceReservation, BatchJob, QueueInstance, QueueReport
from ramp.batch.system import (
    NAME_PREFIX,
    BatchSystem,
    Node,
    RunningJob,
    SystemReservation,
    SystemSnapshot,
    WaitingJob,
    WantedReservation,
)
from ramp.errors import BatchSystemError, CommandFailed, SystemRefused
from ramp.model.instant import SECOND, Duration, Instant
from ramp.text import one_line

NAME: Final = "gridengine"
START_NOW: Final[Duration] = 5 * SECOND
"""Reservations that begin sooner are ordered without a start, because a start in the past is refused."""

BEGIN_LAG: Final[Duration] = 30 * SECOND
"""Maximum delay of a reservation that is ordered at once: the longest duration of the order."""

GONE_S: Final = 10.0
"""Seconds to wait until a deleted reservation is gone; its jobs are killed first."""

_PAUSE_S: Final = 0.2
_OUT_OF_ORDER: Final = {
    "d": "disabled",
    "u": "unreachable",
    "E": "in error",
    "s": "suspended",
    "S": "suspended by another queue",
    "D": "disabled by its calendar",
    "C": "suspended by its calendar",
    "c": "configured ambiguously",
    "o": "no longer configured",
}
"""States of a queue that starts no job; load alarms are not among them, because they pass by themselves."""

_BEGUN: Final = frozenset("rE")
_WAITING_JOBS_MAX: Final = 200
"""Maximum number of waiting jobs whose reservations are looked up."""

_NO: Final = ("no suitable queues", "cannot run in PE")
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class GridEngine(BatchSystem):
    """One live cell of Grid Engine.

    Attributes:
        run: runs its commands, with SGE_ROOT and SGE_CELL in their environment.
        queue: the cluster queue that is for sale.
        environment: the parallel environment in which reservations are made.
        market_user: the local account as which the commands run.
        default_duration: assumed length of a job without `h_rt`; None for ever.
    """

    run: Runner
    queue: str
    environment: str
    market_user: str
    default_duration: Duration | None = None
    name: str = NAME
    chooses_parts: bool = True
    begin_lag: Duration = BEGIN_LAG

    # -- reading -------------------------------------------------------------------------------------------------

    def snapshot(self, now: Instant) -> SystemSnapshot:
        report = ask(questions.QUEUES, self.run)
        found = self._single(self._listed())
        named = self._names_of_jobs(report, found)
        nodes = tuple(_node(each) for each in report.instances if each.queue == self.queue)
        running = (self._running(job, named.get(job.number, "")) for job in report.jobs if job.running)
        waiting = (self._waiting(job, named.get(job.number, "")) for job in report.jobs if not job.running)
        return SystemSnapshot(now, nodes, tuple(running), tuple(waiting), self._told(found))

    def reservations(self) -> tuple[SystemReservation, ...]:
        return self._told(self._single(self._listed()))

    def verify(self, wanted: WantedReservation) -> int:
        """Ask whether a reservation could be made (`qrsub -w v`) and return the slots found, 0 if there are too few.

        Raises:
            BatchSystemError: it did not say.
        """
        argv = (*self._reserving(wanted), "-w", "v")
        done = self.run(argv, "", questions.ANSWER_S)
        slots = verified_slots(done.stdout + done.stderr)
        if slots is None and not _is_no(done):
            raise CommandFailed(done.argv, done.code, one_line(done.stderr or done.stdout))
        return slots or 0

    def running_in(self, reservation: SystemReservation) -> tuple[str, ...]:
        jobs = [job.number for job in ask(questions.QUEUES, self.run).jobs]
        named = self._reservation_numbers(jobs)
        return tuple(str(job) for job, number in sorted(named.items()) if str(number) == reservation.reservation_id)

    # -- changing ------------------------------------------------------------------------------------------------

    def make(self, wanted: WantedReservation) -> None:
        """Make an advance reservation for a userset of its own; see `BatchSystem.make`."""
        user = wanted.user or self.market_user
        self._write_userset(wanted.name, user)
        argv = (*self._reserving(wanted), "-u", f"@{wanted.name}", "-N", wanted.name)
        done = self.run(argv, "", questions.ORDER_S)
        number = granted_number(done.stdout + done.stderr)
        if number is not None:
            _log.info("%s is advance reservation %d", wanted.name, number)
            return
        said = one_line(done.stderr or done.stdout) or "nothing"
        if _is_no(done):
            self._remove_userset(wanted.name)
            raise SystemRefused(f"qrsub says: {said}", busy=True)
        if "must be manager" in said or "denied" in said or "does not exist" in said or "not known" in said:
            self._remove_userset(wanted.name)
            raise SystemRefused(f"qrsub says: {said}")
        raise CommandFailed(done.argv, done.code, said)

    def hand_over(self, reservation: SystemReservation, user: str) -> None:
        """Put a buyer's account into the reservation's userset in place of the market's; see `BatchSystem`."""
        self._write_userset(reservation.name, user)

    def remove(self, reservation: SystemReservation) -> None:
        """Delete all advance reservations of that name, with their jobs, and the userset; see `BatchSystem.remove`."""
        for force in (False, True):
            listed = [each for each in self._listed() if each.name == reservation.name]
            for each in listed:
                if force or "d" not in each.state:
                    self._delete("qrdel", *(("-f",) if force else ()), str(each.number))
            ends = time.monotonic() + GONE_S
            while listed and time.monotonic() < ends:
                listed = [each for each in self._listed() if each.name == reservation.name]
                if listed:
                    time.sleep(_PAUSE_S)
            if not listed:
                self._remove_userset(reservation.name)
                return
        raise BatchSystemError(f"advance reservation {reservation.name} is still there after qrdel -f")

    def _delete(self, *argv: str) -> None:
        """Run a command that deletes something; what is gone is no error."""
        done = self.run(argv, "", questions.ORDER_S)
        said = done.stdout + done.stderr
        if done.code != 0 and "does not exist" not in said:
            raise CommandFailed(done.argv, done.code, one_line(said))

    # -- common --------------------------------------------------------------------------------------------------

    def _reserving(self, wanted: WantedReservation) -> tuple[str, ...]:
        start = wanted.start if wanted.start > time.time_ns() // 1000 + START_NOW else None
        instances = [name for name, _ in wanted.parts]
        slots = sum(count for _, count in wanted.parts)
        return questions.reserving(self.environment, slots, instances, start, wanted.end)

    def _write_userset(self, name: str, user: str) -> None:
        """Make or change a userset so that it has exactly one account.

        Raises:
            SystemRefused: the account does not exist, or the userset may not be changed.
        """
        try:
            pwd.getpwnam(user)
        except (KeyError, ValueError) as error:
            raise SystemRefused(f"no account {user!r:.60} on this computer") from error
        text = f"name    {name}\ntype    ACL\nfshare  0\noticket 0\nentries {user}\n"  # access_list(5)
        done = self.run(("qconf", "-Au", "/dev/stdin"), text, questions.ORDER_S)
        if "already exists" in done.stdout + done.stderr:
            done = self.run(("qconf", "-Mu", "/dev/stdin"), text, questions.ORDER_S)
        said = one_line(done.stderr or done.stdout)
        if done.code != 0 or ("added" not in said and "modified" not in said):
            if "denied" in said or "must be" in said:
                raise SystemRefused(f"qconf says: {said}; make the account {self.market_user} an operator")
            raise CommandFailed(done.argv, done.code, said)

    def _remove_userset(self, name: str) -> None:
        self._delete("qconf", "-dul", name)

    def sweep_usersets(self, prefix: str, kept: Iterable[str]) -> None:
        """Remove our usersets without a reservation, which a crash may leave.

        Raises:
            BatchSystemError: the system does not answer.
        """
        names = [name for name in questions.ask_of_some(questions.USERSET_NAMES, self.run) if name.startswith(prefix)]
        for name in sorted(set(names) - set(kept)):
            self._remove_userset(name)

    def _listed(self) -> tuple[AdvanceReservation, ...]:
        return ask(questions.RESERVATIONS, self.run)

    def _single(self, listed: Sequence[AdvanceReservation]) -> tuple[AdvanceReservation, ...]:
        """Return reservations in full; of several with one of our names keep the oldest and delete the others."""
        kept: dict[str, int] = {}
        doubles: set[int] = set()
        for each in sorted(listed, key=lambda one: one.number):
            ours = each.name.startswith(NAME_PREFIX) and each.owner == self.market_user
            if ours and kept.setdefault(each.name, each.number) != each.number:
                doubles.add(each.number)
        for number in sorted(doubles):
            _log.warning("deleting advance reservation %d: an older one of RAMP has the same name", number)
            self._delete("qrdel", str(number))
        numbers = [each.number for each in listed if each.number not in doubles]
        return ask(questions.full_reservations(numbers), self.run) if numbers else ()

    def _told(self, found: Sequence[AdvanceReservation]) -> tuple[SystemReservation, ...]:
        """Complete reservations by their users, asking for all usersets in one question."""
        wanted = sorted({user[1:] for each in found for user in each.users if user.startswith("@")})
        members = questions.ask_of_some(questions.usersets(wanted), self.run) if wanted else {}
        return tuple(
            SystemReservation(
                name=each.name or str(each.number),
                reservation_id=str(each.number),
                start=each.start,
                end=each.end,
                parts=each.slots_at,
                users=_members(each.users, members),
                active=bool(_BEGUN & set(each.state)),
            )
            for each in found
        )

    def _names_of_jobs(self, report: QueueReport, found: Sequence[AdvanceReservation]) -> dict[int, str]:
        if not found:
            return {}
        names = {each.number: each.name or str(each.number) for each in found}
        running = (
            [job.number for job in report.jobs if job.running]
            if any(_BEGUN & set(each.state) for each in found)
            else []
        )
        waiting = [job.number for job in report.jobs if not job.running][:_WAITING_JOBS_MAX]
        numbers = self._reservation_numbers([*running, *waiting])
        return {job: names[number] for job, number in numbers.items() if number in names}

    def _reservation_numbers(self, jobs: Sequence[int]) -> dict[int, int]:
        numbers: dict[int, int] = {}
        different = sorted(set(jobs))
        for first in range(0, len(different), _WAITING_JOBS_MAX):
            some = different[first : first + _WAITING_JOBS_MAX]
            named: dict[int, int] = ask(questions.reservations_of_jobs(some), self.run)
            numbers.update(named)
        return numbers

    def _running(self, job: BatchJob, reservation: str) -> RunningJob:
        assert job.started is not None
        limit = job.run_limit or self.default_duration
        end = None if limit is None else job.started + limit
        return RunningJob(_job_id(job), job.owner, job.started, end, job.slots_at, reservation)

    def _waiting(self, job: BatchJob, reservation: str) -> WaitingJob:
        return WaitingJob(
            job_id=_job_id(job),
            user=job.owner,
            submitted=job.submitted,
            cores=job.slots * job.tasks,
            time_limit=job.run_limit or self.default_duration,
            held=any(letter in job.state for letter in "hE"),
            reservation=reservation,
        )


def _node(instance: QueueInstance) -> Node:
    broken = [_OUT_OF_ORDER[letter] for letter in instance.states if letter in _OUT_OF_ORDER]
    state = " and ".join(broken) or instance.states
    reason = f"state {instance.states}" if broken else ""
    return Node(instance.name, instance.slots_total, not broken, state, reason)


def _members(users: Sequence[str], usersets: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    found: list[str] = []
    for user in users:
        found.extend(usersets.get(user[1:], ()) if user.startswith("@") else (user,))
    return tuple(found)


def _job_id(job: BatchJob) -> str:
    return f"{job.number}.{job.task}" if job.task else str(job.number)


def _is_no(done: Completed) -> bool:
    said = done.stdout + done.stderr
    return done.code != 0 and any(words in said for words in _NO)
