"""Bugs planted where sellers take cores back; `planted_bugs` lists them with all others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from ramp.ledger import partial_refunds
from ramp.ledger.entry import TransferSettled
from ramp.ledger.reclamations import rules, setting_aside
from ramp.ledger.reclamations.reclamation import KnownReclamation, ReclamationTerms
from ramp.ledger.records import Records
from ramp.model.agreement import Agreement, Reclamation
from ramp.model.instant import Instant
from ramp.model.request import ReclaimTerms
from ramp.model.sizes import reclaimed
from ramp.model.sizes.amended import SlotState
from ramp.protocol.amending.asking import ResizeSlot
from ramp.protocol.amending.memory import AmendmentReceived, SizeRecord
from ramp.protocol.bank import reclaiming
from ramp.protocol.reclaiming.memory import ReclaimingRecord, ReclamationDrawn
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.reclaiming.desk import ReclaimDesk
from ramp.protocol.resource.reclaiming.taking import Taking
from ramp.protocol.resource.slots.slot_change import STEPS
from ramp.protocol.user.resizing.taken_back import TakenBack

Context = contextlib.AbstractContextManager[object]


def _bank_passes_over(make: Callable[[Agreement], Agreement]) -> Context:
    """The bank judges reclamations by another agreement than the one that it was brought."""

    def problem(agreement: Agreement, state: SlotState, body: Reclamation) -> tuple[str, str] | None:
        return reclaimed.reclamation_problem(make(agreement), state, body)

    return patch.object(reclaiming, "reclamation_problem", problem)


def minimum_passed_over() -> Context:
    """The bank notes a reclamation that leaves fewer cores than were agreed."""

    def without(agreement: Agreement) -> Agreement:
        right = agreement.request.reclaim
        given = None if right is None else replace(right, least=1)
        return replace(agreement, request=replace(agreement.request, reclaim=given))

    return _bank_passes_over(without)


def right_taken_for_granted() -> Context:
    """The bank takes every agreement for one that grants the right; it goes by the least notice then."""

    def granted(agreement: Agreement) -> Agreement:
        right = agreement.request.reclaim or ReclaimTerms(1, 1)
        return replace(agreement, request=replace(agreement.request, reclaim=right))

    def asked(*given: Any) -> Any:
        with patch.object(reclaiming, "_brought", _granting):
            return original(*given)

    def _granting(*given: Any) -> Any:
        body, agreement, state = brought(*given)
        return body, granted(agreement), state

    original, brought = reclaiming.asked, reclaiming._brought
    return patch.object(reclaiming, "asked", asked)


def notice_passed_over() -> Context:
    """The ledger notes a reclamation however late its notice comes."""

    def note(records: Records, terms: ReclamationTerms, at: Instant, evidence: str) -> KnownReclamation:
        return original(records, replace(terms, notice=-(10**18)), at, evidence)

    original = rules.note_reclamation
    return patch.object(rules, "note_reclamation", note)


def compensation_kept() -> Context:
    """The ledger pays the refund only."""

    def post(
        records: Records, agreement_id: str, number: int, resource: str, at: Instant, evidence: str
    ) -> KnownReclamation:
        known = rules._known(records, agreement_id, number)
        if (aside := setting_aside.set_aside_for(records, known)) is not None:
            records.append(TransferSettled(replace(aside, voided_at=at)))
        records.put_reclamation(replace(known, compensation=0))
        found = original(records, agreement_id, number, resource, at, evidence)
        records.put_reclamation(replace(found, compensation=known.compensation))
        return replace(found, compensation=known.compensation)

    original = rules.post_reclamation
    return patch.object(rules, "post_reclamation", post)


def compensation_from_nowhere() -> Context:
    """The ledger pays a compensation also where the resource has not got it, nor may owe it."""
    return patch.object(rules, "funds_problem", lambda *_: None)


def posted_before_its_time() -> Context:
    """The ledger pays for cores that are not due yet."""

    def post(records: Records, agreement_id: str, number: int, resource: str, at: Instant, evidence: str) -> Any:
        known = rules._known(records, agreement_id, number)
        records.put_reclamation(replace(known, effective_at=min(at, known.effective_at)))
        found = original(records, agreement_id, number, resource, at, evidence)
        records.put_reclamation(replace(found, effective_at=known.effective_at))
        return found

    original = rules.post_reclamation
    return patch.object(rules, "post_reclamation", post)


def paid_for_untaken() -> Context:
    """The machine is asked for the size that the slot has instead of the smaller one."""

    def ask_machine(change: Taking) -> ResizeSlot:
        return ResizeSlot(change.body.offer_id, change._step(), change._state.cores, change._state.until)

    return patch.object(Taking, "_ask_machine", ask_machine)


def steps_begun_anew() -> Context:
    """A seller that restarts goes on with an open change by the steps of the slot's first one."""

    def replay(desk: ReclaimDesk, record: SizeRecord | ReclaimingRecord, participant: Participant) -> None:
        if isinstance(record, AmendmentReceived | ReclamationDrawn):
            record = replace(record, step=STEPS)
        original(desk, record, participant)

    original = ReclaimDesk.replay
    return patch.object(ReclaimDesk, "replay", replay)


@contextlib.contextmanager
def reclamations_forgotten() -> Iterator[None]:
    """A user that restarts knows nothing of what was taken back before, and does not ask its bank."""
    with patch.object(TakenBack, "replay", lambda *_: None), document_not_asked_for():
        yield


def document_not_asked_for() -> Context:
    """A user that is told that cores were taken waits for its seller to say which."""
    return patch.object(TakenBack, "look", lambda *_: [])


def taken_refunded_again() -> Context:
    """A refund gives back what reclamations have given back already."""
    return patch.object(partial_refunds, "taken_back", lambda _: 0)


OF_RECLAMATIONS: Final[Mapping[str, tuple[Callable[[], Context], str, str]]] = {
    "minimum_passed_over": (
        minimum_passed_over,
        "the bank lets a seller take more cores back than were agreed",
        "reclaimed_by_right",
    ),
    "right_taken_for_granted": (
        right_taken_for_granted,
        "the bank lets a seller take back what no agreement allows",
        "reclaimed_by_right",
    ),
    "notice_passed_over": (
        notice_passed_over,
        "the bank takes a seller's word for when it gave notice",
        "reclaimed_by_right",
    ),
    "compensation_kept": (
        compensation_kept,
        "a seller that takes cores back pays no compensation",
        "reclaimed_by_right",
    ),
    "compensation_from_nowhere": (
        compensation_from_nowhere,
        "a seller that takes cores back pays more on top than it has",
        "money_conserved",
    ),
    "posted_before_its_time": (
        posted_before_its_time,
        "cores that are taken back too early are paid for",
        "reclaimed_by_right",
    ),
    "paid_for_untaken": (
        paid_for_untaken,
        "cores are paid back that the machine does not take",
        "amended_once",
    ),
    "steps_begun_anew": (
        steps_begun_anew,
        "a seller that restarts asks its machine for steps that come before those it has asked for",
        "amended_once",
    ),
    "reclamations_forgotten": (
        reclamations_forgotten,
        "a user that restarts does not know what was taken back, nor asks",
        "amended_once",
    ),
    "document_not_asked_for": (
        document_not_asked_for,
        "a user whose seller hides what it has taken does not ask its bank for it",
        "amended_once",
    ),
    "taken_refunded_again": (
        taken_refunded_again,
        "a refund gives back what was paid for cores taken back",
        "refunded_once",
    ),
}
"""Each by its name: how it is planted, what it breaks, and which checker has to see it."""
