"""Agreements and their changes: the signable bodies, their countersigned forms and the answers.

The schemas are agreement.xsd and change.xsd. `ramp.rfql.signing.signature` signs the bodies; they are read only from
the bytes that a signature covers. Documents that pass them on (`ramp.rfql.signing.proofs`) contain them as escaped
text, byte for byte as signed.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from ramp.errors import DocumentError
from ramp.model import contents, instant
from ramp.model.agreement import TERMINAL, Agreement, ContractChange, PricePaid, Signable
from ramp.model.instant import Instant
from ramp.model.probable_start import probable_start_problem
from ramp.rfql import request_for_quotation
from ramp.rfql.offers import OFFER, check_offer
from ramp.rfql.signing.passed_on import Opener, read_sealed, write_sealed
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element
from ramp.rfql.xml.record import TEXT, Record, attribute_name, form_of

CHANGE: Final = Record(ContractChange)
CHANGE_POSTED: Final = Record(contents.ChangePosted)

_NESTED: Final = frozenset({"request", "offer", "price"})
_AGREEMENT_ATTRIBUTES: Final = tuple(
    (item.name, attribute_name(item.name), form_of(item.name, str(item.type)))
    for item in fields(Agreement)
    if item.name not in _NESTED
)

AGREEMENT: Final = f"{{{MARKET}}}Agreement"
COUNTERSIGNED: Final = {
    f"{{{MARKET}}}CountersignedAgreement": AGREEMENT,
    f"{{{MARKET}}}CountersignedContractChange": CHANGE.tag,
}
"""Tag of each countersigned form, and of the signed body within it."""

SIGNABLE: Final = frozenset({AGREEMENT, CHANGE.tag, *COUNTERSIGNED})
"""Tags of the roots of signed documents."""

_UNIT: Final = f"{{{MARKET}}}Unit"
_PRICE: Final = f"{{{MARKET}}}PricePaid"


def write_body(body: Signable) -> str:
    """Write a body without a signature.

    Raises:
        DocumentError: for values that the document cannot carry.
    """
    if isinstance(body, Agreement):
        return _write_agreement(body)
    return CHANGE.write(body)


def kind_of(root: Element) -> str:
    """Return the kind of a signed document, in the words of `contents.Unverified`."""
    inner = COUNTERSIGNED.get(str(root.tag), root.tag)
    if inner == AGREEMENT:
        return "agreement"
    body = root if root.tag == inner else root.find(inner)
    return "cancellation" if body is not None and body.get("number") == str(TERMINAL) else "amendment"


def read_body(element: Element, opener: Opener) -> Signable:
    """Read a signable body from an element that has passed the schema check.

    Args:
        element: the body.
        opener: reads the sealed messages that the body passes on.

    Raises:
        DocumentError: if its parts contradict one another;
            or if a passed-on message is invalid.
    """
    try:
        if element.tag == AGREEMENT:
            return _read_agreement(element, opener)
        return _checked(CHANGE.read(element))
    except ValueError as error:
        raise DocumentError(str(error)) from error


def read_posted(element: Element) -> contents.ChangePosted:
    """Read that a change is posted, from a document that has passed the schema check.

    Raises:
        DocumentError: if no money moved, unless the agreement has ended.
    """
    posted = CHANGE_POSTED.read(element)
    if posted.amount > 0 if posted.is_terminal else posted.amount == 0:
        expected = "0 or less" if posted.is_terminal else "another than 0"
        raise DocumentError(f"ChangePosted: wrong amount: got {posted.amount}, expected {expected}")
    return posted


def _checked(body: ContractChange) -> ContractChange:
    """Return a change whose values go together.

    Raises:
        DocumentError: if they do not.
    """
    name = f"Change {body.number} of {body.agreement_id}"
    if body.is_terminal:
        parties = (body.agreement_id, body.number, body.offer_id, body.user, body.resource, body.bank)
        if body != ContractChange(*parties, body.issued_at, reason=body.reason, code=body.code):
            raise DocumentError(f"{name}: a change that ends an agreement leaves no cores and has no price")
        return body
    if not body.previous or not body.cores or body.is_failure:
        raise DocumentError(f"{name}: previous and cores are required, and no code")
    if not body.issued_at < body.effective_at < body.valid_until <= body.until:
        times = "issuedAt, effectiveAt, validUntil and until"
        raise DocumentError(f"{name}: {times} are not in this order")
    if not body.amount or (body.amount > 0) != body.grows:
        raise DocumentError(f"{name}: expected either an amount below zero, or one above zero with an order")
    return body


def _write_agreement(body: Agreement) -> str:
    parts = [f'<Agreement xmlns="{MARKET}"']
    for name, attribute, form in _AGREEMENT_ATTRIBUTES:
        if name != "best_offer" or body.best_offer:
            parts.append(f' {attribute}="{form.write(getattr(body, name))}"')
    parts.append(
        f'><Unit number="{body.request.number}">{request_for_quotation.write_unit(body.request, root=True)}</Unit>'
        f"{OFFER.write(body.offer, root=False)}{_write_price(body.price)}</Agreement>"
    )
    return "".join(parts)


def _write_price(price: PricePaid | None) -> str:
    if price is None:
        return ""
    head = f'<PricePaid rule="{TEXT.write(price.rule)}"'
    if price.runner_up is None or price.seal is None:
        return f"{head}/>"
    return f'{head} offerId="{TEXT.write(price.runner_up.offer_id)}">{write_sealed(price.seal)}</PricePaid>'


def _read_price(element: Element | None, opener: Opener) -> PricePaid | None:
    if element is None:
        return None
    rule, offer_id = element.get("rule", ""), element.get("offerId")
    if offer_id is None and not len(element):
        return PricePaid(rule)
    proposal, seal = read_sealed(element, contents.Proposal, opener)
    meant = [offer for offer in proposal.offers if offer.offer_id == offer_id]
    if len(meant) != 1:
        found = "more than once" if meant else "not"
        raise DocumentError(f"PricePaid: offerId {offer_id!r} is {found} in the proposal of {seal.signer}")
    return PricePaid(rule, meant[0], seal)


def _read_agreement(element: Element, opener: Opener) -> Agreement:
    values: dict[str, Any] = {}
    for name, attribute, form in _AGREEMENT_ATTRIBUTES:
        text = element.get(attribute)
        if text is not None:
            values[name] = form.read(text)
    unit = element.find(_UNIT)
    offer = element.find(OFFER.tag)
    assert unit is not None, "the schema requires it"
    assert offer is not None, "the schema requires it"
    request = request_for_quotation.read_unit(unit[0], int(unit.get("number", "")))
    price = _read_price(element.find(_PRICE), opener)
    agreement = Agreement(request=request, offer=OFFER.read(offer), price=price, **values)
    check_agreement(agreement)
    return agreement


def check_agreement(agreement: Agreement) -> None:
    """Check that the parts of an agreement are consistent.

    Raises:
        DocumentError: naming every contradiction.
    """
    offer = agreement.offer
    check_offer(offer)
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


def wrap(inner: str, body: Signable, countersigned_at: Instant) -> str:
    """Put a user's signed document `inner`, unchanged, into the form that the resource signs at `countersigned_at`."""
    name = f"Countersigned{type(body).__name__}"
    return f'<{name} xmlns="{MARKET}" countersignedAt="{instant.iso(countersigned_at)}">{inner}</{name}>'
