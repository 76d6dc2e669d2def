"""What the bank says about payments and refunds, and how it is asked (schemas/payment.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.record import INTEGER, SENTENCE, TEXT, Record

_REFUSED: Final = {"agreement_id": TEXT, "code": TEXT, "detail": SENTENCE}
_DONE: Final = {"agreement_id": TEXT, "transfer_id": TEXT, "amount": INTEGER}

PAYMENT_MADE: Final = Record(contents.PaymentMade, _DONE)
PAYMENT_REFUSED: Final = Record(contents.PaymentRefused, _REFUSED)
REFUND_MADE: Final = Record(contents.RefundMade, _DONE)
REFUND_REFUSED: Final = Record(contents.RefundRefused, _REFUSED)
PAYMENT_QUERY: Final = Record(contents.PaymentQuery, {"agreement_id": TEXT})
