"""Evidence: signed messages that justify the ledger's changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.instant import Instant

EVIDENCE_LENGTH_MAX: Final = 4_194_304
"""Longest evidence in characters: an order of the most lines, with signature and certificate, is far shorter."""


class EvidenceKind(StrEnum):
    """The kind of change that a signed message justifies."""

    ORDER = "order"
    AGREEMENT = "agreement"
    VOID = "void"
    CHANGE = "change"
    DEPOSIT = "deposit"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One signed message.

    Attributes:
        reference: the order, agreement or deposit.
        text: as signed.
        at: when the change was entered.
    """

    reference: str
    kind: EvidenceKind
    text: str
    at: Instant
