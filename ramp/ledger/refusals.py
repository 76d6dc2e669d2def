"""The ledger's refusals: a closed list of codes for callers and tests, and common checks of values."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NoReturn

from ramp.errors import LedgerRefusal
from ramp.ledger.entry import EVIDENCE_LENGTH_MAX
from ramp.model.money import AMOUNT_MAX

IDENTIFIER_LENGTH_MAX: Final = 512
"""Longest identifier in characters; a JID with its parts is shorter in practice."""

TEXT_LENGTH_MAX: Final = 1000
"""Longest memo and reason in characters; longer ones are cut."""

CERTIFICATE_LENGTH_MAX: Final = 65_536
"""Longest certificate in characters of PEM text."""


class RefusalCode(StrEnum):
    """Codes of `LedgerRefusal`, of refused orders, and of void amendments."""

    INSUFFICIENT_FUNDS = "insufficient_funds"
    UNKNOWN_ACCOUNT = "unknown_account"
    WRONG_ACCOUNT = "wrong_account"
    SAME_ACCOUNT = "same_account"
    AMOUNT_NOT_POSITIVE = "amount_not_positive"
    AMOUNT_TOO_LARGE = "amount_too_large"
    MALFORMED_VALUE = "malformed_value"
    UNKNOWN_TRANSFER = "unknown_transfer"
    UNKNOWN_ORDER = "unknown_order"
    DUPLICATE_DIFFERS = "duplicate_differs"
    NOT_POSTED = "not_posted"
    STARTED = "started"
    NO_LINES = "no_lines"
    EXPIRED = "expired"
    NO_AGREEMENT = "no_agreement"
    AGREEMENT_IN_USE = "agreement_in_use"
    REFUNDED = "refunded"
    OUT_OF_ORDER = "out_of_order"
    OTHER_STATE = "other_state"
    MORE_THAN_PAID = "more_than_paid"


def refuse(code: RefusalCode, reason: str) -> NoReturn:
    """Raise `LedgerRefusal` with a code of the list."""
    raise LedgerRefusal(code, reason)


def check_identifier(name: str, value: str) -> None:
    """Refuse an identifier that is empty, too long, or has white space or double quotes; `name` is for the message."""
    if not 0 < len(value) <= IDENTIFIER_LENGTH_MAX:
        refuse(
            RefusalCode.MALFORMED_VALUE, f"{name} has {len(value)} characters, expected 1 to {IDENTIFIER_LENGTH_MAX}"
        )
    if '"' in value or " " in value or not value.isprintable():
        refuse(
            RefusalCode.MALFORMED_VALUE,
            f"{name} {value!r} must not contain white space, control characters or double quotes",
        )


def check_amount(name: str, amount: int) -> None:
    """Refuse an amount that is not an integer (money is never float), not above zero, or too large."""
    if type(amount) is not int:
        refuse(RefusalCode.MALFORMED_VALUE, f"{name} must be an integer of minor units, got {amount!r}")
    if amount <= 0:
        refuse(RefusalCode.AMOUNT_NOT_POSITIVE, f"{name} must be above zero, got {amount} minor units")
    if amount > AMOUNT_MAX:
        refuse(RefusalCode.AMOUNT_TOO_LARGE, f"{name} must be at most {AMOUNT_MAX} minor units, got {amount}")


def check_instant(name: str, instant: int) -> None:
    """Refuse a time that is not an integer of microseconds since the Unix epoch."""
    if type(instant) is not int or instant < 0:
        refuse(RefusalCode.MALFORMED_VALUE, f"{name} must be an integer of microseconds since 1970, got {instant!r}")


def check_evidence(text: str) -> None:
    """Refuse evidence that storage could not keep unchanged."""
    surrogates = not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
    if len(text) > EVIDENCE_LENGTH_MAX or "\0" in text or surrogates:
        refuse(
            RefusalCode.MALFORMED_VALUE,
            f"evidence must have at most {EVIDENCE_LENGTH_MAX} characters, without NUL and surrogates; got {len(text)}",
        )
