"""The rules of reclamations: noticed in time by the bank's own clock, posted once after that, or void for good.

That a reclamation is by right (its seller's signature, the minimum, refund and compensation to the minor unit) the bank
has checked against the agreement before it asks (`ramp.protocol.bank.reclaiming`). What only the ledger knows is
checked here: who has paid whom, what was posted last of the slot, when the notice came, and whether the seller has what
it pays on top: a refund brings only back what was paid, a compensation would be money from nowhere. So that one is set
aside from the notice on (`ramp.ledger.reclamations.setting_aside`). A buyer cannot void one.
"""

from __future__ import annotations

from dataclasses import replace

from ramp.ledger.account import AMOUNT_MAX
from ramp.ledger.entry import TransferEntered, TransferSettled
from ramp.ledger.evidence import EvidenceKind
from ramp.ledger.partial_refunds import (
    Problem,
    check_parties,
    check_payer,
    part_problem,
    payment_of,
    refunded_problem,
    transfer_back,
)
from ramp.ledger.reclamations.reclamation import KnownReclamation, ReclamationTerms
from ramp.ledger.reclamations.setting_aside import (
    compensation_aside,
    expired,
    funds_problem,
    set_aside_for,
    void,
    void_expired,
)
from ramp.ledger.records import Records
from ramp.ledger.refusals import (
    RefusalCode,
    check_amount,
    check_evidence,
    check_identifier,
    check_instant,
    refuse,
)
from ramp.ledger.rules import open_balances, store_evidence
from ramp.ledger.transfer import Transfer, TransferKind, reclamation_key
from ramp.model.instant import Instant, iso, seconds
from ramp.model.sizes.reclaimed import RECLAMATION_NUMBER_MAX


def note_reclamation(records: Records, terms: ReclamationTerms, at: Instant, evidence: str) -> KnownReclamation:
    """Put on record that a seller takes cores back; one that was noticed before and is open is void by that."""
    name = terms.agreement_id
    _check_terms(terms)
    check_evidence(evidence)
    charge = _charge(records, name, terms.number, at)
    check_parties(charge, terms.user, terms.resource)
    known = records.reclamations(name)
    there = next((each for each in known if each.number == terms.number), None)
    if there is not None:
        if there.digest != terms.digest:
            refuse(RefusalCode.DUPLICATE_DIFFERS, f"reclamation {terms.number} of {name} was noticed with other terms")
        return there
    if known and terms.number < known[-1].number:
        refuse(RefusalCode.OUT_OF_ORDER, f"{name} has had reclamation {known[-1].number} since")
    problem = _problem(records, charge, terms, of_agreement=terms.of_agreement)
    problem = problem or funds_problem(records, charge, terms.refund, terms.compensation, at)
    if problem is not None:
        refuse(*problem)
    given = terms.effective_at - at
    if given < terms.notice:
        told = f"its notice came {seconds(given):g} s before its time"
        refuse(RefusalCode.SHORT_NOTICE, f"{told}; right would be {seconds(terms.notice):g} s")
    open_balances(records, charge)
    for each in known:
        if each.is_open:
            superseded = f"reclamation {terms.number} has come in its place"
            void(records, each, RefusalCode.OUT_OF_ORDER, superseded, at)
    void_expired(records, at)
    noticed = KnownReclamation(
        name,
        terms.number,
        terms.previous,
        terms.digest,
        terms.refund,
        terms.compensation,
        terms.effective_at,
        terms.valid_until,
        at,
    )
    if noticed.compensation:
        records.append(TransferEntered(compensation_aside(charge, noticed)))
    records.put_reclamation(noticed)
    store_evidence(records, EvidenceKind.RECLAMATION, name, evidence, at)
    return noticed


def post_reclamation(
    records: Records, agreement_id: str, number: int, resource: str, at: Instant, evidence: str
) -> KnownReclamation:
    """Pay for what a seller has taken back, or void it; what was decided of it stays so."""
    check_evidence(evidence)
    charge = _charge(records, agreement_id, number, at)
    if charge.credit_account != resource:
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"{resource} was paid nothing for that agreement")
    there = _known(records, agreement_id, number)
    if not there.is_open:
        return there
    if at < there.effective_at:
        refuse(RefusalCode.TOO_EARLY, f"it takes effect at {iso(there.effective_at)}")
    aside = set_aside_for(records, there)
    problem = expired(there, at) or _problem(records, charge, there, of_agreement=True)
    if problem is None and aside is None:  # noticed by a program that set nothing aside
        problem = funds_problem(records, charge, there.refund, there.compensation, at)
    if problem is not None:
        done = void(records, there, *problem, at)
        store_evidence(records, EvidenceKind.RECLAMATION, agreement_id, evidence, at)
        return done
    rebate = transfer_back(
        charge,
        reclamation_key(agreement_id, number),
        TransferKind.REBATE,
        there.refund,
        f"reclamation {number}",
        at,
    )
    open_balances(records, rebate)
    records.append(TransferEntered(rebate))  # also where the resource has not the money any more: it owes it then
    if aside is not None:
        records.append(TransferSettled(replace(aside, posted_at=at)))
    elif there.compensation:
        records.append(TransferEntered(replace(compensation_aside(charge, there), entered_at=at, posted_at=at)))
    posted = replace(there, decided_at=at)
    records.put_reclamation(posted)
    store_evidence(records, EvidenceKind.RECLAMATION, agreement_id, evidence, at)
    return posted


def look_up_reclamation(
    records: Records, agreement_id: str, number: int, user: str, at: Instant, state: str
) -> KnownReclamation:
    """What has become of a reclamation, for the buyer; one whose time is over is void."""
    charge = _charge(records, agreement_id, number, at)
    check_payer(charge, user)
    there = _following(records, agreement_id, state) if state else _known(records, agreement_id, number)
    problem = expired(there, at) if there.is_open else None
    return there if problem is None else void(records, there, *problem, at)


def _check_terms(terms: ReclamationTerms) -> None:
    check_amount(f"refund of {terms.agreement_id}", terms.refund)
    if type(terms.compensation) is not int or not 0 <= terms.compensation <= AMOUNT_MAX:
        refuse(
            RefusalCode.MALFORMED_VALUE,
            f"compensation {terms.compensation!r} is no integer of minor units from 0 to {AMOUNT_MAX}",
        )
    check_identifier("previous state", terms.previous)
    check_identifier("state", terms.digest)
    check_instant("time", terms.effective_at)
    check_instant("deadline", terms.valid_until)


def _charge(records: Records, agreement_id: str, number: int, at: Instant) -> Transfer:
    """The payment of an agreement of which cores may be taken back."""
    rule = "of what is not paid nothing goes back"
    return payment_of(records, agreement_id, number, at, number_max=RECLAMATION_NUMBER_MAX, rule=rule)


def _known(records: Records, agreement_id: str, number: int) -> KnownReclamation:
    there = next((each for each in records.reclamations(agreement_id) if each.number == number), None)
    if there is None:
        refuse(RefusalCode.NOT_NOTICED, f"the bank has had no notice of reclamation {number} of {agreement_id}")
    return there


def _following(records: Records, agreement_id: str, state: str) -> KnownReclamation:
    """What has changed a state of a slot, or else is to change it; of what is void there may be any number."""
    found = [each for each in records.reclamations(agreement_id) if each.previous == state and not each.code]
    if not found:
        refuse(RefusalCode.NOT_NOTICED, f"nothing is on record that takes cores back of that state of {agreement_id}")
    return next((each for each in found if each.is_posted), found[-1])


def _problem(
    records: Records, charge: Transfer, made: ReclamationTerms | KnownReclamation, *, of_agreement: bool
) -> Problem | None:
    """Why a reclamation cannot be posted, whatever its seller has: code and reason, or None if it can be."""
    return refunded_problem(records, charge) or part_problem(
        records, charge, made.previous, made.refund, of_agreement=of_agreement
    )
