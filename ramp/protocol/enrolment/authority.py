"""Questions of the office to the market's authority and of a site to its keys, with the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ramp.model.acl import Message
from ramp.model.contents import EnrolmentGranted, EnrolmentRequest, RequestRefused
from ramp.model.instant import Instant


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Issue the certificate that a message requests, or refuse; a certificate is durable before the answer."""

    message: Message
    request: EnrolmentRequest


@dataclass(frozen=True, slots=True)
class ReadRevocations:
    """Read the authority's signed revocation list, and its recipients."""


@dataclass(frozen=True, slots=True)
class KeepRevocations:
    """Store a revocation list beside this site's keys, if the authority signed it and it is newer."""

    revocations: str


AskAuthority = JudgeRequest | ReadRevocations | KeepRevocations


@dataclass(frozen=True, slots=True)
class RequestJudged:
    """The answer to `JudgeRequest`."""

    message: Message
    answer: EnrolmentGranted | RequestRefused


@dataclass(frozen=True, slots=True)
class RevocationsRead:
    """The answer to `ReadRevocations`.

    Attributes:
        number: of the list; 0 if there is no list here, because the authority's key is elsewhere.
        revocations: the list in PEM.
        members: full names of all enrolled parties.
        reasons: reasons of revocations, by name.
    """

    number: int
    revocations: str
    members: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RevocationsKept:
    """The answer to `KeepRevocations`: the present list, or `number` 0 and the problem of the new one."""

    number: int
    expires_at: Instant
    problem: str = ""


AuthorityAnswer = RequestJudged | RevocationsRead | RevocationsKept
