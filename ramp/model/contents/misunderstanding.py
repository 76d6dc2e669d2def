"""Refusals of requests and queries, and answers to unverified or misplaced messages."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.seal import Role


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=frozenset({Role.BANK, Role.ENROLMENT}))
@dataclass(frozen=True, slots=True)
class RequestRefused(Content):
    """REFUSE by the bank or the enrolment office to a request or query.

    Attributes:
        reference: the query's id, or the id of the deposit, agreement or invitation.
        code: the reason.
        detail: one sentence for people.
    """

    reference: str
    code: str
    detail: str = ""


@said(
    Performative.CONFIRM,
    Performative.CANCEL,
    Performative.REQUEST,
    Performative.FAILURE,
    interaction=Interaction.REQUEST,
)
@dataclass(frozen=True, slots=True)
class Unverified(Content):
    """Stands in for a signed content whose signatures did not verify; made by the host, never sent.

    Attributes:
        kind: `agreement`, `cancellation` or `amendment`.
        reference: the id the document claims, for the answer only.
        code: the fault (`bad_signature`, `unknown_signer`, `certificate_expired`, `malformed`).
        detail: one sentence.
    """

    kind: str
    reference: str
    code: str
    detail: str


@said(Performative.NOT_UNDERSTOOD, interaction=Interaction.ANY)
@dataclass(frozen=True, slots=True)
class NotUnderstood(Content):
    """NOT_UNDERSTOOD: the message broke the protocol or could not be read."""

    reason: str
