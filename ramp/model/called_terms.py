"""For what an offer was called: a digest of a unit's terms, by which an offer fits no other call.

Where the winner is shown another's offer, that offer has to answer the same call as its own: else a buyer asks one
seller for more, or at a lower price, than the rest, and lets its word set the price of what it was never asked for.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ramp.model.offer import Offer
from ramp.model.request import RequestUnit


def terms_digest(unit: RequestUnit, rule: str) -> str:
    """SHA-256 of the terms that a unit is called with and of the auction's rule, as URL-safe base64 without padding.

    Digested is JSON in UTF-8 with sorted keys and no blanks: the rule, and of the unit all that is stated by the names
    of its fields (instants and durations in microseconds; cores, disk and torus terms with what they are, under `is`)
    but for its price, which falls from round to round and stands in the offer beside this.

    Args:
        unit: as it is called for.
        rule: named in the call.
    """
    text = json.dumps({"rule": rule, "unit": _stated(unit)}, sort_keys=True, separators=(",", ":"))
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii").rstrip("=")


def bound(offer: Offer, unit: RequestUnit, rule: str) -> Offer:
    """An offer that says for what it was made.

    Args:
        offer: what is offered.
        unit: as it was called for.
        rule: named in the call.
    """
    return replace(offer, asked=unit.cpu_hour_cost, terms=terms_digest(unit, rule))


def called_otherwise(unit: RequestUnit, rule: str, offer: Offer, *, sealed: bool) -> str:
    """Why an offer does not answer the call for a unit, as a sentence; empty where it does.

    Args:
        unit: as the user wants it; its price is the cap.
        rule: of the auction.
        offer: what was offered.
        sealed: whether the rule asks for the cap itself in every round, and not for ever less.
    """
    if not offer.terms:
        return "it names no call that it answers"
    if offer.terms != terms_digest(unit, rule):
        return "it answers a call with other terms or another auction rule"
    if offer.asked > unit.cpu_hour_cost or (sealed and offer.asked < unit.cpu_hour_cost):
        return f"wrong price of its call: got {offer.asked} credits/core-hour, expected {unit.cpu_hour_cost}"
    return ""


def _stated(value: Any) -> Any:
    if isinstance(value, RequestUnit):
        return {
            each.name: _stated(stated)
            for each in fields(value)
            if each.name != "cpu_hour_cost" and (stated := getattr(value, each.name)) is not None
        }
    if is_dataclass(value):
        own = {each.name: getattr(value, each.name) for each in fields(value)}
        return {"is": type(value).__name__, **own}
    return value
