"""What a seller pays on top of a refund is set aside when it gives notice, and free again where nothing comes of it.

A refund is owed whatever its seller has. A compensation is not what was paid, so it has to be there; and since jobs end
before it is paid, it has to stay there, whatever goes back to others meanwhile. So it is a pending transfer from the
notice on.
"""

from __future__ import annotations

from dataclasses import replace

from ramp.ledger.entry import TransferSettled
from ramp.ledger.partial_refunds import Problem, part_problem, refunded_problem, transfer_back
from ramp.ledger.reclamations.reclamation import KnownReclamation
from ramp.ledger.records import Records
from ramp.ledger.refusals import RefusalCode, one_line
from ramp.ledger.transfer import Transfer, TransferKind, TransferState, agreement_of, reclamation_key
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text


def compensation_aside(payment: Transfer, known: KnownReclamation) -> Transfer:
    """What is set aside for the compensation of a reclamation that has just been noticed: a pending transfer."""
    key = reclamation_key(known.agreement_id, known.number)
    memo = f"reclamation {known.number}"
    paid = transfer_back(payment, key, TransferKind.COMPENSATION, known.compensation, memo, known.noticed_at)
    return replace(paid, posted_at=None)


def set_aside_for(records: Records, known: KnownReclamation) -> Transfer | None:
    """What pends for the compensation of a reclamation.

    None where there is none, and where it was noticed by a program that set nothing aside.
    """
    key = reclamation_key(known.agreement_id, known.number)
    there = records.transfer(key, TransferKind.COMPENSATION)
    return there if there is not None and there.state is TransferState.PENDING else None


def funds_problem(records: Records, payment: Transfer, refund: int, compensation: int, at: Instant) -> Problem | None:
    """That a resource has not got what it pays on top of a refund; None if it has.

    What it will give back and pay on top by its other open notices it has not got any more, nor what it gives back by
    this one.

    Args:
        records: the ledger.
        payment: of which a part is given back.
        refund: minor units to be given back.
        compensation: minor units on top.
        at: the present.
    """
    if not compensation:
        return None
    resource, name = payment.credit_account, payment.agreement_id
    available = records.balances((resource,))[resource].available
    for aside, known in _asides(records, resource):
        available += aside.amount
        if known.agreement_id != name and at < known.valid_until:  # this one comes in place of the agreement's other
            available -= known.refund + known.compensation
    if refund + compensation <= available:
        return None
    pays = f"{credits_text(refund)} and {credits_text(compensation)} that it gives back and pays on top"
    return RefusalCode.INSUFFICIENT_FUNDS, f"{resource} has {credits_text(available)} available, not the {pays}"


def expired(known: KnownReclamation, at: Instant) -> Problem | None:
    """That the time of a reclamation is over, if it is."""
    return (RefusalCode.EXPIRED, f"it was valid until {iso(known.valid_until)}") if at >= known.valid_until else None


def void(records: Records, known: KnownReclamation, code: str, reason: str, at: Instant) -> KnownReclamation:
    """Void an open reclamation for good, and free what is set aside for it."""
    aside = set_aside_for(records, known)
    if aside is not None:
        records.append(TransferSettled(replace(aside, voided_at=at)))
    done = replace(known, code=str(code), reason=one_line(reason), decided_at=at)
    records.put_reclamation(done)
    return done


def void_changed(records: Records, payment: Transfer, at: Instant) -> None:
    """Void the open reclamation of a slot that has just been given back or changed by something else."""
    for known in records.reclamations(payment.agreement_id):
        if known.is_open:
            problem = refunded_problem(records, payment) or part_problem(
                records, payment, known.previous, known.refund, of_agreement=True
            )
            if problem is not None:
                void(records, known, *problem, at)


def void_expired(records: Records, at: Instant) -> None:
    """Void every open reclamation whose time is over."""
    over = [(known, problem) for known in records.open_reclamations(due=at) if (problem := expired(known, at))]
    asides = [aside for known, _ in over if (aside := set_aside_for(records, known)) is not None]
    # all accounts at once, so that a database locks them in one order
    records.balances({account for aside in asides for account in (aside.debit_account, aside.credit_account)})
    for known, problem in over:
        void(records, known, *problem, at)


def _asides(records: Records, resource: str) -> list[tuple[Transfer, KnownReclamation]]:
    """What a resource has set aside for compensations, each with its reclamation."""
    return [
        (pending, known)
        for pending in records.pending(resource)
        if pending.kind is TransferKind.COMPENSATION and pending.debit_account == resource
        for known in records.reclamations(agreement_of(pending))
        if reclamation_key(known.agreement_id, known.number) == pending.agreement_id
    ]
