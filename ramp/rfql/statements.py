"""Account queries, the bank's statements, and its clock (paper section 6.3; schemas/statement.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.record import INSTANT, INTEGER, SENTENCE, TEXT, Record

ACCOUNT_QUERY: Final = Record(
    contents.AccountQuery, {"nonce": TEXT, "account": TEXT, "since": INSTANT, "until": INSTANT}
)
LINE: Final = Record(
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
    children={"lines": LINE},
)
CLOCK_QUERY: Final = Record(contents.ClockQuery, {"query_id": TEXT})
CLOCK_READING: Final = Record(contents.ClockReading, {"query_id": TEXT, "bank_time": INSTANT})
ACCOUNT_QUERY_REFUSED: Final = Record(contents.AccountQueryRefused, {"nonce": TEXT, "code": TEXT, "detail": SENTENCE})
