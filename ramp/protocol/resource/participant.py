"""The resource's side of the two-phase commit for one accepted offer (paper section 5.1.1, steps 6 to 10).

It also covers the reservation notification to the bank and the cancellation (section 5.1.2). The deadline of a hold is
recorded. The vote yes is recorded before AGREE is sent, and the signed agreement before it is acknowledged and sent to
the bank. No slot becomes firm without the bank's vote, and a firm one ends only by the bank's sealed message: paid,
void or refunded. A repeated message gets the same answer.
"""

from __future__ import annotations

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.agreement import TERMINAL, Agreement, Signed, end_of
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.price_paid import agreed_price_problem
from ramp.model.seal import Seal
from ramp.model.slot import Reservation
from ramp.protocol import effects as fx
from ramp.protocol import records as rc
from ramp.protocol.agreement_terms import commitment_problem
from ramp.protocol.events import MachineInDoubt, SlotConfirmed, SlotHeld, SlotLookedUp
from ramp.protocol.progress import SlotLost
from ramp.protocol.resource.participant_answers import ParticipantAnswers
from ramp.protocol.timing import Pace, Retry, earliest
from ramp.protocol.transition_tables import ParticipantState

S = ParticipantState

NEXT = "next-"
"""Start of a quote's name that asks for the slot after one that was taken."""

SEEN = "SlotSeen"
"""Stimulus of every answer of the machine about the slot, whether it was asked to act or to look."""

IN_DOUBT = (S.HOLDING, S.CONFIRMING)
"""States with an open request to the machine; if it fails, the slot is looked up."""


class Participant(ParticipantAnswers):
    """One accepted offer.

    Args:
        intended: the hold, and its first record.
        bank: name of the bank that the resource trusts.
        account: the buyer's local account, or empty.
    """

    def __init__(self, intended: rc.HoldIntended, *, resource: str, bank: str, pace: Pace, account: str) -> None:
        super().__init__(intended, resource=resource, account=account)
        self._intended = intended
        self._bank = bank
        self._hold_time = pace.timing.hold_time
        self._time_promised = intended.until
        self._retry = Retry(pace)
        self._doubt: MachineInDoubt | None = None
        self._repeated = False
        self._asks_for_next = False
        self._looked_up_in: S | None = None

    @property
    def deadline(self) -> Instant | None:
        """When to repeat a message or question, to end the hold, or to ask whether the sale still stands."""
        # a hold ends at its deadline whatever the machine says
        return earliest(self._retry.deadline, self.until if self.state in (S.HOLDING, S.HELD) else None)

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant, taken: str) -> list[fx.Effect]:
        """Record the intention and ask the plug-in for the slot, unless the resource has sold its cores (`taken`)."""
        self._enter(S.HOLDING, "Acceptance")
        if taken:
            return [fx.Persist(self._intended), *self._not_reserved(RefusalCode.SLOT_TAKEN, taken, now)]
        return [fx.Persist(self._intended), self._hold()]

    def replay(self, record: rc.Record) -> None:
        match record:
            case rc.HoldMade(reservation_id=reservation_id, until=until):
                self.reservation_id, self.until = reservation_id, until
            case rc.AgreementReceived(agreement=agreement):
                self.agreement = agreement
            case rc.AgreementPaid(payment=payment, payment_seal=seal):
                self._paid = payment, seal
            case rc.ChangeReceived(signed=signed):
                self.ending = signed
            case rc.ChangeDropped():
                self.ending = None
            case rc.SlotReleased():
                self.released = record

    def _recorded(self, record: rc.ParticipantRecord | rc.SoldChangeRecord) -> fx.Persist:
        """Take up a new record as after a restart."""
        self.replay(record)
        return fx.Persist(record)

    def recover(self, now: Instant) -> list[fx.Effect]:
        """Resume after a restart; every call to plug-in and bank may be repeated."""
        over = max(self.offer.end, self.size[1])
        if self.released is not None:
            self._resume(S.RELEASED)
            # an earlier request may still reach the machine, and an expired hold counts again after a step of the clock
            return [fx.ReleaseSlot(self.offer.offer_id)] if now < over else []
        if self._paid is not None:
            self._resume(S.SOLD if self.ending is None else S.ENDING)
            # the bank may have refunded on the buyer's word while this agent was away
            return [self._request(now)] if self.ending is not None or now < over else []
        if self.agreement is not None:
            self._resume(S.CONFIRMING)
            return [fx.ConfirmSlot(self.offer.offer_id)]
        # the clock may have been set back meanwhile
        self.until = self._time_promised = min(self.until, now + self._hold_time)
        if self.reservation_id:
            self._resume(S.HELD)
            return []
        self._resume(S.HOLDING)
        return [self._hold()]

    def on_timer(self, now: Instant) -> list[fx.Effect]:
        """End a hold (step 10), or ask machine or bank again."""
        if self.state in (S.HOLDING, S.HELD) and now >= self.until:
            reason = "no CONFIRM came while the slot was held"
            return self._release(RefusalCode.HOLD_EXPIRED, reason, "deadline", now)
        if self._retry.is_due(now) and self.state in (*IN_DOUBT, S.QUEUED):
            return self._look_up()
        if self._retry.is_due(now):
            self._retry.again(now)
            return [self._to_bank()]
        return [self._request(now)]  # the sold slot begins: ask whether the sale still stands

    def clock_set(self, by: Duration) -> None:
        """Move the deadlines with the clock.

        The machine dates a hold in its own book and ends it then. So a hold ends at that date or after the promised
        time, whichever comes first: a clock set back by an hour must not block a slot for an hour, and one set right
        must not end the hold.
        """
        self._retry.clock_set(by)
        self._time_promised += by
        self.until = min(self._intended.until, self._time_promised)

    # -- the plug-in's answers -----------------------------------------------------------------------------------

    def on_answer(self, event: SlotHeld | SlotConfirmed | SlotLookedUp, now: Instant) -> list[fx.Effect]:
        """Take the machine's answer about the slot."""
        if isinstance(event, SlotLookedUp):
            return self._on_looked_up(event.answer, now)
        if self.state is not (S.HOLDING if isinstance(event, SlotHeld) else S.CONFIRMING):
            return self._late(event.answer)
        match event.answer:
            case MachineInDoubt() as doubt:
                return self._in_doubt(doubt, now)
            case Refusal(code=code, detail=detail):
                return self._not_reserved(code, detail, now)
            case Reservation() as reservation:
                return self._reserved(reservation, now)

    def _late(self, answer: Reservation | Refusal | MachineInDoubt) -> list[fx.Effect]:
        """Handle a late answer: after a release, release the slot again.

        The release may have overtaken the request that it undoes. In every other state the slot was found on the
        machine, and is promised.
        """
        if self.state is not S.RELEASED or isinstance(answer, Refusal):
            return []
        return [fx.ReleaseSlot(self.offer.offer_id)]

    def _on_looked_up(self, answer: Reservation | MachineInDoubt | None, now: Instant) -> list[fx.Effect]:
        """Take the machine's answer about a slot in doubt; ask again while it cannot say."""
        asked_in, self._looked_up_in = self._looked_up_in, None
        if self.state is S.QUEUED:
            return self._on_queue_seen(answer, now)
        doubt = self._doubt
        if self.state not in IN_DOUBT or doubt is None:
            return []
        if isinstance(answer, MachineInDoubt) or asked_in is not self.state:  # it may be older than the doubt
            return self._look_up_later(now)
        if answer is not None and (self.state is S.HOLDING or answer.firm):
            return self._reserved(answer, now)
        if self.state is S.HOLDING and doubt.transient:
            return [self._hold()]
        if answer is None:
            return self._not_reserved(RefusalCode.PLUGIN_FAILED, "the machine failed and holds no slot", now)
        if doubt.transient or (doubt.transient is None and not self._repeated):
            self._repeated = doubt.transient is None
            return [fx.ConfirmSlot(self.offer.offer_id)]
        detail = "the machine failed and has not confirmed the slot"
        return self._not_reserved(RefusalCode.PLUGIN_FAILED, detail, now)

    def _reserved(self, reservation: Reservation, now: Instant) -> list[fx.Effect]:
        """Vote yes about the held slot, or turn to the bank about the firm one."""
        return self._held(reservation, now) if self.state is S.HOLDING else self._firm(reservation, now)

    def _held(self, reservation: Reservation, now: Instant) -> list[fx.Effect]:
        self._enter(S.HELD, SEEN)
        self._doubt = None
        self._retry.stop()
        made = rc.HoldMade(self.offer.offer_id, reservation.reservation_id, self.until, now)
        return [self._recorded(made), self._agree(now)]

    def _not_reserved(self, code: RefusalCode, detail: str, now: Instant) -> list[fx.Effect]:
        """Report that an agreed slot failed, or vote no; if it was taken, ask the machine for its next one first."""
        effects = self._release(code, detail, SEEN, now)
        if self.agreement is not None:
            return [*effects, self._failure(), self._failure_to_bank()]
        if code is not RefusalCode.SLOT_TAKEN or self._intended.rule or self.offer.in_queue:
            return [*effects, self._refuse()]
        self._asks_for_next = True
        return [*effects, fx.QuoteSlots(NEXT + self.offer.offer_id, (self._quoted,))]

    def on_next(self, instead: tuple[Offer, ...]) -> list[fx.Effect]:
        """Vote no with the offer of the machine's next slot, if there is one."""
        self._asks_for_next = False
        return [self._refuse(instead)]

    def _firm(self, reservation: Reservation, now: Instant) -> list[fx.Effect]:
        if self.offer.in_queue and reservation.started_at is None:
            self._enter(S.QUEUED, SEEN)
            self._retry.begin(now)
            return [self._acknowledge(), self._to_bank()]  # which may have voided it while this agent was away
        self._enter(S.SETTLING, SEEN)
        return [self._acknowledge(), self._request(now)]

    def _on_queue_seen(self, answer: Reservation | MachineInDoubt | None, now: Instant) -> list[fx.Effect]:
        """Request payment when the queued job has started; ask the bank after its deadline."""
        if answer is None:
            return self._not_reserved(RefusalCode.NOT_DELIVERED, "the job ended without starting", now)
        if isinstance(answer, Reservation) and answer.started_at is not None:
            self._enter(S.SETTLING, SEEN)
            return [self._request(now)]
        self._retry.again(now)
        return [self._to_bank()] if now >= self.agreed.valid_until else []

    def _in_doubt(self, doubt: MachineInDoubt, now: Instant) -> list[fx.Effect]:
        """Look the slot up until the machine answers: at once after a permanent failure, else after a pause.

        If the request turns out undone, it is repeated after a transient failure and given up after a permanent one.
        Without either statement a hold is given up, as its buyer has other offers, and a confirmation is repeated once,
        as its buyer has decided but should not wait for a machine that never confirms.
        """
        self._doubt = doubt
        return self._look_up() if doubt.transient is False else self._look_up_later(now)

    def _look_up_later(self, now: Instant) -> list[fx.Effect]:
        """Look the slot up after a pause that grows with every doubtful answer."""
        if self._retry.due is None:
            self._retry.again(now)
        return []

    def _look_up(self) -> list[fx.Effect]:
        """Look the slot up now; one question at a time, as machines may be slow."""
        self._retry.stop()
        if self._looked_up_in is not None:
            return []  # an older question is open; the look-up is repeated after its answer
        self._looked_up_in = self.state
        return [fx.LookUpSlot(self.offer.offer_id)]

    # -- the user's messages -------------------------------------------------------------------------------------

    def on_acceptance(self, now: Instant) -> list[fx.Effect]:
        """Repeat the vote after a repeated acceptance."""
        if self.state is S.HELD:
            return [self._agree(now)]
        return [self._refuse()] if self.state is S.RELEASED and not self._asks_for_next else []

    def on_hold_cancelled(self, seal: Seal, now: Instant) -> list[fx.Effect]:
        """Release a cancelled hold (step 9); ask the bank at once about a firm slot."""
        if self.state in (S.HOLDING, S.HELD):
            detail = "the user cancelled the hold"
            effects = self._release(RefusalCode.CANCELLED, detail, "HoldCancelled", now, seal=seal)
            return [*effects, self._hold_cancelled()]
        if self.state is S.RELEASED:
            return [self._hold_cancelled()]
        if self.state is S.QUEUED:
            return [self._to_bank()]
        return [self._request(now)] if self.state is S.SETTLING else []

    def on_commitment(self, commitment: c.Commitment, now: Instant) -> list[fx.Effect]:
        """Take the user's signed agreement with the bank's vote (step 8), for the first time or again.

        Raises:
            RemoteProtocolError: if the buyer is not the only signer.
        """
        signed = commitment.agreement
        assert isinstance(signed.body, Agreement)
        self.check_signer(signed)
        if self.state is S.RELEASED:
            accepted = self.agreement is not None and self.agreed.agreement_id == signed.body.agreement_id
            return [self._failure() if accepted else self._refuse()]
        sold = self.agreement is not None and signed.body.agreement_id != self.agreed.agreement_id
        held, parties = (self.offer, self.unit, self.reservation_id), (self.user, self._resource, self._bank)
        problem = "the slot is already sold under another agreement" if sold else ""
        problem = problem or commitment_problem(commitment, held, parties)
        if problem:  # no signed failure, which would refund a later sale under this agreement id
            return [self._refuse_for(RefusalCode.BAD_AGREEMENT, problem)]
        if unfair := agreed_price_problem(signed.body, self.unit, self._intended.rule):
            return [self._refuse_for(RefusalCode.BAD_PRICE, unfair)]
        if self.state is S.HELD:
            self._enter(S.CONFIRMING, "Commitment")
            record = rc.AgreementReceived(self.offer.offer_id, signed, commitment.vote, commitment.vote_seal, now)
            return [self._recorded(record), fx.ConfirmSlot(self.offer.offer_id)]
        if self.state in (S.QUEUED, S.SETTLING):
            return [self._acknowledge()]
        return [self._settled()] if self.state is S.SOLD else []

    def on_cancellation(self, signed: Signed, now: Instant) -> list[fx.Effect]:
        """Take the user's signed cancellation of the agreement: the bank refunds, then the slot is released."""
        if self.state is S.RELEASED:
            return [self._refuse_end("not_active", "the slot is released")]
        received = rc.ChangeReceived(self.offer.offer_id, signed, now)
        if self.state is S.SETTLING and self.ending is None:
            return [self._recorded(received)]
        if self.state is not S.SOLD:
            return []
        if now >= self.offer.start or self.offer.in_queue:
            return [self._refuse_end("started", "the slot has already begun")]
        self._enter(S.ENDING, "ContractChange")
        return [self._recorded(received), self._request(now)]

    def on_lost(self, code: RefusalCode, detail: str, now: Instant) -> list[fx.Effect]:
        """Report a sold slot as failed; the resource's signature makes the bank refund it."""
        self._enter(S.ENDING, "SlotLost")
        failure = Signed(end_of(self.agreed, detail, now, code))
        failed = self._recorded(rc.ChangeReceived(self.offer.offer_id, failure, now))
        lost = fx.Report(SlotLost(self.agreed.agreement_id, self.user, detail or code))
        return [failed, self._failure(), self._request(now), lost]

    # -- the bank's answers --------------------------------------------------------------------------------------

    def on_bank(self, content: c.Content, seal: Seal, now: Instant) -> list[fx.Effect]:
        """Take the bank's answer about payment or refund; repeated ones are ignored."""
        if isinstance(content, c.PaymentMade) and self.state is S.SETTLING:
            return self._on_paid(content, seal, now)
        if isinstance(content, c.PaymentMade) and self.state is S.SOLD:
            self._still_sold(seal, now)
            return []
        if isinstance(content, c.PaymentRefused) and self.state in (S.CONFIRMING, S.QUEUED, S.SETTLING):
            detail = f"the bank refuses payment: {content.detail or content.code}"
            effects = self._release(RefusalCode.PAYMENT_REFUSED, detail, "PaymentRefused", now, seal=seal)
            return [*effects, self._failure() if self.ending is None else self._refuse_end("not_active", detail)]
        if isinstance(content, c.ChangePosted) and self.state in (S.ENDING, S.SOLD, S.SETTLING):
            # SOLD, SETTLING: the bank has refunded on the buyer's word alone, or on a copy of an earlier request
            code, detail = RefusalCode.CANCELLED, content.ordered_for or "cancelled by the user"
            if self.ending is not None and self.ending.change.code is not None:
                code, detail = self.ending.change.code, self.ending.change.reason
            return self._release(code, detail, "ChangePosted", now, content.refund, seal)
        if isinstance(content, c.ChangeRefused) and self.state is S.ENDING and not self.failed:
            self._enter(S.SOLD, "ChangeRefused")
            self._still_sold(seal, now)
            dropped = rc.ChangeDropped(self.offer.offer_id, TERMINAL, content.code, content.detail, now)
            return [self._recorded(dropped), self._refuse_end(content.code, content.detail)]
        return []

    def _on_paid(self, paid: c.PaymentMade, seal: Seal, now: Instant) -> list[fx.Effect]:
        self._retry.answered(now)
        assert self.agreement is not None
        record = self._recorded(rc.AgreementPaid(self.offer.offer_id, paid, seal, now))
        # The agreement first: after a crash between the two the bank is asked again, and both are written.
        effects: list[fx.Effect] = [fx.SaveAgreement(paid.agreement_id, self.agreement, seal.text), record]
        if self.ending is not None:
            self._enter(S.ENDING, "PaymentMade")
            return [*effects, self._request(now)]
        self._enter(S.SOLD, "PaymentMade")
        self._still_sold(seal, now)
        return [*effects, self._settled()]

    def _still_sold(self, seal: Seal, now: Instant) -> None:
        """Wait for the slot's start by the bank's clock, after which the bank needs both signatures to refund."""
        self._retry.stop()
        left = self.offer.start - seal.signed_at
        self._retry.limit = max(self.offer.start, now + left) if left > 0 else None

    # -- common --------------------------------------------------------------------------------------------------

    def check_signer(self, signed: Signed) -> None:
        """Raise `RemoteProtocolError` unless the buyer is the only signer of its document."""
        if signed.signers != (self.user,) or signed.body.user != self.user:
            raise RemoteProtocolError("the document must be signed by the buyer only")

    def _request(self, now: Instant) -> fx.Send:
        self._retry.begin(now)
        return self._to_bank()

    def _release(
        self,
        code: RefusalCode,
        detail: str,
        stimulus: str,
        now: Instant,
        refund: int = 0,
        seal: Seal | None = None,
    ) -> list[fx.Effect]:
        self._enter(S.RELEASED, stimulus)
        self._retry.stop()
        agreement_id = self.agreed.agreement_id if self.agreement is not None else ""
        released = rc.SlotReleased(self.offer.offer_id, agreement_id, code, detail, refund, seal, now)
        return [self._recorded(released), fx.ReleaseSlot(self.offer.offer_id)]
