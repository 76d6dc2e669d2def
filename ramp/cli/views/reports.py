"""How requests, bought units and agreements look: the objects that `--json` prints, and the same for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import click

from ramp.cli.views.fields import AMOUNT, MOMENT, NUMBER, Field, Fields, address
from ramp.cli.views.output import (
    amount_text,
    count_text,
    duration_text,
    moment_text,
    price_text,
    print_line,
    print_pairs,
    print_rows,
)
from ramp.control.auction_story import first_of, reasons_of
from ramp.control.events import AgreementStanding
from ramp.model import money
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import SECOND, Instant, iso, local_iso, seconds, with_local_times
from ramp.model.money import credits_decimal
from ramp.model.offer import Offer
from ramp.model.price_paid import how_priced
from ramp.model.request import Nodes, RequestUnit
from ramp.model.sizes.moldable import cost_cap
from ramp.protocol.outcome import BoughtUnit, RequestOutcome, RequestStatus, ResourceRefusal, RoundRecord
from ramp.protocol.rules.auction_rule import PAPER_RULE

Files = Mapping[str, str | None]
Bought = Mapping[str, AgreementStanding]
"""Agreements with their present state, by id."""

TITLES: Final = {RequestStatus.QUOTED: "Offers", RequestStatus.COMMITTED: "Bought"}

ShortName = Callable[[str], str]


def offer_object(offer: Offer, short: ShortName) -> dict[str, object]:
    """Convert an offer to JSON types."""
    return {
        "resource": short(offer.resource),
        "unit": offer.unit,
        "cpu_hour_cost": offer.cpu_hour_cost,
        "cost": credits_decimal(offer.cost),
        "start": iso(offer.start),
        "end": iso(offer.end),
        "cores": offer.cores,
        "load": round(offer.load, 4),
        "source": offer.source,
        "placement": offer.placement,
        "start_probability": offer.start_probability,
        "offer_id": offer.offer_id,
    }


def round_object(record: RoundRecord, short: ShortName) -> dict[str, object]:
    """Convert a round of bidding to JSON types."""
    return {
        "round": record.round_number,
        "best_offer_round": record.best_offer,
        "asked": {str(unit): price for unit, price in record.asked},
        "offers": [
            {**offer_object(offer, short), "cpu_hour_cost_asked": bid.cpu_hour_cost}
            for offer, bid in zip(record.offers, record.bids, strict=True)
        ],
        "refusals": [
            {
                "resource": short(entry.resource),
                "unit": entry.refusal.unit,
                "reason": entry.refusal.code,
                "nearest": entry.refusal.nearest,
                "detail": entry.refusal.detail,
            }
            for entry in record.refusals
        ],
        "duration_s": seconds(record.duration),
    }


def unit_object(unit: BoughtUnit, short: ShortName, bought: Bought) -> dict[str, object]:
    """Convert a bought or quoted unit to JSON types."""
    charged, returned = _money_of(unit, bought)
    return {
        **offer_object(unit.offer, short),
        "unit": unit.unit,
        "cores_asked": unit.cores_asked,
        "reservation_id": unit.reservation_id,
        "agreement_id": unit.agreement_id,
        "transfer_id": unit.transfer_id,
        "meets_request": unit.meets_request,
        "price_offered": unit.offer.cpu_hour_cost,
        "price_paid": money.price_number(unit.price_paid),
        "cost": credits_decimal(charged - returned),
        "charged": credits_decimal(charged),
        "returned": credits_decimal(returned),
        "offered": credits_decimal(unit.offer.cost),
    }


def _money_of(unit: BoughtUnit, bought: Bought) -> tuple[int, int]:
    """Return what a unit was charged and what was returned of it, in minor units."""
    standing = bought.get(unit.agreement_id)
    return (unit.cost, 0) if standing is None else (standing.charged, standing.returned)


def _money(outcome: RequestOutcome, bought: Bought) -> tuple[int, int]:
    found = [_money_of(unit, bought) for unit in outcome.units]
    return sum(charged for charged, _ in found), sum(returned for _, returned in found)


def outcome_object(
    outcome: RequestOutcome, files: Files, short: ShortName, bought: Bought | None = None
) -> dict[str, object]:
    """Convert the result of a request to JSON types, as `ramp submit --json` prints it.

    Args:
        outcome: the result.
        files: paths of the agreements, by id.
        short: shortens names.
        bought: the agreements at present; None just after the purchase.
    """
    charged, returned = _money(outcome, bought or {}) if outcome.cost or bought else (0, 0)
    return {
        "request_id": outcome.request_id,
        "status": outcome.status,
        "reason": outcome.reason,
        "code": outcome.code,
        "rule": outcome.rule or PAPER_RULE,
        "rounds": [round_object(record, short) for record in outcome.rounds],
        "units": [unit_object(unit, short, bought or {}) for unit in outcome.units],
        "others": [unit_object(unit, short, bought or {}) for unit in outcome.others],
        "until": iso(outcome.until) if outcome.until else None,
        "agreements": [path for path in files.values() if path is not None],
        "cost": credits_decimal(charged - returned),
        "charged": credits_decimal(charged),
        "returned": credits_decimal(returned),
        "started_at": iso(outcome.started_at),
        "duration_s": seconds(outcome.duration),
    }


def reasons_text(codes: Iterable[str]) -> str:
    """Count refusals by reason, the most frequent first: `5×price_below_minimum, 2×cores_taken`."""
    counted = sorted(Counter(codes).items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{number}×{code}" for code, number in counted)


def print_outcome(outcome: RequestOutcome, files: Files, short: ShortName, bought: Bought | None = None) -> None:
    """Print the result of a request; the arguments are those of `outcome_object`."""
    print_line(_headline(outcome, bought or {}))
    if outcome.units:
        _print_units(outcome, short, bought or {})
        if outcome.until:
            chosen = ",".join("1" for _ in outcome.units)
            print_line(
                f"`ramp quote --buy {chosen} {outcome.request_id}` buys these offers until {moment_text(outcome.until)}"
            )
    if outcome.status is RequestStatus.NO_OFFERS:
        _print_explanation(outcome, short)
    for path in files.values():
        if path is not None:
            click.echo(f"Agreement: {path}")


def _headline(outcome: RequestOutcome, bought: Bought) -> str:
    took = f"{count_text(len(outcome.rounds), 'round')} in {duration_text(outcome.duration)}"
    text = f"Request {outcome.request_id}: {outcome.status.replace('_', ' ')}, {took}"
    text += f" by the rule {outcome.rule}" if outcome.rule else ""
    if outcome.status in (RequestStatus.COMMITTED, RequestStatus.QUOTED):
        text += f", {count_text(len(outcome.units), 'unit')} for {cost_text(*_money(outcome, bought))}"
    text += f": {outcome.reason}" if outcome.reason else ""
    return f"{text} ({outcome.code})" if outcome.code else text


def cost_text(charged: int, returned: int, *, always: bool = False) -> str:
    """Describe a cost after refunds; `always` with what was charged, else only if some of it was returned."""
    parts = f" ({amount_text(charged)} charged, {amount_text(returned)} returned)"
    return amount_text(charged - returned) + (parts if returned or always else "")


UNIT: Final[Field[BoughtUnit]] = Field("", "Unit", lambda unit: unit.unit, NUMBER)


def slot_fields(short: ShortName) -> tuple[Field[BoughtUnit], ...]:
    """Return the columns of a slot that is offered or bought."""
    return (
        Field("", "Resource", lambda unit: unit.offer.resource, address(short)),
        Field("", "Start", lambda unit: unit.offer.start, MOMENT),
        Field("", "End", lambda unit: unit.offer.end, MOMENT),
        Field("", "Cores", _charged_text, NUMBER),
    )


def _print_units(outcome: RequestOutcome, short: ShortName, bought: Bought) -> None:
    paid = any(unit.transfer_id for unit in outcome.units)
    title = TITLES.get(outcome.status, "Paid, but failed" if paid else "Best offers, not bought")
    apart = any(unit.paid is not None for unit in outcome.units)

    def returned(unit: BoughtUnit) -> int:
        return _money_of(unit, bought)[1]

    numbers = {
        id(each): number for unit in outcome.units for number, each in enumerate(outcome.ranked(unit.unit), 1)
    }  # as `ramp quote --buy` takes them
    fields: Fields[BoughtUnit] = Fields(
        UNIT,
        Field("", "Offer", lambda unit: numbers[id(unit)], NUMBER, shown_if=lambda _: outcome.until > 0),
        *slot_fields(short),
        Field("", "Price offered" if apart else "Price", lambda unit: unit.offer.cpu_hour_cost, NUMBER),
        Field("", "Price paid", lambda unit: money.price_number(unit.price_paid), NUMBER, shown_if=lambda _: apart),
        Field("", "Cost", lambda unit: _money_of(unit, bought)[0] - returned(unit), AMOUNT),
        Field("", "Returned", returned, AMOUNT, shown_if=lambda unit: returned(unit) > 0),
        Field(
            "",
            "Meets request",
            lambda unit: "yes" if unit.meets_request else "no",
            shown_if=lambda unit: not unit.meets_request,
        ),
        Field("", "Reservation", lambda unit: unit.reservation_id, shown_if=lambda unit: bool(unit.reservation_id)),
    )
    rows = [each for unit in outcome.units for each in outcome.ranked(unit.unit)]
    fields.print_table(rows, title=f"{title} (price in credits/core-hour, cost in credits)")
    for unit in outcome.units:
        if probable := probable_start_text(unit.offer):
            print_line(f"Unit {unit.unit}: {short(unit.offer.resource)} starts {probable}")
        if unit.charges_more:
            parts = "sells only whole parts of its machine"
            print_line(
                f"Unit {unit.unit}: {short(unit.offer.resource)} {parts}; {unit.offer.cores} cores are charged for the "
                f"{unit.cores_asked} that were asked for"
            )


def probable_start_text(offer: Offer) -> str:
    """Describe a start that is promised, not reserved; "" for a reserved one."""
    if offer.start_probability is None:
        return ""
    return f"by the start above with probability {offer.start_probability:.4g}; refund of a late start: {offer.if_late}"


def _charged_text(unit: BoughtUnit) -> str:
    """Return the cores charged, and those asked for if they are fewer."""
    return f"{unit.offer.cores} ({unit.cores_asked} asked)" if unit.charges_more else str(unit.offer.cores)


def _print_explanation(outcome: RequestOutcome, short: ShortName) -> None:
    """Explain a failed auction: the last refusals by reason, with the nearest acceptable values."""
    if not outcome.rounds:
        return
    last = next((record for record in outcome.rounds[::-1] if not record.best_offer), outcome.rounds[-1])
    rows = []
    for reason in reasons_of(last):
        # times are rounded up to whole seconds, so that one that would pass still does
        text = reason.passing(short, lambda value: with_local_times(value, lambda at: local_iso(at + SECOND - 1)))
        entries = reason.entries
        rows.append((str(reason.unit), reason.code, str(len(entries)), text or _details(entries, short)))
    if rows:
        columns = ("Unit", "Refused because", "Resources", "What would pass")
        print_rows(columns, rows, right=("Unit", "Resources"), wrap=("What would pass",))


def _details(entries: Iterable[ResourceRefusal], short: ShortName) -> str:
    """Return the explanations of sellers that give no value, each once with its sellers."""
    said: dict[str, list[str]] = {}
    for each in entries:
        if each.refusal.detail:
            said.setdefault(each.refusal.detail, []).append(short(each.resource))
    return first_of([f"{first_of(sellers, ', ')}: {detail}" for detail, sellers in said.items()], "; ")


def shown_state(entry: AgreementStanding, now: Instant) -> str:
    """Return the state to display: `upcoming` before the start of the slot, `past` after its end."""
    offer = entry.agreement.offer
    if entry.state != "active" or offer.start <= now < entry.end:
        return entry.state
    return "upcoming" if now < offer.start else "past"


def agreement_object(entry: AgreementStanding, short: ShortName) -> dict[str, object]:
    """Convert an agreement to JSON types."""
    agreement = entry.agreement
    offer = agreement.offer
    return {
        "agreement_id": agreement.agreement_id,
        "request_id": agreement.request_id,
        "order_id": agreement.order_id,
        "reservation_id": entry.reservation_id,
        "state": entry.state,
        "cause": entry.cause or None,
        "unit": agreement.request.number,
        "units_total": agreement.units_total,
        "resource": short(agreement.resource),
        "user": short(agreement.user),
        "start": iso(offer.start),
        "end": iso(entry.end),
        "cores": entry.cores,
        "cpu_hour_cost": offer.cpu_hour_cost,
        "cost": credits_decimal(entry.cost),
        "charged": credits_decimal(entry.charged),
        "returned": credits_decimal(entry.returned),
        "offered": credits_decimal(offer.cost),
        "rule": None if agreement.price is None else agreement.price.rule,
        "load": round(offer.load, 4),
        "source": offer.source,
        "placement": offer.placement,
        "moved_to": None if entry.moved is None else entry.moved.placement,
        "moved_at": None if entry.moved is None else iso(entry.moved.moved_at),
        "start_probability": offer.start_probability,
        "if_late": offer.if_late or None,
        "issued_at": iso(agreement.issued_at),
        "file": entry.file,
        "payment_file": entry.payment_file,
        "amendments": [_amendment_object(each) for each in entry.amendments],
    }


def print_agreement(entry: AgreementStanding, short: ShortName, now: Instant) -> None:
    """Print an agreement."""
    agreement = entry.agreement
    offer = agreement.offer
    print_pairs(
        (
            ("Agreement", agreement.agreement_id),
            ("State", f"lost by the seller: {entry.cause}" if entry.cause else shown_state(entry, now)),
            ("Request", f"{agreement.request_id}, unit {agreement.request.number} of {agreement.units_total}"),
            ("Payment order", agreement.order_id),
            ("Reservation", entry.reservation_id),
            ("Resource", short(agreement.resource)),
            ("Start", moment_text(offer.start)),
            ("End", f"{moment_text(entry.end)} (after {duration_text(entry.end - offer.start)})"),
            ("Cores", f"{entry.cores} (asked for: {_asked(agreement.request)})"),
            ("Placement" if entry.cores == offer.cores else f"Placement of {offer.cores} cores", offer.placement),
            ("Moved to", entry.moved and f"{entry.moved.placement} (at {moment_text(entry.moved.moved_at)})"),
            ("Probable start", probable_start_text(offer)),
            ("Price", price_text(offer.cpu_hour_cost)),
            ("Cost", cost_text(entry.charged, entry.returned, always=bool(entry.amendments))),
            ("Price paid", how_priced(agreement)),
            ("Maximum cost", _limit_text(agreement)),
            ("Amendments", "; ".join(amendment_text(each) for each in entry.amendments)),
            ("Load then", f"{offer.load:.1%} of the machine without this job (queue: {offer.source})"),
            ("Signed", moment_text(agreement.issued_at)),
            ("File", entry.file),
        )
    )


def _limit_text(agreement: Agreement) -> str:
    unit, offer = agreement.request, agreement.offer
    limit = f"{amount_text(cost_cap(unit, offer.end - offer.start))}, {unit.cores.total} cores at"
    limit = f"{limit} {price_text(unit.cpu_hour_cost)}"
    return f"{limit}; you approved a best offer" if agreement.best_offer else limit


def _amendment_object(amendment: ContractChange) -> dict[str, object]:
    return {
        "number": amendment.number,
        "cores": amendment.cores,
        "end": iso(amendment.until),
        "effective_at": iso(amendment.effective_at),
        "refund": credits_decimal(amendment.refund),
        "charge": credits_decimal(amendment.charge),
        "previous": amendment.previous,
    }


def amount_moved(amendment: ContractChange) -> str:
    """Return the refund or charge of an amendment."""
    return f"{amount_text(amendment.charge)} paid" if amendment.grows else f"{amount_text(amendment.refund)} back"


def amendment_text(amendment: ContractChange) -> str:
    """Describe an amendment in one line: new size, start of its effect, refund or charge."""
    return (
        f"{amendment.number}: {amendment.cores} cores until {moment_text(amendment.until)} from "
        f"{moment_text(amendment.effective_at)} on, {amount_moved(amendment)}"
    )


def _asked(request: RequestUnit) -> str:
    cores, sizes = request.cores, request.moldable
    if sizes is not None:
        return f"{sizes.least} to {sizes.most}, {cores.total} as reference, {sizes.law}"
    return f"{cores.count} nodes of {cores.cores_per_node}" if isinstance(cores, Nodes) else str(cores.total)
