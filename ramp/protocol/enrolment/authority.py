"""What the office asks of the market's authority, what a site asks of its own keys, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ramp.model.contents import EnrolmentDenied, EnrolmentGranted, EnrolmentRequest
from ramp.model.instant import Instant


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Issue what a request asks for, or say why not; what is issued is durable before the answer."""

    call_id: str
    request: EnrolmentRequest


@dataclass(frozen=True, slots=True)
class ReadRevocations:
    """What has been revoked, as a list that the authority has signed, and who is to be told."""


@dataclass(frozen=True, slots=True)
class KeepRevocations:
    """Keep a list beside the keys of this site, if the authority has signed it and it is newer than the one there."""

    revocations: str


AskAuthority = JudgeRequest | ReadRevocations | KeepRevocations


@dataclass(frozen=True, slots=True)
class RequestJudged:
    """The answer to `JudgeRequest`."""

    call_id: str
    answer: EnrolmentGranted | EnrolmentDenied


@dataclass(frozen=True, slots=True)
class RevocationsRead:
    """The answer to `ReadRevocations`.

    Attributes:
        number: of the list; 0 where there is none, for the authority's key is elsewhere.
        revocations: the list in PEM.
        members: full names of those who have enrolled.
        reasons: why their certificates were revoked, by name, of those whose were.
    """

    number: int
    revocations: str
    members: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RevocationsKept:
    """The answer to `KeepRevocations`: the list that is here now, or `number` 0 and what was wrong with the other."""

    number: int
    expires_at: Instant
    problem: str = ""


AuthorityAnswer = RequestJudged | RevocationsRead | RevocationsKept
