"""Which resources of a market will refuse a user, for want of a local account."""

from __future__ import annotations

from typing import Final

from ramp.control.market_changes import ChangeLine
from ramp.runtime.configuration.values import SwarmConfig

NAMED: Final = 3
"""Maximum number of resources named in a warning."""


def unmapped(config: SwarmConfig, name: str) -> list[ChangeLine]:
    """Warn of resources that will refuse a user because it has no local account there."""
    refusing = config.refusing(name)
    if not refusing:
        return []
    more = f" and {len(refusing) - NAMED} more" if len(refusing) > NAMED else ""
    what = f"warning: {', '.join(refusing[:NAMED])}{more} will refuse {name} (no_account)"
    text = f"{what}: [accounts] has no local account for {name}; add one and run `ramp up` again"
    return [ChangeLine("warning", name, text)]
