"""The user's side of one amendment that shrinks a bought slot.

Either the seller proves with the bank's message that the amendment is posted, or the user withdraws it at the bank. The
bank's answer (posted or void) is final, whatever the seller says or fails to do.
"""

from __future__ import annotations

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.contents import (
    ChangeAgreed,
    ChangeDone,
    ChangePosted,
    ChangePriced,
    ChangeRefused,
    ChangeWithdrawal,
    Content,
)
from ramp.model.instant import Instant
from ramp.model.seal import Role, Seal
from ramp.protocol.amending.asking import AmendmentOutcome
from ramp.protocol.amending.memory import document_name
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Report, SaveAgreement, Send
from ramp.protocol.machine import PatientMachine
from ramp.protocol.progress import AmendmentAdvanced
from ramp.protocol.timing import Pace
from ramp.protocol.transition_tables import AMENDMENT, AmendmentState
from ramp.protocol.user.resizing.growth import check_proof

S = AmendmentState
AmendmentWord = ChangeAgreed | ChangeRefused | ChangePosted | ChangeDone | ChangePriced


class Change(PatientMachine[AmendmentState]):
    """One proposed amendment.

    Attributes:
        outcome: how it ended, with the bank's seal, or None.
    """

    def __init__(self, amendment: ContractChange, agreement: Agreement, pace: Pace) -> None:
        super().__init__(agreement.request_id, AMENDMENT, S.NEW, pace)
        self.amendment = amendment
        self.agreement = agreement
        self.outcome: tuple[AmendmentOutcome, Seal] | None = None
        self._why: tuple[str, str] = ("", "")

    @property
    def doubt(self) -> str:
        if self.state is S.ENDED:
            return ""
        body = self.amendment
        what = f"amendment {body.number} of {body.agreement_id}"
        if self.state is S.WITHDRAWING:
            return f"{body.bank} has been asked to void {what}; its answer decides"
        return f"{what} awaits {body.resource}; the slot stays unchanged until {body.bank} has posted it"

    def start(self, now: Instant) -> list[Effect]:
        """Propose the amendment, for the first time or after a restart."""
        self._enter(S.ASKING, "start")
        return self._ask(self._pace.timing.cancellation_limit, now)

    def handle(self, message: Message, content: AmendmentWord, now: Instant) -> list[Effect]:
        """Take the resource's or the bank's answer; ignored after the end.

        Raises:
            RemoteProtocolError: if its sender did not seal it, or the proof is invalid.
        """
        if self.state is S.ENDED or isinstance(content, ChangePriced):
            return []
        body = self.amendment
        if isinstance(content, ChangeDone):
            said_by(message, body.resource, Role.RESOURCE)
            check_proof(body, content)
            document = document_name(body.agreement_id, body.number)
            saved = SaveAgreement(document, content.change, content.posted_seal.text)
            return [saved, *self._end(content.posted, content.posted_seal, "ChangeDone", now)]
        if isinstance(content, ChangeAgreed):
            said_by(message, body.resource, Role.RESOURCE)
            return self._agreed(now) if self.state is S.ASKING else []
        if message.sender == body.resource and isinstance(content, ChangeRefused):
            said_by(message, body.resource, Role.RESOURCE)
            if self.state is S.WITHDRAWING:
                return []
            self._why = content.code, content.detail
            return self._withdraw("ChangeRefused", now)
        seal = said_by(message, body.bank, Role.BANK)
        if self.state is not S.WITHDRAWING:
            return []
        return self._end(content, seal, type(content).__name__, now)

    def on_not_understood(self, sender: str, now: Instant) -> list[Effect]:
        """Withdraw if the seller does not understand; then it does not act on the amendment."""
        if self.state is not S.ASKING or sender != self.amendment.resource:
            return []
        self._why = "not_understood", f"{sender} does not understand the amendment"
        return self._withdraw("NotUnderstood", now)

    def tick(self, now: Instant) -> list[Effect]:
        if self._is_out_of_patience(now):
            self._why = "no_answer", f"{self.amendment.resource} has not posted the amendment in time"
            return self._withdraw("deadline", now)
        return self._ask_again(now)

    def _agreed(self, now: Instant) -> list[Effect]:
        self._enter(S.AGREED, "ChangeAgreed")
        self._retry.answered(now)
        # until the amendment expires, plus the time for an answer
        self._limit = self.amendment.valid_until + self._pace.patience(self._pace.timing.cancellation_limit)
        self._arm()
        return [Report(AmendmentAdvanced(self.amendment))]

    def _withdraw(self, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.WITHDRAWING, stimulus)
        return self._ask(None, now)

    def _end(self, content: ChangePosted | ChangeRefused, seal: Seal, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.ENDED, stimulus)
        self._is_answered(now)
        done = isinstance(content, ChangePosted)
        code, detail = ("", "") if done else self._why
        if isinstance(content, ChangeRefused) and not code:
            code, detail = content.code, content.detail
        refund = content.refund if isinstance(content, ChangePosted) else 0
        self.outcome = self._came_to(refund, done=done, code=code, detail=detail), seal
        # ask the seller again for the copy with both signatures
        return [self._propose()] if stimulus == "ChangePosted" else []

    def _came_to(self, refund: int, *, done: bool, code: str, detail: str) -> AmendmentOutcome:
        body = self.amendment
        return AmendmentOutcome(
            body.agreement_id, body.number, done, body.cores, body.until, body.effective_at, refund, code, detail
        )

    def _say(self) -> list[Effect]:
        return [self._withdrawal() if self.state is S.WITHDRAWING else self._propose()]

    def _propose(self) -> Send:
        return self._request(self.amendment.resource, Signed(self.amendment))

    def _withdrawal(self) -> Send:
        body = self.amendment
        return self._request(body.bank, ChangeWithdrawal(body.agreement_id, body.number))

    def _request(self, receiver: str, content: Content) -> Send:
        user, about, key = self.amendment.user, self.conversation_id, self.amendment.key
        return Send(Message(Performative.REQUEST, user, receiver, about, content, reply_with=key))
