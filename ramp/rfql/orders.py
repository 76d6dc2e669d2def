"""Payment orders: costs set aside at the bank, all or none, and what became of them (schemas/order.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.payments import PAYMENT_MADE
from ramp.rfql.xml.record import DURATION, INSTANT, INTEGER, SENTENCE, TEXT, Record

LINE: Final = Record(
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
    contents.PaymentOrder, {"order_id": TEXT, "valid_until": INSTANT}, children={"lines": LINE}
)
FUNDS_RESERVED: Final = Record(
    contents.FundsReserved,
    {"order_id": TEXT, "user": TEXT, "valid_for": DURATION, "valid_until": INSTANT, "bank_time": INSTANT},
    children={"lines": LINE},
)
ORDER_REFUSED: Final = Record(contents.OrderRefused, {"order_id": TEXT, "code": TEXT, "detail": SENTENCE})
ORDER_WITHDRAWAL: Final = Record(
    contents.OrderWithdrawal, {"order_id": TEXT, "valid_until": INSTANT, "reason": SENTENCE}
)
ORDER_POSTED: Final = Record(contents.OrderPosted, {"order_id": TEXT}, children={"transfers": PAYMENT_MADE})
ORDER_VOIDED: Final = Record(
    contents.OrderVoided, {"order_id": TEXT, "code": TEXT, "detail": SENTENCE}, children={"awaited": LINE}
)
