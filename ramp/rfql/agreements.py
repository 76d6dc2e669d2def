"""Agreements, their amendments and cancellations: the signable bodies, their countersigned forms and the answers.

The schemas are agreement.xsd and amendment.xsd. `ramp.rfql.signing.signature` signs the bodies; they are read only from
the bytes that a signature covers. Documents that pass them on (`ramp.rfql.signing.proofs`) contain them as escaped
text, byte for byte as signed.
"""

from __future__ import annotations

from typing import Any, Final

from ramp.errors import DocumentError
from ramp.model import contents, instant
from ramp.model.agreement import Agreement, Amendment, Cancellation, PricePaid, Signable
from ramp.model.instant import Instant
from ramp.model.probable_start import probable_start_problem
from ramp.rfql import request_for_quotation
from ramp.rfql.offers import OFFER, check_offer
from ramp.rfql.signing.passed_on import Opener, read_sealed, write_sealed
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element
from ramp.rfql.xml.record import BOOLEAN, DURATION, INSTANT, INTEGER, SENTENCE, TEXT, Form, Record, attribute_name

CANCELLATION: Final = Record(
    Cancellation,
    {
        "cancellation_id": TEXT,
        "agreement_id": TEXT,
        "offer_id": TEXT,
        "user": TEXT,
        "resource": TEXT,
        "reason": SENTENCE,
        "issued_at": INSTANT,
    },
)
CANCELLATION_DONE: Final = Record(contents.CancellationDone, {"agreement_id": TEXT, "refund": INTEGER})
CANCELLATION_REFUSED: Final = Record(
    contents.CancellationRefused, {"agreement_id": TEXT, "code": TEXT, "detail": SENTENCE}
)

AMENDMENT: Final = Record(
    Amendment,
    {
        "agreement_id": TEXT,
        "number": INTEGER,
        "previous": TEXT,
        "offer_id": TEXT,
        "user": TEXT,
        "resource": TEXT,
        "bank": TEXT,
        "cores": INTEGER,
        "until": INSTANT,
        "effective_at": INSTANT,
        "refund": INTEGER,
        "issued_at": INSTANT,
        "valid_until": INSTANT,
        "charge": INTEGER,
        "cpu_hour_cost": INTEGER,
        "order_id": TEXT,
    },
)
AMENDMENT_CALL: Final = Record(
    contents.AmendmentCall,
    {
        "agreement_id": TEXT,
        "number": INTEGER,
        "cores": INTEGER,
        "until": INSTANT,
        "cpu_hour_cost": INTEGER,
    },
)
AMENDMENT_PRICED: Final = Record(
    contents.AmendmentPriced,
    {
        "agreement_id": TEXT,
        "number": INTEGER,
        "cpu_hour_cost": INTEGER,
        "valid_for": DURATION,
        "cores": INTEGER,
        "until": INSTANT,
        "state": TEXT,
    },
)
AMENDMENT_FUNDED: Final = Record(contents.AmendmentFunded, {"agreement_id": TEXT, "number": INTEGER, "order_id": TEXT})
AMENDMENT_AGREED: Final = Record(contents.AmendmentAgreed, {"agreement_id": TEXT, "number": INTEGER})
AMENDMENT_REFUSED: Final = Record(
    contents.AmendmentRefused, {"agreement_id": TEXT, "number": INTEGER, "code": TEXT, "detail": SENTENCE}
)
AMENDMENT_POSTED: Final = Record(
    contents.AmendmentPosted,
    {"agreement_id": TEXT, "number": INTEGER, "transfer_id": TEXT, "refund": INTEGER, "charge": INTEGER},
)
AMENDMENT_WITHDRAWAL: Final = Record(contents.AmendmentWithdrawal, {"agreement_id": TEXT, "number": INTEGER})

_AGREEMENT_FORMS: Final[dict[str, Form]] = {
    "agreement_id": TEXT,
    "request_id": TEXT,
    "units_total": INTEGER,
    "user": TEXT,
    "resource": TEXT,
    "bank": TEXT,
    "reservation_id": TEXT,
    "cost": INTEGER,
    "issued_at": INSTANT,
    "order_id": TEXT,
    "valid_until": INSTANT,
    "best_offer": BOOLEAN,
}
_AGREEMENT_ATTRIBUTES: Final = tuple((name, attribute_name(name), form) for name, form in _AGREEMENT_FORMS.items())

AGREEMENT: Final = f"{{{MARKET}}}Agreement"
COUNTERSIGNED: Final = {
    f"{{{MARKET}}}CountersignedAgreement": AGREEMENT,
    f"{{{MARKET}}}CountersignedCancellation": CANCELLATION.tag,
    f"{{{MARKET}}}CountersignedAmendment": AMENDMENT.tag,
}
"""Tag of each countersigned form, and of the signed body within it."""

_KINDS: Final = {
    AGREEMENT: "agreement",
    CANCELLATION.tag: "cancellation",
    AMENDMENT.tag: "amendment",
}
KIND_OF: Final = {**_KINDS, **{tag: _KINDS[inner] for tag, inner in COUNTERSIGNED.items()}}
"""Kind of signed document by the root's tag, in the words of `contents.Unverified`."""

_UNIT: Final = f"{{{MARKET}}}Unit"
_PRICE: Final = f"{{{MARKET}}}PricePaid"


def write_body(body: Signable) -> str:
    """Write a body without a signature.

    Raises:
        DocumentError: for values that the document cannot carry.
    """
    if isinstance(body, Agreement):
        return _write_agreement(body)
    if isinstance(body, Amendment):
        return AMENDMENT.write(body)
    return CANCELLATION.write(body)


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
        if element.tag == AMENDMENT.tag:
            amendment = AMENDMENT.read(element)
            _check_amendment(amendment)
            return amendment
        return CANCELLATION.read(element)
    except ValueError as error:
        raise DocumentError(str(error)) from error


def read_posted(element: Element) -> contents.AmendmentPosted:
    """Read that an amendment is posted, from a document that has passed the schema check.

    Raises:
        DocumentError: if no money moved, or money both ways.
    """
    posted = AMENDMENT_POSTED.read(element)
    if (posted.refund > 0) == (posted.charge > 0):
        moved = f"a refund of {posted.refund} and a charge of {posted.charge}"
        raise DocumentError(f"AmendmentPosted: got {moved}, expected exactly one of them above 0")
    return posted


def _check_amendment(body: Amendment) -> None:
    name = f"Amendment {body.number} of {body.agreement_id}"
    if not body.issued_at < body.effective_at < body.valid_until <= body.until:
        times = "issuedAt, effectiveAt, validUntil and until"
        raise DocumentError(f"{name}: {times} are not in this order")
    if (body.charge > 0) != body.grows or (body.refund > 0) == body.grows:
        raise DocumentError(f"{name}: expected either a refund, or a charge with an order")


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
