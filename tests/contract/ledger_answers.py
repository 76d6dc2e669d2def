"""What the ledger's contract suites ask of any ledger."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ramp.errors import LedgerRefusal
from ramp.ledger.interface import Ledger


def refusal_code(call: Callable[[], object]) -> str:
    """The code with which a call is refused."""
    with pytest.raises(LedgerRefusal) as caught:
        call()
    return caught.value.code


def amounts(ledger: Ledger, account_id: str) -> tuple[int, int, int]:
    """Return what is posted, reserved and available on an account."""
    balance = ledger.balance(account_id)
    return balance.posted, balance.reserved, balance.available


def balances(ledger: Ledger) -> tuple[int, int]:
    """What alice and hector have, in a ledger that adds up."""
    assert ledger.audit() == []
    return ledger.balance("alice").posted, ledger.balance("hector").posted
