"""References of the bank's postings, as `ramp balance --statement` and `ramp bank overview` show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramp.client.identifiers import shortened
from ramp.client.results import short_name
from ramp.model.contents import StatementLine, TradeLine

FOR: Final = "Agreement (or deposit)"
"""Heading of the column of references."""


def reference_object(line: StatementLine | TradeLine) -> dict[str, str | None]:
    """Return the agreement or deposit of a posting for JSON."""
    deposit_id = line.deposit_id or None
    return {"agreement_id": None if deposit_id else line.agreement_id, "deposit_id": deposit_id}


def reference_texts(lines: Sequence[StatementLine | TradeLine], domain: str) -> list[str]:
    """Return the references of postings: short agreement ids, whole deposit ids without the market's domain."""
    short = shortened([line.agreement_id for line in lines if not line.deposit_id])
    return [short_name(line.deposit_id, domain) or short[line.agreement_id] for line in lines]
