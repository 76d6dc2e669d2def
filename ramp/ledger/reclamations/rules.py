"""The rules of reclamations: noticed in time by the bank's own clock, posted once after that, or void for good.

That a reclamation is by right (its seller's signature, the minimum, refund and compensation to the minor unit) the bank
has checked against the agreement before it asks (`ramp.protocol.bank.reclaiming`). What only the ledger knows is
checked here: who has paid whom, what was posted last of the slot, when the notice came, and whether the seller has what
it pays on top: a refund brings only back what was paid, a compensation would be money from nowhere. A buyer cannot void
one.
"""

from __future__ import annotations

from dataclasses import replace

from ramp.ledger.account import AMOUNT_MAX
from ramp.ledger.entry import TransferEntered
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
from ramp.ledger.transfer import Transfer, TransferKind, reclamation_key
from ramp.model.instant import Instant, iso, seconds
from ramp.model.money import credits_text
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
    if problem is not None:
        refuse(*problem)
    given = terms.effective_at - at
    if given < terms.notice:
        told = f"its notice came {seconds(given):g} s before its time"
        refuse(RefusalCode.SHORT_NOTICE, f"{told}; right would be {seconds(terms.notice):g} s")
    for each in known:
        if each.is_open:
            superseded = f"reclamation {terms.number} has come in its place"
            _decide(records, replace(each, code=str(RefusalCode.OUT_OF_ORDER), reason=superseded), at)
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
    problem = _expired(there, at) or _problem(records, charge, there, of_agreement=True)
    if problem is not None:
        code, reason = problem
        void = _decide(records, replace(there, code=str(code), reason=one_line(reason)), at)
        store_evidence(records, EvidenceKind.RECLAMATION, agreement_id, evidence, at)
        return void
    rebate = _paid(charge, there, TransferKind.REBATE, there.refund, at)
    open_balances(records, rebate)
    records.append(TransferEntered(rebate))
    if there.compensation:
        records.append(TransferEntered(_paid(charge, there, TransferKind.COMPENSATION, there.compensation, at)))
    posted = _decide(records, there, at)
    store_evidence(records, EvidenceKind.RECLAMATION, agreement_id, evidence, at)
    return posted


def look_up_reclamation(
    records: Records, agreement_id: str, number: int, user: str, at: Instant, state: str
) -> KnownReclamation:
    """What has become of a reclamation, for the buyer; one whose time is over is void."""
    charge = _charge(records, agreement_id, number, at)
    check_payer(charge, user)
    there = _following(records, agreement_id, state) if state else _known(records, agreement_id, number)
    expired = _expired(there, at) if there.is_open else None
    if expired is None:
        return there
    return _decide(records, replace(there, code=str(expired[0]), reason=expired[1]), at)


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


def _expired(there: KnownReclamation, at: Instant) -> Problem | None:
    return (RefusalCode.EXPIRED, f"it was valid until {iso(there.valid_until)}") if at >= there.valid_until else None


def _problem(
    records: Records, charge: Transfer, made: ReclamationTerms | KnownReclamation, *, of_agreement: bool
) -> Problem | None:
    """Why a reclamation cannot be posted: code and reason, or None if it can be."""
    problem = refunded_problem(records, charge) or part_problem(
        records, charge, made.previous, made.refund, of_agreement=of_agreement
    )
    return problem or _funds_problem(records, charge.credit_account, made.refund, made.compensation)


def _funds_problem(records: Records, resource: str, refund: int, compensation: int) -> Problem | None:
    """That a resource has not got what it pays on top of a refund, which it would owe; None if it has."""
    available = records.balances((resource,))[resource].available
    if not compensation or refund + compensation <= available:
        return None
    pays = f"{credits_text(refund)} and {credits_text(compensation)} that it gives back and pays on top"
    return RefusalCode.INSUFFICIENT_FUNDS, f"{resource} has {credits_text(available)} available, not the {pays}"


def _paid(charge: Transfer, there: KnownReclamation, kind: TransferKind, amount: int, at: Instant) -> Transfer:
    """What a reclamation moves; a refund also where the resource has not the money any more: it owes it then."""
    key = reclamation_key(there.agreement_id, there.number)
    return transfer_back(charge, key, kind, amount, f"reclamation {there.number}", at)


def _decide(records: Records, decided: KnownReclamation, at: Instant) -> KnownReclamation:
    done = replace(decided, decided_at=at)
    records.put_reclamation(done)
    return done
