"""Jobs on bought slots: the buyer's orders to the resource, and the resource's reports.

The paper leaves starting the application to its Application Hosting Environment (section 4); here the Resource Agent
submits at its own site, on the buyer's sealed order, as the local account that the site maps the buyer to.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.instant import Instant
from ramp.model.seal import BY_RESOURCE, BY_USER

JOB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}")
"""Form of a job's name, which becomes the name of a folder and of a job of the batch system."""

STDOUT: Final = "stdout"
STDERR: Final = "stderr"
STREAMS: Final = (STDOUT, STDERR)
"""Names of a job's two output streams among its files."""

ARGUMENTS_MAX: Final = 200
"""Maximum number of arguments of a job's command."""

ARGUMENT_CHARACTERS_MAX: Final = 4_000
"""Maximum number of characters of an argument."""

OUTPUT_CHUNK_BYTES: Final = 48 * 1024
"""Maximum bytes of a file in one message: in base64 they fit a document (90 kB)."""

ARCHIVE_BYTES_MAX: Final = 32 * 1024 * 1024
"""Maximum size of the compressed archive of inputs that is sent before its order."""

UNPACKED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Maximum size of that archive before its compression."""

VARIABLES_MAX: Final = 100
"""Maximum number of environment variables that an order adds."""

VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
OWN_VARIABLES: Final = "RAMP_"
"""Prefix of the variables that describe the slot; an order cannot set them."""

PATH_CHARACTERS_MAX: Final = 1_000
"""Maximum length of a file's path in a job's folder."""

FOLDER: Final = "."
"""Name under which the list of a job's files is read, as pieces that count entries instead of bytes."""

INPUTS: Final = "inputs"
"""Name under which a resource reports how much of an archive of inputs it has."""


class JobState(StrEnum):
    """State of a job.

    TAKEN: on record at the resource, not yet with the batch system. QUEUED: waits in the batch system for its time.
    RUNNING. DONE: ended with exit code 0. FAILED: ended otherwise, or could not be run. CANCELLED.
    """

    TAKEN = "taken"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the state is the last one."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class Delivery(StrEnum):
    """Whether the slot was delivered as sold, by records that the buyer's account cannot write.

    PENDING: not yet known. ON_TIME and LATE: the site has started the job, within its grace or after it; in a batch
    system ON_TIME: the site has seen the slot in order. UNDELIVERED: the site has failed; the resource gives the money
    back. UNKNOWN: nobody looked during the slot, as while the agent was down; the money stays.
    """

    PENDING = "pending"
    ON_TIME = "on_time"
    LATE = "late"
    UNDELIVERED = "undelivered"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class JobVariable:
    """An environment variable of a job."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class JobPeer:
    """One unit of the request, as described to the jobs of all its units.

    Attributes:
        unit: its number in the request, from 1.
        resource: the seller.
        reservation_id: the resource's name for its slot.
        cores: of the slot.
    """

    unit: int
    resource: str
    reservation_id: str
    cores: int


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class JobOrder(Content):
    """REQUEST by the buyer: run this on the slot; the same `job_id` is run once, however often it is ordered.

    Attributes:
        job_id: the buyer's name for it.
        agreement_id: of its slot.
        cores: number of the slot's cores to use.
        unit: the unit's number in its request.
        begin_at: earliest start; if units start together, when the last of their slots begins.
        arguments: the command and its arguments.
        peers: all units of the request that start together, including this one.
        variables: environment variables besides those that every job has.
        archive: SHA-256 in hexadecimal of the archive of inputs that was sent before the order; empty without one.
        application: an application of the resource, whose input the arguments are; empty for a command.
        application_version: its version; empty for the request's, or the resource's first one.
    """

    job_id: str
    agreement_id: str
    cores: int
    unit: int
    begin_at: Instant
    arguments: tuple[str, ...]
    peers: tuple[JobPeer, ...] = ()
    variables: tuple[JobVariable, ...] = ()
    archive: str = ""
    application: str = ""
    application_version: str = ""


def _name_problem(job_id: str) -> str:
    return f"invalid job name: got {job_id!r:.80}, expected at most 64 letters, digits, dots and hyphens"


def path_problem(path: str) -> str:
    """Say why a path cannot name a file in a job's folder; empty if it can."""
    parts = path.removeprefix("./").split("/")
    if path.startswith("/") or ".." in parts or "" in parts or "." in parts:
        return f"invalid file name: got {path!r:.80}, expected a path inside the job's folder"
    if len(path) > PATH_CHARACTERS_MAX or not path.isprintable():
        right = f"at most {PATH_CHARACTERS_MAX} printable characters"
        return f"invalid file name: got {path!r:.80}, expected {right}"
    return ""


def _variables_problem(variables: tuple[JobVariable, ...]) -> str:
    if len({each.name for each in variables}) < len(variables) or len(variables) > VARIABLES_MAX:
        return f"invalid variables: got {len(variables)}, expected at most {VARIABLES_MAX} with different names"
    for each in variables:
        if not VARIABLE.fullmatch(each.name) or each.name.startswith(OWN_VARIABLES):
            right = f"letters, digits and _, not beginning with {OWN_VARIABLES}"
            return f"invalid name of a variable: got {each.name!r:.80}, expected {right}"
        if len(each.value) > ARGUMENT_CHARACTERS_MAX or "\0" in each.value:
            return f"invalid value of {each.name}: expected at most {ARGUMENT_CHARACTERS_MAX} characters, no zero byte"
    return ""


def limits_problem(order: JobOrder) -> str:
    """Say what is invalid in an order's name, command or variables; empty if it is valid."""
    if not JOB_ID.fullmatch(order.job_id):
        return _name_problem(order.job_id)
    starts = order.application or (order.arguments and order.arguments[0])
    if len(order.arguments) > ARGUMENTS_MAX or not starts:
        return f"invalid command: got {len(order.arguments)} words, expected 1 to {ARGUMENTS_MAX}, the first not empty"
    longest = max((len(each) for each in order.arguments), default=0)
    if longest > ARGUMENT_CHARACTERS_MAX:
        return f"argument too long: got {longest} characters, expected at most {ARGUMENT_CHARACTERS_MAX}"
    if any("\0" in each for each in order.arguments):
        return "an argument contains a zero byte"
    return _variables_problem(order.variables)


@said(Performative.QUERY_REF, interaction=Interaction.QUERY, by=BY_USER)
@dataclass(frozen=True, slots=True)
class JobQuery(Content):
    """QUERY_REF by the buyer for the state of a job."""

    job_id: str
    agreement_id: str


@said(Performative.CANCEL, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class JobCancellation(Content):
    """CANCEL by the buyer: end the job; the slot stays bought."""

    job_id: str
    agreement_id: str


@said(Performative.QUERY_REF, interaction=Interaction.QUERY, by=BY_USER)
@dataclass(frozen=True, slots=True)
class JobOutputQuery(Content):
    """QUERY_REF by the buyer: the bytes of a stream or result file from an offset on, or the list of files.

    Attributes:
        job_id: of the job.
        agreement_id: of its slot.
        name: `stdout`, `stderr`, the path of a file in the job's folder, or `FOLDER` for the list of its files.
        offset: of the first byte wanted; of the first entry of a list.
    """

    job_id: str
    agreement_id: str
    name: str
    offset: int


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class JobInputPiece(Content):
    """REQUEST by the buyer, before an order: keep this piece of the job's archive of inputs.

    Attributes:
        job_id: of the job that will be ordered.
        agreement_id: of its slot.
        offset: of the piece's first byte.
        data: the piece in base64.
    """

    job_id: str
    agreement_id: str
    offset: int
    data: str


def piece_problem(piece: JobInputPiece) -> str:
    """Say what is invalid in a piece of inputs; empty if it is valid."""
    if not JOB_ID.fullmatch(piece.job_id):
        return _name_problem(piece.job_id)
    try:
        size = len(binascii.a2b_base64(piece.data, strict_mode=True)) if piece.data else 0
    except ValueError:
        return "the piece of inputs is not in base64"
    if not size or size > OUTPUT_CHUNK_BYTES:
        return f"wrong size of a piece of inputs: got {size} bytes, expected 1 to {OUTPUT_CHUNK_BYTES}"
    if not 0 <= piece.offset <= ARCHIVE_BYTES_MAX - size:
        return f"inputs too large: got {piece.offset + size} bytes, expected at most {ARCHIVE_BYTES_MAX}"
    return ""


@said(Performative.AGREE, Performative.INFORM, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class JobStatus(Content):
    """AGREE to an order, INFORM otherwise: the state of a job.

    Attributes:
        job_id: of the job.
        agreement_id: of its slot.
        state: a `JobState`.
        executor: `local` on the agent's own computer, if the machine is simulated; else the batch system.
        account: the local account it runs as.
        due_at: when it should start: when its slot has begun and the order has arrived.
        delivery: a `Delivery`.
        native_id: the batch system's name for it, or empty.
        cores: that it may use, 0 before its start.
        started_at: when it started, by the resource's clock.
        ended_at: when it ended.
        exit_code: of its command; negative for the signal that ended it.
        detail: one sentence for people.
    """

    job_id: str
    agreement_id: str
    state: JobState
    executor: str
    account: str
    due_at: Instant
    delivery: Delivery
    native_id: str = ""
    cores: int = 0
    started_at: Instant | None = None
    ended_at: Instant | None = None
    exit_code: int | None = None
    detail: str = ""


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class JobRefused(Content):
    """REFUSE: the job is not run, or unknown; `code` says why."""

    job_id: str
    agreement_id: str
    code: str
    detail: str = ""


@said(Performative.INFORM, interaction=Interaction.QUERY, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class JobOutput(Content):
    """INFORM: a piece of a job's output or list of files, or (`INPUTS`, without data) how much of its inputs is there.

    Attributes:
        job_id: of the job.
        agreement_id: of its slot.
        name: the stream or file.
        offset: of the piece's first byte or entry.
        size: present total size in bytes or entries.
        complete: whether the output is final, because the job has ended.
        data: the piece in base64.
    """

    job_id: str
    agreement_id: str
    name: str
    offset: int
    size: int
    complete: bool
    data: str
