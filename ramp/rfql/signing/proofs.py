"""Documents that pass on signed or sealed ones: commitment, settlement and changes of a slot.

These proofs are escaped text, byte for byte as they were signed (schemas/proof.xsd).
"""

from __future__ import annotations

from typing import Final, Protocol

from ramp.errors import CertificateExpired, DocumentError, SealInvalid, SignatureInvalid, SignerUnknown
from ramp.model import contents
from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.instant import Instant
from ramp.rfql import agreements
from ramp.rfql.signing.passed_on import Opener, read_sealed, write_sealed
from ramp.rfql.xml import markup
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element, parse_wire
from ramp.rfql.xml.record import TEXT
from ramp.text import IDENTIFIER

COMMITMENT: Final = "Commitment"
SETTLED: Final = "Settled"
DONE: Final = "ChangeDone"
_SIGNED: Final = "SignedDocument"


class Verifier(Protocol):
    """The part of a notary that reading needs."""

    def verify(self, document: str, now: Instant) -> Signed: ...

    def open(self, text: str, now: Instant) -> Message: ...


def write_commitment(content: contents.Commitment) -> str:
    """Write a commitment.

    Raises:
        DocumentError: if the agreement is not signed, or the vote not sealed.
    """
    proofs = _signed(content.agreement) + write_sealed(content.vote_seal)
    return f'<{COMMITMENT} xmlns="{MARKET}">{proofs}</{COMMITMENT}>'


def write_settled(content: contents.Settled) -> str:
    """Write a settlement.

    Raises:
        DocumentError: if the agreement is not signed, or the payment not sealed.
    """
    proofs = _signed(content.agreement) + write_sealed(content.payment_seal)
    return (
        f'<{SETTLED} xmlns="{MARKET}" agreementId="{TEXT.write(content.agreement_id)}" '
        f'offerId="{TEXT.write(content.offer_id)}">{proofs}</{SETTLED}>'
    )


def write_done(content: contents.ChangeDone) -> str:
    """Write that a change was posted.

    Raises:
        DocumentError: if the change is not signed, or the bank's answer not sealed.
    """
    return f'<{DONE} xmlns="{MARKET}">{_signed(content.change)}{write_sealed(content.posted_seal)}</{DONE}>'


def _signed(signed: Signed) -> str:
    if not signed.document:
        raise DocumentError(f"{type(signed.body).__name__} is not signed")
    return f"<{_SIGNED}>{markup.escape_text(signed.document)}</{_SIGNED}>"


def read_commitment(element: Element, verifier: Verifier, now: Instant) -> contents.Commitment | contents.Unverified:
    """Read a commitment that has passed the schema check; one with invalid proofs is `Unverified`."""
    document = _text_of(element, _SIGNED)
    try:
        agreement = _agreement(verifier.verify(document, now))
        vote, seal = read_sealed(element, contents.FundsReserved, _opener(verifier, now))
    except DocumentError as error:
        return unverified("agreement", claimed_by(document), error)
    return contents.Commitment(agreement, vote, seal)


def _agreement(signed: Signed) -> Signed:
    if not isinstance(signed.body, Agreement):
        raise DocumentError(f"Commitment: the document is a {type(signed.body).__name__}")
    return signed


def read_settled(element: Element, verifier: Verifier, now: Instant) -> contents.Settled:
    """Read a settlement that has passed the schema check.

    Raises:
        DocumentError: if a proof is invalid, or of another agreement.
    """
    agreement = verifier.verify(_text_of(element, _SIGNED), now)
    payment, seal = read_sealed(element, contents.PaymentMade, _opener(verifier, now))
    settled = contents.Settled(
        agreement_id=element.get("agreementId", ""),
        offer_id=element.get("offerId", ""),
        agreement=agreement,
        payment=payment,
        payment_seal=seal,
    )
    body = agreement.body
    named = (settled.agreement_id, settled.offer_id, settled.agreement_id)
    if not isinstance(body, Agreement) or (body.agreement_id, body.offer.offer_id, payment.agreement_id) != named:
        raise DocumentError(f"Settled: agreementId {settled.agreement_id!r} with the proof of something else")
    return settled


def read_done(element: Element, verifier: Verifier, now: Instant) -> contents.ChangeDone:
    """Read that a change was posted, from a document that has passed the schema check.

    Raises:
        DocumentError: if a proof is invalid, or of another change.
    """
    change = verifier.verify(_text_of(element, _SIGNED), now)
    posted, seal = read_sealed(element, contents.ChangePosted, _opener(verifier, now))
    body = change.body
    if not isinstance(body, ContractChange):
        raise DocumentError(f"ChangeDone: the document is a {type(body).__name__}")
    if (body.agreement_id, body.number) != (posted.agreement_id, posted.number):
        raise DocumentError(f"ChangeDone: change {body.number} of {body.agreement_id} with the proof of another")
    return contents.ChangeDone(change, posted, seal)


def _opener(verifier: Verifier, now: Instant) -> Opener:
    return lambda text: verifier.open(text, now)


def _text_of(element: Element, name: str) -> str:
    return element.findtext(f"{{{MARKET}}}{name}") or ""


def claimed_by(document: str) -> str:
    """Return the agreement id that a signed document claims, unverified; may be empty."""
    try:
        return claimed_reference(parse_wire(document))
    except DocumentError:
        return ""


def claimed_reference(root: Element) -> str:
    """Return the agreement id that an unverified document claims, for the answer only; may be empty."""
    body = next(iter(root.iterchildren(*agreements.COUNTERSIGNED.values())), root)
    claimed = body.get("agreementId", "")
    return claimed if IDENTIFIER.fullmatch(claimed) else ""


def unverified(kind: str, reference: str, error: DocumentError) -> contents.Unverified:
    """Return the replacement of a signed content whose signatures do not hold."""
    return contents.Unverified(kind=kind, reference=reference, code=refusal_code(error), detail=error.reason)


def refusal_code(error: DocumentError) -> str:
    """Return the code of `contents.Unverified` for an error of a signed document."""
    if isinstance(error, CertificateExpired):
        return "certificate_expired"
    if isinstance(error, SignerUnknown):
        return "unknown_signer"
    return "bad_signature" if isinstance(error, SignatureInvalid | SealInvalid) else "malformed"
