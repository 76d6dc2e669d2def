"""How a request went: the object that `--json` prints, and the same for people.

The input is the outcome as the control channel gives it (`ramp.protocol.outcome` as plain JSON).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import click

from ramp.cli.output import (
    amount_json,
    amount_text,
    count_text,
    duration_text,
    moment_text,
    new_table,
    print_table,
)
from ramp.model import money
from ramp.model.instant import iso, seconds

ShortName = Callable[[str], str]

NEAREST_SHOWN: Final = 3
"""So many nearest values that would pass are shown to people; JSON has all."""


def offer_cost(offer: Mapping[str, Any]) -> int:
    """Cost of an offer's slot in minor units."""
    return money.cost(offer["cpu_hour_cost"], offer["cores"], offer["end"] - offer["start"])


def offer_object(offer: Mapping[str, Any], short: ShortName) -> dict[str, Any]:
    """An offer for JSON."""
    return {
        "resource": short(offer["resource"]),
        "unit": offer["unit"],
        "cpu_hour_cost": offer["cpu_hour_cost"],
        "cost": amount_json(offer_cost(offer)),
        "start": iso(offer["start"]),
        "end": iso(offer["end"]),
        "cores": offer["cores"],
        "load": round(offer["load"], 4),
        "source": offer["source"],
        "placement": offer["placement"],
        "offer_id": offer["offer_id"],
    }


def round_object(record: Mapping[str, Any], short: ShortName) -> dict[str, Any]:
    """A round of bidding for JSON."""
    return {
        "round": record["round_number"],
        "best_offer_round": record["best_offer"],
        "asked": {str(unit): price for unit, price in record["asked"]},
        "offers": [offer_object(offer, short) for offer in record["offers"]],
        "refusals": [
            {
                "resource": short(entry["resource"]),
                "unit": entry["refusal"]["unit"],
                "reason": entry["refusal"]["code"],
                "nearest": entry["refusal"]["nearest"],
                "detail": entry["refusal"]["detail"],
            }
            for entry in record["refusals"]
        ],
        "duration_s": seconds(record["duration"]),
    }


def unit_object(unit: Mapping[str, Any], short: ShortName) -> dict[str, Any]:
    """A bought (or quoted) unit for JSON."""
    return {
        **offer_object(unit["offer"], short),
        "unit": unit["unit"],
        "reservation_id": unit["reservation_id"],
        "agreement_id": unit["agreement_id"],
        "transfer_id": unit["transfer_id"],
        "meets_request": unit["meets_request"],
    }


def outcome_object(outcome: Mapping[str, Any], files: Mapping[str, str | None], short: ShortName) -> dict[str, Any]:
    """A request that has ended, as `ramp submit --json` prints it.

    Args:
        outcome: how it ended.
        files: path of the signed agreement by its id, None where there is none.
        short: makes agents' names short.
    """
    return {
        "request_id": outcome["request_id"],
        "status": outcome["status"],
        "reason": outcome["reason"],
        "rounds": [round_object(record, short) for record in outcome["rounds"]],
        "units": [unit_object(unit, short) for unit in outcome["units"]],
        "agreements": [path for path in files.values() if path is not None],
        "cost": amount_json(outcome_cost(outcome)),
        "started_at": iso(outcome["started_at"]),
        "duration_s": seconds(outcome["duration"]),
    }


def outcome_cost(outcome: Mapping[str, Any]) -> int:
    """What the request has cost, in minor units: nothing unless it was committed."""
    if outcome["status"] != "committed":
        return 0
    return sum(offer_cost(unit["offer"]) for unit in outcome["units"])


def reasons_text(codes: Iterable[str]) -> str:
    """Refusals by reason, the most frequent first: `5×price_below_minimum, 2×cores_taken`."""
    counted = sorted(Counter(codes).items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{number}×{code}" for code, number in counted)


def print_outcome(outcome: Mapping[str, Any], files: Mapping[str, str | None], short: ShortName) -> None:
    """Print for people how a request ended."""
    click.echo(_headline(outcome))
    if outcome["units"]:
        _print_units(outcome, short)
    if outcome["status"] == "no_offers":
        _print_explanation(outcome, short)
    for path in files.values():
        if path is not None:
            click.echo(f"Agreement: {path}")


def _headline(outcome: Mapping[str, Any]) -> str:
    status = outcome["status"].replace("_", " ")
    total = sum(offer_cost(unit["offer"]) for unit in outcome["units"])
    took = f"{count_text(len(outcome['rounds']), 'round')} in {duration_text(outcome['duration'])}"
    text = f"Request {outcome['request_id']}: {status}, {took}"
    if outcome["status"] in ("committed", "quoted"):
        text += f", {count_text(len(outcome['units']), 'unit')} for {amount_text(total)}"
    return f"{text}: {outcome['reason']}" if outcome["reason"] else text


def _print_units(outcome: Mapping[str, Any], short: ShortName) -> None:
    bought = any(unit["reservation_id"] for unit in outcome["units"])
    headings = ["Unit", "Resource", "Start", "End", "Cores", "Price", "Cost"]
    if not all(unit["meets_request"] for unit in outcome["units"]):
        headings.append("Meets request")
    meets_shown = len(headings) == 8
    title = {"quoted": "Best offers", "committed": "Bought", "failed": "Paid, but failed"}.get(
        outcome["status"], "Best offers, not bought"
    )
    title += " (price in credits/core-hour, cost in credits)"
    table = new_table(
        *headings,
        *(["Reservation"] if bought else []),
        right=("Unit", "Cores", "Price", "Cost"),
        title=title,
    )
    for unit in outcome["units"]:
        offer = unit["offer"]
        row = [str(unit["unit"]), short(offer["resource"]), moment_text(offer["start"]), moment_text(offer["end"])]
        row += [str(offer["cores"]), str(offer["cpu_hour_cost"]), money.credits_text(offer_cost(offer))]
        if meets_shown:
            row.append("yes" if unit["meets_request"] else "no")
        table.add_row(*row, *([unit["reservation_id"]] if bought else []))
    print_table(table)


def _print_explanation(outcome: Mapping[str, Any], short: ShortName) -> None:
    """Why nobody sold: the last round's refusals by reason, with the nearest values that would pass."""
    if not outcome["rounds"]:
        return
    last = next((record for record in outcome["rounds"][::-1] if not record["best_offer"]), outcome["rounds"][-1])
    by_reason: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for entry in last["refusals"]:
        by_reason.setdefault((entry["refusal"]["unit"], entry["refusal"]["code"]), []).append(entry)
    if not by_reason:
        return
    table = new_table("Unit", "Refused because", "Resources", "What would pass", right=("Unit", "Resources"))
    for (unit, code), entries in sorted(by_reason.items(), key=lambda item: (item[0][0], -len(item[1]))):
        passing = [
            f"{short(entry['resource'])}: {entry['refusal']['nearest']}"
            for entry in entries
            if entry["refusal"]["nearest"]
        ]
        more = f" and {len(passing) - NEAREST_SHOWN} more" if len(passing) > NEAREST_SHOWN else ""
        table.add_row(str(unit), code, str(len(entries)), "; ".join(passing[:NEAREST_SHOWN]) + more)
    print_table(table)
