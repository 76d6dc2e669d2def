"""All auction rules: of `ramp.protocol.rules.shipped`, of other packages, or at `module:Name` or `FILE.py:Name`."""

from __future__ import annotations

from typing import Any, Final

from ramp.declarations import Sort
from ramp.errors import ConfigurationError
from ramp.protocol.rules.auction_rule import AuctionRule


def _adopt(given: Any) -> AuctionRule:
    rule = given() if isinstance(given, type) and issubclass(given, AuctionRule) else given
    if not isinstance(rule, AuctionRule):
        raise ConfigurationError(f"{given!r} is not an AuctionRule", key="auction rule")
    for name in ("sealed", "pays_offer"):
        if not isinstance(getattr(rule, name), bool):
            wrong = f"invalid {name}: got {getattr(rule, name)!r}, expected true or false"
            raise ConfigurationError(wrong, key="auction rule")
    return rule


RULES: Final = Sort("auction rule", "ramp.protocol.rules.shipped", "RULE", "ramp.auction_rules", _adopt)
