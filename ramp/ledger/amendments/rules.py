"""The rules of amendments: a part of a payment goes back once, or more is paid once, or the amendment is void for good.

What is proposed about an agreement that was paid is decided once: posted, or void. A proposal whose number is below one
that was decided is void, as is one that changes another state than the one that the amendment posted last has made; so
no old or doubled proposal is ever posted. What is added is paid by a line of an order, with which it is posted or
void (`ramp.ledger.orders.rules`). A rule checks everything before it writes.
"""

from __future__ import annotations

from typing import Final

from ramp.ledger.amendments.amendment import AmendmentTerms, DecidedAmendment
from ramp.ledger.entry import TransferEntered
from ramp.ledger.evidence import EvidenceKind
from ramp.ledger.partial_refunds import (
    Problem,
    addition_named,
    check_parties,
    check_payer,
    part_problem,
    payment_of,
    refunded_problem,
    transfer_back,
)
from ramp.ledger.reclamations.reclamation import standing_digest
from ramp.ledger.reclamations.setting_aside import void_changed
from ramp.ledger.records import Records
from ramp.ledger.refusals import (
    RefusalCode,
    check_amount,
    check_evidence,
    check_identifier,
    check_instant,
    one_line,
    refuse,
)
from ramp.ledger.rules import open_balances, store_evidence
from ramp.ledger.transfer import Transfer, TransferKind, TransferState
from ramp.model.agreement import amendment_key
from ramp.model.contents import OrderLine
from ramp.model.instant import Instant, iso
from ramp.model.sizes.amended import AMENDMENT_NUMBER_MAX

PAID_ONLY: Final = "only what is paid can be amended"


def post_amendment(records: Records, terms: AmendmentTerms, at: Instant, evidence: str) -> DecidedAmendment:
    """Give a part of a payment back, or void the amendment; what was decided of it stays so."""
    check_amount(f"refund of {terms.agreement_id}", terms.amount)
    check_identifier("previous state", terms.previous)
    check_identifier("state", terms.digest)
    check_instant("deadline", terms.valid_until)
    check_evidence(evidence)
    charge = _charge(records, terms.agreement_id, terms.number, at)
    check_parties(charge, terms.user, terms.resource)
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
    key = amendment_key(terms.agreement_id, terms.number)
    rebate = transfer_back(charge, key, TransferKind.REBATE, terms.amount, f"amendment {terms.number}", at)
    open_balances(records, rebate)
    posted = DecidedAmendment(terms.agreement_id, terms.number, terms.digest, terms.amount, at)
    records.append(TransferEntered(rebate))
    records.add_amendment(posted)
    void_changed(records, charge, at)
    store_evidence(records, EvidenceKind.AMENDMENT, terms.agreement_id, evidence, at)
    return posted


def void_amendment(
    records: Records, agreement_id: str, number: int, user: str, at: Instant, evidence: str
) -> DecidedAmendment:
    """Void an amendment by its buyer's wish, seen or not; one that was decided stays as it is."""
    check_evidence(evidence)
    charge = _charge(records, agreement_id, number, at)
    check_payer(charge, user)
    there = next((each for each in records.amendments(agreement_id) if each.number == number), None)
    return there or _void(records, agreement_id, number, at, "withdrawn", "its buyer has withdrawn it", evidence)


def addition_problem(records: Records, user: str, line: OrderLine) -> Problem | None:
    """Why what an order's line adds to a slot cannot be paid: code and reason, or None if it can be now.

    Args:
        records: the ledger.
        user: whose order it is.
        line: with the amendment that it pays for.
    """
    named = line.amended
    if named is None:
        return None
    agreement_id, number = named
    if not agreement_id or not 1 <= number <= AMENDMENT_NUMBER_MAX or line.agreement_id != amendment_key(*named):
        return RefusalCode.MALFORMED_VALUE, f"{line.agreement_id} is no agreement with the number of an amendment"
    if problem := addition_named(records, agreement_id):
        return problem
    charge = records.transfer(agreement_id, TransferKind.PAYMENT)
    if charge is None or (charge.debit_account, charge.credit_account) != (user, line.resource):
        return RefusalCode.UNKNOWN_TRANSFER, f"{user} has paid nothing to {line.resource} for {agreement_id}"
    if charge.state is not TransferState.POSTED:
        return RefusalCode.NOT_POSTED, f"payment of {agreement_id} is {charge.state}; {PAID_ONLY}"
    if records.transfer(agreement_id, TransferKind.REFUND) is not None:
        return RefusalCode.REFUNDED, f"the payment of {agreement_id} has gone back already"
    decided = records.amendments(agreement_id)
    if decided and number <= decided[-1].number:
        return RefusalCode.OUT_OF_ORDER, f"{agreement_id} has had amendment {decided[-1].number} since"
    standing = standing_digest(decided, records.reclamations(agreement_id))
    if standing and standing != line.amends:
        return RefusalCode.OTHER_STATE, "it does not change the state that the change posted last has made"
    return None


def addition_posted(records: Records, line: OrderLine, at: Instant) -> None:
    """Note the amendment whose line has just been posted with its order; what was to be taken back is void by that."""
    named = line.amended
    if named is None:
        return
    records.add_amendment(DecidedAmendment(*named, line.becomes, 0, at, charge=line.cost))
    payment = records.transfer(named[0], TransferKind.PAYMENT)
    assert payment is not None, "what is added to is paid"
    void_changed(records, payment, at)


def _charge(records: Records, agreement_id: str, number: int, at: Instant) -> Transfer:
    """The payment of an agreement that may be amended."""
    return payment_of(records, agreement_id, number, at, number_max=AMENDMENT_NUMBER_MAX, rule=PAID_ONLY)


def _problem(
    records: Records,
    charge: Transfer,
    terms: AmendmentTerms,
    decided: tuple[DecidedAmendment, ...],
    at: Instant,
) -> Problem | None:
    """Why an amendment can never be posted: code and reason, or None if it can be now."""
    name = terms.agreement_id
    if problem := refunded_problem(records, charge):
        return problem
    if at >= terms.valid_until:
        return RefusalCode.EXPIRED, f"it was valid until {iso(terms.valid_until)}"
    if decided and terms.number < decided[-1].number:
        return RefusalCode.OUT_OF_ORDER, f"{name} has had amendment {decided[-1].number} since"
    return part_problem(records, charge, terms.previous, terms.amount, of_agreement=True)


def _void(
    records: Records, agreement_id: str, number: int, at: Instant, code: str, reason: str, evidence: str
) -> DecidedAmendment:
    void = DecidedAmendment(agreement_id, number, "", 0, at, code, one_line(reason))
    records.add_amendment(void)
    store_evidence(records, EvidenceKind.AMENDMENT, agreement_id, evidence, at)
    return void
