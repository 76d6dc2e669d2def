"""One job on a sold slot, from the buyer's order to its end, and the delivery of the slot.

A job is recorded before it is submitted, and a launcher does not launch a job twice. After a crash the job is looked up
by name, and submitted only if the launcher does not know it. If the launcher cannot answer, it is asked again.

Only records that the buyer's account cannot write decide delivery. On the agent's own computer the keeper of a job
records its start, or its own failure to start it in time. In a batch system a job shows nothing, because its owner can
hold or end it: the machine's answers about the reservation decide. Without any of them the delivery is unknown.

On a machine without reservations, the slot is itself a queued job whose start is unknown. Earlier orders wait on
record, and are submitted when the started job has been paid, which also delivers the slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace

from ramp.model.contents import JobOrder, JobPeer, JobStatus
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import MINUTE, SECOND, Duration, Instant, iso
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit
from ramp.protocol.conversations import Alarm
from ramp.protocol.effects import CancelJob, Effect, JobToRun, LookUpJob, Persist, SubmitJob
from ramp.protocol.events import JobSight, MachineInDoubt
from ramp.protocol.machine import StateMachine
from ramp.protocol.records import JobCancelAsked, JobEnded, JobTaken
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.transition_tables import JOB

LOOK_FIRST: Duration = 2 * SECOND
"""First pause after a job was submitted or due; later pauses grow by half."""

LOOK_LONGEST: Duration = MINUTE
"""Longest pause between two looks; each costs the site a process."""

END_MARGIN: Duration = 2 * MINUTE
"""Time after its slot when an unknown job is given up; batch systems kill within half a minute."""

S = JobState


class Job(StateMachine[JobState], Alarm):
    """One job.

    Args:
        taken: the order, and its first record.
        place: variables that describe the slot's place.
    """

    def __init__(
        self,
        taken: JobTaken,
        *,
        offer: Offer,
        reservation_id: str,
        resource: str,
        terms: LaunchTerms,
        place: Mapping[str, str],
        unit: RequestUnit,
    ) -> None:
        super().__init__(offer.request_id, JOB, S.TAKEN)
        Alarm.__init__(self)
        self.taken = taken
        self.delivery = Delivery.PENDING
        self.sight = JobSight(S.TAKEN)
        self.asked = False
        self._unit = unit
        self._place = place
        self._offer = offer
        self._terms = terms
        self._where = resource, reservation_id
        self.to_run = self._described(taken.due_at, offer.end)
        self.waits_for_start = offer.in_queue
        self._cancelling = False
        self._pause = LOOK_FIRST
        self._doubt = ""
        self._site_failed = False
        self._submitting = False

    @property
    def order(self) -> JobOrder:
        return self.taken.order

    @property
    def has_started(self) -> bool:
        return self.sight.started_at is not None

    def status(self) -> JobStatus:
        begins = f"the slot begins when queued job {self.to_run.reservation_id} starts"
        awaits = begins if self.waits_for_start else ""
        sight = replace(self.sight, detail=self.sight.detail or self._doubt or awaits)
        return JobStatus(
            job_id=self.order.job_id,
            agreement_id=self.order.agreement_id,
            executor=self._terms.executor,
            account=self.taken.account,
            due_at=self.taken.due_at,
            delivery=self.delivery,
            **asdict(sight),
        )

    def _described(self, begin: Instant, end: Instant) -> JobToRun:
        """Return the job for its launcher; its environment names the slot and the units that start with it."""
        order, taken, offer, unit = self.order, self.taken, self._offer, self._unit
        resource, reservation_id = self._where
        peers = order.peers or (JobPeer(order.unit, resource, reservation_id, offer.cores),)
        environment = {
            "RAMP_JOB": order.job_id,
            "RAMP_AGREEMENT": order.agreement_id,
            "RAMP_RESOURCE": resource,
            "RAMP_RESERVATION": reservation_id,
            "RAMP_CORES": str(order.cores),
            "RAMP_GPUS": str(unit.gpus),
            "RAMP_START": iso(taken.due_at),
            "RAMP_END": iso(end),
            "RAMP_UNIT": str(order.unit),
            "RAMP_UNITS": str(len(peers)),
            "RAMP_PEERS": " ".join(f"{each.unit}={each.resource}/{each.reservation_id}" for each in peers),
            **self._place,
            **{each.name: each.value for each in order.variables},
        }
        return JobToRun(
            order.job_id,
            resource,
            reservation_id,
            taken.account,
            order.cores,
            begin,
            end,
            taken.command or order.arguments,
            tuple(environment.items()),
            queue_key=offer.offer_id if offer.in_queue else "",
            archive=order.archive,
            start_by=min(max(taken.due_at, begin) + self._terms.delivery_limit, end),
            gres=unit.gres,
        )

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """Record the order, and submit the job if its slot exists."""
        if self.waits_for_start:
            return [Persist(self.taken)]
        self._look_later(now)
        return [Persist(self.taken), self._submit()]

    def slot_begun(self, paid_at: Instant) -> None:
        """Set the job's times after its slot, a queued job, has started and been paid.

        Args:
            paid_at: by the bank; the same after every restart.
        """
        if self.waits_for_start:
            self.waits_for_start = False
            end = min(self._offer.end, paid_at + self._offer.end - self._offer.start)
            later = self.order.begin_at > self._offer.start
            begin = self.order.begin_at if later else min(paid_at, self.taken.due_at)
            self.to_run = self._described(begin, end)
            if self.delivery is Delivery.PENDING and not self._terms.keeps_jobs:
                self.delivery = Delivery.ON_TIME

    def submitted(self, now: Instant) -> list[Effect]:
        """Submit a job that waited for its slot."""
        self._look_later(now)
        return [self._submit()]

    def slot_gone(self, now: Instant, *, late: bool, lost: bool) -> list[Effect]:
        """End the job because its slot has ended; a job that waited in vain was not delivered.

        Args:
            now: the present.
            late: whether the slot did not begin in time.
            lost: whether the resource has failed to deliver it.
        """
        if lost:
            return [*self._judged(Delivery.UNDELIVERED, now), *self.cancel(now)]
        if not self.waits_for_start or self.state.is_final:
            return self.cancel(now)
        if not late:
            return self._ended(JobSight(S.CANCELLED, detail="the job never started"), "JobSeen", now)
        self.delivery = Delivery.UNDELIVERED
        detail = f"not delivered: the queued job had not started by {iso(min(now, self._offer.start))}"
        return self._ended(JobSight(S.FAILED, detail=detail), "JobSeen", now)

    def slot_seen(self, now: Instant) -> list[Effect]:
        """Take the machine's word that the slot is in order now."""
        seen = self.delivery is Delivery.PENDING and not self._terms.keeps_jobs and self.taken.due_at <= now
        return self._judged(Delivery.ON_TIME, now) if seen and now < self.to_run.end_at else []

    def replay(self, record: JobCancelAsked | JobEnded) -> None:
        if isinstance(record, JobCancelAsked):
            self._cancelling = True
            return
        status = record.status
        self.state, self.delivery = status.state, status.delivery
        self.sight = JobSight(**{each.name: getattr(status, each.name) for each in fields(JobSight)})

    def recover(self, now: Instant) -> list[Effect]:
        """Look up or cancel the job after a restart."""
        self._await_verdict()
        return [] if self.state.is_final or self.waits_for_start else self.look(now)

    def on_timer(self, now: Instant) -> list[Effect]:
        """Look up the job, or give up if its result or the delivery of its slot will stay unknown."""
        if self.state.is_final:
            return self._judged(Delivery.UNKNOWN, now)
        if now >= self.to_run.end_at + END_MARGIN and (self._doubt or self.asked):
            what = f"the slot is over, and the result of the job is unknown: {self._doubt or 'no answer'}"
            return self._ended(replace(self.sight, state=S.FAILED, detail=what), "deadline", now)
        return self.look(now)

    def cancel(self, now: Instant) -> list[Effect]:
        """Cancel the job; repeated calls ask the launcher again."""
        if self.state.is_final:
            return []
        if self.waits_for_start:
            return self._ended(JobSight(S.CANCELLED, detail="the job never started"), "JobSeen", now)
        first, self._cancelling = not self._cancelling, True
        noted = [Persist(JobCancelAsked(self.taken.offer_id, self.order.job_id, now))] if first else []
        return [*noted, *self.look(now, again=True)]

    def look(self, now: Instant, *, again: bool = False) -> list[Effect]:
        """Ask the launcher, one question at a time; it does not know jobs that wait for their slot."""
        if self.waits_for_start:
            return []
        self._look_later(now)
        if self.asked and not again:
            return []
        self.asked = True
        return [CancelJob(self.to_run) if self._cancelling else LookUpJob(self.to_run)]

    def on_seen(self, answer: JobSight | MachineInDoubt | None, now: Instant) -> list[Effect]:
        """Take the launcher's answer; a final state stays."""
        self.asked = False
        submitted, self._submitting = self._submitting, False
        if self.state.is_final:
            return []
        if isinstance(answer, MachineInDoubt):
            self._doubt = answer.reason
            self._site_failed |= self.taken.due_at <= now < self.to_run.end_at
            return self._given_up(now)
        self._doubt = ""
        if answer is None:
            return self._unknown(now, submitted=submitted)
        if answer.state.is_final:
            self._site_failed = answer.state is S.FAILED
            return self._ended(answer, "JobSeen", now)
        if (self.state, answer.state) == (S.RUNNING, S.QUEUED):
            return []  # a job that ran does not wait again
        self.sight = answer
        if answer.state is not self.state:
            self._enter(answer.state, "JobSeen")
            self._pause = LOOK_FIRST
            self._look_later(now)
        self._measure()
        return []

    # -- common --------------------------------------------------------------------------------------------------

    def _unknown(self, now: Instant, *, submitted: bool) -> list[Effect]:
        """Handle a job unknown to the launcher: submit it unless it was seen to run.

        A launcher runs nothing twice (`JobToRun`), so a job that has run meanwhile does no harm.
        """
        if self._cancelling:
            return self._ended(JobSight(S.CANCELLED, detail="the job never started"), "JobSeen", now)
        waits = self.state in (S.TAKEN, S.QUEUED)
        if waits and submitted:  # asked again only after a pause
            self._doubt = "the job was submitted, but the site does not know it"
            return []
        if waits and now < self.to_run.end_at:
            return [self._submit()]
        return self._ended(JobSight(S.FAILED, detail="the site no longer knows the job"), "JobSeen", now)

    def _submit(self) -> SubmitJob:
        self.asked = self._submitting = True
        return SubmitJob(self.to_run)

    def _measure(self) -> None:
        """Judge the delivery by the start of a job that the site has started itself."""
        started = self.sight.started_at
        if self._terms.keeps_jobs and started is not None and self.delivery is Delivery.PENDING:
            late = started - self.taken.due_at > self._terms.grace
            self.delivery = Delivery.LATE if late else Delivery.ON_TIME

    def _given_up(self, now: Instant) -> list[Effect]:
        """End a job that the site could not even try to start in its slot."""
        if not self._is_undelivered or now < self.to_run.end_at:
            return []
        sight = replace(self.sight, state=S.FAILED, ended_at=now, detail=self._doubt)
        return [CancelJob(self.to_run), *self._ended(sight, "JobSeen", now)]

    @property
    def _is_undelivered(self) -> bool:
        """Whether the site itself, not the buyer's account, has failed to start the job, and had time to start it."""
        failed = self._site_failed and self._was_ordered_in_time
        return self._terms.keeps_jobs and failed and not self.has_started and not self._cancelling

    @property
    def _was_ordered_in_time(self) -> bool:
        """Whether the job was due early enough to show anything about its slot.

        Otherwise a buyer who orders a job for the slot's last moment, in which nobody can start it, would get the
        whole price back.
        """
        limit = min(self._terms.delivery_limit, (self._offer.end - self._offer.start) // 2)
        return self.to_run.end_at - self.to_run.begin_at >= limit

    def _judged(self, delivery: Delivery, now: Instant) -> list[Effect]:
        """Set the delivery; it is part of the record of a job that has ended."""
        if self.delivery is delivery:
            return []
        self.delivery = delivery
        self._await_verdict()
        return [Persist(JobEnded(self.taken.offer_id, self.status(), now))] if self.state.is_final else []

    def _ended(self, sight: JobSight, stimulus: str, now: Instant) -> list[Effect]:
        self.sight = replace(sight, native_id=sight.native_id or self.sight.native_id)
        self._measure()
        if self._is_undelivered and self.delivery is Delivery.PENDING:
            self.delivery = Delivery.UNDELIVERED
            self.sight = replace(self.sight, detail=f"not delivered: {sight.detail}")
        elif self._terms.keeps_jobs and sight.state is S.FAILED and self.delivery is Delivery.PENDING:
            self.delivery = Delivery.UNKNOWN
        self._enter(sight.state, stimulus)
        self._await_verdict()
        return [Persist(JobEnded(self.taken.offer_id, self.status(), now))]

    def _await_verdict(self) -> None:
        """Wait until the slot's end for the machine's word about the slot of a job that has ended."""
        if self.state.is_final:
            open_ = self.delivery is Delivery.PENDING and not self._terms.keeps_jobs and not self.waits_for_start
            self.deadline = self.to_run.end_at + END_MARGIN if open_ else None

    def _look_later(self, now: Instant) -> None:
        """Schedule the next look: after a growing pause, at the start of a waiting job, at the limit of a late one."""
        begin = self.to_run.begin_at
        waits = not self.has_started and now < begin and not self._cancelling and not self._doubt
        self.deadline = (begin if waits else now) + self._pause
        if not self.has_started and now < self.to_run.start_by:
            self.deadline = min(self.deadline, self.to_run.start_by)
        self._pause = min(self._pause * 3 // 2, LOOK_LONGEST)
