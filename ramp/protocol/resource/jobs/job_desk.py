"""The jobs on a resource's sold slots: what buyers order and ask, and what the launcher answers.

An order is taken for its buyer's seal, on a slot that is sold to its sender and not over, as the local account that the
site maps the buyer to; on a job in a queue also when that has been bought and has not started. Everything is
answered: with how the job stands as its launcher has just seen it, or with a coded refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ramp.model.acl import Message, Performative
from ramp.model.contents import (
    JobCancellation,
    JobOrder,
    JobOutput,
    JobOutputQuery,
    JobQuery,
    JobRefused,
)
from ramp.model.contents.jobs import limits_problem
from ramp.model.instant import Duration, Instant, iso
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role
from ramp.protocol.belief import sealed_lately
from ramp.protocol.effects import Effect, ReadJobFile, Send, reply
from ramp.protocol.events import JobFileRead, JobSeen
from ramp.protocol.records import JobTaken, SlotJobRecord
from ramp.protocol.resource.jobs.job import Job
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.participant import Participant
from ramp.protocol.timing import Timing, earliest
from ramp.protocol.transition_tables import ParticipantState

JOBS_A_SLOT_MAX = 100
"""Jobs on one slot at most, ended ones too: each is a folder at the site, and records in the agent's journal."""

WAITING_MAX = 20
"""Questions of one job that wait for its launcher; more are dropped, and asked again by their sender."""

READS_MAX = 100
"""Pieces of output that are being read; the oldest go first."""

AWAITED = (ParticipantState.QUEUED, ParticipantState.SETTLING)
"""States of a job in a queue that was bought, and is paid when it has started."""

JobWord = JobOrder | JobQuery | JobCancellation | JobOutputQuery


class JobDesk:
    """All jobs of one resource.

    Args:
        resource: name of the selling agent.
        terms: how it launches; None where it does not.
        timing: the protocol's limits.
    """

    def __init__(self, resource: str, terms: LaunchTerms | None, timing: Timing) -> None:
        self._resource = resource
        self._terms = terms
        self._timing = timing
        self._jobs: dict[str, Job] = {}
        self._by_offer: dict[str, list[str]] = {}
        self._waiting: dict[str, list[Message]] = {}
        self._reads: dict[str, Message] = {}
        self._calls = 0

    @property
    def deadline(self) -> Instant | None:
        """When `due` has something to tell, or None."""
        return earliest(*(job.deadline for job in self._jobs.values()))

    @property
    def has_open_jobs(self) -> bool:
        """Whether a job has not ended."""
        return any(not job.state.is_final for job in self._jobs.values())

    def account_of(self, user: str) -> str:
        """The local account of a buyer; empty where there is none, or nothing is launched."""
        return "" if self._terms is None else self._terms.account(user)

    def jobs_of(self, offer_id: str) -> Iterator[Job]:
        """The jobs on a slot."""
        return (self._jobs[each] for each in self._by_offer.get(offer_id, ()))

    # -- the journal ---------------------------------------------------------------------------------------------

    def replay(self, record: SlotJobRecord, participant: Participant) -> None:
        """Take one record of the journal; its slot is known by then."""
        if isinstance(record, JobTaken):
            self._add(record, participant)
        else:
            job_id = record.status.job_id if not hasattr(record, "job_id") else record.job_id
            self._jobs[job_id].replay(record)

    def recover(self, participant: Participant, now: Instant) -> list[Effect]:
        """Go on with a slot's jobs after a restart; the participant has gone on already."""
        paid_at = participant.paid_at
        effects: list[Effect] = []
        for job in self.jobs_of(participant.offer.offer_id):
            if paid_at is not None:
                job.slot_begun(paid_at)
            effects += job.recover(now)
        return effects

    def forget(self, offer_id: str) -> None:
        """Let a slot's jobs go with their slot."""
        for job_id in self._by_offer.pop(offer_id, ()):
            del self._jobs[job_id]
            self._waiting.pop(job_id, None)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        for job in self._jobs.values():
            job.clock_set(by)

    # -- messages ------------------------------------------------------------------------------------------------

    def on_message(
        self, message: Message, word: JobWord, participant: Participant | None, now: Instant
    ) -> list[Effect]:
        """Take what somebody says of a job.

        Args:
            message: as it came.
            word: what it says.
            participant: the slot that was bought by the agreement that it names, if there is one.
            now: the present.

        Raises:
            RemoteProtocolError: if it is not its sender's own word, said lately.
        """
        seal = sealed_lately(message, Role.USER, now, self._timing)
        job = self._jobs.get(word.job_id)
        if participant is None or participant.user != message.sender:
            return [
                self._refuse(message, word, "unknown_agreement", "no slot is sold to the sender under this agreement")
            ]
        if job is not None and job.taken.offer_id != participant.offer.offer_id:
            return [self._refuse(message, word, "other_job", "another slot has a job of this name")]
        if isinstance(word, JobOrder) and job is None:
            refusal = self._problem(word, participant, now)
            if refusal is not None:
                return [self._refuse(message, word, *refusal)]
            assert self._terms is not None
            offer, account = participant.offer, self._terms.account(message.sender)
            job = self._add(
                JobTaken(offer.offer_id, word, account, self._due_at(word, participant, now), seal, now), participant
            )
            if participant.paid_at is not None:
                job.slot_begun(participant.paid_at)
            if job.waits_for_start:
                return [*job.start(now), self._tell(message, job)]
            self._wait(message, job)
            return job.start(now)
        if job is None:
            return [self._refuse(message, word, "unknown_job", "this slot has no job of this name")]
        if isinstance(word, JobOrder):
            if word != job.order:
                return [self._refuse(message, word, "other_job", "this slot has another job of this name")]
            return [self._tell(message, job)]
        if isinstance(word, JobOutputQuery):
            if job.waits_for_start:
                return [self._refuse(message, word, "no_file", "the job has not started")]
            return self._read(message, word, job)
        if job.state.is_final:
            return [self._tell(message, job)]
        if job.waits_for_start:
            effects = job.cancel(now) if isinstance(word, JobCancellation) else []
            return [*effects, self._tell(message, job)]
        self._wait(message, job)
        return job.cancel(now) if isinstance(word, JobCancellation) else job.look(now)

    def _problem(self, order: JobOrder, participant: Participant, now: Instant) -> tuple[str, str] | None:
        """Why a job cannot be run, as code and sentence."""
        offer = participant.offer
        if self._terms is None or not self._terms.launches:
            return (
                "launching_off",
                "this resource launches no jobs; `ramp show ID --as env` shows how to start one yourself",
            )
        unmapped = self._terms.problem(participant.user)
        if unmapped:
            return "no_account", unmapped
        awaited = offer.in_queue and participant.state in AWAITED
        if participant.state is not ParticipantState.SOLD and not awaited:
            return "not_active", f"the slot is {participant.state}, expected sold"
        cores, end = participant.size
        if now >= end:
            return "slot_over", f"the slot ended at {iso(end)}"
        if order.begin_at >= end:
            return (
                "begins_too_late",
                f"the job must begin before the slot ends at {iso(end)}, got {iso(order.begin_at)}",
            )
        if order.cores > cores:
            return "too_many_cores", f"the job must use at most the slot's {cores} cores, got {order.cores}"
        if len(self._by_offer.get(offer.offer_id, ())) >= JOBS_A_SLOT_MAX:
            return "too_many_jobs", f"a slot takes at most {JOBS_A_SLOT_MAX} jobs"
        problem = limits_problem(order)
        return ("beyond_limits", problem) if problem else None

    # -- the launcher's answers ----------------------------------------------------------------------------------

    def on_seen(self, seen: JobSeen, now: Instant) -> list[Effect]:
        """How a job is; whoever waits for that is told."""
        job = self._jobs.get(seen.job_id)
        if job is None:
            return []
        effects = job.on_seen(seen.answer, now)
        if job.asked:  # it is being submitted once more, and the answer to that says more
            return effects
        waiting = self._waiting.pop(seen.job_id, ())
        return [*effects, *(self._tell(message, job) for message in waiting)]

    def on_read(self, read: JobFileRead) -> list[Effect]:
        """A piece of output, or why there is none."""
        message = self._reads.pop(read.call_id, None)
        if message is None:
            return []
        query = message.content
        assert isinstance(query, JobOutputQuery)
        if read.data is None:
            return [self._refuse(message, query, read.code, read.detail)]
        piece = JobOutput(
            query.job_id, query.agreement_id, query.name, query.offset, read.size, read.complete, read.data
        )
        return [reply(message, Performative.INFORM, piece)]

    def due(self, now: Instant) -> tuple[Job, ...]:
        """The jobs whose deadline has come."""
        return tuple(job for job in self._jobs.values() if job.deadline is not None and job.deadline <= now)

    def undelivered(self, job_id: str) -> tuple[str, str] | None:
        """The slot (an offer's id) that a job has shown not to be delivered, and how; None where it has not.

        A slot on which a job has started was delivered.
        """
        job = self._jobs.get(job_id)
        if job is None or not job.is_undelivered:
            return None
        others = [each for each in self.jobs_of(job.taken.offer_id) if each is not job]
        started = any(each.has_started and not each.is_undelivered for each in others)
        return None if started else (job.taken.offer_id, job.sight.detail)

    def in_the_way(self, offer_id: str, cores: int, end: Instant) -> str:
        """Why a slot cannot have so many cores until that end, for a job on it needs more; empty where it can."""
        for job in self.jobs_of(offer_id):
            if job.state.is_final:
                continue
            if job.order.cores > cores:
                return f"job {job.order.job_id} uses {job.order.cores} cores; wait until it ends"
            if end < job.to_run.end_at:
                return f"job {job.order.job_id} may run until {iso(job.to_run.end_at)}; wait until it ends"
        return ""

    def end(self, offer_id: str, now: Instant, *, late: bool = False) -> list[Effect]:
        """A slot is not its buyer's any more: its jobs end.

        Args:
            offer_id: the slot.
            now: the present.
            late: whether it is a job in a queue that has not started in time.
        """
        return [effect for job in self.jobs_of(offer_id) for effect in job.slot_gone(now, late=late)]

    def follow(self, participant: Participant, now: Instant) -> list[Effect]:
        """A participant has moved: what waits for its slot is submitted when that is sold, and all ends with it."""
        offer_id = participant.offer.offer_id
        if participant.released is not None:
            code = participant.released.code
            late = code is RefusalCode.NOT_DELIVERED or now >= participant.offer.start
            return self.end(offer_id, now, late=late)
        effects: list[Effect] = []
        for job in self.jobs_of(offer_id):
            if job.waits_for_start and not job.state.is_final and participant.state is ParticipantState.SOLD:
                assert participant.paid_at is not None
                job.slot_begun(participant.paid_at)
                effects += job.submitted(now)
        return effects

    # -- common --------------------------------------------------------------------------------------------------

    def _add(self, taken: JobTaken, participant: Participant) -> Job:
        terms = self._terms or LaunchTerms("none")
        job = Job(
            taken,
            offer=replace(participant.offer, end=participant.size[1]),
            reservation_id=participant.reservation_id,
            resource=self._resource,
            terms=terms,
        )
        self._jobs[taken.order.job_id] = job
        self._by_offer.setdefault(taken.offer_id, []).append(taken.order.job_id)
        return job

    def _due_at(self, order: JobOrder, participant: Participant, now: Instant) -> Instant:
        others = [job.taken for job in self.jobs_of(participant.offer.offer_id) if not job.state.is_final]
        return due_at(order, participant, now, beside=others)

    def _wait(self, message: Message, job: Job) -> None:
        waiting = self._waiting.setdefault(job.order.job_id, [])
        if len(waiting) < WAITING_MAX:
            waiting.append(message)

    def _read(self, message: Message, query: JobOutputQuery, job: Job) -> list[Effect]:
        self._calls += 1
        call_id = f"read-{self._calls}"
        self._reads[call_id] = message
        if len(self._reads) > READS_MAX:
            del self._reads[next(iter(self._reads))]
        return [ReadJobFile(call_id, job.to_run, query.name, query.offset)]

    def _tell(self, message: Message, job: Job) -> Send:
        agreed = isinstance(message.content, JobOrder)
        return reply(message, Performative.AGREE if agreed else Performative.INFORM, job.status())

    def _refuse(self, message: Message, word: JobWord, code: str, detail: str) -> Send:
        return reply(message, Performative.REFUSE, JobRefused(word.job_id, word.agreement_id, code, detail))


def due_at(order: JobOrder, participant: Participant, now: Instant, *, beside: Sequence[JobTaken] = ()) -> Instant:
    """When a job should have started.

    In a queue that is when its slot does, by the latest start that was promised, unless its buyer wants it later. One
    that needs cores that were added, by itself or beside those that begin before, begins no sooner than these are paid
    for.

    Args:
        order: what the buyer wants.
        participant: the slot.
        now: the present.
        beside: the other jobs on it that have not ended.
    """
    offer = participant.offer
    if offer.start_probability is None or order.begin_at > offer.start:
        paid_from = (
            instant
            for instant, cores in participant.not_before
            if order.cores + sum(each.order.cores for each in beside if each.due_at < instant) > cores
        )
        return max(order.begin_at, offer.start, now, *paid_from)
    return now if participant.paid_at is not None else offer.start
