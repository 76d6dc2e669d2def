"""A live Slurm cluster as a `ramp.batch.system.BatchSystem`.

`docs/slurm.md` lists Slurm's peculiarities. A snapshot takes five to seven commands. It has all that decides whether a
job in a reservation will start; quotes, the care of sold slots and `ramp doctor` all use it. Slurm fully checks
reservations of one form only, see `ramp.batch.slurm.reservations`. An answer of the kind "cannot say" never counts as a
no.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ramp.batch.commands import Question, Runner, ask
from ramp.batch.slurm import queue, reservations
from ramp.batch.slurm.partition import ALL, Choice, NodeList, both, listed_nodes, partition_question, qos_question
from ramp.batch.system import (
    NO_LIMITS,
    BatchSystem,
    Limits,
    Parts,
    SystemReservation,
    SystemSnapshot,
    WantedReservation,
)
from ramp.errors import BatchSystemError, CommandFailed, SystemRefused, command_error
from ramp.model.instant import Instant
from ramp.text import one_line

NAME: Final = "slurm"

REMOVAL_LIMIT_S: Final = 20.0
"""Seconds to wait until the cancelled jobs of a reservation have ended; removal is retried after that."""

AS_OF: Final = "Configuration data as of"
"""Begin of the line with the controller's time."""

PAUSE_S: Final = 0.2
PING: Final = ("scontrol", "ping")
_BUSY: Final = (
    "Requested nodes are busy",
    "overlaps with another reservation",
    "Invalid node name",
    "Requested node configuration is not available",
)
_NEVER: Final = ("Invalid user id", "Invalid group id", "Access denied", "Invalid time", "Invalid partition")
_GONE: Final = ("Requested reservation is invalid", "not found")
_IN_USE: Final = "is in use"
_OF_CORES: Final = "Core-based reservation can not be updated"
_TAKEN_NAME: Final = "Duplicate reservation name"

_Guarded = tuple[Parts, Instant, Instant]
"""Cores of a guard, its start and its end."""

_log: Final = logging.getLogger(__name__)


class SlurmSystem(BatchSystem):
    """One partition of one cluster.

    Args:
        run: runs commands, with `SLURM_CONF` set for the cluster; also an attribute.
        partition: the partition for sale.
        market_user: the local account that may run in reservations before they are handed over.
        wrapper: command that makes, hands over and deletes reservations and cancels their jobs, with the privilege for
            it (`sudo -n /usr/local/sbin/ramp-slurm-reservations`); empty if the agent may itself.
        choice: nodes of the partition that are for sale.
        wait: waits the given seconds.
    """

    name = NAME
    chooses_parts = False
    begin_lag = 0

    def __init__(
        self,
        run: Runner,
        partition: str,
        market_user: str,
        wrapper: tuple[str, ...] = (),
        choice: Choice = ALL,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.market_user = market_user
        self.partition = partition
        self.run = run
        self._wrapper = wrapper
        self._wait = wait
        self._cores: Mapping[str, int] | None = None
        self._choice = choice
        self._allots_memory: bool | None = None
        self._lists: bool | None = None
        """Whether this version reads lists of cores; None before the first one."""
        self._of_qos: tuple[str, Limits] = ("", NO_LIMITS)

    # -- questions -----------------------------------------------------------------------------------------------

    def snapshot(self, now: Instant) -> SystemSnapshot:
        self._check_controller()
        listed = self.nodes()
        cores = {node.name: node.cores for node in listed.nodes}
        limits = self._limits(listed.threads)
        jobs = ask(queue.QUEUE, self.run)
        unclear = queue.cores_unclear(jobs, cores, listed.threads)
        details = ask(queue.DETAILS, self.run) if unclear else {}
        found = ask(reservations.list_question(cores), self.run)
        memories = ask(queue.MEMORY, self.run) if self._memory_counts() else {}
        running = queue.running_jobs(jobs, listed.nodes, details, listed.threads, memories)
        waiting = queue.waiting_jobs(jobs, self.partition, listed.threads)
        return SystemSnapshot(now, listed.nodes, running, waiting, found, limits)

    def _limits(self, threads: int) -> Limits:
        limits, qos = ask(partition_question(self.partition, threads), self.run)
        if qos != self._of_qos[0]:
            try:
                self._of_qos = qos, ask(qos_question(qos, threads), self.run) if qos else NO_LIMITS
            except BatchSystemError as error:
                _log.warning("limits of QOS %s are not known: %s", qos, error)
                self._of_qos = qos, NO_LIMITS
        return both(limits, self._of_qos[1])

    def _memory_counts(self) -> bool:
        if self._allots_memory is None:
            parameters = ask(settings_question(), self.run).get("SelectTypeParameters", "")
            self._allots_memory = "MEMORY" in parameters.upper()
        return self._allots_memory

    def nodes(self) -> NodeList:
        """Read the nodes of the partition.

        Raises:
            BatchSystemError: they cannot be read, or the list is empty, as it may be without the controller.
        """
        listed = listed_nodes(self.partition, self._choice, self.run)
        self._cores = {node.name: node.cores for node in listed.nodes}
        return listed

    def _check_controller(self) -> None:
        """Ask whether the controller answers: without it this takes a tenth of a second, other questions 9 s.

        Raises:
            BatchSystemError: it does not answer.
        """
        done = self.run(PING, "", None)
        if " is DOWN" in done.stdout and " is UP" not in done.stdout:  # a backup controller may be up
            raise CommandFailed(done.argv, done.code, one_line(done.stdout.splitlines()[0]))

    def reservations(self) -> tuple[SystemReservation, ...]:
        self._check_controller()
        if self._cores is None:
            self.nodes()
        assert self._cores is not None
        return ask(reservations.list_question(self._cores), self.run)

    def running_in(self, reservation: SystemReservation) -> tuple[str, ...]:
        return ask(reservations.jobs_question(reservation.name), self.run)

    # -- orders --------------------------------------------------------------------------------------------------

    def make(self, wanted: WantedReservation) -> None:
        """See `BatchSystem.make`: of whole nodes if possible, so that it can be changed later."""
        user = wanted.user or self.market_user
        if not (self._are_whole(wanted.parts) and self._made_whole(wanted, user)):
            self._order(reservations.make_question(wanted, user, self.partition))

    def _made_whole(self, wanted: WantedReservation, user: str) -> bool:
        """Make a reservation of whole nodes; false if that is impossible though the cores are free."""
        with self._guarded(wanted.name, [(wanted.parts, wanted.start, wanted.end)]):
            try:
                self._order(reservations.whole_question(wanted, user, self.partition))
            except (SystemRefused, CommandFailed) as error:
                _log.warning("%s is made of cores, and keeps its size: %s", wanted.name, error)
                return False
        return True

    def change(self, reservation: SystemReservation, wanted: WantedReservation) -> bool:
        """Change nodes of reservations of whole nodes, the end of any; see `ramp.batch.system.BatchSystem`."""
        had = dict(reservation.parts)
        added = tuple(part for part in wanted.parts if part[0] not in had)
        kept = tuple(part for part in wanted.parts if part[0] in had)
        whole = self._are_whole(wanted.parts)
        if reservation.has_just(wanted.parts):  # also in its first seconds, when Slurm tells no node's cores yet
            order = reservations.end_question(wanted.name, wanted.end)
        elif reservation.cores_in_all is None and whole and self._are_whole(reservation.parts):
            order = reservations.nodes_question(wanted.name, wanted.end, wanted.parts)
        else:
            return False
        guarded: list[_Guarded] = [(added, wanted.start, wanted.end)] if added else []
        if reservation.end is not None and reservation.end < wanted.end:
            if not whole and self._has_neighbours(reservation, wanted.end):
                return False  # Slurm would not see that they have the very cores
            guarded.append((kept, reservation.end, wanted.end))
        with self._guarded(wanted.name, guarded):
            try:
                self._order(order)
            except CommandFailed as failed:
                if _OF_CORES in failed.said:
                    return False
                raise
        return True

    def launched_in(self, name: str) -> frozenset[str]:
        """Recognise launched jobs by their names; see `ramp.batch.system.BatchSystem`."""
        return ask(reservations.launched_question(name), self.run)

    def narrow_job(self, job_id: str, nodes: int) -> None:
        """See `ramp.batch.system.BatchSystem.narrow_job`; Slurm does it only once per job."""
        try:
            self._order(reservations.narrow_question(job_id, nodes))
        except CommandFailed as failed:
            raise SystemRefused(f"job {job_id} cannot be narrowed to {nodes} nodes: {failed.said}") from failed

    def _are_whole(self, parts: Parts) -> bool:
        cores = self._cores or {}  # known since reservations were read last; without them nothing is taken for whole
        return all(count == cores.get(name) for name, count in parts)

    def _has_neighbours(self, reservation: SystemReservation, end: Instant) -> bool:
        """Whether others use cores of a reservation's nodes between its end and a later one."""
        assert reservation.end is not None
        nodes = {name for name, _ in reservation.parts}
        return any(
            each.name != reservation.name
            and each.start < end
            and (each.end is None or each.end > reservation.end)
            and any(name in nodes for name, _ in each.parts)
            for each in self.reservations()
        )

    @contextlib.contextmanager
    def _guarded(self, name: str, guarded: Sequence[_Guarded]) -> Iterator[None]:
        """Guard cores while a reservation gets them in a form that Slurm does not check.

        Recent versions read one number where others read a list of cores, so there each node has a guard of its own.
        Sweeps remove leftover guards.

        Raises:
            SystemRefused: the cores are not free.
        """
        made: list[str] = []
        try:
            left = list(guarded)
            while left:
                parts, start, end = left.pop(0)
                if len(parts) > 1 and self._lists is False:
                    left[:0] = [((part,), start, end) for part in parts]
                    continue
                guard = reservations.guard_name(name, len(made) + 1)
                made.append(guard)
                self._guard(WantedReservation(guard, start, end, parts))
                if len(parts) > 1 and self._lists is None:
                    self._lists = any(each.name == guard and each.has_just(parts) for each in self.reservations())
                    if not self._lists:
                        self._order(reservations.delete_question(made.pop()))
                        left.insert(0, (parts, start, end))
            yield
        finally:
            for guard in made:
                try:
                    self._order(reservations.delete_question(guard))
                except BatchSystemError as error:
                    if not isinstance(error, SystemRefused):
                        _log.warning("%s is not removed yet: %s", guard, error)

    def _guard(self, wanted: WantedReservation) -> None:
        order = reservations.make_question(wanted, self.market_user, self.partition)
        try:
            self._order(order)
        except CommandFailed as failed:
            if _TAKEN_NAME not in failed.said:
                raise
            self._order(reservations.delete_question(wanted.name))  # of an earlier time, as after a crash
            self._order(order)

    def hand_over(self, reservation: SystemReservation, user: str) -> None:
        self._order(reservations.users_question(reservation.name, user))

    def remove(self, reservation: SystemReservation) -> None:
        """See `BatchSystem.remove`; jobs are cancelled first, because Slurm deletes no reservation with jobs."""
        patience = REMOVAL_LIMIT_S
        while True:
            jobs = self.running_in(reservation)
            if jobs:
                self._privileged("scancel", ("--quiet", *jobs))
            try:
                self._order(reservations.delete_question(reservation.name))
            except SystemRefused as refused:
                if any(words in refused.reason for words in _GONE):
                    return
                raise
            except BatchSystemError as error:
                if _IN_USE not in error.reason or patience <= 0:
                    raise
                self._wait(PAUSE_S)
                patience -= PAUSE_S
                continue
            return

    def _order(self, arguments: tuple[str, ...]) -> None:
        """Run scontrol to change something.

        Raises:
            SystemRefused: a definite no.
            BatchSystemError: any other failure; the change may have happened.
        """
        try:
            self._privileged(reservations.MAKER, arguments)
        except CommandFailed as failed:
            if any(words in failed.said for words in _BUSY):
                raise SystemRefused(failed.reason, busy=True) from failed
            if any(words in failed.said for words in (*_NEVER, *_GONE)):
                raise SystemRefused(failed.reason) from failed
            raise

    def _privileged(self, command: str, arguments: tuple[str, ...]) -> None:
        ask(Question((*self._wrapper, command, *arguments), str), self.run)


def settings_question(wrapper: Sequence[str] = ()) -> Question[Mapping[str, str]]:
    """Ask for the cluster's settings by their names, and for its clock; through a wrapper if one is given."""
    return Question((*wrapper, "scontrol", "show", "config"), _settings)


def _settings(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found[name.strip()] = value.strip()
        elif line.startswith(AS_OF):
            found[AS_OF] = line.removeprefix(AS_OF).strip()
    if not found:
        raise command_error(("scontrol", "show", "config"), "unreadable output: no settings")
    return found
