"""What a bought slot has come to by its amendments: its size, its digest, and what giving a part of it up is worth.

Source: the market's rules of amendments (ARCHITECTURE, "What happens when a bought slot changes its size"). All is
computed in whole numbers; what is given back is rounded down, so that all amendments of an agreement together never
give back all that was paid for it.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from dataclasses import asdict, dataclass
from typing import Final

from ramp.model.agreement import Agreement, Amendment, Reclamation
from ramp.model.called_terms import terms_digest
from ramp.model.instant import Duration, Instant, iso, seconds

AMENDMENT_NUMBER_MAX: Final = 1_000
"""Proposals about one agreement; one every hour for a month are 720. The bank keeps what it decides of each."""


@dataclass(frozen=True, slots=True)
class SlotState:
    """How a bought slot stands.

    Attributes:
        cores: at present.
        until: its end.
        digest: names this state in the amendment that changes it.
        number: of the amendment that has made it so, 0 where none has.
    """

    cores: int
    until: Instant
    digest: str
    number: int = 0


def state_digest(state: Agreement | Amendment | Reclamation) -> str:
    """SHA-256 of what an agreement, amendment or reclamation says of its slot, as URL-safe base64 without padding.

    Digested is JSON in UTF-8 with sorted keys and no blanks, instants in microseconds. Of an amendment or a reclamation
    these are all its fields by their names; of an agreement its ids, parties, slot, price and cost, and `terms`, the
    digest of the unit as it was asked for (`called_terms.terms_digest` with the rule of its price, or an empty one).
    What is digested has `is`, the kind of document.
    """
    if isinstance(state, Amendment | Reclamation):
        said: dict[str, object] = {"is": type(state).__name__, **asdict(state)}
    else:
        offer = state.offer
        said = {
            "is": "Agreement",
            "agreement_id": state.agreement_id,
            "request_id": state.request_id,
            "order_id": state.order_id,
            "user": state.user,
            "resource": state.resource,
            "bank": state.bank,
            "reservation_id": state.reservation_id,
            "offer_id": offer.offer_id,
            "cores": offer.cores,
            "start": offer.start,
            "end": offer.end,
            "cpu_hour_cost": offer.cpu_hour_cost,
            "cost": state.cost,
            "issued_at": state.issued_at,
            "terms": terms_digest(state.request, "" if state.price is None else state.price.rule),
        }
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii").rstrip("=")


def first_state(agreement: Agreement) -> SlotState:
    """The state of a slot as it was bought."""
    return SlotState(agreement.offer.cores, agreement.offer.end, state_digest(agreement))


def after(amendment: Amendment) -> SlotState:
    """The state of a slot once an amendment has been posted."""
    return SlotState(amendment.cores, amendment.until, state_digest(amendment), amendment.number)


def refund_owed(agreement: Agreement, state: SlotState, cores: int, until: Instant, effective_at: Instant) -> int:
    """What the part of a slot is worth that is given up, in minor units, rounded down.

    It is the share that this part has in the core time bought, of what was paid; what lies before `effective_at`
    counts as used. So the price is that of the agreement, also where another offer has set it.

    Args:
        agreement: what was bought.
        state: of the slot before.
        cores: after.
        until: end after.
        effective_at: from when on.
    """
    offer = agreement.offer
    begins = max(effective_at, offer.start)
    had = state.cores * max(state.until - begins, 0)
    has = cores * max(until - begins, 0)
    return agreement.cost * (had - has) // (offer.cores * (offer.end - offer.start))


def amendment_problem(agreement: Agreement, state: SlotState, amendment: Amendment) -> tuple[str, str] | None:
    """Why an amendment does not fit the state that it should change, as code and sentence; None where it fits.

    Asked alike by whoever proposes it, whoever countersigns it, and whoever verifies the documents.

    Args:
        agreement: what was bought.
        state: as the slot stands.
        amendment: what is proposed.
    """
    offer = agreement.offer
    parties = (amendment.offer_id, amendment.user, amendment.resource, amendment.bank)
    if parties != (offer.offer_id, agreement.user, agreement.resource, agreement.bank):
        return "other_parties", "it names another offer, or other parties, than the agreement"
    if offer.start_probability is not None:
        return "not_reserved", "what was bought is a submitted job, whose size is fixed"
    if not state.number < amendment.number <= AMENDMENT_NUMBER_MAX:
        return "old_number", (
            f"its number is {amendment.number}; right would be {state.number + 1} to {AMENDMENT_NUMBER_MAX}"
        )
    if amendment.previous != state.digest:
        return "other_state", "it changes another state of the slot than the one that stands"
    if not 1 <= amendment.cores <= state.cores or amendment.until > state.until:
        return "not_smaller", (
            f"{amendment.cores} cores until {iso(amendment.until)} are not within the {state.cores} until "
            f"{iso(state.until)} that the slot has"
        )
    if (amendment.cores, amendment.until) == (state.cores, state.until):
        return "no_change", f"the slot has {state.cores} cores until {iso(state.until)} already"
    if amendment.until <= max(amendment.effective_at, offer.start):
        return "nothing_left", "nothing of the slot would be left; what has not begun can be cancelled instead"
    if not amendment.issued_at < amendment.effective_at < amendment.valid_until <= state.until:
        return "bad_times", "it takes effect after its issue, and is posted after that and before the slot's end"
    owed = refund_owed(agreement, state, amendment.cores, amendment.until, amendment.effective_at)
    if owed < 1:
        return "nothing_back", "what is given up is worth less than a hundredth of a credit"
    if amendment.refund != owed:
        return "bad_price", f"it gives {amendment.refund} minor units back; right would be {owed}"
    return None


def notice_problem(amendment: Amendment, notice: Duration) -> str:
    """Why an amendment takes effect too soon after its issue, as a sentence; empty where it does not."""
    given = amendment.effective_at - amendment.issued_at
    return "" if given >= notice else f"it gives a notice of {seconds(given):g} s; right would be {seconds(notice):g} s"
