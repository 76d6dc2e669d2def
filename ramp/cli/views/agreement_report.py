"""How an agreement looks: the object that `--json` prints, and the same for people."""

from __future__ import annotations

from collections.abc import Callable

from ramp.cli.views.outcome_report import cost_text, probable_start_text
from ramp.cli.views.output import amount_json, amount_text, duration_text, moment_text, price_text, print_pairs
from ramp.control.events import AgreementStanding
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import Instant, iso
from ramp.model.price_paid import how_priced
from ramp.model.request import Nodes, RequestUnit
from ramp.model.sizes.moldable import cost_cap

ShortName = Callable[[str], str]


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
        "cost": amount_json(entry.cost),
        "charged": amount_json(entry.charged),
        "returned": amount_json(entry.returned),
        "offered": amount_json(offer.cost),
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
            ("Moved to", _moved(entry)),
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
        "refund": amount_json(amendment.refund),
        "charge": amount_json(amendment.charge),
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


def _moved(entry: AgreementStanding) -> str:
    """Describe the new place of a moved slot, or return ""."""
    return "" if entry.moved is None else f"{entry.moved.placement} (at {moment_text(entry.moved.moved_at)})"


def _asked(request: RequestUnit) -> str:
    cores, sizes = request.cores, request.moldable
    if sizes is not None:
        return f"{sizes.least} to {sizes.most}, {cores.total} as reference, {sizes.law}"
    return f"{cores.count} nodes of {cores.cores_per_node}" if isinstance(cores, Nodes) else str(cores.total)
