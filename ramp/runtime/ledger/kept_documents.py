"""The documents that a bank keeps as evidence: what it has verified once it knows again, whatever keys are on file now.

An agreement may stand for months, and its parties' certificates are renewed and their keys changed meanwhile. What the
bank has posted by a document it has on record byte for byte; so nobody has to sign it again, and nobody can by a new
key make what was signed with the old one worthless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from ramp.errors import DocumentError
from ramp.ledger.evidence import Evidence, EvidenceKind
from ramp.ledger.interface import Ledger
from ramp.model.agreement import Signed, first_signer
from ramp.model.instant import Instant
from ramp.rfql import agreements
from ramp.rfql.signing import seals
from ramp.rfql.signing.notary import inner_of
from ramp.rfql.signing.proofs import claimed_by, first_signed
from ramp.rfql.xml.parser import parse_wire

AGREEMENTS_MAX: Final = 10_000
"""Of so many agreements it is remembered what is kept; of one it takes some kilobytes at most."""


@dataclass(slots=True)
class _Read:
    """What was read of an agreement's evidence.

    Attributes:
        count: how many pieces, the first ones.
        kept_at: when each document in them was verified, by its digest.
    """

    count: int = 0
    kept_at: dict[bytes, Instant] = field(default_factory=dict)


class KeptDocuments:
    """Looks documents up among the evidence of a ledger.

    Whoever brings what nobody has signed costs a look into an index: evidence is read once, whatever is asked.

    Args:
        ledger: the bank's.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._read: dict[str, _Read] = {}

    def kept_at(self, document: str) -> Instant | None:
        """When the bank has verified this very document and put it on record; None where it has not.

        Args:
            document: the XML text of an agreement or of a change of one, as somebody has brought it, or of what its
                user has signed of it (`inner_of`). A reclamation that had come to nothing when it was read is unknown.

        Raises:
            LedgerUnavailable: if the ledger does not answer.
        """
        agreement_id = claimed_by(document)
        return self._kept(agreement_id).get(_digest(document)) if agreement_id else None

    def _kept(self, agreement_id: str) -> dict[bytes, Instant]:
        """What is kept of an agreement; what has come since it was asked for last is read now."""
        read = self._read.get(agreement_id) or _Read()
        evidence = self._ledger.evidence(agreement_id, after=read.count)
        if evidence:
            standing = {each.noticed_at for each in self._ledger.reclamations(agreement_id) if not each.code}
            for each in evidence:
                if each.kind is not EvidenceKind.RECLAMATION or each.at in standing:
                    for text in _documents_of(each):
                        read.kept_at.setdefault(_digest(text), each.at)
            read.count += len(evidence)
            if len(self._read) >= AGREEMENTS_MAX:
                self._read.clear()
            self._read[agreement_id] = read
        return read.kept_at


def noticed_in(text: str) -> Signed | None:
    """The reclamation of a seller's sealed notice as it is kept: it was verified when it was put on record.

    Args:
        text: of a piece of evidence.

    Returns:
        The document byte for byte as it came; None where the text is no such notice.
    """
    document = _first_signed_in(text)
    if not document:
        return None
    root = parse_wire(document)
    if root.tag != agreements.RECLAMATION.tag:
        return None
    body = agreements.RECLAMATION.read(root)
    return Signed(body, (first_signer(body),), document)


def _digest(document: str) -> bytes:
    return sha256(document.encode()).digest()


def _documents_of(evidence: Evidence) -> tuple[str, ...]:
    """The signed documents of a piece of evidence; none where it is none that a slot's state is made of."""
    if evidence.kind in {EvidenceKind.AGREEMENT, EvidenceKind.AMENDMENT}:
        # of an amendment its buyer's sealed withdrawal may stand there, which is no document
        return evidence.text, inner_of(evidence.text)
    return (_first_signed_in(evidence.text),) if evidence.kind is EvidenceKind.RECLAMATION else ()


def _first_signed_in(text: str) -> str:
    """The first document that a sealed message passes on; empty where it is none, or passes none on."""
    try:
        return first_signed(seals.parse(text).body)
    except DocumentError:
        return ""
