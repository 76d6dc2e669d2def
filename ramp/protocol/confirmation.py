"""Second phase of the two-phase commit on the user's side (paper section 5.1.1, step 8), and its undoing.

The decision is durable before the first CONFIRM leaves; a coordinator that restarts with that record goes on.
Confirming does not yet end it, because money moves only then (section 5.1.2): a unit is settled when the resource
proves that the bank has paid. If the bank refuses, or a hold had run out before the CONFIRM came, the unit has failed
and the others are given back with refund, so that at the end all units stand or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Cancellation, Signed
from ramp.model.contents import (
    CancellationDone,
    CancellationRefused,
    Confirmed,
    Content,
    Failed,
    NotUnderstood,
    PaymentStatus,
    Settled,
)
from ramp.model.identifiers import IdSource
from ramp.model.instant import Instant
from ramp.model.request import RequestForQuotation
from ramp.protocol.cancellation import CancellationRequest, ask_bank
from ramp.protocol.effects import Effect, Persist, Report, SaveAgreement, Send
from ramp.protocol.machine import StateMachine
from ramp.protocol.outcome import BoughtUnit, RequestStatus
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.records import CommitDecided, Record, UndoDecided, UnitSettled
from ramp.protocol.tables import CONFIRMATION, ConfirmationState
from ramp.protocol.timing import Pace, Retry, Timing, earliest
from ramp.protocol.voting import HeldUnit


class UnitStage(StrEnum):
    """How far the confirmation of one unit has come."""

    CONFIRMING = "confirming"
    CONFIRMED = "confirmed"
    SETTLED = "settled"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


UNSETTLED = (UnitStage.CONFIRMING, UnitStage.CONFIRMED)


@dataclass(slots=True)
class _Unit:
    """One unit in the second phase."""

    agreement: Agreement
    retry: Retry
    stage: UnitStage = UnitStage.CONFIRMING
    transfer_id: str = ""
    cancellation: CancellationRequest | None = None


@dataclass(frozen=True, slots=True)
class ConfirmationResult:
    """How it ended: COMMITTED with the units, or FAILED with the reason and the agreements nobody could tell about."""

    status: RequestStatus
    reason: str
    units: tuple[BoughtUnit, ...]
    in_doubt: tuple[str, ...] = ()


def draw_up_agreements(
    request_id: str,
    request: RequestForQuotation,
    held: Sequence[HeldUnit],
    meets_request: Mapping[int, bool],
    *,
    user: str,
    bank: str,
    ids: IdSource,
    timing: Timing,
    now: Instant,
) -> tuple[Agreement, ...]:
    """Draw up one agreement a held unit: RFQ unit, offer and reservation id (section 5.2.1)."""
    return tuple(
        Agreement(
            agreement_id=ids.new("agreement"),
            request_id=request_id,
            units_total=len(held),
            user=user,
            resource=unit.offer.resource,
            bank=bank,
            request=request.unit(unit.unit),
            offer=unit.offer,
            reservation_id=unit.reservation_id,
            cost=unit.offer.cost,
            issued_at=now,
            valid_until=now + timing.agreement_validity,
            best_offer=not meets_request[unit.unit],
        )
        for unit in held
    )


class Confirmation(StateMachine[ConfirmationState]):
    """The second phase of one request.

    Args:
        request_id: the auction.
        agreements: what was decided, one a unit.
        user: name of the buying agent.
        ids: where new identifiers come from.
        timing: the protocol's limits.
    """

    def __init__(
        self, request_id: str, agreements: Sequence[Agreement], *, user: str, ids: IdSource, pace: Pace
    ) -> None:
        super().__init__(request_id, CONFIRMATION, ConfirmationState.NEW)
        self.result: ConfirmationResult | None = None
        self._user = user
        self._ids = ids
        self._pace = pace
        self._timing = pace.timing
        self._units = {agreement.agreement_id: _Unit(agreement, Retry(pace)) for agreement in agreements}
        self._reason = ""

    @property
    def agreements(self) -> tuple[Agreement, ...]:
        """What was decided, one agreement a unit."""
        return tuple(unit.agreement for unit in self._units.values())

    def start(self, now: Instant) -> list[Effect]:
        """Decide: make it durable, then confirm every unit."""
        self._enter(ConfirmationState.CONFIRMING, "start")
        effects: list[Effect] = [Persist(CommitDecided(self.conversation_id, self.agreements, now))]
        for unit in self._units.values():
            unit.retry.begin(now)
            effects += [self._confirm(unit), self._advanced(unit)]
        return self._armed(effects)

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Go on after a restart from the decision, the settlements and the undoing that are on record."""
        for record in records:
            if isinstance(record, UnitSettled):
                unit = self._units[record.agreement_id]
                unit.stage, unit.transfer_id = UnitStage.SETTLED, record.transfer_id
        undo = next((record for record in records if isinstance(record, UndoDecided)), None)
        if undo is not None:
            self._units[undo.failed_agreement_id].stage = UnitStage.FAILED
            return self._armed(self._undo(undo, "recover", now))
        self._enter(ConfirmationState.CONFIRMING, "recover")
        effects: list[Effect] = []
        for unit in self._units.values():
            if unit.stage is UnitStage.CONFIRMING:
                unit.retry.begin(now)
                effects.append(self._confirm(unit))
        self._end_confirming("recover")
        return self._armed(effects)

    def handle(self, message: Message, now: Instant) -> list[Effect]:
        """Take what resource or bank say of a confirmed unit; late and doubled messages are harmless.

        Raises:
            RemoteProtocolError: if the content has no place here, or its sender speaks for another agent.
        """
        content = message.content
        if isinstance(content, NotUnderstood):
            return []
        if not isinstance(
            content, Confirmed | Settled | Failed | CancellationDone | CancellationRefused | PaymentStatus
        ):
            raise RemoteProtocolError(
                f"{type(content).__name__} has no place in a commitment", conversation_id=self.conversation_id
            )
        unit = self._units.get(content.agreement_id)
        if unit is None:
            return []
        expected = unit.agreement.bank if isinstance(content, PaymentStatus) else unit.agreement.resource
        if message.sender != expected:
            raise RemoteProtocolError(f"{message.sender} speaks for {expected}", conversation_id=self.conversation_id)
        effects: list[Effect] = []
        if self.state is ConfirmationState.CONFIRMING:
            effects = self._while_confirming(unit, content, now)
        elif self.state is ConfirmationState.UNDOING and unit.cancellation is not None:
            unit.cancellation.handle(content, now)
            effects = self._end_undoing(type(content).__name__)
        return self._armed(effects)

    def tick(self, now: Instant) -> list[Effect]:
        """Confirm or cancel again; ask the bank once it can settle no more."""
        effects: list[Effect] = []
        for unit in self._units.values():
            if unit.cancellation is not None:
                if unit.cancellation.deadline is not None and now >= unit.cancellation.deadline:
                    effects += unit.cancellation.tick(now)
            elif unit.stage in UNSETTLED and unit.retry.is_due(now):
                unit.retry.again(now)
                effects.append(self._confirm(unit))
                if now > unit.agreement.valid_until + self._timing.bank_grace:
                    effects.append(ask_bank(unit.agreement))
        if self.state is ConfirmationState.UNDOING:
            effects += self._end_undoing("deadline")
        return self._armed(effects)

    # -- confirming ----------------------------------------------------------------------------------------------

    def _confirm(self, unit: _Unit) -> Send:
        return Send(
            Message(
                Performative.CONFIRM,
                self._user,
                unit.agreement.resource,
                self.conversation_id,
                Signed(unit.agreement),
                reply_with=unit.agreement.agreement_id,
            )
        )

    def _while_confirming(self, unit: _Unit, content: Content, now: Instant) -> list[Effect]:
        if unit.stage not in UNSETTLED:
            return []
        if isinstance(content, Confirmed) and unit.stage is UnitStage.CONFIRMING:
            unit.stage = UnitStage.CONFIRMED
            unit.retry.heard(now)
            return [self._advanced(unit)]
        if isinstance(content, Settled):
            return self._settle(unit, content.transfer_id, content.agreement, "Settled", now)
        if isinstance(content, Failed):
            return self._fail(unit, content.detail or str(content.code), "Failed", now)
        if isinstance(content, PaymentStatus):
            if content.status == "paid":
                return self._settle(unit, content.transfer_id, None, "PaymentStatus", now)
            if content.status != "unknown" or content.bank_time > unit.agreement.valid_until:
                return self._fail(unit, f"the bank says {content.status}", "PaymentStatus", now)
        return []

    def _settle(
        self, unit: _Unit, transfer_id: str, signed: Signed | None, stimulus: str, now: Instant
    ) -> list[Effect]:
        parties = (unit.agreement.user, unit.agreement.resource)
        if signed is not None and (signed.body != unit.agreement or signed.signers != parties):
            raise RemoteProtocolError(
                "the proof is of another agreement or lacks a signature", conversation_id=self.conversation_id
            )
        unit.stage = UnitStage.SETTLED
        unit.transfer_id = transfer_id
        unit.retry.answered(now)
        agreement_id = unit.agreement.agreement_id
        effects: list[Effect] = [] if signed is None else [SaveAgreement(agreement_id, signed)]
        settled = UnitSettled(self.conversation_id, agreement_id, transfer_id, signed, now)
        effects += [Persist(settled), self._advanced(unit)]
        self._end_confirming(stimulus)
        return effects

    def _end_confirming(self, stimulus: str) -> None:
        if all(unit.stage is UnitStage.SETTLED for unit in self._units.values()):
            self._enter(ConfirmationState.ENDED, stimulus)
            self.result = ConfirmationResult(RequestStatus.COMMITTED, "", self._bought())

    def _bought(self) -> tuple[BoughtUnit, ...]:
        return tuple(
            BoughtUnit(
                unit.agreement.request.number,
                unit.agreement.offer,
                unit.agreement.agreement_id,
                unit.agreement.reservation_id,
                unit.transfer_id,
                not unit.agreement.best_offer,
            )
            for unit in self._units.values()
        )

    # -- undoing -------------------------------------------------------------------------------------------------

    def _fail(self, failed: _Unit, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        failed.stage = UnitStage.FAILED
        failed.retry.stop()
        reason = f"unit {failed.agreement.request.number} failed at {failed.agreement.resource}: {detail}"
        cancellations = tuple(
            Cancellation(
                cancellation_id=self._ids.new("cancellation"),
                agreement_id=unit.agreement.agreement_id,
                offer_id=unit.agreement.offer.offer_id,
                user=self._user,
                resource=unit.agreement.resource,
                rollback=True,
                reason=reason,
                issued_at=now,
            )
            for unit in self._units.values()
            if unit is not failed
        )
        undo = UndoDecided(self.conversation_id, failed.agreement.agreement_id, reason, cancellations, now)
        return [self._advanced(failed, detail), Persist(undo), *self._undo(undo, stimulus, now)]

    def _undo(self, undo: UndoDecided, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(ConfirmationState.UNDOING, stimulus)
        self._reason = undo.reason
        effects: list[Effect] = []
        for cancellation in undo.cancellations:
            unit = self._units[cancellation.agreement_id]
            unit.stage = UnitStage.CANCELLING
            unit.retry.stop()
            unit.cancellation = CancellationRequest(cancellation, unit.agreement, self._pace)
            effects += [*unit.cancellation.start(now), self._advanced(unit)]
        return effects + self._end_undoing("nothing to cancel")

    def _end_undoing(self, stimulus: str) -> list[Effect]:
        effects: list[Effect] = []
        for unit in self._units.values():
            outcome = unit.cancellation.outcome if unit.cancellation is not None else None
            if unit.stage is UnitStage.CANCELLING and outcome is not None:
                unit.stage = UnitStage.CANCELLED
                effects.append(self._advanced(unit, outcome.detail))
        ongoing = any(unit.stage is UnitStage.CANCELLING for unit in self._units.values())
        if ongoing or self.state is not ConfirmationState.UNDOING:
            return effects
        self._enter(ConfirmationState.ENDED, stimulus)
        standing = tuple(
            agreement_id
            for agreement_id, unit in self._units.items()
            if unit.cancellation is not None
            and unit.cancellation.outcome is not None
            and not unit.cancellation.outcome.done
        )
        doubt = f"; could not be given back: {', '.join(standing)}" if standing else ""
        self.result = ConfirmationResult(RequestStatus.FAILED, self._reason + doubt, (), standing)
        return effects

    # -- common --------------------------------------------------------------------------------------------------

    def _advanced(self, unit: _Unit, detail: str = "") -> Report:
        agreement = unit.agreement
        return Report(
            UnitAdvanced(self.conversation_id, agreement.request.number, agreement.resource, unit.stage.value, detail)
        )

    def _armed(self, effects: list[Effect]) -> list[Effect]:
        deadlines: list[Instant | None] = []
        if self.state is not ConfirmationState.ENDED:
            deadlines = [
                unit.cancellation.deadline if unit.cancellation is not None else unit.retry.due
                for unit in self._units.values()
            ]
        self.deadline = earliest(*deadlines)
        return effects
