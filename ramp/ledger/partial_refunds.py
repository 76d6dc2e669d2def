"""What gives a payment back in part: amendments and reclamations, each of which changes what was paid for.

Both are about a payment that is posted, both change the state that the change posted last has made, and what goes back
by both together is less than was paid. What an amendment has added is a part of what was paid for its agreement: of a
payment of its own nothing is given back, and nothing about it is changed.
"""

from __future__ import annotations

from ramp.ledger.amendments.amendment import given_back
from ramp.ledger.reclamations.reclamation import standing_digest, taken_back
from ramp.ledger.records import Records
from ramp.ledger.refusals import RefusalCode, check_identifier, check_instant, refuse
from ramp.ledger.transfer import Transfer, TransferKind, TransferState, transfer_id_of
from ramp.model.agreement import CHANGE_MARK
from ramp.model.instant import Instant
from ramp.model.money import credits_text

Problem = tuple[RefusalCode, str]
"""Why a change is not posted: code, and the same as a sentence."""


def payment_of(
    records: Records, agreement_id: str, number: int, at: Instant, *, number_max: int, rule: str
) -> Transfer:
    """The payment of an agreement of which a part is to go back.

    Args:
        records: the ledger.
        agreement_id: the agreement.
        number: of the change.
        at: the present.
        number_max: the highest number that a change may have.
        rule: why nothing is done about a payment that is not posted.

    Raises:
        LedgerRefusal: if there is no such payment, or what is asked makes no sense.
    """
    check_identifier("agreement id", agreement_id)
    check_instant("time", at)
    if type(number) is not int or not 1 <= number <= number_max:
        refuse(RefusalCode.MALFORMED_VALUE, f"number {number!r} is no integer from 1 to {number_max}")
    check_no_addition(records, agreement_id)
    payment = records.transfer(agreement_id, TransferKind.PAYMENT)
    if payment is None:
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"there is no payment for {agreement_id}")
    if payment.state is not TransferState.POSTED:
        refuse(RefusalCode.NOT_POSTED, f"payment of {agreement_id} is {payment.state}; {rule}")
    # all that is decided of one agreement is decided one after the other
    records.balances((payment.debit_account, payment.credit_account))
    return payment


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
    name = payment.agreement_id
    return payment.amount - given_back(records.amendments(name)) - taken_back(records.reclamations(name))


def check_parties(payment: Transfer, user: str, resource: str) -> None:
    """Refuse what names others than who has paid, and was paid."""
    if (payment.debit_account, payment.credit_account) != (user, resource):
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"{user} has paid nothing to {resource} for that agreement")


def check_payer(payment: Transfer, user: str) -> None:
    """Refuse what somebody asks who has not paid."""
    if payment.debit_account != user:
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"{user} has paid nothing for that agreement")


def refunded_problem(records: Records, payment: Transfer) -> Problem | None:
    """That all of a payment has gone back already, if it has."""
    name = payment.agreement_id
    if records.transfer(name, TransferKind.REFUND) is None:
        return None
    return RefusalCode.REFUNDED, f"all that was left of the payment of {name} has gone back already"


def part_problem(
    records: Records, payment: Transfer, previous: str, amount: int, *, of_agreement: bool
) -> Problem | None:
    """Why a part of a payment cannot go back, ever; or None if it can.

    Args:
        records: the ledger.
        payment: as it was posted.
        previous: digest of the state that is changed.
        amount: minor units to go back.
        of_agreement: whether it may be the slot as it was bought that is changed.
    """
    decided, known = records.amendments(payment.agreement_id), records.reclamations(payment.agreement_id)
    standing = standing_digest(decided, known)
    if (standing != previous) if standing else not of_agreement:
        return RefusalCode.OTHER_STATE, "it does not change the state that the change posted last has made"
    left = left_of(records, payment)
    if amount >= left:
        return RefusalCode.MORE_THAN_PAID, f"{credits_text(left)} of the payment are left, not more than it gives back"
    return None


def transfer_back(payment: Transfer, key: str, kind: TransferKind, amount: int, memo: str, at: Instant) -> Transfer:
    """What moves from who was paid to who has paid, posted at once.

    Args:
        payment: of which it is a part.
        key: names the change.
        kind: of the transfer.
        amount: minor units.
        memo: for the statements.
        at: the present.
    """
    return Transfer(
        transfer_id=transfer_id_of(key, kind),
        debit_account=payment.credit_account,
        credit_account=payment.debit_account,
        amount=amount,
        agreement_id=key,
        kind=kind,
        entered_at=at,
        posted_at=at,
        memo=memo,
        order_id=payment.order_id,
    )
