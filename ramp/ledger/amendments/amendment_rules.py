"""The rules of amendments: each is decided once, posted with its refund or payment, or void for good.

A proposal is void if its number is below a decided one, or if it changes another state than the last posted one; so no
old or repeated proposal is ever posted. An addition is paid by a line of an order, with which it is posted or void
(`ramp.ledger.orders.order_rules`). A rule checks everything before it writes.
"""

from __future__ import annotations

from typing import Final

from ramp.ledger.amendments.amendment import AmendmentTerms, DecidedAmendment, standing_digest
from ramp.ledger.entry import TransferEntered
from ramp.ledger.evidence import EvidenceKind
from ramp.ledger.payment_rules import (
    Problem,
    addition_named,
    check_no_addition,
    left_of,
    open_balances,
    store_evidence,
)
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
from ramp.ledger.transfer import Transfer, TransferKind, TransferState, transfer_id_of
from ramp.model.agreement import amendment_key
from ramp.model.contents import OrderLine
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text
from ramp.model.sizes.amended import AMENDMENT_NUMBER_MAX
from ramp.text import one_line

PAID_ONLY: Final = "only a posted payment can be amended"


def post_amendment(records: Records, terms: AmendmentTerms, at: Instant, evidence: str) -> DecidedAmendment:
    """Refund part of a payment, or void the amendment; an earlier decision stays."""
    check_amount(f"refund of {terms.agreement_id}", terms.amount)
    check_identifier("previous state", terms.previous)
    check_identifier("state", terms.digest)
    check_instant("deadline", terms.valid_until)
    check_evidence(evidence)
    charge = _charge(records, terms.agreement_id, terms.number, at)
    if (charge.debit_account, charge.credit_account) != (terms.user, terms.resource):
        paid_nothing = f"{terms.user} has not paid {terms.resource} for this agreement"
        refuse(RefusalCode.UNKNOWN_TRANSFER, paid_nothing)
    decided = records.amendments(terms.agreement_id)
    there = next((each for each in decided if each.number == terms.number), None)
    if there is not None:
        if there.is_posted and there.digest != terms.digest:
            name = f"amendment {terms.number} of {terms.agreement_id}"
            refuse(RefusalCode.DUPLICATE_DIFFERS, f"{name} was posted with other terms")
        return there
    problem = _problem(records, charge, terms, decided, at)
    if problem is not None:
        code, reason = problem
        return _void(records, terms.agreement_id, terms.number, at, str(code), reason, evidence)
    rebate = _rebate(charge, terms, at)
    open_balances(records, rebate)
    posted = DecidedAmendment(terms.agreement_id, terms.number, terms.digest, terms.amount, at)
    records.append(TransferEntered(rebate))
    records.add_amendment(posted)
    store_evidence(records, EvidenceKind.AMENDMENT, terms.agreement_id, evidence, at)
    return posted


def void_amendment(
    records: Records, agreement_id: str, number: int, user: str, at: Instant, evidence: str
) -> DecidedAmendment:
    """Void an amendment for its buyer, known or not; an earlier decision stays."""
    check_evidence(evidence)
    charge = _charge(records, agreement_id, number, at)
    if charge.debit_account != user:
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"{user} has not paid for this agreement")
    there = next((each for each in records.amendments(agreement_id) if each.number == number), None)
    return there or _void(records, agreement_id, number, at, "withdrawn", "the buyer withdrew the amendment", evidence)


def addition_problem(records: Records, user: str, line: OrderLine) -> Problem | None:
    """Return code and reason why an order's line for an addition cannot be paid, or None.

    Args:
        records: the ledger.
        user: of the order.
        line: with the amendment that it pays for.
    """
    named = line.amended
    if named is None:
        return None
    agreement_id, number = named
    if not agreement_id or not 1 <= number <= AMENDMENT_NUMBER_MAX or line.agreement_id != amendment_key(*named):
        return RefusalCode.MALFORMED_VALUE, f"{line.agreement_id} is not an agreement id with an amendment number"
    if problem := addition_named(records, agreement_id):
        return problem
    charge = records.transfer(agreement_id, TransferKind.PAYMENT)
    if charge is None or (charge.debit_account, charge.credit_account) != (user, line.resource):
        return RefusalCode.UNKNOWN_TRANSFER, f"{user} has not paid {line.resource} for {agreement_id}"
    if charge.state is not TransferState.POSTED:
        return RefusalCode.NOT_POSTED, f"payment of {agreement_id} is {charge.state}; {PAID_ONLY}"
    if records.transfer(agreement_id, TransferKind.REFUND) is not None:
        return RefusalCode.REFUNDED, f"the payment of {agreement_id} is already refunded"
    decided = records.amendments(agreement_id)
    if decided and number <= decided[-1].number:
        return RefusalCode.OUT_OF_ORDER, f"{agreement_id} already has amendment {decided[-1].number}"
    standing = standing_digest(decided)
    if standing and standing != line.amends:
        return RefusalCode.OTHER_STATE, "the amendment does not start from the last posted state"
    return None


def addition_posted(records: Records, line: OrderLine, at: Instant) -> None:
    """Record the amendment whose line was just posted with its order."""
    named = line.amended
    if named is not None:
        records.add_amendment(DecidedAmendment(*named, line.becomes, 0, at, charge=line.cost))


def _charge(records: Records, agreement_id: str, number: int, at: Instant) -> Transfer:
    """Return the payment of an agreement that may be amended."""
    check_identifier("agreement id", agreement_id)
    check_instant("time", at)
    if type(number) is not int or not 1 <= number <= AMENDMENT_NUMBER_MAX:
        refuse(
            RefusalCode.MALFORMED_VALUE, f"number must be an integer from 1 to {AMENDMENT_NUMBER_MAX}, got {number!r}"
        )
    check_no_addition(records, agreement_id)
    payment = records.transfer(agreement_id, TransferKind.PAYMENT)
    if payment is None:
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"there is no payment for {agreement_id}")
    if payment.state is not TransferState.POSTED:
        refuse(RefusalCode.NOT_POSTED, f"payment of {agreement_id} is {payment.state}; {PAID_ONLY}")
    # all that is decided of one agreement is decided one after the other
    records.balances((payment.debit_account, payment.credit_account))
    return payment


def _problem(
    records: Records,
    charge: Transfer,
    terms: AmendmentTerms,
    decided: tuple[DecidedAmendment, ...],
    at: Instant,
) -> Problem | None:
    """Return code and reason why an amendment can never be posted, or None."""
    name = terms.agreement_id
    if records.transfer(name, TransferKind.REFUND) is not None:
        return RefusalCode.REFUNDED, f"the payment of {name} is already refunded in full"
    if at >= terms.valid_until:
        return RefusalCode.EXPIRED, f"the amendment was valid until {iso(terms.valid_until)}"
    if decided and terms.number < decided[-1].number:
        return RefusalCode.OUT_OF_ORDER, f"{name} already has amendment {decided[-1].number}"
    if records.transfer(amendment_key(name, terms.number), TransferKind.PAYMENT) is not None:
        # else the bank's answers about the two would contradict each other
        return RefusalCode.OUT_OF_ORDER, f"an order pays for amendment {terms.number} of {name}, which is an addition"
    standing = standing_digest(decided)
    if standing and standing != terms.previous:
        return RefusalCode.OTHER_STATE, "the amendment does not start from the last posted state"
    left = left_of(records, charge)
    if terms.amount >= left:
        return RefusalCode.MORE_THAN_PAID, f"the refund must be less than the {credits_text(left)} left of the payment"
    return None


def _rebate(charge: Transfer, terms: AmendmentTerms, at: Instant) -> Transfer:
    key = amendment_key(terms.agreement_id, terms.number)
    return Transfer(
        transfer_id=transfer_id_of(key, TransferKind.REBATE),
        debit_account=charge.credit_account,
        credit_account=charge.debit_account,
        amount=terms.amount,
        agreement_id=key,
        kind=TransferKind.REBATE,
        entered_at=at,
        posted_at=at,
        memo=f"amendment {terms.number}",
        order_id=charge.order_id,
    )


def _void(
    records: Records, agreement_id: str, number: int, at: Instant, code: str, reason: str, evidence: str
) -> DecidedAmendment:
    void = DecidedAmendment(agreement_id, number, "", 0, at, code, one_line(reason, TEXT_LENGTH_MAX))
    records.add_amendment(void)
    store_evidence(records, EvidenceKind.AMENDMENT, agreement_id, evidence, at)
    return void
