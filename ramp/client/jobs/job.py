"""The state of a job, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ramp.client.identifiers import matching, not_one
from ramp.client.results import short_name
from ramp.control.events import JobStanding
from ramp.errors import ConfigurationError
from ramp.model.contents.jobs import Delivery, JobState, JobStatus
from ramp.model.instant import Instant, to_datetime

UNANSWERED: Final = "unanswered"
"""State of a job whose resource has not answered yet."""

REFUSED: Final = "refused"
"""State of a job that its resource does not run."""

CANCELLED: Final = "cancelled"
"""Delivery of a slot whose job cannot start any more."""

UNKNOWN: Final = "unknown"
"""Delivery of a slot whose job ended without a measurement."""

MEASURED: Final = frozenset(each.value for each in Delivery if each is not Delivery.PENDING)
"""Deliveries that a resource has measured."""


def one_job(jobs: Sequence[JobStanding], any_id: str) -> JobStanding:
    """Return the job that an id means; raises `ConfigurationError` unless there is exactly one."""
    found = matching(jobs, any_id, lambda each: each.order.job_id)
    if len(found) != 1:
        if not found:
            raise ConfigurationError(f"unknown job {any_id!r}; list all jobs with `ramp jobs`")
        raise not_one(f"job {any_id!r}", [each.order.job_id for each in found])
    return found[0]


@dataclass(frozen=True, slots=True)
class Job:
    """A job on something bought.

    Attributes:
        job_id: its name.
        agreement_id: of its slot.
        resource: the resource that runs it.
        unit: the unit's number in the request.
        command: the command, or the application and its version, and its arguments.
        state: `taken`, `queued`, `running`, `done`, `failed`, `cancelled`; `unanswered` or `refused` by its resource.
        delivery: `pending`, `on_time`, `late`, `undelivered` or `unknown`, by the site's own records; `cancelled` if
            the slot or the job was cancelled before the job started.
        simulated: whether it runs on the agent's own computer, for the machine is simulated.
        account: the local account that it runs as.
        cores: that it was given, 0 while that is not known.
        due: when it should start.
        started: when it started, by the resource's clock.
        ended: when it ended.
        exit_code: of its command; negative for the signal that ended it.
        detail: a sentence for people, or empty.
        standing: the model's value.
    """

    job_id: str
    agreement_id: str
    resource: str
    unit: int
    command: tuple[str, ...]
    state: str
    delivery: str
    simulated: bool
    account: str
    cores: int
    due: datetime
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    detail: str
    standing: JobStanding = field(repr=False)

    @property
    def has_ended(self) -> bool:
        return self.state == REFUSED or (self.state in {*JobState} and JobState(self.state).is_final)


def job_of(standing: JobStanding, domain: str) -> Job:
    """Convert a job of the control channel for programs."""
    order, status, refused = standing.order, standing.status, standing.refused
    state = REFUSED if refused is not None else UNANSWERED if status is None else status.state.value
    if standing.slot == "cancelled" and (status is None or not status.state.is_final) and refused is None:
        state = JobState.CANCELLED.value  # its resource, which may have forgotten it, ends it with its slot
    return Job(
        job_id=order.job_id,
        agreement_id=order.agreement_id,
        resource=short_name(standing.resource, domain),
        unit=order.unit,
        command=tuple(word for word in (order.application, order.application_version) if word) + order.arguments,
        state=state,
        delivery=_delivery(state, status),
        simulated=status is not None and status.executor == "local",
        account="" if status is None else status.account,
        cores=0 if status is None else status.cores,
        due=to_datetime(order.begin_at if status is None else status.due_at),
        started=_moment(None if status is None else status.started_at),
        ended=_moment(None if status is None else status.ended_at),
        exit_code=None if status is None else status.exit_code,
        detail=f"{refused.code}: {refused.detail}" if refused is not None else "" if status is None else status.detail,
        standing=standing,
    )


def _delivery(state: str, status: JobStatus | None) -> str:
    """Return the delivery of a job's slot; it is pending only as long as the job may still start."""
    if status is not None and status.delivery is not Delivery.PENDING:
        return status.delivery.value
    if state in (JobState.CANCELLED, REFUSED):
        return CANCELLED
    return UNKNOWN if state in (JobState.DONE, JobState.FAILED) else Delivery.PENDING.value


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def deliveries(jobs: Sequence[Job]) -> Mapping[str, Job]:
    """Return, by agreement, the job that measured the delivery of the slot: the first that did."""
    found: dict[str, Job] = {}
    for job in jobs:
        known = found.get(job.agreement_id)
        if known is None or known.delivery not in MEASURED:
            found[job.agreement_id] = job
    return found
