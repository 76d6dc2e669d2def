"""A user's jobs on bought slots.

An order is recorded before it is sent, and sent again after a restart until the resource answers. The resource runs a
job once, however often it is ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ramp.model import contents as c
from ramp.model.acl import Message
from ramp.model.agreement import Agreement
from ramp.model.communicative_acts import DECLARED
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.protocol.effects import Effect, Persist, Report
from ramp.protocol.events import JobAsked, JobSubmitted
from ramp.protocol.progress import QueryAnswered
from ramp.protocol.questions import Questions
from ramp.protocol.records import JobHeard, JobOrdered
from ramp.protocol.user.changing.history import History

NOT_BOUGHT = "not_active"
"""Code of an order for an agreement that is not active."""

UNKNOWN_JOB = "unknown_job"
"""Code of a question about a job that was never ordered."""

ORDER_MARK = "order/"
"""Prefix of an order's query id, before the job id."""

JobCommand = JobSubmitted | JobAsked
JobAnswer = c.JobStatus | c.JobRefused | c.JobOutput


@dataclass(slots=True)
class OwnJob:
    """One job as its user knows it.

    Attributes:
        request_id: auction in which its slot was bought.
        word: the resource's last answer, or None.
    """

    request_id: str
    resource: str
    order: c.JobOrder
    ordered_at: Instant
    word: c.JobStatus | c.JobRefused | None = None


class OwnJobs:
    """The jobs of one user."""

    def __init__(
        self,
        agreements: Mapping[str, Agreement],
        state_of: Callable[[str], str],
        questions: Questions,
        history: History,
    ) -> None:
        self._agreements = agreements
        self._state_of = state_of
        self._history = history
        self._questions = questions
        self._jobs: dict[str, OwnJob] = {}

    @property
    def known(self) -> tuple[OwnJob, ...]:
        return tuple(self._jobs.values())

    def recover(self, records: Sequence[object], now: Instant) -> list[Effect]:
        """Resume after a restart; order unanswered jobs again while their slots last."""
        for record in records:
            if isinstance(record, JobOrdered):
                self._jobs[record.order.job_id] = OwnJob(record.request_id, record.resource, record.order, record.at)
            elif isinstance(record, JobHeard) and record.word.job_id in self._jobs:
                self._jobs[record.word.job_id].word = record.word
        effects: list[Effect] = []
        for job in self._jobs.values():
            agreement = self._agreements.get(job.order.agreement_id)
            if job.word is None and agreement is not None and now < self._history.state(agreement.agreement_id).until:
                effects += self._order(job, now)
        return effects

    def forget(self, references: Sequence[str]) -> None:
        """Forget the jobs of archived requests."""
        self._jobs = {job_id: job for job_id, job in self._jobs.items() if job.request_id not in references}

    def command(self, command: JobCommand, now: Instant) -> list[Effect]:
        if isinstance(command, JobSubmitted):
            return self._submit(command.order, now)
        query_id, word = command.query_id, command.word
        if isinstance(word, c.JobInputPiece):
            agreement = self._agreements.get(word.agreement_id)
            if agreement is None:
                return [Report(QueryAnswered(query_id, self._not_bought(word.job_id, word.agreement_id)))]
            return self._ask(query_id, agreement.resource, word, now)
        job = self._jobs.get(word.job_id)
        if job is None:
            refused = c.JobRefused(word.job_id, "", UNKNOWN_JOB, "no job of this name has been ordered")
            return [Report(QueryAnswered(query_id, refused))]
        return self._ask(query_id, job.resource, replace(word, agreement_id=job.order.agreement_id), now)

    def _not_bought(self, job_id: str, agreement_id: str) -> c.JobRefused:
        return c.JobRefused(job_id, agreement_id, NOT_BOUGHT, f"{agreement_id} is not an active agreement")

    def _submit(self, order: c.JobOrder, now: Instant) -> list[Effect]:
        known = self._jobs.get(order.job_id)
        if known is not None and known.word is not None:
            return [Report(QueryAnswered(ORDER_MARK + order.job_id, known.word))]
        if known is not None:
            return [] if ORDER_MARK + order.job_id in self._questions else self._order(known, now)
        agreement = self._agreements.get(order.agreement_id)
        state = "" if agreement is None else self._state_of(order.agreement_id)
        # a job in a queue takes orders before it starts, which is when it is bought for good
        if agreement is None or (state != "active" and (state, agreement.offer.in_queue) != ("settling", True)):
            refused = self._not_bought(order.job_id, order.agreement_id)
            return [Report(QueryAnswered(ORDER_MARK + order.job_id, refused))]
        job = self._jobs[order.job_id] = OwnJob(agreement.request_id, agreement.resource, order, now)
        return [Persist(JobOrdered(job.request_id, job.resource, order, now)), *self._order(job, now)]

    def _order(self, job: OwnJob, now: Instant) -> list[Effect]:
        return self._ask(ORDER_MARK + job.order.job_id, job.resource, job.order, now)

    def _ask(self, query_id: str, resource: str, word: c.Content, now: Instant) -> list[Effect]:
        (performative,) = DECLARED[type(word)].performatives
        return self._questions.ask(query_id, resource, lambda: word, now, role=Role.RESOURCE, performative=performative)

    def answered(self, message: Message, answer: JobAnswer, now: Instant) -> list[Effect]:
        """Take a resource's answer about a job; ignored unless its question is open.

        Raises:
            RemoteProtocolError: if it is not from the resource asked, or not sealed by it.
        """
        query_id = message.in_reply_to
        if query_id not in self._questions:
            return []
        effects = self._questions.answered(query_id, message, answer, now)
        job = self._jobs.get(answer.job_id)
        if job is None or isinstance(answer, c.JobOutput):
            return effects
        ordering = query_id.startswith(ORDER_MARK)
        if not _is_news(answer, job.word) or (
            isinstance(answer, c.JobRefused) and not ordering and job.word is not None
        ):
            return effects
        job.word = answer
        is_final = isinstance(answer, c.JobRefused) or answer.state.is_final
        return [Persist(JobHeard(job.request_id, answer, now)), *effects] if is_final or ordering else effects


def _is_news(answer: c.JobStatus | c.JobRefused, known: c.JobStatus | c.JobRefused | None) -> bool:
    """Return whether an answer replaces the known one: after a job's end only the delivery of its slot may follow."""
    if known is None or isinstance(known, c.JobRefused):
        return known is None
    if not known.state.is_final:
        return True
    return isinstance(answer, c.JobStatus) and answer == replace(known, delivery=answer.delivery) != known
