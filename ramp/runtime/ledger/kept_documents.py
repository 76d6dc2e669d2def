"""The documents that a bank keeps as evidence: what it has verified once it knows again, whatever keys are on file now.

An agreement may stand for months, and its parties' certificates are renewed and their keys changed meanwhile. What the
bank has posted by a document it has on record byte for byte; so nobody has to sign it again, and nobody can by a new
key make what was signed with the old one worthless.
"""

from __future__ import annotations

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


class KeptDocuments:
    """Looks documents up among the evidence of a ledger.

    Args:
        ledger: the bank's.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def kept_at(self, document: str) -> Instant | None:
        """When the bank has verified this very document and put it on record; None where it has not.

        Args:
            document: the XML text of an agreement or of a change of one, as somebody has brought it, or of what its
                user has signed of it (`inner_of`).

        Raises:
            LedgerUnavailable: if the ledger does not answer.
        """
        agreement_id = claimed_by(document)
        evidence = self._ledger.evidence(agreement_id) if agreement_id else ()
        kept = ((each.at, _document_of(each)) for each in evidence)
        return next((at for at, text in kept if text and document in (text, inner_of(text))), None)


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


def _document_of(evidence: Evidence) -> str:
    """The signed document of a piece of evidence; empty where it is none that a slot's state is made of."""
    if evidence.kind in {EvidenceKind.AGREEMENT, EvidenceKind.AMENDMENT}:
        return evidence.text  # of an amendment its buyer's sealed withdrawal may stand there, which is no document
    return _first_signed_in(evidence.text) if evidence.kind is EvidenceKind.RECLAMATION else ""


def _first_signed_in(text: str) -> str:
    """The first document that a sealed message passes on; empty where it is none, or passes none on."""
    try:
        return first_signed(seals.parse(text).body)
    except DocumentError:
        return ""
