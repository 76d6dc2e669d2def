"""The user's side of cancelling one bought unit, or of claiming the money for one that its seller failed to deliver.

The user sends the signed cancellation to the resource, which countersigns it for the bank. Only the bank's answer is
final, so the user asks the bank next, whatever the resource answers. The bank refunds on the buyer's signature alone
until the slot begins by its clock. A claim rests on the resource's sealed message and goes to the bank at once.
"""

from __future__ import annotations

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.contents import ChangePosted, ChangeRefused, Failed, RefundClaim
from ramp.model.instant import Instant
from ramp.model.seal import Role, Seal
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Send
from ramp.protocol.machine import PatientMachine
from ramp.protocol.outcome import CancellationOutcome
from ramp.protocol.timing import Pace
from ramp.protocol.transition_tables import CANCELLATION, CancellationState

S = CancellationState
Answer = ChangePosted | ChangeRefused


class CancellationRequest(PatientMachine[CancellationState]):
    """One cancellation or claim.

    Args:
        demand: the cancellation, or the resource's message about its failure with its seal.
        agreement: the agreement to cancel.
        pace: of the user.
    """

    def __init__(self, demand: ContractChange | tuple[Failed, Seal], agreement: Agreement, pace: Pace) -> None:
        super().__init__(agreement.request_id, CANCELLATION, S.NEW, pace)
        self.demand = demand
        self.agreement = agreement
        self.outcome: CancellationOutcome | None = None
        self.seal: Seal | None = None

    @property
    def doubt(self) -> str:
        if self.state is S.ENDED:
            return ""
        whom = self.agreement.resource if self.state is S.ASKING else "the bank"
        return f"{whom} has been asked to cancel {self.agreement.agreement_id}; the bank's answer decides"

    def start(self, now: Instant) -> list[Effect]:
        if isinstance(self.demand, ContractChange):
            self._enter(S.ASKING, "start")
            return self._ask(self._pace.timing.cancellation_limit, now)
        return self._turn_to_bank("claim", now)

    def handle(self, message: Message, content: Answer, now: Instant) -> list[Effect]:
        """Take the resource's or the bank's answer; ignored after the end.

        Raises:
            RemoteProtocolError: if the sender has no part in this, or did not seal it.
        """
        if self.state is S.ENDED:
            return []
        agreement = self.agreement
        if isinstance(content, ChangeRefused) and message.sender == agreement.resource:
            said_by(message, agreement.resource, Role.RESOURCE)
            return self._turn_to_bank("ChangeRefused", now) if self.state is S.ASKING else []
        seal = said_by(message, agreement.bank, Role.BANK)
        if isinstance(content, ChangePosted):
            lost = None if isinstance(self.demand, ContractChange) else self.demand[0]
            why = ("", "") if lost is None else (lost.code, lost.detail)
            outcome = CancellationOutcome(agreement.agreement_id, True, content.refund, *why)
            self._end(outcome, seal, "ChangePosted", now)
        elif self.state is S.ASKING_BANK:
            outcome = CancellationOutcome(agreement.agreement_id, False, 0, content.code, content.detail)
            self._end(outcome, seal, "ChangeRefused", now)
        return []

    def tick(self, now: Instant) -> list[Effect]:
        """Send again, or turn to the bank if the resource takes too long."""
        if self._is_out_of_patience(now):
            return self._turn_to_bank("deadline", now)
        return self._ask_again(now)

    def _turn_to_bank(self, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.ASKING_BANK, stimulus)
        return self._ask(None, now)

    def _say(self) -> list[Effect]:
        agreement = self.agreement
        receiver = agreement.resource if self.state is S.ASKING else agreement.bank
        performative = Performative.CANCEL if self.state is S.ASKING else Performative.REQUEST
        content = (
            Signed(self.demand)
            if isinstance(self.demand, ContractChange)
            else RefundClaim(self.demand[0], self.demand[1])
        )
        message = Message(
            performative, agreement.user, receiver, self.conversation_id, content, reply_with=agreement.agreement_id
        )
        return [Send(message)]

    def _end(self, outcome: CancellationOutcome, seal: Seal, stimulus: str, now: Instant) -> None:
        self._enter(S.ENDED, stimulus)
        self.outcome, self.seal = outcome, seal
        self._is_answered(now)
