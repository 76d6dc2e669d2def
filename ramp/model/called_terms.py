"""Bind an offer to its call: a digest of a unit's terms, so that the offer fits no other call.

If another offer sets the winner's price, both must answer the same call. Otherwise a buyer could ask one seller for
more, or at a lower price, than the rest, and let its answer set the price.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ramp.model.offer import Offer
from ramp.model.request import RequestUnit


def terms_digest(unit: RequestUnit, rule: str) -> str:
    """Return the digest of a unit's called terms and the auction's rule.

    It covers the rule, and the unit's stated fields by name (instants and durations in microseconds; cores, disk and
    torus terms with their kind, under `is`) except its price, which falls from round to round and is in the offer
    separately.
    """
    return digest_of({"rule": rule, "unit": _stated(unit)})


def digest_of(plain: Mapping[str, object]) -> str:
    """Return SHA-256 of JSON in UTF-8 with sorted keys and no blanks, as URL-safe base64 without padding."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii").rstrip("=")


def bound(offer: Offer, unit: RequestUnit, rule: str) -> Offer:
    """Return an offer with the price and the terms of its call, a unit under a rule."""
    return replace(offer, asked=unit.cpu_hour_cost, terms=terms_digest(unit, rule))


def called_otherwise(unit: RequestUnit, rule: str, offer: Offer, *, sealed: bool) -> str:
    """Say why an offer does not answer the call for a unit; empty if it does.

    Args:
        unit: as the user wants it; its price is the cap.
        rule: of the auction.
        offer: the offer.
        sealed: whether the rule asks for the cap in every round, instead of falling prices.
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
