"""What the ledger's contract suites ask of any ledger."""

from collections.abc import Callable

import pytest

from ramp.errors import LedgerRefusal
from ramp.ledger.entry import DecidedChange, Grounds, Order
from ramp.ledger.interface import Ledger
from ramp.model.agreement import TERMINAL, ContractChange
from ramp.model.instant import Instant


def refusal_code(call: Callable[[], object]) -> str:
    with pytest.raises(LedgerRefusal) as caught:
        call()
    return caught.value.code


def amounts(ledger: Ledger, account_id: str) -> tuple[int, int, int]:
    balance = ledger.balance(account_id)
    return balance.posted, balance.reserved, balance.available


def balances(ledger: Ledger) -> tuple[int, int]:
    """What alice and hector have, in a ledger that adds up."""
    assert ledger.audit() == []
    return ledger.balance("alice").posted, ledger.balance("hector").posted


def end(ledger: Ledger, agreement_id: str, *, at: Instant, alone: bool = False, evidence: str = "") -> DecidedChange:
    """End an agreement that both parties have cancelled, or its buyer `alone`."""
    grounds = Grounds.BUYER if alone else Grounds.BOTH
    return ledger.post_change(end_by("", "", agreement_id), grounds, at=at, evidence=evidence)


def end_by(user: str, resource: str, agreement_id: str, offer_id: str = "", reason: str = "") -> ContractChange:
    """The end of an agreement; empty names are not compared with those of its payment."""
    return ContractChange(agreement_id, TERMINAL, offer_id, user, resource, "bank", 0, reason=reason)


def fail(
    ledger: Ledger, agreement_id: str, resource: str, *, at: Instant, reason: str = "", evidence: str = ""
) -> Order | None:
    order = ledger.order_of(agreement_id)
    user = "" if order is None else order.user
    offer_id = "" if order is None else order.line(agreement_id).offer_id
    change = end_by(user, resource, agreement_id, offer_id, reason)
    ledger.post_change(change, Grounds.SELLER, at=at, evidence=evidence)
    return ledger.order_of(agreement_id)
