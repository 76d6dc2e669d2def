"""A live Slurm cluster as a `ramp.batch.system.BatchSystem`; what is peculiar to it is in its questions and here.

Read with the sheet of findings in `docs/slurm.md`: a snapshot is three or four commands; a reservation is made in one
form only; an answer of the kind "cannot say" is never taken for a no.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from ramp.batch.commands import Question, Runner, ask
from ramp.batch.slurm import nodes, queue, reservations
from ramp.batch.system import Node, Parts, SystemReservation, SystemSnapshot, WantedReservation
from ramp.errors import AnswerUnreadable, BatchSystemError, CommandFailed, SystemRefused
from ramp.model.instant import Instant

NAME: Final = "slurm"

REMOVAL_LIMIT_S: Final = 20.0
"""Seconds that the jobs of a reservation get to end after they were cancelled; it is tried again after that."""

PAUSE_S: Final = 0.2
"""Between two looks whether they have ended."""

_BUSY: Final = (
    "Requested nodes are busy",
    "overlaps with another reservation",
    "Invalid node name",
    "Requested node configuration is not available",
)
_NEVER: Final = ("Invalid user id", "Invalid group id", "Access denied", "Invalid time", "Invalid partition")
_GONE: Final = ("Requested reservation is invalid", "not found")
_IN_USE: Final = "is in use"


class SlurmSystem:
    """One partition of one cluster.

    Args:
        run: runs commands, with `SLURM_CONF` set for the cluster; also an attribute.
        partition: what is for sale.
        market_user: the local account that may run in what was not handed over.
        wrapper: command that makes, hands over and deletes reservations and cancels their jobs, with the privilege for
            it (`sudo -n /usr/local/sbin/ramp-slurm-reservations`); empty where the agent may itself.
        wait: seconds to wait.
    """

    name = NAME

    def __init__(
        self,
        run: Runner,
        partition: str,
        market_user: str,
        wrapper: tuple[str, ...] = (),
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.market_user = market_user
        self.partition = partition
        self.run = run
        self._wrapper = wrapper
        self._wait = wait
        self._cores: Mapping[str, int] | None = None
        self._json = True

    # -- what there is -------------------------------------------------------------------------------------------

    def snapshot(self, now: Instant) -> SystemSnapshot:
        """See `BatchSystem.snapshot`."""
        listed = self.nodes()
        cores = {node.name: node.cores for node in listed.nodes}
        jobs = ask(queue.queue_question(), self.run)
        allocations = self._allocations(jobs, cores, listed.threads)
        found = ask(reservations.list_question(cores), self.run)
        running = queue.running_jobs(jobs, listed.nodes, allocations, listed.threads)
        return SystemSnapshot(
            now, listed.nodes, running, queue.waiting_jobs(jobs, self.partition, listed.threads), found
        )

    def nodes(self) -> nodes.NodeList:
        """The nodes of the partition, read now.

        Raises:
            BatchSystemError: they cannot be read, or there are none: without its controller Slurm may say so.
        """
        listed = ask(nodes.nodes_question(self.partition), self.run)
        if not listed.nodes:
            raise BatchSystemError(f"sinfo shows no nodes of partition {self.partition!r}")
        self._cores = {node.name: node.cores for node in listed.nodes}
        return listed

    def _allocations(
        self, jobs: tuple[queue.QueuedJob, ...], cores: Mapping[str, int], threads: int
    ) -> Mapping[str, Parts]:
        """Cores of each node by job, where the text does not say them and this version has JSON."""
        if not self._json or not queue.cores_unclear(jobs, cores, threads):
            return {}
        try:
            return ask(queue.allocation_question(threads), self.run)
        except CommandFailed as failed:
            if "json" in failed.said.lower() or "unrecognized option" in failed.said:
                self._json = False  # a version without it
                return {}
            raise

    def reservations(self) -> tuple[SystemReservation, ...]:
        """See `BatchSystem.reservations`."""
        if self._cores is None:
            self.nodes()
        assert self._cores is not None
        return ask(reservations.list_question(self._cores), self.run)

    def running_in(self, reservation: SystemReservation) -> tuple[str, ...]:
        """See `BatchSystem.running_in`."""
        return ask(reservations.jobs_question(reservation.name), self.run)

    # -- what is done --------------------------------------------------------------------------------------------

    def make(self, wanted: WantedReservation) -> None:
        """See `BatchSystem.make`."""
        self._change(reservations.make_question(wanted, wanted.user or self.market_user, self.partition))

    def hand_over(self, reservation: SystemReservation, user: str) -> None:
        """See `BatchSystem.hand_over`."""
        self._change(reservations.users_question(reservation.name, user))

    def remove(self, reservation: SystemReservation) -> None:
        """See `BatchSystem.remove`: jobs are cancelled first, for Slurm deletes nothing that jobs name."""
        patience = REMOVAL_LIMIT_S
        while True:
            jobs = self.running_in(reservation)
            if jobs:
                self._privileged("scancel", ("--quiet", *jobs))
            try:
                self._change(reservations.delete_question(reservation.name))
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

    def _change(self, arguments: tuple[str, ...]) -> None:
        """Run scontrol to change something.

        Raises:
            SystemRefused: a sure no.
            BatchSystemError: anything else; what was to be changed may be changed all the same.
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


def check_cluster(run: Runner) -> str:
    """What is wrong with a cluster for this plug-in; empty where nothing is.

    Raises:
        BatchSystemError: it cannot be asked.
    """
    select = ask(settings_question(), run).get("SelectType", "")
    if select not in {"select/cons_tres", "select/cons_res"}:
        return f"SelectType is {select or 'not told'}; reservations of cores need select/cons_tres"
    return ""


def settings_question() -> Question[dict[str, str]]:
    """The cluster's configuration, by the names of its settings."""
    return Question(("scontrol", "show", "config"), _settings)


def _settings(text: str) -> dict[str, str]:
    """The lines `Name = value` of `scontrol show config`."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found[name.strip()] = value.strip()
    if not found:
        raise AnswerUnreadable(("scontrol", "show", "config"), "no settings")
    return found


def node_shortage(listed: nodes.NodeList, cores: int, cores_per_node: int, partition: str) -> str:
    """How nodes differ from the configuration's static terms; empty where they do not.

    Args:
        listed: the partition's nodes.
        cores: what the configuration says the machine has.
        cores_per_node: what it says a node has.
        partition: its name, for the message.
    """
    found: tuple[Node, ...] = listed.nodes
    all_cores = sum(node.cores for node in found)
    if cores != all_cores:
        return f"cores is {cores}; partition {partition} has {all_cores} cores on {len(found)} nodes"
    largest = max(node.cores for node in found)
    if cores_per_node > largest:
        return f"cores_per_node is {cores_per_node}; the largest node of partition {partition} has {largest} cores"
    return ""
