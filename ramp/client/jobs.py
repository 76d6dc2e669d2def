"""Jobs for programs: what is to be run, the orders that it takes, and how a job stands."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from ramp.client.identifiers import matching, not_one
from ramp.client.results import short_name
from ramp.control.events import JobStanding
from ramp.errors import ConfigurationError
from ramp.model.agreement import Agreement
from ramp.model.contents import JobArgument, JobInput, JobOrder, JobPeer
from ramp.model.contents.jobs import INPUT_BYTES_MAX, Delivery, JobState, limits_problem
from ramp.model.instant import Instant, to_datetime

UNANSWERED: Final = "unanswered"
"""State of a job whose resource has not answered yet."""

REFUSED: Final = "refused"
"""State of a job that its resource does not run."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is run on a slot.

    Attributes:
        arguments: the command and its arguments; `./NAME` for a staged file.
        inputs: staged files.
        cores: so many of each slot's cores; None for all.
        together: whether the units of a request begin together, when the last of their slots has begun.
    """

    arguments: tuple[str, ...]
    inputs: tuple[JobInput, ...] = ()
    cores: int | None = None
    together: bool = True


def work_of(
    command: str | Sequence[str],
    *,
    script: str | Path | None = None,
    inputs: Sequence[str | Path] = (),
    cores: int | None = None,
    together: bool = True,
) -> Work:
    """What is run, from a command or a script, and files to stage.

    Args:
        command: words, or one text as a shell would split it; arguments of the script where there is one.
        script: a file that is staged and run.
        inputs: further files that are staged.
        cores: so many of each slot's cores; None for all.
        together: see `Work`.

    Raises:
        ConfigurationError: if there is nothing to run, or a file cannot be read or is too large.
    """
    words = tuple(shlex.split(command) if isinstance(command, str) else command)
    files = [_staged(Path(each), executable=False) for each in inputs]
    if script is not None:
        staged = _staged(Path(script), executable=True)
        files.append(staged)
        words = (f"./{staged.name}", *words)
    if not words:
        raise ConfigurationError('there is nothing to run; right would be a command, such as "hostname", or a script')
    return Work(words, tuple(files), cores, together)


def _staged(path: Path, *, executable: bool) -> JobInput:
    try:
        with path.open("rb") as file:
            data = file.read(INPUT_BYTES_MAX + 1)
            mode = path.stat().st_mode
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=path) from error
    if len(data) > INPUT_BYTES_MAX:
        raise ConfigurationError(
            f"is larger than {INPUT_BYTES_MAX} bytes, which all staged files together may have", path=path
        )
    return JobInput(path.name, base64.b64encode(data).decode("ascii"), executable or bool(mode & 0o100))


def orders_of(agreements: Sequence[Agreement], work: Work, new_id: Callable[[str], str]) -> tuple[JobOrder, ...]:
    """The orders of one work on slots of a request, one a slot, in the order of their units.

    Slots that overlap begin together, when the last of them has begun, unless the work says otherwise.

    Raises:
        ConfigurationError: if the work is beyond the limits.
    """
    units = sorted(agreements, key=lambda each: each.offer.unit)
    begin = max(each.offer.start for each in units)
    together = work.together and begin < min(each.offer.end for each in units)
    peers = tuple(JobPeer(each.offer.unit, each.resource, each.reservation_id, each.offer.cores) for each in units)
    orders = tuple(
        JobOrder(
            job_id=new_id("job"),
            agreement_id=each.agreement_id,
            cores=work.cores or each.offer.cores,
            unit=each.offer.unit,
            begin_at=begin if together else each.offer.start,
            arguments=tuple(JobArgument(word) for word in work.arguments),
            inputs=work.inputs,
            peers=peers if together or len(peers) == 1 else (peer,),
        )
        for each, peer in zip(units, peers, strict=True)
    )
    for order in orders:
        problem = limits_problem(order)
        if problem:
            raise ConfigurationError(problem)
    return orders


def one_job(jobs: Sequence[JobStanding], any_id: str) -> JobStanding:
    """The job that a name, or the beginning of one, means.

    Raises:
        ConfigurationError: if it means none, or several.
    """
    found = matching(jobs, any_id, lambda each: each.order.job_id)
    if len(found) != 1:
        if not found:
            raise ConfigurationError(f"there is no job {any_id!r}; `ramp jobs` lists all")
        raise not_one(f"job {any_id!r}", len(found))
    return found[0]


@dataclass(frozen=True, slots=True)
class Job:
    """A job on something bought.

    Attributes:
        job_id: its name.
        agreement_id: of its slot.
        resource: who runs it.
        unit: the unit's number in the request.
        command: what is run.
        state: `taken`, `queued`, `running`, `done`, `failed`, `cancelled`; `unanswered` or `refused` by its resource.
        delivery: `pending`, `on_time`, `late` or `undelivered`, as the resource measures it.
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
        """Whether nothing follows."""
        return self.state == REFUSED or (self.state in {*JobState} and JobState(self.state).is_final)


def job_of(standing: JobStanding, domain: str) -> Job:
    """A job for programs."""
    order, status, refused = standing.order, standing.status, standing.refused
    return Job(
        job_id=order.job_id,
        agreement_id=order.agreement_id,
        resource=short_name(standing.resource, domain),
        unit=order.unit,
        command=tuple(each.value for each in order.arguments),
        state=REFUSED if refused is not None else UNANSWERED if status is None else status.state.value,
        delivery=Delivery.PENDING.value if status is None else status.delivery.value,
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


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def deliveries(jobs: Sequence[Job]) -> Mapping[str, Job]:
    """Of each agreement that has jobs, the one that tells how its slot was delivered: the first that is measured."""
    found: dict[str, Job] = {}
    for job in jobs:
        known = found.get(job.agreement_id)
        if known is None or known.delivery == Delivery.PENDING:
            found[job.agreement_id] = job
    return found
