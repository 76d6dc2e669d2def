"""What a bought slot has come to by its amendments: its size, its digest, and what adding or giving up is worth.

Source: the market's rules of amendments (docs/design/contract-changes.md). What was
bought last goes back first, at the price that was paid for it: who adds to a slot and gives the same up again has
bought and sold at one price, whatever the rest of the slot has cost. Prices of parts are exact fractions; what is given
back is their sum rounded down, so that all amendments together never give back all that was paid.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Final

from ramp.model import money
from ramp.model.agreement import ORDER_VALIDITY_MAX, Agreement, Amendment
from ramp.model.called_terms import terms_digest
from ramp.model.contents.orders import OrderLine
from ramp.model.instant import Duration, Instant, iso, seconds

AMENDMENT_NUMBER_MAX: Final = 1_000
"""Proposals about one agreement; one every hour for a month are 720. The bank keeps what it decides of each."""

MIXED: Final = "mixed_change"
"""Code of a change that would add in one way and give up in the other."""

TOO_MANY_CHANGES: Final = "too_many_changes"
"""Code of a change of a slot that was changed as often as one may be."""

SLOT_CHANGES_MAX: Final = 48
"""Changes of a slot: whoever judges one looks at all that was bought before, in exact fractions that grow with it."""


@dataclass(frozen=True, slots=True)
class Bought:
    """Cores that were bought at one price.

    Attributes:
        cores: how many.
        price: minor units per core and microsecond, exactly.
    """

    cores: int
    price: Fraction


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a slot's time over which its cores are made up of the same.

    Attributes:
        end: its last instant; it begins where the one before ends, the first one where the slot begins.
        bought: of what, in the order in which it was bought.
    """

    end: Instant
    bought: tuple[Bought, ...]


@dataclass(frozen=True, slots=True)
class SlotState:
    """How a bought slot stands.

    Attributes:
        cores: at present.
        until: its end.
        digest: names this state in the amendment that changes it.
        number: of the amendment that has made it so, 0 where none has.
        since: when the slot begins, or when the amendment that has made it so takes effect, whichever is later; what
            changes it counts from then on at the earliest.
        start: when the slot begins.
        spans: what it is made up of, in the order of time.
    """

    cores: int
    until: Instant
    digest: str
    number: int = 0
    since: Instant = 0
    start: Instant = 0
    spans: tuple[Span, ...] = ()


def state_digest(state: Agreement | Amendment) -> str:
    """SHA-256 of what an agreement or amendment says of its slot, as URL-safe base64 without padding.

    Digested is JSON in UTF-8 with sorted keys and no blanks, instants in microseconds. Of an amendment these are all
    its fields by their names; of an agreement its ids, parties, slot, price and cost, and `terms`, the digest of the
    unit as it was asked for (`called_terms.terms_digest` with the rule of its price, or an empty one). What is digested
    has `is`, the kind of document.
    """
    if isinstance(state, Amendment):
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
    """The state of a slot as it was bought: all of it at what was paid for a core and microsecond of it."""
    offer = agreement.offer
    price = Fraction(agreement.cost, offer.cores * (offer.end - offer.start))
    spans = (Span(offer.end, (Bought(offer.cores, price),)),)
    return SlotState(offer.cores, offer.end, state_digest(agreement), 0, offer.start, offer.start, spans)


def after(state: SlotState, amendment: Amendment) -> SlotState:
    """The state of a slot once an amendment has been posted that fits the state before.

    Args:
        state: before.
        amendment: what changes it.
    """
    cores, until = amendment.cores, amendment.until
    spans = _within(state, cores, until)
    if amendment.grows:
        added = added_core_time(state, cores, until, amendment.effective_at)
        bought_now = Fraction(amendment.charge, added) if added > 0 else Fraction(0)
        if cores > state.cores:
            more = Bought(cores - state.cores, bought_now)
            spans = tuple(Span(span.end, (*span.bought, more)) for span in spans)
        if until > state.until:
            spans = (*spans, Span(until, (Bought(cores, bought_now),)))
    since = max(amendment.effective_at, state.since)
    return SlotState(cores, until, state_digest(amendment), amendment.number, since, state.start, spans)


def _within(state: SlotState, cores: int, until: Instant) -> tuple[Span, ...]:
    """What is left of what a slot is made up of where so many cores stay at most, until that end at most."""
    return tuple(
        Span(min(span.end, until), _resized(span.bought, cores))
        for begin, span in _with_begins(state)
        if begin < min(span.end, until)
    )


def _with_begins(state: SlotState) -> list[tuple[Instant, Span]]:
    """The spans of a slot, each with the instant at which it begins."""
    begins = [state.start, *(span.end for span in state.spans)]
    return list(zip(begins, state.spans, strict=False))


def _resized(bought: tuple[Bought, ...], cores: int) -> tuple[Bought, ...]:
    """What is left of what was bought where so many cores stay at most: what was bought last goes first."""
    kept: list[Bought] = []
    for each in bought:
        left = min(each.cores, cores)
        if left > 0:
            kept.append(Bought(left, each.price))
        cores -= left
    return tuple(kept)


def _worth(bought: tuple[Bought, ...]) -> Fraction:
    """What a microsecond of some cores has cost, in minor units."""
    return sum((each.cores * each.price for each in bought), Fraction(0))


def refund_owed(agreement: Agreement, state: SlotState, cores: int, until: Instant, effective_at: Instant) -> int:
    """What the part of a slot is worth that is given up, in minor units, rounded down.

    It is what was paid for this part: where nothing was added before, the share that it has in the core time bought, of
    the agreement's cost, also where another offer has set that; of what was added by amendments, which goes first, the
    share of what was paid for that. What lies before `effective_at` counts as used.

    Args:
        agreement: what was bought.
        state: of the slot before.
        cores: after.
        until: end after.
        effective_at: from when on.
    """
    begins = max(effective_at, state.since)
    back = Fraction(0)
    for begin, span in _with_begins(state):
        first = max(begin, begins)
        kept = max(min(span.end, until), first)
        back += (kept - first) * (_worth(span.bought) - _worth(_resized(span.bought, cores)))
        back += max(span.end - kept, 0) * _worth(span.bought)
    return int(back)  # at least 0, so this rounds down


def added_core_time(state: SlotState, cores: int, until: Instant, effective_at: Instant) -> int:
    """How much a slot would gain, in core microseconds; what lies before `effective_at` is not gained.

    Args:
        state: of the slot before.
        cores: after.
        until: end after.
        effective_at: from when on.
    """
    begins = max(effective_at, state.since)
    return cores * max(until - begins, 0) - state.cores * max(state.until - begins, 0)


def charge_owed(state: SlotState, amendment: Amendment) -> int:
    """What an amendment costs that adds to a slot, minor units: the core time gained at its price, rounded half up."""
    gained = added_core_time(state, amendment.cores, amendment.until, amendment.effective_at)
    return money.cost(amendment.cpu_hour_cost, 1, gained)


def order_line(amendment: Amendment) -> OrderLine:
    """The line of the payment order by which an amendment is paid that adds to a slot."""
    return OrderLine(
        amendment.key,
        amendment.resource,
        amendment.charge,
        amendment.offer_id,
        amendment.previous,
        state_digest(amendment),
    )


def is_growth(state: SlotState, cores: int, until: Instant) -> bool:
    """Whether a slot would have more than before in some way, and less in none."""
    return cores >= state.cores and until >= state.until and (cores, until) != (state.cores, state.until)


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
    if (amendment.cores, amendment.until) == (state.cores, state.until):
        return "no_change", f"the slot has {state.cores} cores until {iso(state.until)} already"
    if amendment.grows:
        return _growth_problem(state, amendment)
    if not 1 <= amendment.cores <= state.cores or amendment.until > state.until:
        return "not_smaller", (
            f"{amendment.cores} cores until {iso(amendment.until)} are not within the {state.cores} until "
            f"{iso(state.until)} that the slot has"
        )
    if amendment.until <= max(amendment.effective_at, offer.start):
        return "nothing_left", "nothing of the slot would be left; what has not begun can be cancelled instead"
    if not amendment.issued_at < amendment.effective_at < amendment.valid_until <= state.until:
        return "bad_times", "it takes effect after its issue, and is posted after that and before the slot's end"
    owed = refund_owed(agreement, state, amendment.cores, amendment.until, amendment.effective_at)
    if owed < 1:
        return "nothing_back", "what is given up is worth less than a hundredth of a credit"
    if (amendment.charge, amendment.refund) != (0, owed):
        gives = f"it costs {amendment.charge} and gives {amendment.refund} minor units back"
        return "bad_price", f"{gives}; right would be {owed}, and that it costs nothing"
    return None


def number_problem(changes: int) -> tuple[str, str] | None:
    """Why a slot that was changed so often is not changed once more, as code and sentence; None where it may be.

    Asked by its buyer and its seller before either signs.
    """
    if changes < SLOT_CHANGES_MAX:
        return None
    return TOO_MANY_CHANGES, f"the slot was changed {changes} times; right would be {SLOT_CHANGES_MAX} at most"


def mixed_problem(state: SlotState) -> tuple[str, str]:
    """Code and sentence for a change that would add in one way and give up in the other."""
    return MIXED, (
        f"the slot has {state.cores} cores until {iso(state.until)}; right would be more in one way and less in none, "
        "or less in one way and more in none: two changes do both"
    )


def _growth_problem(state: SlotState, amendment: Amendment) -> tuple[str, str] | None:
    """Why an amendment that adds does not fit the state that it should change."""
    if not is_growth(state, amendment.cores, amendment.until):
        return mixed_problem(state)
    if not amendment.issued_at < amendment.effective_at < amendment.valid_until <= state.until:
        return "bad_times", "it takes effect after its issue, and is posted after that and before the slot's end"
    if amendment.valid_until > amendment.issued_at + ORDER_VALIDITY_MAX:
        return "bad_times", f"it keeps money aside for more than {seconds(ORDER_VALIDITY_MAX):g} s"
    owed = charge_owed(state, amendment)
    if owed < 1:
        return "nothing_to_pay", "what is added costs less than a hundredth of a credit"
    if (amendment.charge, amendment.refund) != (owed, 0):
        return "bad_price", (
            f"it costs {amendment.charge} and gives {amendment.refund} minor units back; right would be {owed} at "
            f"{amendment.cpu_hour_cost} credits per core hour, and none back"
        )
    return None


def notice_problem(amendment: Amendment, notice: Duration) -> str:
    """Why an amendment takes effect too soon after its issue, as a sentence; empty where it does not."""
    given = amendment.effective_at - amendment.issued_at
    return "" if given >= notice else f"it gives a notice of {seconds(given):g} s; right would be {seconds(notice):g} s"
