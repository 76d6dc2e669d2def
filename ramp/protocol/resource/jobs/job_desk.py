"""The jobs on a resource's sold slots: orders and questions of buyers, answers of the launcher.

An order counts under its buyer's seal, on a slot sold to its sender that has not ended, for the local account of the
buyer; in a queue also before the bought job has started. Every message is answered, by the state that the launcher has
just reported, or by a coded refusal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.contents.jobs import FOLDER, INPUTS, Delivery, limits_problem, path_problem, piece_problem
from ramp.model.instant import Instant, iso
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import TorusTerms
from ramp.model.seal import Role
from ramp.protocol.belief import sealed_lately
from ramp.protocol.conversations import Conversations, Registry, Waiting
from ramp.protocol.effects import Effect, JobToRun, ReadJobFile, Send, StageJobInput, reply
from ramp.protocol.events import JobFileRead, JobSeen
from ramp.protocol.records import JobTaken, SlotJobRecord
from ramp.protocol.resource.jobs.job import Job
from ramp.protocol.resource.jobs.launching import Application, LaunchTerms, found, titles
from ramp.protocol.resource.participant import Participant
from ramp.protocol.timing import Timing
from ramp.protocol.transition_tables import ParticipantState

_PLACE: Final = re.compile(
    r"(?P<nodes>[a-z0-9._-]*(?:[0-9A-Z]|\[[0-9A-Zx,-]+\])) (?P<geometry>\d+(?:x\d+)+)"
    r"(?: (?P<connection>(?:mesh|torus)(?:,(?:mesh|torus))*))?(?:, cables (?P<cables>[\w ,]+?))?"
    r"(?:, block (?P<block>\w+))?"
)
"""A placement as torus machines describe it: `bgl[000x011] 1x2x2 mesh, cables y 0, z 3`, perhaps `, block RMP007`."""


def place_variables(offer: Offer, terms: TorusTerms | None, reservation_id: str, cores: int) -> dict[str, str]:
    """Return the variables of a job on a slot; none where the machine is no torus.

    Slurm on Blue Gene/L names a job's block in `BGL_PARTITION_ID` (M. Jette and others, 2004) and, from version 1.0 on,
    in `MPIRUN_PARTITION`, with two variables that keep mpirun from making or freeing blocks itself. The reservation of
    a slot names its block, unless the machine lists its blocks. The other variables serve every torus.

    Args:
        offer: the slot as it was sold.
        terms: what was asked of the torus.
        reservation_id: the machine's name for the slot.
        cores: present cores of the slot; after a change the place of the offer is no longer known.
    """
    place = _PLACE.fullmatch(offer.placement)
    if place is None:
        return {}
    name = (cores == offer.cores and place["block"]) or reservation_id
    block = {
        "BGL_PARTITION_ID": name,
        "MPIRUN_PARTITION": name,
        "MPIRUN_NOALLOCATE": "1",
        "MPIRUN_NOFREE": "1",
        "RAMP_NODE_USE": (terms.node_use if terms is not None else "") or "coprocessor",
    }
    if cores != offer.cores:
        return block
    known = {"NODES": place["nodes"], "GEOMETRY": place["geometry"], "CONNECTION": place["connection"] or "mesh"}
    return block | {f"RAMP_{name}": value for name, value in known.items()}


JOBS_A_SLOT_MAX = 100
"""Maximum jobs on one slot, including ended ones; each has a folder at the site and records in the journal."""

WAITING_MAX = 20
"""Maximum waiting questions about one job; more are dropped, and repeated by their sender."""

READS_MAX = 100
"""Maximum pieces of output being read; the oldest are dropped."""

AWAITED = (ParticipantState.QUEUED, ParticipantState.SETTLING)
"""States of a bought job in a queue, which is paid when it has started."""

JobWord = c.JobOrder | c.JobInputPiece | c.JobQuery | c.JobCancellation | c.JobOutputQuery


Lose = Callable[[str, RefusalCode, str, Instant], list[Effect]]
"""Reports a sold slot, an offer's id, as failed, with code and sentence."""


class JobDesk:
    """The jobs of one resource.

    Args:
        lose: reports a slot (an offer's id) as failed that was not delivered.
    """

    def __init__(self, resource: str, terms: LaunchTerms, timing: Timing, registry: Registry, lose: Lose) -> None:
        self._resource = resource
        self._terms = terms
        self._timing = timing
        self._jobs: Conversations[Job] = Conversations(registry, lambda job: job.taken.offer_id, self._followed)
        self._lose = lose
        self._by_offer: dict[str, list[str]] = {}
        self._waiting: dict[str, list[Message]] = {}
        self._reads: Waiting[Message] = Waiting(READS_MAX)
        self._staged: dict[str, set[str]] = {}

    def jobs_of(self, offer_id: str) -> Iterator[Job]:
        return (self._jobs[each] for each in self._by_offer.get(offer_id, ()))

    # -- the journal ---------------------------------------------------------------------------------------------

    def replay(self, record: SlotJobRecord, participant: Participant) -> None:
        if isinstance(record, JobTaken):
            self._add(record, participant)
        else:
            job_id = record.status.job_id if not hasattr(record, "job_id") else record.job_id
            self._jobs[job_id].replay(record)

    def recover(self, participant: Participant, now: Instant) -> list[Effect]:
        """Resume a slot's jobs after a restart, after their participant."""
        paid_at = participant.paid_at
        effects: list[Effect] = []
        for job in self.jobs_of(participant.offer.offer_id):
            if paid_at is not None:
                job.slot_begun(paid_at)
            effects += self.act(job, partial(job.recover, now), now)
        return effects

    def forget(self, offer_id: str) -> None:
        for job_id in self._by_offer.pop(offer_id, ()):
            self._jobs.drop(job_id)
            self._waiting.pop(job_id, None)
        self._staged.pop(offer_id, None)

    # -- messages ------------------------------------------------------------------------------------------------

    def on_message(
        self, message: Message, word: JobWord, participant: Participant | None, now: Instant
    ) -> list[Effect]:
        """Take a buyer's message about a job, on the slot bought by the agreement that it names.

        Raises:
            RemoteProtocolError: if the seal is missing, old or another's.
        """
        seal = sealed_lately(message, Role.USER, now, self._timing)
        job = self._jobs.get(word.job_id)
        if participant is None or participant.user != message.sender:
            return [
                self._refuse(message, word, "unknown_agreement", "no slot is sold to the sender under this agreement")
            ]
        if job is not None and job.taken.offer_id != participant.offer.offer_id:
            return [self._refuse(message, word, "other_job", "another slot has a job of this name")]
        if isinstance(word, c.JobOrder) and job is None:
            refusal = self._problem(word, participant, now)
            if refusal is not None:
                return [self._refuse(message, word, *refusal)]
            offer, account = participant.offer, self._terms.account(message.sender)
            others = [each.taken for each in self.jobs_of(offer.offer_id) if not each.state.is_final]
            due = due_at(word, participant, now, beside=others)
            taken = JobTaken(offer.offer_id, word, account, due, seal, now, command=self._command(word, participant))
            job = self._add(taken, participant)
            if participant.paid_at is not None:
                job.slot_begun(participant.paid_at)
            if job.waits_for_start:
                return [*self.act(job, partial(job.start, now), now), self._tell(message, job)]
            self._wait(message, job)
            return self.act(job, partial(job.start, now), now)
        if isinstance(word, c.JobInputPiece):
            return self._stage(message, word, participant, now)
        if job is None:
            return [self._refuse(message, word, "unknown_job", "this slot has no job of this name")]
        if isinstance(word, c.JobOrder):
            if word != job.order:
                return [self._refuse(message, word, "other_job", "this slot has another job of this name")]
            return [self._tell(message, job)]
        if isinstance(word, c.JobOutputQuery):
            return self._read(message, word, job)
        if job.state.is_final:
            return [self._tell(message, job)]
        if job.waits_for_start:
            effects = self.act(job, partial(job.cancel, now), now) if isinstance(word, c.JobCancellation) else []
            return [*effects, self._tell(message, job)]
        self._wait(message, job)
        return self.act(job, partial(job.cancel if isinstance(word, c.JobCancellation) else job.look, now), now)

    def _stage(self, message: Message, piece: c.JobInputPiece, participant: Participant, now: Instant) -> list[Effect]:
        """Keep a piece of the inputs of a job that has not been ordered yet."""
        offer = participant.offer
        staged = self._staged.setdefault(offer.offer_id, set())
        refusal = self._closed(participant, now, piece.job_id)
        problem = piece_problem(piece)
        if refusal is None and piece.job_id in self._jobs:
            refusal = "other_job", "the job has been ordered"
        if refusal is None and problem:
            refusal = "beyond_limits", problem
        if refusal is not None:
            return [self._refuse(message, piece, *refusal)]
        staged.add(piece.job_id)
        job = JobToRun(
            piece.job_id,
            self._resource,
            participant.reservation_id,
            self._terms.account(participant.user),
            offer.cores,
            offer.start,
            offer.end,
            (),
            (),
        )
        return [StageJobInput(self._reads.put(message), job, piece.offset, piece.data)]

    def _closed(self, participant: Participant, now: Instant, job_id: str) -> tuple[str, str] | None:
        """Return why a slot takes no further job, or None."""
        offer = participant.offer
        if not self._terms.launches:
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
        end = participant.size[1]
        if now >= end:
            return "slot_over", f"the slot ended at {iso(end)}"
        known = {*self._by_offer.get(offer.offer_id, ()), *self._staged.get(offer.offer_id, ())}
        if len(known - {job_id}) >= JOBS_A_SLOT_MAX:
            return "too_many_jobs", f"a slot takes at most {JOBS_A_SLOT_MAX} jobs"
        return None

    def _problem(self, order: c.JobOrder, participant: Participant, now: Instant) -> tuple[str, str] | None:
        closed = self._closed(participant, now, order.job_id)
        if closed is not None:
            return closed
        cores, end = participant.size
        if order.begin_at >= end:
            return (
                "begins_too_late",
                f"the job must begin before the slot ends at {iso(end)}, got {iso(order.begin_at)}",
            )
        if order.cores > cores:
            return "too_many_cores", f"the job must use at most the slot's {cores} cores, got {order.cores}"
        if order.application and self._application(order, participant) is None:
            has = titles(self._terms.applications, order.application) or "none"
            wanted = f"{order.application} {order.application_version}".strip()
            return "no_application", f"unknown application: got {wanted}, expected one of {has}"
        problem = limits_problem(order)
        return ("beyond_limits", problem) if problem else None

    def _application(self, order: c.JobOrder, participant: Participant) -> Application | None:
        """Return the application of an order: of the version that the order names, or the request."""
        unit, version = participant.unit, order.application_version
        if not version and unit.application == order.application:
            version = unit.application_version or ""
        return found(self._terms.applications, order.application, version)

    def _command(self, order: c.JobOrder, participant: Participant) -> tuple[str, ...]:
        application = self._application(order, participant)
        return (
            () if application is None else application.command_for(order.arguments, order.cores, participant.unit.gpus)
        )

    # -- the launcher's answers ----------------------------------------------------------------------------------

    def on_seen(self, seen: JobSeen, now: Instant) -> list[Effect]:
        """Take a job's state, and answer the messages that wait for it."""
        job = self._jobs.get(seen.job_id)
        if job is None:
            return []
        return self.act(job, partial(self._seen, job, seen, now), now)

    def _seen(self, job: Job, seen: JobSeen, now: Instant) -> list[Effect]:
        effects = job.on_seen(seen.answer, now)
        if job.asked:  # it is submitted again, and that answer follows
            return effects
        waiting = self._waiting.pop(seen.job_id, ())
        return [*effects, *(self._tell(message, job) for message in waiting)]

    def on_read(self, read: JobFileRead) -> list[Effect]:
        message = self._reads.pop(read.call_id, None)
        if message is None:
            return []
        query = message.content
        assert isinstance(query, c.JobOutputQuery | c.JobInputPiece)
        if read.data is None:
            return [self._refuse(message, query, read.code, read.detail)]
        name = query.name if isinstance(query, c.JobOutputQuery) else INPUTS
        piece = c.JobOutput(query.job_id, query.agreement_id, name, query.offset, read.size, read.complete, read.data)
        return [reply(message, Performative.INFORM, piece)]

    def in_the_way(self, offer_id: str, cores: int, end: Instant) -> str:
        """Return why a job prevents a slot's new cores and end, or the empty string."""
        for job in self.jobs_of(offer_id):
            if job.state.is_final:
                continue
            if job.order.cores > cores:
                return f"job {job.order.job_id} uses {job.order.cores} cores; wait until it ends"
            if end < job.to_run.end_at:
                return f"job {job.order.job_id} may run until {iso(job.to_run.end_at)}; wait until it ends"
        return ""

    def end(self, offer_id: str, now: Instant, *, late: bool = False, lost: bool = False) -> list[Effect]:
        """End the jobs of a slot; `late` if it was a queued job that did not start in time, `lost` if it has failed."""
        effects: list[Effect] = []
        for job in self.jobs_of(offer_id):
            effects += self.act(job, partial(job.slot_gone, now, late=late, lost=lost), now)
        return effects

    def follow(self, participant: Participant, now: Instant) -> list[Effect]:
        """Submit waiting jobs when their slot is sold, and end all jobs when it is released."""
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
                effects += self.act(job, partial(job.submitted, now), now)
        return effects

    # -- common --------------------------------------------------------------------------------------------------

    def act(self, job: Job, action: Callable[[], list[Effect]], now: Instant) -> list[Effect]:
        """Run a job's action, then judge the delivery of its slot; a bug stays in the slot."""
        return self._jobs.act(job.order.job_id, action, now)

    def _followed(self, job: Job, effects: list[Effect], now: Instant) -> list[Effect]:
        """Report the slot as failed if a job shows that it was not delivered; one on which a job has started was."""
        offer_id = job.taken.offer_id
        others = (each for each in self.jobs_of(offer_id) if each.delivery is not Delivery.UNDELIVERED)
        if job.delivery is not Delivery.UNDELIVERED or any(each.has_started for each in others):
            return effects
        return [*effects, *self._lose(offer_id, RefusalCode.NOT_DELIVERED, job.sight.detail, now)]

    def _add(self, taken: JobTaken, participant: Participant) -> Job:
        reservation_id = participant.reserved_as or participant.reservation_id
        job = Job(
            taken,
            offer=replace(participant.offer, end=participant.size[1]),
            reservation_id=reservation_id,
            resource=self._resource,
            terms=self._terms,
            place=place_variables(participant.offer, participant.unit.torus, reservation_id, participant.size[0]),
            unit=participant.unit,
        )
        self._jobs.add(taken.order.job_id, job)
        self._by_offer.setdefault(taken.offer_id, []).append(taken.order.job_id)
        return job

    def _wait(self, message: Message, job: Job) -> None:
        waiting = self._waiting.setdefault(job.order.job_id, [])
        if len(waiting) < WAITING_MAX:
            waiting.append(message)

    def _read(self, message: Message, query: c.JobOutputQuery, job: Job) -> list[Effect]:
        problem = "" if query.name == FOLDER else path_problem(query.name)
        if job.waits_for_start:
            problem = "the job has not started"
        if problem:
            return [self._refuse(message, query, "no_file", problem)]
        return [ReadJobFile(self._reads.put(message), job.to_run, query.name, query.offset)]

    def _tell(self, message: Message, job: Job) -> Send:
        agreed = isinstance(message.content, c.JobOrder)
        return reply(message, Performative.AGREE if agreed else Performative.INFORM, job.status())

    def _refuse(self, message: Message, word: JobWord, code: str, detail: str) -> Send:
        return reply(message, Performative.REFUSE, c.JobRefused(word.job_id, word.agreement_id, code, detail))


def due_at(order: c.JobOrder, participant: Participant, now: Instant, *, beside: Sequence[JobTaken] = ()) -> Instant:
    """Return when a job should have started.

    In a queue that is the latest promised start of its slot, unless the buyer wants it later. A job that needs added
    cores, by itself or with the jobs before it, starts no earlier than these are paid.

    Args:
        order: of the buyer.
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
