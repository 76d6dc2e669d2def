"""The rules of contract changes: each is decided once, posted with its transfer, or void for good.

One rule posts every change that returns something: a reduction of a slot, a cancellation, a seller's failure, and a
refund that the keeper orders. What adds to a slot is a line of an order, with which it is posted or void
(`ramp.ledger.order_rules`).

A proposal is void if its number is below a decided one, or if it changes another state than the last posted one; so no
old or repeated proposal is ever posted. After a terminal change nothing is posted any more. A rule checks everything
before it writes.

Source: paper section 5.1.2 (refund on cancellation).
"""

from __future__ import annotations

from collections.abc import Iterable

from ramp.ledger.entry import (
    Action,
    DecidedChange,
    Entry,
    EvidenceKind,
    Grounds,
    Transfer,
    TransferState,
    ended,
    standing_digest,
    transfer_id_of,
)
from ramp.ledger.payment_rules import Problem, store_evidence
from ramp.ledger.records import Records
from ramp.ledger.refusals import (
    TEXT_LENGTH_MAX,
    RefusalCode,
    check_amount,
    check_evidence,
    check_identifier,
    check_instant,
    refuse,
)
from ramp.model.agreement import CHANGE_MARK, TERMINAL, ContractChange, change_key
from ramp.model.contents import OrderLine, TransferKind
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text
from ramp.model.sizes.amended import AMENDMENT_NUMBER_MAX, state_digest
from ramp.text import one_line


def post_change(
    records: Records, change: ContractChange, grounds: Grounds, at: Instant, evidence: str
) -> DecidedChange:
    """Return money for a change, or void the change; an earlier decision stays."""
    agreement_id, digest = change.agreement_id, ""
    if not change.is_terminal:
        digest = state_digest(change)
        check_amount(f"refund of {agreement_id}", -change.amount)
        check_identifier("previous state", change.previous)
        check_instant("deadline", change.valid_until)
    check_evidence(evidence)
    payment = _payment_of(records, agreement_id, change.number, at, user=change.user, resource=change.resource)
    decided = records.changes(agreement_id)
    there = next((each for each in decided if each.number == change.number), None)
    if there is not None:
        if there.is_posted and there.digest != digest:
            name = f"change {change.number} of {agreement_id}"
            refuse(RefusalCode.DUPLICATE_DIFFERS, f"{name} was posted with other terms")
        return there
    left = left_of(payment, decided)
    amount = -left if change.is_terminal else change.amount
    if change.is_terminal:
        _check_end(records, agreement_id, grounds, at)
    elif problem := _problem(records, change, decided, left, at):
        code, reason = problem
        return _void(records, agreement_id, change.number, at, str(code), reason, evidence)
    posted = DecidedChange(agreement_id, change.number, grounds, digest, amount, at)
    records.append(Entry(Action.ENTERED, _refund(payment, posted, reason_of(change))))
    records.add_change(posted)
    store_evidence(records, EvidenceKind.CHANGE, agreement_id, evidence, at)
    return posted


def void_change(
    records: Records, agreement_id: str, number: int, user: str, *, at: Instant, evidence: str = ""
) -> DecidedChange:
    """Void an unposted change of size, known or not, for the user who has paid; an earlier decision stays.

    Raises:
        LedgerRefusal: `no_agreement`, `unknown_transfer`, `not_posted`, `malformed_value`.
    """
    check_evidence(evidence)
    if number == TERMINAL:
        refuse(RefusalCode.MALFORMED_VALUE, f"the end of {agreement_id} cannot be voided")
    _payment_of(records, agreement_id, number, at, user=user)
    there = next((each for each in records.changes(agreement_id) if each.number == number), None)
    return there or _void(records, agreement_id, number, at, "withdrawn", "the buyer withdrew the change", evidence)


def reason_of(change: ContractChange) -> str:
    """Return why an agreement ends, in words or as a code."""
    return change.reason or str(change.code or "")


def left_of(payment: Transfer, decided: Iterable[DecidedChange]) -> int:
    """Return what is left of an agreement's payments after all changes, in minor units."""
    return payment.amount + sum(each.amount for each in decided)


def addition_problem(records: Records, user: str, line: OrderLine) -> Problem | None:
    """Return code and reason why an order's line for an addition cannot be paid, or None."""
    named = line.amended
    if named is None:
        return None
    agreement_id, number = named
    if not agreement_id or not 1 <= number <= AMENDMENT_NUMBER_MAX or line.agreement_id != change_key(*named):
        return RefusalCode.MALFORMED_VALUE, f"{line.agreement_id} is not an agreement id with the number of a change"
    if problem := addition_named(records, agreement_id):
        return problem
    payment = records.transfer(agreement_id, TransferKind.PAYMENT)
    if payment is None or (payment.debit_account, payment.credit_account) != (user, line.resource):
        return RefusalCode.UNKNOWN_TRANSFER, f"{user} has not paid {line.resource} for {agreement_id}"
    if payment.state is not TransferState.POSTED:
        return RefusalCode.NOT_POSTED, _not_posted(payment)
    return _sequence_problem(records.changes(agreement_id), agreement_id, number, line.amends)


def addition_posted(records: Records, line: OrderLine, at: Instant) -> None:
    """Record the change whose line was just posted with its order."""
    named = line.amended
    if named is not None:
        records.add_change(DecidedChange(*named, Grounds.BOTH, line.becomes, line.cost, at))


def addition_named(records: Records, agreement_id: str) -> Problem | None:
    """Return a refusal if the id names an addition to a slot instead of an agreement."""
    order = records.order_of(agreement_id) if CHANGE_MARK in agreement_id else None
    named = None if order is None else order.line(agreement_id).amended
    if named is None:
        return None
    return RefusalCode.NO_AGREEMENT, f"{agreement_id} is part of agreement {named[0]}; cancel {named[0]} instead"


def _payment_of(
    records: Records, agreement_id: str, number: int, at: Instant, *, user: str, resource: str = ""
) -> Transfer:
    """Return the posted payment of an agreement that may be changed by these parties; empty ones are not named."""
    check_identifier("agreement id", agreement_id)
    check_instant("time", at)
    if type(number) is not int or not TERMINAL <= number <= AMENDMENT_NUMBER_MAX:
        refuse(
            RefusalCode.MALFORMED_VALUE, f"number must be an integer from 0 to {AMENDMENT_NUMBER_MAX}, got {number!r}"
        )
    if problem := addition_named(records, agreement_id):
        refuse(*problem)
    payment = records.transfer(agreement_id, TransferKind.PAYMENT)
    if payment is None:
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"there is no payment for {agreement_id}")
    for named, account in ((user, payment.debit_account), (resource, payment.credit_account)):
        if named and named != account:
            parties = f"{payment.debit_account} to {payment.credit_account}"
            refuse(RefusalCode.UNKNOWN_TRANSFER, f"the payment of {agreement_id} is from {parties}, not of {named}")
    if payment.state is not TransferState.POSTED:
        refuse(RefusalCode.NOT_POSTED, _not_posted(payment))
    # all that is decided of one agreement is decided one after the other
    records.balances((payment.debit_account, payment.credit_account))
    return payment


def _not_posted(payment: Transfer) -> str:
    return f"payment of {payment.agreement_id} is {payment.state}; only a posted one can be changed or refunded"


def _check_end(records: Records, agreement_id: str, grounds: Grounds, at: Instant) -> None:
    """Refuse an end that is not due: alone a buyer ends an agreement only before its slot begins."""
    if grounds is Grounds.BUYER:
        starts_at = records.starts_at(agreement_id)
        if starts_at is None or at >= starts_at:
            when = "is not known" if starts_at is None else f"was at {iso(starts_at)}"
            reason = f"the start of {agreement_id} {when}: the resource must agree to the refund"
            refuse(RefusalCode.STARTED, reason)


def _problem(
    records: Records, change: ContractChange, decided: tuple[DecidedChange, ...], left: int, at: Instant
) -> Problem | None:
    """Return code and reason why a reduction can never be posted, or None."""
    name, number = change.agreement_id, change.number
    if problem := _sequence_problem(decided, name, number, change.previous):
        return problem
    if at >= change.valid_until:
        return RefusalCode.EXPIRED, f"the change was valid until {iso(change.valid_until)}"
    if records.transfer(change.key, TransferKind.PAYMENT) is not None:
        # else the bank's answers about the two would contradict each other
        return RefusalCode.OUT_OF_ORDER, f"an order pays for change {number} of {name}, which is an addition"
    if -change.amount >= left:
        return RefusalCode.MORE_THAN_PAID, f"the refund must be less than the {credits_text(left)} left of the payment"
    return None


def _sequence_problem(
    decided: tuple[DecidedChange, ...], agreement_id: str, number: int, previous: str
) -> Problem | None:
    """Return code and reason why an undecided change comes too late or starts from another state, or None."""
    if ended(decided) is not None:
        return RefusalCode.REFUNDED, f"the payment of {agreement_id} is already refunded"
    if decided and number <= decided[-1].number:
        return RefusalCode.OUT_OF_ORDER, f"{agreement_id} already has change {decided[-1].number}"
    standing = standing_digest(decided)
    if standing and standing != previous:
        return RefusalCode.OTHER_STATE, "the change does not start from the last posted state"
    return None


def _refund(payment: Transfer, change: DecidedChange, reason: str) -> Transfer:
    memo = one_line(reason, TEXT_LENGTH_MAX) if change.is_terminal else f"change {change.number}"
    key = change_key(change.agreement_id, change.number)
    return Transfer(
        transfer_id=transfer_id_of(key, TransferKind.REFUND),
        debit_account=payment.credit_account,
        credit_account=payment.debit_account,
        amount=-change.amount,
        agreement_id=key,
        kind=TransferKind.REFUND,
        entered_at=change.decided_at,
        posted_at=change.decided_at,
        memo=memo,
        order_id=payment.order_id,
    )


def _void(
    records: Records, agreement_id: str, number: int, at: Instant, code: str, reason: str, evidence: str
) -> DecidedChange:
    void = DecidedChange(agreement_id, number, Grounds.BOTH, "", 0, at, code, reason)
    records.add_change(void)
    store_evidence(records, EvidenceKind.CHANGE, agreement_id, evidence, at)
    return void
