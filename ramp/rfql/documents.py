"""Write and read the documents of all contents (those of `schemas/`).

Incoming documents are parsed safely and checked against the schema. Signed documents go through the notary, and one
that does not verify becomes `Unverified`, so that the machines can refuse it with a reason.

`ramp.rfql.signing.notary` signs the bodies of agreements and changes; they are read only from the bytes that a
signature covers. Documents that pass them on (`ramp.rfql.record`) contain them as escaped text, byte for
byte as signed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from ramp.errors import (
    SAME_VERSION,
    CertificateExpired,
    DocumentError,
    SealInvalid,
    SignatureInvalid,
    SignerUnknown,
    wrong_version,
)
from ramp.model import contents, instant
from ramp.model.agreement import TERMINAL, Agreement, ContractChange, Signable, Signed
from ramp.model.communicative_acts import DECLARED
from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.model.ports import Verifier
from ramp.model.probable_start import probable_start_problem
from ramp.rfql.record import SIGNED, Kind, Proofs, record_of
from ramp.rfql.xml import schema
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element, parse_wire, root_name
from ramp.text import IDENTIFIER


def _check_offer(offer: Offer) -> None:
    if offer.end <= offer.start:
        raise DocumentError(f"Offer {offer.offer_id}: the slot's end must be after its start")


def _check_proposal(proposal: contents.Proposal) -> None:
    for offer in proposal.offers:
        _check_offer(offer)
        if offer.request_id != proposal.request_id:
            raise DocumentError(
                f"Offer {offer.offer_id}: requestId {offer.request_id!r} in a Proposal for {proposal.request_id!r}"
            )


def _check_hold_refused(refused: contents.HoldRefused) -> None:
    for offer in refused.instead:
        _check_offer(offer)


def _check_order(order: contents.JobOrder) -> None:
    if not order.arguments and not order.application:
        raise DocumentError("JobOrder: expected a JobArgument, or an application")


def _check_posted(posted: contents.ChangePosted) -> None:
    if posted.amount > 0 if posted.is_terminal else posted.amount == 0:
        expected = "0 or less" if posted.is_terminal else "another than 0"
        raise DocumentError(f"ChangePosted: wrong amount: got {posted.amount}, expected {expected}")


def _check_change(body: ContractChange) -> None:
    name = f"Change {body.number} of {body.agreement_id}"
    if body.is_terminal:
        parties = (body.agreement_id, body.number, body.offer_id, body.user, body.resource, body.bank)
        if body != ContractChange(*parties, body.issued_at, reason=body.reason, code=body.code):
            raise DocumentError(f"{name}: a change that ends an agreement leaves no cores and has no price")
        return
    if not body.previous or not body.cores or body.is_failure:
        raise DocumentError(f"{name}: previous and cores are required, and no code")
    if not body.issued_at < body.effective_at < body.valid_until <= body.until:
        times = "issuedAt, effectiveAt, validUntil and until"
        raise DocumentError(f"{name}: {times} are not in this order")
    if not body.amount or (body.amount > 0) != body.grows:
        raise DocumentError(f"{name}: expected either an amount below zero, or one above zero with an order")


def _check_agreement(agreement: Agreement) -> None:
    offer = agreement.offer
    _check_offer(offer)
    contradictions = tuple(
        f"{name}: got {outer!r}, expected the {where} {inner!r}"
        for name, outer, where, inner in (
            # another price is for the parties to judge, and for `ramp verify` (`ramp.model.price_paid`)
            ("cost", agreement.cost if agreement.price is None else offer.cost, "offer's", offer.cost),
            ("requestId", agreement.request_id, "offer's", offer.request_id),
            ("resource", agreement.resource, "offer's", offer.resource),
            ("Unit number", agreement.request.number, "offer's", offer.unit),
        )
        if outer != inner
    )
    if agreement.request.number > agreement.units_total:
        contradictions += (f"Unit number: got {agreement.request.number}, expected at most {agreement.units_total}",)
    if agreement.valid_until <= agreement.issued_at:
        contradictions += ("validUntil: must be after issuedAt",)
    if unclear := probable_start_problem(agreement):
        contradictions += (unclear,)
    if contradictions:
        raise DocumentError(f"Agreement {agreement.agreement_id}: " + "; ".join(contradictions))


def _check_commitment(commitment: contents.Commitment) -> None:
    body = commitment.agreement.body
    if not isinstance(body, Agreement):
        raise DocumentError(f"Commitment: the document is a {type(body).__name__}")


def _check_settled(settled: contents.Settled) -> None:
    body = settled.agreement.body
    named = (settled.agreement_id, settled.offer_id, settled.agreement_id)
    payment = settled.payment
    if not isinstance(body, Agreement) or (body.agreement_id, body.offer.offer_id, payment.agreement_id) != named:
        raise DocumentError(f"Settled: agreementId {settled.agreement_id!r} with the proof of something else")


def _check_done(done: contents.ChangeDone) -> None:
    body, posted = done.change.body, done.posted
    if not isinstance(body, ContractChange):
        raise DocumentError(f"ChangeDone: the document is a {type(body).__name__}")
    if (body.agreement_id, body.number) != (posted.agreement_id, posted.number):
        raise DocumentError(f"ChangeDone: change {body.number} of {body.agreement_id} with the proof of another")


CHECKS: Final[Mapping[type, Callable[[Any], None]]] = {
    contents.JobOrder: _check_order,
    Agreement: _check_agreement,
    ContractChange: _check_change,
    contents.ChangeDone: _check_done,
    contents.ChangePosted: _check_posted,
    contents.Commitment: _check_commitment,
    contents.HoldRefused: _check_hold_refused,
    contents.Proposal: _check_proposal,
    contents.Settled: _check_settled,
}
"""Checks that the schemas cannot make: values that go together. Each raises `DocumentError`."""


CALLS_REMEMBERED: Final = 64
"""Number of parsed calls for proposals to remember."""

REMEMBERED_CHARACTERS_MAX: Final = 32_768

AGREEMENT: Final = f"{{{MARKET}}}Agreement"
CHANGE: Final = f"{{{MARKET}}}ContractChange"
COUNTERSIGNED: Final = {
    f"{{{MARKET}}}CountersignedAgreement": AGREEMENT,
    f"{{{MARKET}}}CountersignedContractChange": CHANGE,
}
"""Tag of each countersigned form, and of the signed body within it."""

SIGNABLE: Final = frozenset({AGREEMENT, CHANGE, *COUNTERSIGNED})
"""Tags of the roots of signed documents."""


_SENT: Final = {kind.__name__: kind for kind in DECLARED if kind not in {Signed, contents.Unverified}}
"""Contents by the names of their documents' roots; a signed one is named after its body."""

_SIGNED_NAMES: Final = frozenset(tag.rpartition("}")[2] for tag in SIGNABLE)


def content_named(name: str) -> type | None:
    """Return the content with this name of its root element, `Signed` for signed ones, or None."""
    if name in _SIGNED_NAMES:
        return Signed
    return _SENT.get(name)


def write_content(content: contents.Content) -> str:
    """Write a content as a document; a signed one as it was signed.

    Raises:
        DocumentError: for values that the document cannot carry, an unsigned signable, or a content that is never
            sent (`Unverified`).
    """
    if isinstance(content, Signed):
        if not content.document:
            raise DocumentError(f"{type(content.body).__name__} is not signed")
        return content.document
    kind: type[Any] = type(content)
    if _SENT.get(kind.__name__) is not kind:
        raise DocumentError(f"{kind.__name__} is never sent")
    return record_of(kind).write(content)


def read_content(body: str, verifier: Verifier, now: Instant, source: str | None = None) -> contents.Content:
    """Read the content of a document.

    Args:
        body: the XML text.
        verifier: checks the signatures and seals in it.
        now: the time for which certificates must hold.
        source: the document's name in messages.

    Raises:
        DocumentError: if the document is invalid. A signed document that does not verify, alone or in a commitment,
            raises no error: its content is `Unverified`.
    """
    if len(body) <= REMEMBERED_CHARACTERS_MAX and root_name(body) == contents.CallForProposals.__name__:
        with contextlib.suppress(DocumentError, ValueError):  # reported below, with its source
            return _read_call(body)
    root = parse_wire(body, source)
    tag = str(root.tag)
    if root_name(body) != tag.rpartition("}")[2]:
        raise DocumentError(f"root element {tag} must come first and with no prefix", source=source)
    if tag in SIGNABLE:
        try:
            return verifier.verify(body, now)
        except DocumentError as error:
            return _unverified(kind_of(root), _claimed_reference(root), error)
    kind = _SENT.get(tag.removeprefix(f"{{{MARKET}}}")) if tag.startswith("{") else None
    if kind is None:
        raise DocumentError(f"unknown root element {tag}{_version_problem(tag)}", source=source)
    schema.check(root, source)
    proofs = Proofs(lambda text: verifier.verify(text, now), lambda text: verifier.open(text, now))
    try:
        return _read(kind, root, proofs)
    except DocumentError as error:
        if kind is contents.Commitment:  # refused with a reason, which names the agreement
            return _unverified("agreement", _claimed_by(root.findtext(f"{{{MARKET}}}{SIGNED}") or ""), error)
        raise
    except ValueError as error:
        raise DocumentError(str(error), source=source) from error


def _read(kind: type[Kind], root: Element, proofs: Proofs) -> Kind:
    content = record_of(kind).read(root, proofs)
    if kind in CHECKS:
        CHECKS[kind](content)
    return content


def _version_problem(tag: str) -> str:
    """Say that a document is of another version of the market's namespace, to be added to a sentence; may be empty."""
    namespace = tag.rpartition("}")[0].removeprefix("{")
    if namespace == MARKET or namespace.rpartition(":")[0] != MARKET.rpartition(":")[0]:
        return ""
    return f"; {wrong_version('its namespace', namespace, MARKET, SAME_VERSION)}"


@functools.lru_cache(maxsize=CALLS_REMEMBERED)
def _read_call(body: str) -> contents.CallForProposals:
    """Read a call once for all resources of this process, which receive it in the same words.

    Its content depends on neither reader nor time; errors are not remembered.
    """
    root = parse_wire(body)
    if str(root.tag) != f"{{{MARKET}}}{contents.CallForProposals.__name__}":
        raise DocumentError(f"wrong root element: got {root.tag}, expected a call for proposals")
    schema.check(root)
    call: contents.CallForProposals = record_of(contents.CallForProposals).read(root)
    return call


def _claimed_by(document: str) -> str:
    """Return the agreement id that a signed document claims, unverified; may be empty."""
    try:
        return _claimed_reference(parse_wire(document))
    except DocumentError:
        return ""


def _claimed_reference(root: Element) -> str:
    """Return the agreement id that an unverified document claims, for the answer only; may be empty."""
    body = next(iter(root.iterchildren(*COUNTERSIGNED.values())), root)
    claimed = body.get("agreementId", "")
    return claimed if IDENTIFIER.fullmatch(claimed) else ""


def _unverified(kind: str, reference: str, error: DocumentError) -> contents.Unverified:
    return contents.Unverified(kind=kind, reference=reference, code=_refusal_code(error), detail=error.reason)


def _refusal_code(error: DocumentError) -> str:
    if isinstance(error, CertificateExpired):
        return "certificate_expired"
    if isinstance(error, SignerUnknown):
        return "unknown_signer"
    return "bad_signature" if isinstance(error, SignatureInvalid | SealInvalid) else "malformed"


# Signable bodies, agreements and their changes, and their countersigned forms (agreement.xsd, change.xsd)


def write_body(body: Signable) -> str:
    """Write a body without a signature; `DocumentError` for values that the document cannot carry."""
    kind: type[Any] = type(body)
    return record_of(kind).write(body)


def kind_of(root: Element) -> str:
    """Return the kind of a signed document, in the words of `contents.Unverified`."""
    inner = COUNTERSIGNED.get(str(root.tag), root.tag)
    if inner == AGREEMENT:
        return "agreement"
    body = root if root.tag == inner else root.find(inner)
    return "cancellation" if body is not None and body.get("number") == str(TERMINAL) else "amendment"


def read_body(element: Element, proofs: Proofs) -> Signable:
    """Read a signable body from an element that has passed the schema check.

    Raises:
        DocumentError: if its parts contradict one another;
            or if a passed-on message is invalid.
    """
    kind: type[Agreement | ContractChange] = Agreement if element.tag == AGREEMENT else ContractChange
    try:
        return _read(kind, element, proofs)
    except ValueError as error:
        raise DocumentError(str(error)) from error


def wrap(inner: str, body: Signable, countersigned_at: Instant) -> str:
    """Put a user's signed document `inner`, unchanged, into the form that the resource signs at `countersigned_at`."""
    name = f"Countersigned{type(body).__name__}"
    return f'<{name} xmlns="{MARKET}" countersignedAt="{instant.iso(countersigned_at)}">{inner}</{name}>'
