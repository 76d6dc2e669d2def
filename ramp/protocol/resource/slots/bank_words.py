"""What a bank says to a resource of what it has sold."""

from __future__ import annotations

from ramp.model.contents import (
    AmendmentPosted,
    AmendmentRefused,
    PaymentMade,
    PaymentRefused,
    RefundMade,
    RefundRefused,
)

BankWord = PaymentMade | PaymentRefused | RefundMade | RefundRefused | AmendmentPosted | AmendmentRefused
