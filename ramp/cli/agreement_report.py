"""How an agreement looks: the object that `--json` prints, and the same for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ramp.cli.output import amount_json, amount_text, duration_text, moment_text, price_text, print_pairs
from ramp.model.instant import iso

ShortName = Callable[[str], str]


def agreement_object(entry: Mapping[str, Any], short: ShortName) -> dict[str, Any]:
    """An agreement for JSON.

    Args:
        entry: agreement, state and file as the control channel gives them.
        short: makes agents' names short.
    """
    agreement = entry["agreement"]
    offer = agreement["offer"]
    return {
        "agreement_id": agreement["agreement_id"],
        "request_id": agreement["request_id"],
        "order_id": agreement["order_id"],
        "reservation_id": agreement["reservation_id"],
        "state": entry["state"],
        "unit": agreement["request"]["number"],
        "units_total": agreement["units_total"],
        "resource": short(agreement["resource"]),
        "user": short(agreement["user"]),
        "start": iso(offer["start"]),
        "end": iso(offer["end"]),
        "cores": offer["cores"],
        "cpu_hour_cost": offer["cpu_hour_cost"],
        "cost": amount_json(agreement["cost"]),
        "load": round(offer["load"], 4),
        "source": offer["source"],
        "placement": offer["placement"],
        "issued_at": iso(agreement["issued_at"]),
        "file": entry["file"],
        "payment_file": entry["payment_file"],
    }


def print_agreement(entry: Mapping[str, Any], short: ShortName) -> None:
    """Print an agreement for people."""
    agreement = entry["agreement"]
    offer = agreement["offer"]
    number = agreement["request"]["number"]
    print_pairs(
        (
            ("Agreement", agreement["agreement_id"]),
            ("State", entry["state"]),
            (
                "Request",
                f"{agreement['request_id']}, unit {number} of {agreement['units_total']}",
            ),
            ("Payment order", agreement["order_id"]),
            ("Reservation", agreement["reservation_id"]),
            ("Resource", short(agreement["resource"])),
            ("Start", moment_text(offer["start"])),
            ("End", f"{moment_text(offer['end'])} (after {duration_text(offer['end'] - offer['start'])})"),
            ("Cores", f"{offer['cores']} (asked for: {_asked(agreement['request']['cores'])})"),
            ("Placement", offer["placement"]),
            ("Price", f"{price_text(offer['cpu_hour_cost'])} (limit: {agreement['request']['cpu_hour_cost']})"),
            ("Cost", amount_text(agreement["cost"])),
            ("Load then", f"{offer['load']:.1%} of the machine without this job (queue: {offer['source']})"),
            ("Signed", moment_text(agreement["issued_at"])),
            ("File", entry["file"]),
        )
    )


def _asked(cores: Mapping[str, int]) -> str:
    per_node = cores.get("cores_per_node")
    return f"{cores['count']} nodes of {per_node}" if per_node else str(cores["count"])
