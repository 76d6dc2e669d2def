"""Jobs on reservations: states, orders, and files, which go before the orders as one archive."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shlex
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from ramp.client.identifiers import matching, not_one
from ramp.client.results import short_name
from ramp.control.events import JobStanding
from ramp.errors import ConfigurationError, ControlLineError
from ramp.model.agreement import Agreement
from ramp.model.contents import JobOrder, JobPeer, JobVariable
from ramp.model.contents.jobs import (
    ARCHIVE_BYTES_MAX,
    UNPACKED_BYTES_MAX,
    Delivery,
    JobState,
    JobStatus,
    limits_problem,
    path_problem,
)
from ramp.model.instant import INSTANT_END, Instant, to_datetime

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


def work_of(
    command: str | Sequence[str],
    *,
    script: str | Path | None = None,
    inputs: Sequence[str | Path] = (),
    cores: int | None = None,
    environment: Mapping[str, str] | None = None,
    application: str = "",
    version: str = "",
) -> tuple[JobOrder, bytes]:
    """Read a command or script and its files; raises `ConfigurationError` for no command or bad files.

    Returns:
        The order, which names no slot yet and has 0 cores for all of a slot, and the archive of its files.
    """
    try:
        words = tuple(shlex.split(command) if isinstance(command, str) else command)
    except ValueError as error:
        raise ConfigurationError(f"invalid command: {error}".lower()) from error
    files: dict[str, Path] = {}
    for given in inputs if script is None else (*inputs, script):
        for name, path in files_below(Path(given)):
            problem = path_problem(name)
            if problem or name in files:
                raise ConfigurationError(problem or f"two input files are called {name!r}", path=path)
            files[name] = path
    if script is not None:
        words = (f"./{Path(script).name}", *words)
    if application and script is not None:
        raise ConfigurationError("an application and a script exclude each other; give the script as an input")
    if not words and not application:
        raise ConfigurationError('nothing to run: give a command, such as "hostname", or a script')
    variables = tuple(JobVariable(name, value) for name, value in (environment or {}).items())
    archive = archive_of(files, None if script is None else Path(script).name) if files else b""
    digest = hashlib.sha256(archive).hexdigest() if archive else ""
    return JobOrder("", "", cores or 0, 0, 0, words, (), variables, digest, application, version), archive


def orders_of(
    agreements: Sequence[Agreement], order: JobOrder, new_id: Callable[[str], str], *, together: bool
) -> tuple[JobOrder, ...]:
    """Return an order of `work_of` for slots of a request, one a slot, in the order of their units.

    Where `together` is true, slots that overlap begin together, when the last of them has begun.
    """
    units = sorted(agreements, key=lambda each: each.offer.unit)
    begin = max(each.offer.start for each in units)
    together = together and begin < min(each.offer.end for each in units)
    peers = tuple(JobPeer(each.offer.unit, each.resource, each.reservation_id, each.offer.cores) for each in units)
    orders = tuple(
        replace(
            order,
            job_id=new_id("job"),
            agreement_id=each.agreement_id,
            cores=order.cores or each.offer.cores,
            unit=each.offer.unit,
            begin_at=begin if together else each.offer.start,
            peers=peers if together or len(peers) == 1 else (peer,),
        )
        for each, peer in zip(units, peers, strict=True)
    )
    for each in orders:
        problem = limits_problem(each)
        if problem:
            raise ConfigurationError(problem)
    return orders


FETCHED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Maximum bytes that are fetched from a job at once."""

LISTED_MAX: Final = 20_000
"""Maximum entries of a list of files, above what a site's worker lists; its site may be wrong, or worse."""


@dataclass(frozen=True, slots=True)
class JobFile:
    """A stream or a file of a job.

    Attributes:
        path: `stdout`, `stderr`, or its path in the job's folder.
        size: in bytes.
        changed: time of the last change, by the clock of its site.
    """

    path: str
    size: int
    changed: datetime


def files_of(lines: bytes) -> tuple[JobFile, ...]:
    """Read a list of files as a site has written it.

    Raises:
        ControlLineError: if it is invalid.
    """
    found = []
    for line in lines.splitlines():
        try:
            path, size, changed = json.loads(line)
        except (ValueError, TypeError) as error:
            raise ControlLineError("the site's list of files is invalid: expected path, size and time") from error
        right = isinstance(path, str) and type(size) is int and type(changed) is int
        if not right or path_problem(path) or size < 0 or not 0 <= changed < INSTANT_END:
            raise ControlLineError(f"the site's list of files is invalid: got {line[:80]!r}")
        found.append(JobFile(path, size, to_datetime(changed)))
    return tuple(found)


def files_below(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield an input file, or all files of an input folder, with their paths in the job's folder.

    Raises:
        ConfigurationError: if there is something else, such as a link to a folder.
    """
    name = path.name or path.resolve().name
    try:
        is_file = not path.is_dir()
        if is_file and path.exists() and not path.is_file():  # a pipe would be waited for
            raise _not_staged(path)
    except OSError as error:  # no file can have such a name
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=path) from error
    if is_file:
        yield name, path
        return
    for here, folders, files in os.walk(path):
        folders.sort()
        for each in sorted(files) + [each for each in folders if (Path(here) / each).is_symlink()]:
            found = Path(here) / each
            if not found.is_file():
                raise _not_staged(found)
            yield str(Path(name) / found.relative_to(path)), found


def archive_of(files: Mapping[str, Path], starter: str | None = None) -> bytes:
    """Return input files, by their paths in the job's folder, as a compressed archive; `starter` is made executable.

    Raises:
        ConfigurationError: if a file cannot be read, or they are too large.
    """
    packed, size = io.BytesIO(), 0
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, path in files.items():
            try:
                with path.open("rb") as content:
                    entry = tarfile.TarInfo(name)
                    found = os.fstat(content.fileno())
                    entry.size, entry.mtime = found.st_size, int(found.st_mtime)
                    entry.mode = stat.S_IMODE(found.st_mode) | (0o100 if name == starter else 0)
                    size += 512 * (2 + -(-entry.size // 512))
                    if size <= UNPACKED_BYTES_MAX:
                        archive.addfile(entry, content)
            except OSError as error:
                raise ConfigurationError(f"cannot be read: {error.strerror or error}", path=path) from error
            if size > UNPACKED_BYTES_MAX or packed.tell() > ARCHIVE_BYTES_MAX:
                raise _too_large(path)
    if len(packed.getbuffer()) > ARCHIVE_BYTES_MAX:
        raise _too_large(path)
    return packed.getvalue()


def _not_staged(path: Path) -> ConfigurationError:
    return ConfigurationError("cannot be staged: expected files, folders, or links to files", path=path)


def _too_large(path: Path) -> ConfigurationError:
    right = f"{ARCHIVE_BYTES_MAX // 2**20} MiB compressed and {UNPACKED_BYTES_MAX // 2**20} MiB in all"
    return ConfigurationError(f"makes the input files too large: expected at most {right}", path=path)


def save(folder: Path, path: str, data: bytes) -> Path:
    """Save a file of a job below a local folder.

    Raises:
        ConfigurationError: if its path leads elsewhere, for example over a link, or it cannot be written.
    """
    problem = path_problem(path)
    target = folder / path
    if problem:
        raise ConfigurationError(problem)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or not target.parent.resolve().is_relative_to(folder.resolve()):
            raise ConfigurationError("is not written: a link leads out of the folder", path=target)
        target.write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"cannot be written: {error.strerror}", path=target) from error
    return target
