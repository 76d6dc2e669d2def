"""References of the bank's postings, as `ramp balance --statement` and `ramp bank overview` show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from ramp.cli.views.fields import Field
from ramp.client.identifiers import shortened
from ramp.client.results import short_name
from ramp.model.contents import StatementLine, TradeLine

Posting = TypeVar("Posting", StatementLine, TradeLine)

AGREEMENT: Final[Field[StatementLine | TradeLine]] = Field(
    "agreement_id", "", lambda line: None if line.deposit_id else line.agreement_id
)
DEPOSIT: Final[Field[StatementLine | TradeLine]] = Field("deposit_id", "", lambda line: line.deposit_id or None)


def reference(lines: Sequence[Posting], domain: str) -> Field[Posting]:
    """Return the column of references: short agreement ids, whole deposit ids without the market's domain."""
    short = shortened([line.agreement_id for line in lines if not line.deposit_id])
    return Field(
        "",
        "Agreement (or deposit)",
        lambda line: short_name(line.deposit_id, domain) or short[line.agreement_id],
    )
