"""A user's cancellations and refund claims (paper section 5.1.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.contents import ChangePosted, ChangeRefused, Failed
from ramp.model.instant import Duration, Instant
from ramp.model.money import credits_text
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role, Seal
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Persist, Report
from ramp.protocol.faults import guarded
from ramp.protocol.outcome import ALREADY_CANCELLED, REFUND_ORDERED, CancellationOutcome
from ramp.protocol.progress import CancellationEnded
from ramp.protocol.records import CancellationConcluded, CancellationStarted, Record, RefundClaimed
from ramp.protocol.timing import Pace, earliest
from ramp.protocol.user.cancellation import CancellationRequest

NOT_ACTIVE = "not_active"
"""Code of a cancellation whose agreement is not active."""


AGENT_FAILED = "agent_failed"
"""Code of a cancellation that a bug of the user agent ended before it was recorded."""


class Returns:
    """The cancellations and claims of one user.

    Attributes:
        done: outcomes of refunded agreements; with the cause if the seller gave the slot back.
    """

    def __init__(self, agreements: Mapping[str, Agreement], pace: Pace) -> None:
        self.done: dict[str, CancellationOutcome] = {}
        self._agreements = agreements
        self._pace = pace
        self._open: dict[str, CancellationRequest] = {}
        self._refused: set[str] = set()

    def __contains__(self, agreement_id: str) -> bool:
        return agreement_id in self._open

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(self._open)

    @property
    def doubts(self) -> dict[str, str]:
        return {agreement_id: machine.doubt for agreement_id, machine in self._open.items()}

    @property
    def deadline(self) -> Instant | None:
        return earliest(*(machine.deadline for machine in self._open.values()))

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Resume open cancellations after a restart; the agreements must be known."""
        effects: list[Effect] = []
        for agreement_id, demand in self._replayed(records).items():
            effects += guarded(agreement_id, partial(self._begin, agreement_id, demand, now))
        return effects

    def resume(self, agreement_id: str, records: Sequence[Record], now: Instant) -> list[Effect]:
        was_open = self._open.pop(agreement_id, None) is not None
        demand = self._replayed(records).get(agreement_id)
        if demand is not None:
            return self._begin(agreement_id, demand, now)
        failed = CancellationOutcome(agreement_id, False, 0, AGENT_FAILED, "the user agent failed before it was sent")
        return [Report(CancellationEnded(failed))] if was_open else []

    def forget(self, agreement_id: str) -> None:
        self._open.pop(agreement_id, None)

    def drop(self, agreement_ids: Sequence[str]) -> None:
        """Drop the outcomes of archived agreements."""
        for agreement_id in agreement_ids:
            self.done.pop(agreement_id, None)
            self._refused.discard(agreement_id)

    def _ended(self, outcome: CancellationOutcome) -> None:
        if outcome.done:
            self.done[outcome.agreement_id] = outcome
        else:
            self._refused.add(outcome.agreement_id)

    def _replayed(self, records: Sequence[Record]) -> dict[str, ContractChange | tuple[Failed, Seal]]:
        demands: dict[str, ContractChange | tuple[Failed, Seal]] = {}
        for record in records:
            if isinstance(record, CancellationStarted):
                demands[record.cancellation.agreement_id] = record.cancellation
            elif isinstance(record, RefundClaimed):
                demands[record.failed.agreement_id] = record.failed, record.failed_seal
            elif isinstance(record, CancellationConcluded):
                demands.pop(record.outcome.agreement_id, None)
                self._ended(record.outcome)
        return demands

    def cancel(self, cancellation: ContractChange, now: Instant) -> list[Effect]:
        started = Persist(CancellationStarted(cancellation, now))
        begin = partial(self._begin, cancellation.agreement_id, cancellation, now)
        return guarded(cancellation.agreement_id, lambda: [started, *begin()])

    def claim(self, failed: Failed, seal: Seal, now: Instant) -> list[Effect]:
        """Claim a refund on the failure message of a paid resource."""
        if failed.agreement_id in self._open or failed.agreement_id in self.done:
            return []
        claimed = Persist(RefundClaimed(failed, seal, now))
        return [claimed, *self._begin(failed.agreement_id, (failed, seal), now)]

    def handle(self, message: Message, content: ChangePosted | ChangeRefused, now: Instant) -> list[Effect]:
        """Take a message of the resource or the bank.

        Raises:
            RemoteProtocolError: if the expected sender did not seal it.
        """
        agreement_id = content.agreement_id
        machine = self._open.get(agreement_id)
        if machine is not None:
            return guarded(agreement_id, lambda: machine.handle(message, content, now) + self._end(agreement_id, now))
        agreement = self._agreements.get(agreement_id)
        if not isinstance(content, ChangePosted) or agreement is None or agreement_id in self.done:
            return []
        # refunded after a refusal, or the resource has told the bank of its failure, and its word to this user is late
        seal = said_by(message, agreement.bank, Role.BANK)
        seller = (RefusalCode.NOT_DELIVERED, f"{agreement.resource} has given it back")
        why = ("", "") if agreement_id in self._refused else seller
        if content.ordered_for:
            why = (REFUND_ORDERED, f"the market's keeper has refunded it: {content.ordered_for}")
        outcome = CancellationOutcome(agreement_id, True, content.refund, *why)
        self._ended(outcome)
        return [Persist(CancellationConcluded(outcome, seal, now)), Report(CancellationEnded(outcome))]

    def tick(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for agreement_id, machine in list(self._open.items()):
            if machine.deadline is not None and now >= machine.deadline:
                effects += guarded(agreement_id, partial(self._tick, machine, now))
        return effects

    def clock_set(self, by: Duration) -> None:
        for machine in self._open.values():
            machine.clock_set(by)

    def _tick(self, machine: CancellationRequest, now: Instant) -> list[Effect]:
        return machine.tick(now) + self._end(machine.agreement.agreement_id, now)

    def _begin(self, agreement_id: str, demand: ContractChange | tuple[Failed, Seal], now: Instant) -> list[Effect]:
        machine = CancellationRequest(demand, self._agreements[agreement_id], self._pace)
        self._open[agreement_id] = machine
        return machine.start(now)

    def _end(self, agreement_id: str, now: Instant) -> list[Effect]:
        machine = self._open[agreement_id]
        if machine.outcome is None or machine.seal is None:
            return []
        del self._open[agreement_id]
        self._ended(machine.outcome)
        concluded = CancellationConcluded(machine.outcome, machine.seal, now)
        return [Persist(concluded), Report(CancellationEnded(machine.outcome))]


def not_given_back(agreement_id: str, standing: str | None, ended: CancellationOutcome | None) -> list[Effect]:
    """Report that an agreement is not cancelled now: its state (None if it is unknown), or its end before."""
    if ended is not None:  # nothing is refunded again
        how = "lost by its seller" if ended.cause else "cancelled"
        before = f"it was {how} before, with a refund of {credits_text(ended.refund)} credits"
        return [Report(CancellationEnded(CancellationOutcome(agreement_id, True, 0, ALREADY_CANCELLED, before)))]
    detail = f"only an active agreement can be cancelled; {agreement_id} is {standing or 'unknown'}"
    return [Report(CancellationEnded(CancellationOutcome(agreement_id, False, 0, NOT_ACTIVE, detail)))]
