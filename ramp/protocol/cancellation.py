"""The user's side of giving one bought unit back, whether wished or because another unit failed.

The signed cancellation is sent until the resource answers. A resource that stays silent is not waited for without end:
once the bank can no longer settle the agreement, the bank is asked what became of it.
"""

from __future__ import annotations

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Cancellation, Signed
from ramp.model.contents import (
    CancellationDone,
    CancellationRefused,
    Content,
    Failed,
    PaymentQuery,
    PaymentStatus,
)
from ramp.model.instant import Instant
from ramp.protocol.effects import Effect, Send
from ramp.protocol.machine import StateMachine
from ramp.protocol.outcome import CancellationOutcome
from ramp.protocol.tables import CANCELLATION, CancellationState
from ramp.protocol.timing import Pace, Retry

IN_DOUBT = "in_doubt"
"""Outcome code: before the slot ended, neither the resource nor the bank said that the agreement was over."""


class CancellationRequest(StateMachine[CancellationState]):
    """One cancellation.

    Args:
        cancellation: the document.
        agreement: what is cancelled.
        pace: of the cancelling agent.
    """

    def __init__(self, cancellation: Cancellation, agreement: Agreement, pace: Pace) -> None:
        super().__init__(agreement.request_id, CANCELLATION, CancellationState.NEW)
        self.cancellation = cancellation
        self.agreement = agreement
        self.outcome: CancellationOutcome | None = None
        self._timing = pace.timing
        self._retry = Retry(pace)

    def start(self, now: Instant) -> list[Effect]:
        """Send the cancellation."""
        self._enter(CancellationState.ASKING, "start")
        self._retry.begin(now)
        self.deadline = self._retry.due
        return [self._cancel()]

    def handle(self, content: Content, now: Instant) -> list[Effect]:
        """Take the resource's or the bank's answer; after the end everything is ignored."""
        if self.state is CancellationState.ENDED:
            return []
        agreement_id = self.agreement.agreement_id
        if isinstance(content, CancellationDone | CancellationRefused | Failed):
            self._retry.answered(now)
        if isinstance(content, CancellationDone):
            self._end(CancellationOutcome(agreement_id, True, content.refund), "CancellationDone")
        elif isinstance(content, CancellationRefused):
            outcome = CancellationOutcome(agreement_id, False, 0, content.code, content.detail)
            self._end(outcome, "CancellationRefused")
        elif isinstance(content, Failed):
            self._end(CancellationOutcome(agreement_id, True, 0, content.code, content.detail), "Failed")
        elif isinstance(content, PaymentStatus):
            self._on_status(content)
        return []

    def tick(self, now: Instant) -> list[Effect]:
        """Send again; once the bank can settle no more, ask it too; give up when the slot is over."""
        if not self._retry.is_due(now):
            return []
        if now > max(self.agreement.offer.end, self._bank_knows_at()) + self._timing.query_limit:
            outcome = CancellationOutcome(
                self.agreement.agreement_id,
                False,
                0,
                IN_DOUBT,
                "the resource does not answer, and the bank knows of no refund",
            )
            self._end(outcome, "deadline")
            return []
        self._retry.again(now)
        self.deadline = self._retry.due
        effects: list[Effect] = [self._cancel()]
        if now > self._bank_knows_at():
            effects.append(ask_bank(self.agreement))
        return effects

    def _bank_knows_at(self) -> Instant:
        return self.agreement.valid_until + self._timing.bank_grace

    def _on_status(self, status: PaymentStatus) -> None:
        final = status.status in ("refused", "refunded")
        if final or (status.status == "unknown" and status.bank_time > self.agreement.valid_until):
            refund = self.agreement.cost if status.status == "refunded" else 0
            self._end(CancellationOutcome(self.agreement.agreement_id, True, refund), "PaymentStatus")

    def _cancel(self) -> Send:
        return Send(
            Message(
                Performative.CANCEL,
                self.agreement.user,
                self.agreement.resource,
                self.conversation_id,
                Signed(self.cancellation),
                reply_with=self.cancellation.cancellation_id,
            )
        )

    def _end(self, outcome: CancellationOutcome, stimulus: str) -> None:
        self._enter(CancellationState.ENDED, stimulus)
        self.outcome = outcome
        self._retry.stop()
        self.deadline = None


def ask_bank(agreement: Agreement) -> Send:
    """A QUERY_REF to the bank: what became of this agreement?"""
    return Send(
        Message(
            Performative.QUERY_REF,
            agreement.user,
            agreement.bank,
            agreement.request_id,
            PaymentQuery(agreement.agreement_id),
            reply_with=f"{agreement.agreement_id}/status",
        )
    )
