"""Documents exchanged with the bank: payments, orders, account statements, the keeper's orders and queries.

Paper section 6.3; schemas payment.xsd, order.xsd, statement.xsd and keeper.xsd.
"""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.record import Record

PAYMENT_MADE: Final = Record(contents.PaymentMade)

ORDER_LINE: Final = Record(contents.OrderLine)
PAYMENT_ORDER: Final = Record(contents.PaymentOrder, children={"lines": ORDER_LINE})
FUNDS_RESERVED: Final = Record(contents.FundsReserved, children={"lines": ORDER_LINE})
ORDER_POSTED: Final = Record(contents.OrderPosted, children={"transfers": PAYMENT_MADE})
ORDER_VOIDED: Final = Record(contents.OrderVoided, children={"awaited": ORDER_LINE})

STATEMENT_LINE: Final = Record(contents.StatementLine, element="Line")
ACCOUNT_STATEMENT: Final = Record(contents.AccountStatement, children={"lines": STATEMENT_LINE})

ACCOUNT_LINE: Final = Record(contents.AccountLine)
TRADE_LINE: Final = Record(contents.TradeLine)
MARKET_OVERVIEW: Final = Record(contents.MarketOverview, children={"accounts": ACCOUNT_LINE, "trades": TRADE_LINE})
