"""The result of amendments of a bought slot: its size, its digest, and the value of additions and reductions.

Source: the market's rules of amendments (docs/design/contract-changes.md). The last addition is given back first, at
its own price: a buyer that adds to a slot and gives the same up again buys and sells at one price, whatever the rest of
the slot cost. Prices of parts are exact fractions; a refund is their sum rounded down, so that all refunds together
never exceed the payments.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Final

from ramp.model import money
from ramp.model.agreement import ORDER_VALIDITY_MAX, Agreement, ContractChange
from ramp.model.called_terms import digest_of, terms_digest
from ramp.model.contents.orders import OrderLine
from ramp.model.instant import Duration, Instant, iso, seconds

AMENDMENT_NUMBER_MAX: Final = 1_000
"""Maximum number of proposals about one agreement (one an hour for a month are 720); the bank keeps all."""

MIXED: Final = "mixed_change"
"""Code of a change that adds in one way and reduces in the other."""

TOO_MANY_CHANGES: Final = "too_many_changes"
"""Code of a change beyond `SLOT_CHANGES_MAX`."""

SLOT_CHANGES_MAX: Final = 48
"""Maximum changes of a slot; each is judged by all earlier purchases, in exact fractions that grow with them."""


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
    """A part of a slot's time with the same purchases.

    Attributes:
        end: its last instant; it begins at the end of the span before, the first one at the slot's begin.
        bought: the purchases in their order.
    """

    end: Instant
    bought: tuple[Bought, ...]


@dataclass(frozen=True, slots=True)
class SlotState:
    """The state of a bought slot.

    Attributes:
        cores: at present.
        until: its end.
        digest: names this state in the amendment that changes it.
        number: of the last amendment, 0 without one.
        since: the later of the slot's begin and the last amendment's effect; changes count from then on.
        start: when the slot begins.
        spans: its purchases, in the order of time.
    """

    cores: int
    until: Instant
    digest: str
    number: int = 0
    since: Instant = 0
    start: Instant = 0
    spans: tuple[Span, ...] = ()


def state_digest(state: Agreement | ContractChange) -> str:
    """Return the digest (`called_terms.digest_of`) of an agreement's or amendment's statement of its slot.

    Instants are in microseconds. For an amendment it has all fields by their names. For an agreement it has its ids,
    parties, slot, price and cost, and `terms`: the `called_terms.terms_digest` of the unit as it was asked for, with
    the rule of its price or an empty one. `is` names the kind of document.
    """
    if isinstance(state, ContractChange):
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
    return digest_of(said)


def first_state(agreement: Agreement) -> SlotState:
    """Return the state of a slot as it was bought, all of it at one price per core and microsecond."""
    offer = agreement.offer
    price = Fraction(agreement.cost, offer.cores * (offer.end - offer.start))
    spans = (Span(offer.end, (Bought(offer.cores, price),)),)
    return SlotState(offer.cores, offer.end, state_digest(agreement), 0, offer.start, offer.start, spans)


def after(state: SlotState, amendment: ContractChange) -> SlotState:
    """Return the state of a slot after a posted amendment that fits the state before."""
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
    """Return the purchases that remain with at most `cores` cores until at most `until`."""
    return tuple(
        Span(min(span.end, until), _resized(span.bought, cores))
        for begin, span in _with_begins(state)
        if begin < min(span.end, until)
    )


def _with_begins(state: SlotState) -> list[tuple[Instant, Span]]:
    begins = [state.start, *(span.end for span in state.spans)]
    return list(zip(begins, state.spans, strict=False))


def _resized(bought: tuple[Bought, ...], cores: int) -> tuple[Bought, ...]:
    """Return the purchases that remain with at most `cores` cores; the last purchase goes first."""
    kept: list[Bought] = []
    for each in bought:
        left = min(each.cores, cores)
        if left > 0:
            kept.append(Bought(left, each.price))
        cores -= left
    return tuple(kept)


def _worth(bought: tuple[Bought, ...]) -> Fraction:
    """Return the cost of a microsecond of some cores, in minor units."""
    return sum((each.cores * each.price for each in bought), Fraction(0))


def refund_owed(agreement: Agreement, state: SlotState, cores: int, until: Instant, effective_at: Instant) -> int:
    """Return the value of the part of a slot that is given up, in minor units, rounded down.

    It is the price paid for this part. Additions go first, at their share of their own payment. For the rest it is the
    share of the core time bought, of the agreement's cost, also if another offer has set that. Time before
    `effective_at` counts as used.

    Args:
        agreement: the purchase.
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
    """Return a slot's gain in core microseconds from `effective_at` on.

    Args:
        state: of the slot before.
        cores: after.
        until: end after.
        effective_at: from when on.
    """
    begins = max(effective_at, state.since)
    return cores * max(until - begins, 0) - state.cores * max(state.until - begins, 0)


def charge_owed(state: SlotState, amendment: ContractChange) -> int:
    """Return the cost of an addition in minor units: its core time at its price, rounded half up."""
    gained = added_core_time(state, amendment.cores, amendment.until, amendment.effective_at)
    return money.cost(amendment.cpu_hour_cost, 1, gained)


def order_line(amendment: ContractChange) -> OrderLine:
    """Return the line of a payment order for an addition."""
    return OrderLine(
        amendment.key,
        amendment.resource,
        amendment.charge,
        amendment.offer_id,
        amendment.previous,
        state_digest(amendment),
    )


def is_growth(state: SlotState, cores: int, until: Instant) -> bool:
    """Whether a slot would grow in some way and shrink in none."""
    return cores >= state.cores and until >= state.until and (cores, until) != (state.cores, state.until)


def change_problem(agreement: Agreement, state: SlotState, amendment: ContractChange) -> tuple[str, str] | None:
    """Say why an amendment does not fit the state that it changes, as code and sentence; None if it fits.

    Proposer, countersigner and verifiers of the documents use the same check.
    """
    offer = agreement.offer
    parties = (amendment.offer_id, amendment.user, amendment.resource, amendment.bank)
    if parties != (offer.offer_id, agreement.user, agreement.resource, agreement.bank):
        return "other_parties", "its offer or its parties differ from the agreement"
    if offer.start_probability is not None:
        return "not_reserved", "the size of a submitted job is fixed"
    if not state.number < amendment.number <= AMENDMENT_NUMBER_MAX:
        return "old_number", (
            f"wrong amendment number: got {amendment.number}, expected {state.number + 1} to {AMENDMENT_NUMBER_MAX}"
        )
    if amendment.previous != state.digest:
        return "other_state", "it changes an outdated state of the slot"
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
        return "nothing_left", "it would leave nothing of the slot; cancel a slot that has not begun instead"
    if not amendment.issued_at < amendment.effective_at < amendment.valid_until <= state.until:
        return "bad_times", "it takes effect after its issue, and is posted after that and before the slot's end"
    owed = refund_owed(agreement, state, amendment.cores, amendment.until, amendment.effective_at)
    if owed < 1:
        return "nothing_back", "the refund would be less than 0.01 credits"
    if amendment.amount != -owed:
        return "bad_price", f"wrong price: got {_amount(amendment)}, expected a refund of {owed}"
    return None


def number_problem(changes: int) -> tuple[str, str] | None:
    """Refuse a change of a slot that was changed too often, as code and sentence; None if it was not."""
    if changes < SLOT_CHANGES_MAX:
        return None
    return TOO_MANY_CHANGES, f"too many changes of one slot: got {changes}, expected at most {SLOT_CHANGES_MAX}"


def mixed_problem(state: SlotState) -> tuple[str, str]:
    """Return code and sentence for a change that adds in one way and reduces in the other."""
    return MIXED, (
        f"one change cannot both add and give up: the slot has {state.cores} cores until {iso(state.until)}; "
        "make two changes"
    )


def _growth_problem(state: SlotState, amendment: ContractChange) -> tuple[str, str] | None:
    if not is_growth(state, amendment.cores, amendment.until):
        return mixed_problem(state)
    if not amendment.issued_at < amendment.effective_at < amendment.valid_until <= state.until:
        return "bad_times", "it takes effect after its issue, and is posted after that and before the slot's end"
    if amendment.valid_until > amendment.issued_at + ORDER_VALIDITY_MAX:
        return "bad_times", f"it reserves money for more than {seconds(ORDER_VALIDITY_MAX):g} s"
    owed = charge_owed(state, amendment)
    if owed < 1:
        return "nothing_to_pay", "the charge would be less than 0.01 credits"
    if amendment.amount != owed:
        expected = f"a charge of {owed} at {amendment.cpu_hour_cost} credits per core hour"
        return "bad_price", f"wrong price: got {_amount(amendment)}, expected {expected}"
    return None


def _amount(change: ContractChange) -> str:
    return f"a {'refund' if change.amount < 0 else 'charge'} of {abs(change.amount)} minor units"


def notice_problem(amendment: ContractChange, notice: Duration) -> str:
    """Say why an amendment takes effect too soon after its issue; empty if it does not."""
    given = amendment.effective_at - amendment.issued_at
    if given >= notice:
        return ""
    return f"notice too short: got {seconds(given):g} s, expected at least {seconds(notice):g} s"
