"""A participant's values, and its messages to buyer and bank."""

from __future__ import annotations

from dataclasses import replace

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import TERMINAL, Agreement, Signed, end_of
from ramp.model.instant import Instant
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import Nodes
from ramp.model.seal import Seal
from ramp.model.sizes.moldable import as_offered
from ramp.protocol.effects import HoldSlot, Send
from ramp.protocol.machine import StateMachine
from ramp.protocol.records import HoldIntended, SlotReleased
from ramp.protocol.transition_tables import PARTICIPANT, ParticipantState


class ParticipantAnswers(StateMachine[ParticipantState]):
    """Base of the participant.

    Attributes:
        unit: as called for; the machine is asked for the offered size.
        offer: the accepted offer.
        user: the buyer.
        until: end of the hold.
        reservation_id: the machine's name for the slot, as agreed; empty before the hold.
        reserved_as: the machine's present name for it, if that has changed; the machine repeats it after a restart.
        agreement: signed by the buyer; None before the second phase.
        size: usable cores and end of the slot, which amendments may reduce.
        not_before: instants with the maximum of usable cores before each, because additions are paid from their instant
            on.
        ending: the buyer's cancellation or the failure of a paid slot, which the bank shall post; None without one.
        released: how the slot ended, or None.
    """

    def __init__(self, intended: HoldIntended, *, resource: str, account: str) -> None:
        super().__init__(intended.offer.request_id, PARTICIPANT, ParticipantState.NEW)
        self.unit = intended.unit
        self.offer: Offer = intended.offer
        self.user = intended.user
        self.until = intended.until
        self.reservation_id = ""
        self.reserved_as = ""
        self.agreement: Signed | None = None
        self.size = intended.offer.cores, intended.offer.end
        self.not_before: tuple[tuple[Instant, int], ...] = ()
        self.ending: Signed | None = None
        self.released: SlotReleased | None = None
        self._resource = resource
        self._slot = intended.slot
        self._account = account
        self._quoted = as_offered(intended.unit, intended.offer)
        if intended.unit.gpus_per_node is not None and isinstance(intended.unit.cores, Nodes):
            nodes = intended.unit.cores.count
            self._quoted = replace(self._quoted, cores=Nodes(nodes, intended.offer.cores // nodes))
        self._paid: tuple[c.PaymentMade, Seal] | None = None

    @property
    def paid_at(self) -> Instant | None:
        """When the slot was paid, by the bank's clock; None before."""
        return None if self._paid is None else self._paid[1].signed_at

    @property
    def agreed(self) -> Agreement:
        """The agreement; it exists from CONFIRMING on."""
        assert self.agreement is not None
        assert isinstance(self.agreement.body, Agreement)
        return self.agreement.body

    @property
    def failed(self) -> bool:
        """Whether the resource has lost the paid slot."""
        return self.ending is not None and self.ending.change.is_failure

    def _hold(self) -> HoldSlot:
        return HoldSlot(self.offer.offer_id, self._quoted, self._slot, self.until, self._account)

    def _to_user(self, performative: Performative, content: c.Content) -> Send:
        return Send(
            Message(
                performative,
                self._resource,
                self.user,
                self.conversation_id,
                content,
                in_reply_to=self.offer.offer_id,
            )
        )

    def _agree(self, now: Instant) -> Send:
        granted = c.HoldGranted(
            self.conversation_id, self.offer.offer_id, self.reservation_id, max(0, self.until - now)
        )
        return self._to_user(Performative.AGREE, granted)

    def _refuse(self, instead: tuple[Offer, ...] = ()) -> Send:
        assert self.released is not None
        return self._refuse_for(self.released.code, self.released.detail, instead)

    def _refuse_for(self, code: RefusalCode, detail: str, instead: tuple[Offer, ...] = ()) -> Send:
        refused = c.HoldRefused(self.conversation_id, self.offer.offer_id, code, detail, instead)
        return self._to_user(Performative.REFUSE, refused)

    def _acknowledge(self) -> Send:
        return self._to_user(Performative.CONFIRM, c.Confirmed(self.agreed.agreement_id, self.offer.offer_id))

    def _settled(self) -> Send:
        assert self.agreement is not None
        assert self._paid is not None
        proof = c.Settled(self.agreed.agreement_id, self.offer.offer_id, self.agreement, *self._paid)
        return self._to_user(Performative.INFORM, proof)

    def _failure(self) -> Send:
        """Report the failure of an accepted agreement; it justifies a refund, so no other failure is sent."""
        failure = self.ending
        if failure is None or not self.failed:
            assert self.released is not None
            failure = Signed(end_of(self.agreed, self.released.detail, self.released.at, self.released.code))
        return self._to_user(Performative.FAILURE, failure)

    def _failure_to_bank(self) -> Send:
        """Report the failure to the bank, which voids the whole order."""
        failure = self._failure().message
        return Send(replace(failure, receiver=self.agreed.bank, in_reply_to=""))

    def _to_bank(self) -> Send:
        """Return the present question to the bank: payment, refund, or state of the sale."""
        if self.state is ParticipantState.ENDING and self.failed:
            return self._failure_to_bank()
        documents = {ParticipantState.SETTLING: self.agreement, ParticipantState.ENDING: self.ending}
        to, name = self.agreed.bank, self.agreed.agreement_id
        asked: c.Content = documents.get(self.state) or c.PaymentQuery(name)
        performative = Performative.QUERY_REF if isinstance(asked, c.PaymentQuery) else Performative.REQUEST
        return Send(Message(performative, self._resource, to, self.conversation_id, asked, reply_with=name))

    def _hold_cancelled(self) -> Send:
        return self._to_user(Performative.INFORM, c.HoldCancelled(self.conversation_id, self.offer.offer_id))

    def _refuse_end(self, code: str, detail: str) -> Send:
        """Refuse to end the agreement; the buyer asks the bank next."""
        refused = c.ChangeRefused(self.agreed.agreement_id, TERMINAL, code, detail)
        return self._to_user(Performative.REFUSE, refused)
