"""The resource's side of the two-phase commit for one accepted offer (paper section 5.1.1, steps 6 to 10).

The reservation notification to the bank follows (section 5.1.2) and, if it comes to that, the cancellation. The slot is
held with a deadline that is part of the durable state; the vote yes is durable before AGREE leaves; the signed
agreement is durable before it is acknowledged and sent to the bank. No slot becomes firm without the bank's vote for
it, and from then on only the bank's sealed word ends it: paid, void or refunded. What has once been answered stays
answered: a repeated message gets the same reply.
"""

from __future__ import annotations

from ramp.errors import RemoteProtocolError
from ramp.model.agreement import Agreement, Cancellation, Signed
from ramp.model.contents import (
    Commitment,
    Content,
    PaymentMade,
    PaymentQuery,
    PaymentRefused,
    RefundMade,
    RefundRefused,
)
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.price_paid import agreed_price_problem
from ramp.model.seal import Seal
from ramp.model.slot import Reservation
from ramp.protocol.agreement_terms import commitment_problem
from ramp.protocol.effects import ConfirmSlot, Effect, LookUpSlot, Persist, ReleaseSlot, SaveAgreement, Send
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.records import (
    AgreementPaid,
    AgreementReceived,
    CancellationDropped,
    CancellationReceived,
    HoldIntended,
    HoldMade,
    Record,
    SlotFailed,
    SlotReleased,
)
from ramp.protocol.resource.participant_answers import ParticipantAnswers
from ramp.protocol.timing import Pace, Retry, earliest, moved
from ramp.protocol.transition_tables import ParticipantState

S = ParticipantState

IN_DOUBT = (S.HOLDING, S.CONFIRMING)
"""States in which the machine has been asked to do something; if it fails, it is asked what it has."""


class Participant(ParticipantAnswers):
    """One accepted offer.

    Args:
        intended: what is to be held; also the first record of its journal.
        resource: name of the selling agent.
        bank: name of the Banking Agent that the resource trusts with its money.
        pace: of the selling agent.
        account: the buyer's local account; empty where the site maps the buyer to none.
    """

    def __init__(self, intended: HoldIntended, *, resource: str, bank: str, pace: Pace, account: str) -> None:
        super().__init__(intended, resource=resource, account=account)
        self._intended = intended
        self._bank = bank
        self._hold_time = pace.timing.hold_time
        self._dated = self._time_promised = intended.until
        self._retry = Retry(pace)
        self._transient: bool | None = None
        self._doubted = False
        self._looked_up_in: S | None = None
        self._cancellation: Signed | None = None

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """The offer has been accepted: make the intention durable and ask the plug-in for the slot."""
        self._enter(S.HOLDING, "Acceptance")
        self.deadline = self.until
        return [Persist(self._intended), self._hold()]

    def replay(self, record: Record) -> None:
        """Take one later record of this offer's journal, before `recover`."""
        if isinstance(record, HoldMade):
            self.reservation_id, self.until = record.reservation_id, record.until
        elif isinstance(record, AgreementReceived):
            self.agreement = record.agreement
        elif isinstance(record, AgreementPaid):
            self._paid = record.payment, record.payment_seal
        elif isinstance(record, CancellationReceived):
            self._cancellation = record.cancellation
        elif isinstance(record, CancellationDropped):
            self._cancellation = None
        elif isinstance(record, SlotFailed):
            self.failed = record
        elif isinstance(record, SlotReleased):
            self.released = record

    def recover(self, now: Instant) -> list[Effect]:
        """Go on after a restart from what has been replayed; every call to plug-in and bank may be repeated."""
        if self.released is not None:
            self._enter(S.RELEASED, "recover")
            # what was asked before may still be on its way to the machine; what is over takes nothing any more
            over = self.until if self.agreement is None else max(self.offer.end, self.size[1])
            return [ReleaseSlot(self.offer.offer_id)] if now < over else []
        if self.failed is not None or (self._paid is not None and self._cancellation is not None):
            self._enter(S.REFUNDING if self.failed is None else S.FAILING, "recover")
            return [self._request(now)]
        if self._paid is not None:
            self._enter(S.SOLD, "recover")
            # the bank may have refunded on the buyer's word while this agent was away
            return [self._request(now)] if now < max(self.offer.end, self.size[1]) else []
        if self.agreement is not None:
            self._enter(S.CONFIRMING, "recover")
            return [ConfirmSlot(self.offer.offer_id)]
        # the clock may have been set back meanwhile
        self.until = self._time_promised = min(self.until, now + self._hold_time)
        if self.reservation_id:
            self._enter(S.HELD, "recover")
            self.deadline = self.until
            return []
        self._enter(S.HOLDING, "recover")
        self.deadline = self.until
        return [self._hold()]

    def tick(self, now: Instant) -> list[Effect]:
        """Let a hold run out (step 10), or ask machine or bank again."""
        if self.state in (S.HOLDING, S.HELD) and now >= self.until:
            reason = "no CONFIRM came while the slot was held"
            return self._release(RefusalCode.HOLD_EXPIRED, reason, "deadline", now)
        if self._retry.is_due(now) and self.state in (*IN_DOUBT, S.QUEUED):
            return self._look_up()
        if self._retry.is_due(now):
            self._retry.again(now)
            self.deadline = self._retry.due
            return [self._to_bank()]
        # else the sold slot begins: the bank's word from now on is final
        return [self._request(now)] if self.state is S.SOLD else []

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`.

        A hold is dated in the machine's own book, which ends it at that date. So it ends at the date or after the time
        promised, whichever comes first: a clock set back by an hour must not keep a slot from everybody for an hour,
        and one that is right again must not end the hold.
        """
        self._retry.clock_set(by)
        self._time_promised += by
        self.until = min(self._dated, self._time_promised)
        if self.state is S.SOLD and self._retry.due is None:
            self.deadline = moved(self.deadline, by)  # the bank is asked then, and says whether the slot has begun
        else:
            self._await()

    # -- the plug-in's answers -----------------------------------------------------------------------------------

    def on_held(self, answer: Reservation | Refusal | MachineInDoubt, now: Instant) -> list[Effect]:
        """The plug-in has set the slot aside, or not, or nobody knows: vote, or look it up."""
        if self.state is not S.HOLDING:
            return self._late(answer)
        if isinstance(answer, MachineInDoubt):
            return self._in_doubt(answer, now)
        if isinstance(answer, Refusal):
            return self._not_held(answer.code, answer.detail, "SlotHeld", now)
        return self._held(answer, "SlotHeld", now)

    def on_confirmed(self, answer: Reservation | Refusal | MachineInDoubt, now: Instant) -> list[Effect]:
        """The plug-in has made the hold firm, or not, or nobody knows: go to the bank, give up, or look it up."""
        if self.state is not S.CONFIRMING:
            return self._late(answer)
        if isinstance(answer, MachineInDoubt):
            return self._in_doubt(answer, now)
        if isinstance(answer, Refusal):
            return self._not_firm(answer.code, answer.detail, "SlotConfirmed", now)
        return self._firm(answer, "SlotConfirmed", now)

    def _late(self, answer: Reservation | Refusal | MachineInDoubt) -> list[Effect]:
        """An answer for which nobody waits any more. After a release the slot is released again.

        The release may have come to the machine before what it was to undo. In every other state the slot was found
        on the machine meanwhile, and is promised.
        """
        if self.state is not S.RELEASED or isinstance(answer, Refusal):
            return []
        return [ReleaseSlot(self.offer.offer_id)]

    def on_looked_up(self, answer: Reservation | MachineInDoubt | None, now: Instant) -> list[Effect]:
        """What the machine has of a slot that was in doubt; while it cannot say, it is asked again."""
        asked_in, self._looked_up_in = self._looked_up_in, None
        if self.state is S.QUEUED:
            return self._on_queue_seen(answer, now)
        if self.state not in IN_DOUBT or not self._doubted:
            return []
        if isinstance(answer, MachineInDoubt) or asked_in is not self.state:  # it may be older than what is in doubt
            return self._look_up_later(now)
        gone = "the machine failed and holds no slot"
        if self.state is S.HOLDING:
            if answer is None and self._transient:
                return [self._hold()]
            if answer is None:
                return self._not_held(RefusalCode.PLUGIN_FAILED, gone, "SlotLookedUp", now)
            return self._held(answer, "SlotLookedUp", now)
        if answer is None:
            return self._not_firm(RefusalCode.PLUGIN_FAILED, gone, "SlotLookedUp", now)
        if answer.firm:
            return self._firm(answer, "SlotLookedUp", now)
        if self._transient is not False:
            return [ConfirmSlot(self.offer.offer_id)]
        detail = "the machine failed permanently and has not confirmed the slot"
        return self._not_firm(RefusalCode.PLUGIN_FAILED, detail, "SlotLookedUp", now)

    def _held(self, reservation: Reservation, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.HELD, stimulus)
        self._doubted = False
        self._retry.stop()
        self.reservation_id = reservation.reservation_id
        self.deadline = self.until
        return [Persist(HoldMade(self.offer.offer_id, self.reservation_id, self.until, now)), self._agree(now)]

    def _not_held(self, code: RefusalCode, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        effects = self._release(code, detail, stimulus, now)
        return [*effects, self._refuse()]

    def _firm(self, reservation: Reservation, stimulus: str, now: Instant) -> list[Effect]:
        if self.offer.in_queue and reservation.started_at is None:
            self._enter(S.QUEUED, stimulus)
            self._retry.begin(now)
            self._await()
            return [self._acknowledge(), self._to_bank()]  # which may have given it up while this agent was away
        self._enter(S.SETTLING, stimulus)
        return [self._acknowledge(), self._request(now)]

    def _on_queue_seen(self, answer: Reservation | MachineInDoubt | None, now: Instant) -> list[Effect]:
        """How the job stands: paid is once it has started, and what the bank has given up meanwhile it says."""
        if answer is None:
            return self._not_firm(RefusalCode.NOT_DELIVERED, "the job ended without starting", "SlotLookedUp", now)
        if isinstance(answer, Reservation) and answer.started_at is not None:
            self._enter(S.SETTLING, "SlotLookedUp")
            return [self._request(now)]
        self._retry.wait(now)
        self._await()
        return [self._to_bank()] if now >= self.agreed.valid_until else []

    def _not_firm(self, code: RefusalCode, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        effects = self._release(code, detail, stimulus, now)
        return [*effects, self._failure(), self._failure_to_bank()]

    def _in_doubt(self, doubt: MachineInDoubt, now: Instant) -> list[Effect]:
        """Ask the machine what it has, until it says so; what it says does not pass, at once, else after a pause.

        What it turns out not to have done is asked for again where it said that this may pass, and given up where it
        said that it will not. Where it said neither, a hold is given up and a confirmation is asked for again: the
        buyer of the one still has other offers, that of the other has decided.
        """
        self._transient = doubt.transient
        later = self._look_up_later(now)
        return self._look_up() if doubt.transient is False else later

    def _look_up_later(self, now: Instant) -> list[Effect]:
        """Ask the machine what it has, after a pause that grows with every answer in doubt."""
        if self._retry.due is None:
            if self._doubted:
                self._retry.again(now)
            else:
                self._retry.begin(now)
            self._doubted = True
        self._await()
        return []

    def _look_up(self) -> list[Effect]:
        """Ask the machine now; one question at a time, for it may be slow."""
        self._retry.stop()
        self._await()
        if self._looked_up_in is not None:
            return []  # the answer to an older question is under way, and then it is asked again
        self._looked_up_in = self.state
        return [LookUpSlot(self.offer.offer_id)]

    def _await(self) -> None:
        """Wait for the next try; a slot that is being held ends at its deadline whatever the machine says."""
        self.deadline = earliest(self._retry.due, self.until if self.state in (S.HOLDING, S.HELD) else None)

    # -- the user's messages -------------------------------------------------------------------------------------

    def on_acceptance(self, now: Instant) -> list[Effect]:
        """The acceptance again: the same vote again."""
        if self.state is S.HELD:
            return [self._agree(now)]
        return [self._refuse()] if self.state is S.RELEASED else []

    def on_hold_cancelled(self, seal: Seal, now: Instant) -> list[Effect]:
        """The user lets the hold go (step 9). A slot that is firm ends on the bank's word: ask it at once."""
        if self.state in (S.HOLDING, S.HELD):
            detail = "the user cancelled the hold"
            effects = self._release(RefusalCode.CANCELLED, detail, "HoldCancelled", now, seal=seal)
            return [*effects, self._hold_cancelled()]
        if self.state is S.RELEASED:
            return [self._hold_cancelled()]
        if self.state is S.QUEUED:
            return [self._to_bank()]
        return [self._request(now)] if self.state is S.SETTLING else []

    def on_commitment(self, commitment: Commitment, now: Instant) -> list[Effect]:
        """The user's signed agreement with the bank's vote (step 8), for the first time or again.

        Raises:
            RemoteProtocolError: if it is not signed by the buyer, and by the buyer only, or not what was agreed.
        """
        signed = commitment.agreement
        assert isinstance(signed.body, Agreement)
        self._check_signer(signed, signed.body.user)
        if self.state is S.RELEASED:
            accepted = self.agreement is not None and self.agreed.agreement_id == signed.body.agreement_id
            return [self._failure() if accepted else self._refuse()]
        problem = self._problem(commitment)
        if problem:  # no Failed: sealed, it would buy back whatever is sold under that agreement id later
            return [self._refuse_for(RefusalCode.BAD_AGREEMENT, problem)]
        unfair = agreed_price_problem(signed.body, self.unit, self._intended.rule)
        if unfair is not None:
            return [self._refuse_for(RefusalCode.BAD_PRICE, str(unfair))]
        if self.state is S.HELD:
            self._enter(S.CONFIRMING, "Commitment")
            self.agreement = signed
            self.deadline = None
            record = AgreementReceived(self.offer.offer_id, signed, commitment.vote, commitment.vote_seal, now)
            return [Persist(record), ConfirmSlot(self.offer.offer_id)]
        if self.state in (S.QUEUED, S.SETTLING):
            return [self._acknowledge()]
        return [self._settled()] if self.state is S.SOLD else []

    def on_cancellation(self, signed: Signed, now: Instant) -> list[Effect]:
        """The user's signed cancellation: the bank refunds first, then the slot is released.

        Raises:
            RemoteProtocolError: if it is not signed by the buyer, and by the buyer only.
        """
        body = signed.body
        assert isinstance(body, Cancellation)
        self._check_signer(signed, body.user)
        if self.state is S.RELEASED:
            return [self._cancelled(body.agreement_id)]
        if self.agreement is None or body.agreement_id != self.agreed.agreement_id:
            return [self._refuse_cancellation("unknown_agreement", "the slot is not sold under this agreement", body)]
        if self.state is S.SETTLING and self._cancellation is None:
            self._cancellation = signed
            return [Persist(CancellationReceived(self.offer.offer_id, signed, now))]
        if self.state is not S.SOLD:
            return []
        if now >= self.offer.start or self.offer.in_queue:
            return [self._refuse_cancellation("started", "the slot has already begun", body)]
        self._enter(S.REFUNDING, "Cancellation")
        self._cancellation = signed
        return [Persist(CancellationReceived(self.offer.offer_id, signed, now)), self._request(now)]

    def on_lost(self, code: RefusalCode, detail: str, now: Instant) -> list[Effect]:
        """The slot cannot be had though it is sold: our own sealed word gives the money back, until the bank has."""
        if self.state is not S.SOLD:
            return []
        self._enter(S.FAILING, "SlotLost")
        self.failed = SlotFailed(self.offer.offer_id, code, detail, now)
        return [Persist(self.failed), self._failure(), self._request(now)]

    # -- the bank's answers --------------------------------------------------------------------------------------

    def on_bank(self, content: Content, seal: Seal, now: Instant) -> list[Effect]:
        """What the bank says of the payment or the refund; repeated answers are ignored."""
        if isinstance(content, PaymentMade) and self.state is S.SETTLING:
            return self._on_paid(content, seal, now)
        if isinstance(content, PaymentMade) and self.state is S.SOLD:
            self._still_sold(seal, now)
            return []
        if isinstance(content, PaymentRefused) and self.state in (S.CONFIRMING, S.QUEUED, S.SETTLING):
            detail = f"the bank refuses payment: {content.detail or content.code}"
            effects = self._release(RefusalCode.PAYMENT_REFUSED, detail, "PaymentRefused", now, seal=seal)
            answer = self._cancelled(content.agreement_id) if self._cancellation is not None else self._failure()
            return [*effects, answer]
        if isinstance(content, RefundMade) and self.state is S.FAILING and self.failed is not None:
            return self._release(self.failed.code, self.failed.detail, "RefundMade", now, content.amount, seal)
        if isinstance(content, RefundMade) and self.state in (S.REFUNDING, S.SOLD, S.SETTLING):
            # SOLD, SETTLING: the bank has refunded on the buyer's word alone, or on a copy of an earlier request
            detail = "cancelled by the user"
            effects = self._release(RefusalCode.CANCELLED, detail, "RefundMade", now, content.amount, seal)
            return [*effects, self._cancelled(content.agreement_id)]
        if isinstance(content, RefundRefused) and self.state is S.REFUNDING:
            self._enter(S.SOLD, "RefundRefused")
            self._still_sold(seal, now)
            assert self._cancellation is not None
            assert isinstance(self._cancellation.body, Cancellation)
            refused = self._refuse_cancellation(content.code, content.detail, self._cancellation.body)
            self._cancellation = None
            return [Persist(CancellationDropped(self.offer.offer_id, seal, now)), refused]
        return []

    def _on_paid(self, paid: PaymentMade, seal: Seal, now: Instant) -> list[Effect]:
        self._retry.answered(now)
        self._paid = paid, seal
        assert self.agreement is not None
        record = AgreementPaid(self.offer.offer_id, paid, seal, now)
        # The agreement first: after a failure between the two the bank is asked again, and both are written.
        effects: list[Effect] = [SaveAgreement(paid.agreement_id, self.agreement, seal.text), Persist(record)]
        if self._cancellation is not None:
            self._enter(S.REFUNDING, "PaymentMade")
            return [*effects, self._request(now)]
        self._enter(S.SOLD, "PaymentMade")
        self._still_sold(seal, now)
        return [*effects, self._settled()]

    def _still_sold(self, seal: Seal, now: Instant) -> None:
        """Wait for the slot's start by the bank's clock: from then on it refunds no more on the buyer's word alone.

        Args:
            seal: on the bank's last word.
            now: the present.
        """
        self._retry.stop()
        left = self.offer.start - seal.signed_at
        self.deadline = max(self.offer.start, now + left) if left > 0 else None

    # -- common --------------------------------------------------------------------------------------------------

    def _check_signer(self, signed: Signed, named: str) -> None:
        if signed.signers != (self.user,) or named != self.user:
            raise RemoteProtocolError("the document must be signed by the buyer only")

    def _problem(self, commitment: Commitment) -> str:
        if self.agreement is not None and commitment.agreement.body.agreement_id != self.agreed.agreement_id:
            return "the slot is already sold under another agreement"
        held, parties = (self.offer, self.unit, self.reservation_id), (self.user, self._resource, self._bank)
        return commitment_problem(commitment, held, parties)

    def _request(self, now: Instant) -> Send:
        self._retry.begin(now)
        self.deadline = self._retry.due
        return self._to_bank()

    def _to_bank(self) -> Send:
        """What the bank is being asked: the payment, the refund, or whether the sale still stands."""
        if self.state is S.FAILING:
            return self._failure_to_bank()
        asked: Signed | PaymentQuery = PaymentQuery(self.agreed.agreement_id)
        if self.state is S.SETTLING:
            assert self.agreement is not None
            asked = self.agreement
        elif self.state is S.REFUNDING:
            assert self._cancellation is not None
            asked = self._cancellation
        return self._ask_bank(asked)

    def _stop_waiting(self) -> None:
        self._retry.stop()
        self.deadline = None

    def _release(
        self,
        code: RefusalCode,
        detail: str,
        stimulus: str,
        now: Instant,
        refund: int = 0,
        seal: Seal | None = None,
    ) -> list[Effect]:
        self._enter(S.RELEASED, stimulus)
        self._stop_waiting()
        agreement_id = self.agreed.agreement_id if self.agreement is not None else ""
        self.released = SlotReleased(self.offer.offer_id, agreement_id, code, detail, refund, seal, now)
        return [Persist(self.released), ReleaseSlot(self.offer.offer_id)]
