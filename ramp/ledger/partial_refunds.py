"""What is left of a payment that has gone back in part by amendments.

What an amendment has added is a part of what was paid for its agreement: of a payment of its own nothing is given back,
and nothing about it is changed.
"""

from __future__ import annotations

from ramp.ledger.amendments.amendment import given_back
from ramp.ledger.records import Records
from ramp.ledger.refusals import RefusalCode, refuse
from ramp.ledger.transfer import Transfer
from ramp.model.agreement import CHANGE_MARK

Problem = tuple[RefusalCode, str]
"""Why a change is not posted: code, and the same as a sentence."""


def addition_of(records: Records, agreement_id: str) -> str:
    """The agreement to whose slot something was added by an order's line of this id; empty where none was.

    Args:
        records: the ledger.
        agreement_id: what somebody names as an agreement.
    """
    if CHANGE_MARK not in agreement_id:
        return ""
    order = records.order_of(agreement_id)
    line = None if order is None else order.line(agreement_id)
    named = None if line is None else line.amended
    return "" if named is None else named[0]


def addition_named(records: Records, agreement_id: str) -> Problem | None:
    """That what somebody names as an agreement is what an amendment has added to one, if it is."""
    of = addition_of(records, agreement_id)
    if not of:
        return None
    return RefusalCode.NO_AGREEMENT, f"{agreement_id} is a part of agreement {of}, and stands and goes back with it"


def check_no_addition(records: Records, agreement_id: str) -> None:
    """Refuse what is no agreement, but what an amendment has added to one."""
    problem = addition_named(records, agreement_id)
    if problem is not None:
        refuse(*problem)


def left_of(records: Records, payment: Transfer) -> int:
    """What is left of a payment, in minor units: with what was paid for additions, less all that has gone back."""
    return payment.amount - given_back(records.amendments(payment.agreement_id))
