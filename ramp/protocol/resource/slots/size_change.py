"""The resource's side of one amendment: from the buyer's proposal to the bank's word that it is posted.

Only what the machine has given back at the instant agreed on is paid back: by the resource's countersignature, which
the bank posts. What it goes through with machine and bank is in `slot_change.py`.
"""

from __future__ import annotations

from typing import ClassVar

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, Signed
from ramp.model.contents import Amended, AmendmentAgreed, AmendmentPosted, AmendmentRefused, Content
from ramp.model.instant import Instant
from ramp.model.seal import Seal
from ramp.model.sizes.amended import SlotState
from ramp.protocol.amending.memory import (
    AmendmentDropped,
    AmendmentReceived,
    AmendmentSettled,
    CapacityTaken,
)
from ramp.protocol.effects import Effect, Persist, SaveAgreement, Send
from ramp.protocol.resource.slots.slot_change import STEPS, S, SlotChange
from ramp.protocol.tables import SIZE_CHANGE
from ramp.protocol.timing import Pace


class SizeChange(SlotChange[Amendment, Amended | AmendmentRefused]):
    """One amendment.

    Args:
        signed: the amendment, signed by the buyer.
        agreement: what was bought.
        state: of the slot, which is to be changed.
        pace: of the selling agent.
        first_step: number of the first of its steps at the machine; None for the first that its number gives.

    Attributes:
        signed: as above.
    """

    GIVEN_BACK: ClassVar[str] = "it"

    def __init__(
        self, signed: Signed, agreement: Agreement, state: SlotState, pace: Pace, first_step: int | None = None
    ) -> None:
        body = signed.body
        assert isinstance(body, Amendment)
        first = STEPS * body.number if first_step is None else first_step
        super().__init__(agreement.request_id, SIZE_CHANGE, body, state, first, pace)
        self.signed = signed

    @property
    def is_binding(self) -> bool:
        """Whether no more of the slot may be used than its new size; also while the machine is asked whether it can."""
        return self.state is S.CHECKING or self._is_agreed

    @property
    def _is_agreed(self) -> bool:
        return self.state in (S.AGREED, S.TAKING, S.POSTING)

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """The amendment fits: see whether the machine can change what it has set aside."""
        self._enter(S.CHECKING, "Amendment")
        return [self._ask_machine()]

    def replay(self, record: CapacityTaken) -> None:
        """Take a later record of the journal, before `recover`."""
        self._taken = record.number == self.body.number

    def on_proposed(self) -> list[Effect]:
        """The same proposal again: the same answer again, if there is one yet."""
        return [self._agreed()] if self._is_agreed else []

    def on_bank(self, content: AmendmentPosted | AmendmentRefused, seal: Seal, now: Instant) -> list[Effect]:
        """The bank's word; it is final.

        Raises:
            RemoteProtocolError: if it has posted something else.
        """
        if self.state is not S.POSTING:
            return []
        if isinstance(content, AmendmentRefused):
            return self._restore(content.code, f"the bank does not post it: {content.detail}", "AmendmentRefused")
        posted, right = (content.refund, content.charge), (self.body.refund, self.body.charge)
        if posted != right:
            raise RemoteProtocolError(f"refund and charge posted are {posted} minor units; right would be {right}")
        word = Amended(self.signed, content, seal)
        self._settle("AmendmentPosted", word, now)
        settled = Persist(AmendmentSettled(self.body.offer_id, content, seal, now))
        # the document first: after a failure between the two the bank is asked again, and both are written
        return [SaveAgreement(document_name(self.body), self.signed, seal.text), settled, self.tell(word)]

    def tell(self, content: Amended | AmendmentRefused | AmendmentAgreed) -> Send:
        """Say something to the buyer."""
        performative = {Amended: Performative.INFORM, AmendmentRefused: Performative.REFUSE}.get(
            type(content), Performative.AGREE
        )
        return self._send(performative, self.body.user, content)

    # -- common --------------------------------------------------------------------------------------------------

    def _on_able(self, now: Instant) -> list[Effect]:
        self._enter(S.AGREED, "SlotResized")
        self._arm()
        return [self._received(now), self._agreed()]

    def _received(self, now: Instant) -> Persist:
        return Persist(AmendmentReceived(self.body.offer_id, self.signed, now))

    def _is_taken(self, now: Instant) -> CapacityTaken:
        return CapacityTaken(self.body.offer_id, self.body.number, now)

    def _is_dropped(self, code: str, detail: str, now: Instant, *, recorded: bool) -> list[Effect]:
        self.last_word = AmendmentRefused(self.body.agreement_id, self.body.number, code, detail)
        dropped = Persist(AmendmentDropped(self.body.offer_id, self.body.number, code, detail, now))
        return [dropped, self.tell(self.last_word)] if recorded else [self.tell(self.last_word)]

    def _agreed(self) -> Send:
        return self.tell(AmendmentAgreed(self.body.agreement_id, self.body.number))

    def _to_bank(self) -> Send:
        return self._send(Performative.REQUEST, self.body.bank, self.signed)

    def _send(self, performative: Performative, receiver: str, content: Content) -> Send:
        reference = f"{self.body.agreement_id}#{self.body.number}"
        if receiver == self.body.bank:
            message = Message(
                performative, self.body.resource, receiver, self.conversation_id, content, reply_with=reference
            )
        else:
            message = Message(
                performative, self.body.resource, receiver, self.conversation_id, content, in_reply_to=reference
            )
        return Send(message)


def document_name(body: Amendment) -> str:
    """What the documents of an amendment are kept under, beside those of its agreement."""
    return f"{body.agreement_id}.amendment-{body.number}"
