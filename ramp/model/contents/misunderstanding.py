"""Answers to unverified or misplaced messages."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.communicative_acts import Interaction, Performative, said


@said(Performative.CONFIRM, Performative.CANCEL, Performative.REQUEST, interaction=Interaction.REQUEST)
@dataclass(frozen=True, slots=True)
class Unverified:
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
class NotUnderstood:
    """NOT_UNDERSTOOD: the message broke the protocol or could not be read."""

    reason: str
