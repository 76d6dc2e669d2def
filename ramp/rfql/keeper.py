"""What the market's keeper orders and asks of the bank (paper section 6.3; schemas/keeper.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.record import INSTANT, INTEGER, SENTENCE, TEXT, Record

DEPOSIT_ORDER: Final = Record(
    contents.DepositOrder, {"deposit_id": TEXT, "account": TEXT, "amount": INTEGER, "memo": SENTENCE}
)
DEPOSIT_MADE: Final = Record(contents.DepositMade, {"deposit_id": TEXT, "transfer_id": TEXT, "amount": INTEGER})
KEEPER_REFUSED: Final = Record(contents.KeeperRefused, {"reference": TEXT, "code": TEXT, "detail": SENTENCE})
OVERVIEW_QUERY: Final = Record(
    contents.OverviewQuery, {"query_id": TEXT, "since": INSTANT, "until": INSTANT, "after": INTEGER}
)
ACCOUNT_LINE: Final = Record(
    contents.AccountLine,
    {"account": TEXT, "kind": TEXT, "balance": INTEGER, "reserved": INTEGER, "credit_limit": INTEGER},
)
TRADE_LINE: Final = Record(
    contents.TradeLine,
    {
        "transfer_id": TEXT,
        "posted_at": INSTANT,
        "kind": TEXT,
        "debit_account": TEXT,
        "credit_account": TEXT,
        "agreement_id": TEXT,
        "order_id": TEXT,
        "amount": INTEGER,
    },
)
MARKET_OVERVIEW: Final = Record(
    contents.MarketOverview,
    {"query_id": TEXT, "bank_time": INSTANT, "next_after": INTEGER},
    children={"accounts": ACCOUNT_LINE, "trades": TRADE_LINE},
)
