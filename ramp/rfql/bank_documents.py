"""Documents exchanged with the bank: payments, orders, account statements, the keeper's orders and queries.

Paper section 6.3; schemas payment.xsd, order.xsd, statement.xsd and keeper.xsd.
"""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.record import DURATION, INSTANT, INTEGER, SENTENCE, TEXT, Record

PAYMENT_MADE: Final = Record(contents.PaymentMade, {"agreement_id": TEXT, "transfer_id": TEXT, "amount": INTEGER})
PAYMENT_REFUSED: Final = Record(contents.PaymentRefused, {"agreement_id": TEXT, "code": TEXT, "detail": SENTENCE})
PAYMENT_QUERY: Final = Record(contents.PaymentQuery, {"agreement_id": TEXT})

ORDER_LINE: Final = Record(
    contents.OrderLine,
    {
        "agreement_id": TEXT,
        "resource": TEXT,
        "cost": INTEGER,
        "offer_id": TEXT,
        "amends": TEXT,
        "becomes": TEXT,
    },
)
PAYMENT_ORDER: Final = Record(
    contents.PaymentOrder, {"order_id": TEXT, "valid_until": INSTANT}, children={"lines": ORDER_LINE}
)
FUNDS_RESERVED: Final = Record(
    contents.FundsReserved,
    {"order_id": TEXT, "user": TEXT, "valid_for": DURATION, "valid_until": INSTANT, "bank_time": INSTANT},
    children={"lines": ORDER_LINE},
)
ORDER_REFUSED: Final = Record(contents.OrderRefused, {"order_id": TEXT, "code": TEXT, "detail": SENTENCE})
ORDER_WITHDRAWAL: Final = Record(
    contents.OrderWithdrawal, {"order_id": TEXT, "valid_until": INSTANT, "reason": SENTENCE}
)
ORDER_POSTED: Final = Record(contents.OrderPosted, {"order_id": TEXT}, children={"transfers": PAYMENT_MADE})
ORDER_VOIDED: Final = Record(
    contents.OrderVoided, {"order_id": TEXT, "code": TEXT, "detail": SENTENCE}, children={"awaited": ORDER_LINE}
)

ACCOUNT_QUERY: Final = Record(
    contents.AccountQuery, {"nonce": TEXT, "account": TEXT, "since": INSTANT, "until": INSTANT}
)
STATEMENT_LINE: Final = Record(
    contents.StatementLine,
    {
        "transfer_id": TEXT,
        "posted_at": INSTANT,
        "kind": TEXT,
        "counterparty": TEXT,
        "agreement_id": TEXT,
        "amount": INTEGER,
        "balance": INTEGER,
    },
    element="Line",
)
ACCOUNT_STATEMENT: Final = Record(
    contents.AccountStatement,
    {
        "nonce": TEXT,
        "account": TEXT,
        "balance": INTEGER,
        "reserved": INTEGER,
        "credit_limit": INTEGER,
        "bank_time": INSTANT,
    },
    children={"lines": STATEMENT_LINE},
)
CLOCK_QUERY: Final = Record(contents.ClockQuery, {"query_id": TEXT})
CLOCK_READING: Final = Record(contents.ClockReading, {"query_id": TEXT, "bank_time": INSTANT})
ACCOUNT_QUERY_REFUSED: Final = Record(contents.AccountQueryRefused, {"nonce": TEXT, "code": TEXT, "detail": SENTENCE})

DEPOSIT_ORDER: Final = Record(
    contents.DepositOrder, {"deposit_id": TEXT, "account": TEXT, "amount": INTEGER, "memo": SENTENCE}
)
REFUND_ORDER: Final = Record(contents.RefundOrder, {"agreement_id": TEXT, "reason": SENTENCE})
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
