"""Why the ledger refuses: a closed list of codes, so that callers can branch and answers can be tested."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NoReturn

from ramp.errors import LedgerRefusal
from ramp.ledger.account import AMOUNT_MAX
from ramp.ledger.evidence import EVIDENCE_LENGTH_MAX

IDENTIFIER_LENGTH_MAX: Final = 512
"""Longest identifier in characters; a JID with its parts is shorter in practice."""

TEXT_LENGTH_MAX: Final = 1000
"""Longest memo and reason in characters; longer ones are cut, for they are only for people."""

CERTIFICATE_LENGTH_MAX: Final = 65_536
"""Longest certificate in characters of PEM text."""


class RefusalCode(StrEnum):
    """Every reason of a refusal: code of `LedgerRefusal`, of a refused order, and of a void change of a slot."""

    INSUFFICIENT_FUNDS = "insufficient_funds"
    UNKNOWN_ACCOUNT = "unknown_account"
    ACCOUNT_CLOSED = "account_closed"
    ACCOUNT_NOT_EMPTY = "account_not_empty"
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
    """Refuse with a code of the list.

    Raises:
        LedgerRefusal: always.
    """
    raise LedgerRefusal(code, reason)


def check_identifier(name: str, value: str) -> None:
    """Refuse what cannot name an account or agreement: it must be text without white space or double quotes.

    Args:
        name: what the value is, for the message.
        value: the identifier.
    """
    if not 0 < len(value) <= IDENTIFIER_LENGTH_MAX:
        refuse(
            RefusalCode.MALFORMED_VALUE, f"{name} has {len(value)} characters; right are 1 to {IDENTIFIER_LENGTH_MAX}"
        )
    if '"' in value or " " in value or not value.isprintable():
        refuse(
            RefusalCode.MALFORMED_VALUE, f"{name} {value!r} has white space, control characters or double quotes in it"
        )


def check_amount(name: str, amount: int) -> None:
    """Refuse an amount that is no integer (money is never float), not above zero, or absurdly large."""
    if type(amount) is not int:
        refuse(RefusalCode.MALFORMED_VALUE, f"{name} {amount!r} is no integer of minor units")
    if amount <= 0:
        refuse(RefusalCode.AMOUNT_NOT_POSITIVE, f"{name} is {amount} minor units; it must be above zero")
    if amount > AMOUNT_MAX:
        refuse(RefusalCode.AMOUNT_TOO_LARGE, f"{name} is {amount} minor units; at most {AMOUNT_MAX} are allowed")


def check_instant(name: str, instant: int) -> None:
    """Refuse a moment that is no integer of microseconds since the Unix epoch."""
    if type(instant) is not int or instant < 0:
        refuse(RefusalCode.MALFORMED_VALUE, f"{name} {instant!r} is no integer of microseconds since 1970")


def check_evidence(text: str) -> None:
    """Refuse evidence that could not be kept as it is."""
    surrogates = not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
    if len(text) > EVIDENCE_LENGTH_MAX or "\0" in text or surrogates:
        refuse(
            RefusalCode.MALFORMED_VALUE,
            f"evidence of {len(text)} characters cannot be kept; right are at most {EVIDENCE_LENGTH_MAX}, without NUL "
            "and surrogates",
        )


def one_line(text: str) -> str:
    """Free text as the ledger keeps it: on one line, printable, cut at `TEXT_LENGTH_MAX` characters."""
    line = " ".join(text.split())[:TEXT_LENGTH_MAX]
    return "".join(character if character.isprintable() else "?" for character in line)
