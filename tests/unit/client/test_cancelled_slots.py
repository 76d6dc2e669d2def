"""The job of a slot that was cancelled has an end, though its resource may have forgotten it."""

import pytest

from ramp.client.jobs.job import deliveries, job_of
from ramp.control.events import JobStanding
from ramp.model.contents import JobOrder, JobRefused, JobStatus
from ramp.model.contents.jobs import Delivery, JobState

ORDER = JobOrder("job-1", "agreement-1", 8, 1, 0, ("hostname",))


def status(state: JobState, delivery: Delivery = Delivery.PENDING) -> JobStatus:
    return JobStatus("job-1", "agreement-1", state, "slurm", "ann", 10, delivery)


@pytest.mark.parametrize(
    ("said", "slot", "expected"),
    [
        (status(JobState.TAKEN), "active", ("taken", "pending")),
        (status(JobState.TAKEN), "cancelled", ("cancelled", "cancelled")),
        (status(JobState.QUEUED), "cancelled", ("cancelled", "cancelled")),
        (status(JobState.CANCELLED), "cancelled", ("cancelled", "cancelled")),
        (status(JobState.CANCELLED), "active", ("cancelled", "cancelled")),
        (status(JobState.FAILED, Delivery.UNDELIVERED), "cancelled", ("failed", "undelivered")),
        (status(JobState.DONE, Delivery.LATE), "active", ("done", "late")),
        (status(JobState.FAILED), "active", ("failed", "unknown")),
        (None, "active", ("unanswered", "pending")),
        (None, "cancelled", ("cancelled", "cancelled")),
        (JobRefused("job-1", "agreement-1", "no_account", "none"), "active", ("refused", "cancelled")),
    ],
)
def test_a_delivery_is_pending_only_while_the_job_may_start(
    said: JobStatus | JobRefused | None, slot: str, expected: tuple[str, str]
) -> None:
    known = (said, None) if not isinstance(said, JobRefused) else (None, said)
    job = job_of(JobStanding(ORDER, "request-1", "res@localhost", 0, *known, slot=slot), "localhost")
    assert (job.state, job.delivery) == expected
    assert job.has_ended == (expected[0] not in ("taken", "unanswered"))


def test_a_job_that_was_cancelled_does_not_hide_the_one_that_measured() -> None:
    first, second = (
        job_of(JobStanding(ORDER, "request-1", "res@localhost", 0, said), "localhost")
        for said in (status(JobState.CANCELLED), status(JobState.DONE, Delivery.ON_TIME))
    )
    assert deliveries([first, second])["agreement-1"] is second
    assert deliveries([second, first])["agreement-1"] is second
