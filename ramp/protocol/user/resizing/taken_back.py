"""The user's side of cores that a seller takes back by right: told of, acknowledged, and ended by the bank's word.

What the buyer believes is the bank's word, that it has it on record or that it is posted, and of what is to come also
the seller's that it is given up. Where neither says what has become of it, the buyer asks the bank when its time is
over. Where it may have missed something it asks the bank for the seller's document (`state_inquiries`): when it hears
of what does not fit the slot as it knows it, when a change of its own comes to nothing, and after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Reclamation, Signed
from ramp.model.contents import (
    Reclaimed,
    ReclamationAnnounced,
    ReclamationHeard,
    ReclamationNoticed,
    ReclamationPosted,
    ReclamationQuery,
    ReclamationRefused,
)
from ramp.model.instant import Duration, Instant
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import SlotState
from ramp.model.sizes.reclaimed import reclamation_problem
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Persist, Report, SaveAgreement, Send
from ramp.protocol.progress import ReclamationAdvanced
from ramp.protocol.reclaiming.asking import STILL_OPEN
from ramp.protocol.reclaiming.memory import NoticeHeard, ReclamationConcluded
from ramp.protocol.records import Record
from ramp.protocol.timing import Pace, Retry, earliest, moved
from ramp.protocol.user.resizing.state_inquiries import StateInquiries

ReclamationWord = ReclamationAnnounced | ReclamationNoticed | ReclamationPosted | ReclamationRefused | Reclaimed
Key = tuple[str, int]


@dataclass(slots=True)
class _Open:
    """A reclamation that is to come: when the bank is asked what has become of it, and asked again."""

    ask_at: Instant | None
    retry: Retry


class TakenBack:
    """All that is taken back of what one user has bought.

    Args:
        agreements: the user's agreements by id.
        state: how something bought stands.
        note: keeps what is posted.
        pace: of the user.
    """

    def __init__(
        self,
        agreements: Mapping[str, Agreement],
        state: Callable[[str], SlotState],
        note: Callable[[Reclamation], None],
        pace: Pace,
    ) -> None:
        self._agreements = agreements
        self._state = state
        self._note = note
        self._pace = pace
        self._told: dict[Key, Signed] = {}
        self._open: dict[Key, _Open] = {}
        self._posted: set[Key] = set()
        self._unplaced: dict[Key, tuple[ReclamationPosted, Seal]] = {}  # posted of a state that is not known yet
        self._inquiries = StateInquiries(pace)

    @property
    def deadline(self) -> Instant | None:
        """When `tick` wants to be called."""
        own = (earliest(each.ask_at, each.retry.due) for each in self._open.values())
        return earliest(self._inquiries.deadline, *own)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Agreements of which the bank is asked what was taken back of them."""
        return self._inquiries.awaited

    @property
    def open(self) -> tuple[Key, ...]:
        """What is to come, or in doubt: agreements and numbers."""
        return tuple(self._open)

    def to_come(self, agreement_id: str) -> Reclamation | None:
        """What will be taken of a slot as it stands; None where nothing is announced."""
        announced = [_body(self._told[key]) for key in self._open if key[0] == agreement_id]
        if not announced:
            return None
        digest = self._state(agreement_id).digest  # what would change another state cannot come any more
        return max((each for each in announced if each.previous == digest), key=lambda each: each.number, default=None)

    # -- the journal ---------------------------------------------------------------------------------------------

    def replay(self, record: Record) -> None:
        """Take one record; of a reclamation that is posted the slot's state is known by then."""
        if isinstance(record, NoticeHeard):
            body = _body(record.reclamation)
            if body.agreement_id in self._agreements:
                self._hear(record.reclamation, body)
        elif isinstance(record, ReclamationConcluded) and record.agreement_id in self._agreements:
            key = record.agreement_id, record.number
            if record.reclamation is not None:
                self._told[key] = record.reclamation
            self._open.pop(key, None)
            if not record.code:
                self._posted.add(key)
                self._note(_body(self._told[key]))

    def forget(self, agreement_ids: Sequence[str]) -> None:
        """Let what has been over for long enough go."""
        for key in [key for key in self._told if key[0] in agreement_ids]:
            del self._told[key]
            self._open.pop(key, None)
            self._posted.discard(key)
        self._unplaced = {key: word for key, word in self._unplaced.items() if key[0] not in agreement_ids}
        for agreement_id in agreement_ids:
            self._inquiries.forget(agreement_id)

    # -- what was missed -----------------------------------------------------------------------------------------

    def look(self, agreement_id: str, now: Instant) -> list[Effect]:
        """Ask the bank what was taken back of a slot as it is known here."""
        known = max((number for each, number in self._told if each == agreement_id), default=0)
        return self._inquiries.ask(self._agreements[agreement_id], self._state(agreement_id).digest, known, now)

    def own_change_ended(self, agreement_id: str, done: bool, now: Instant) -> list[Effect]:
        """A change of the buyer's own has ended, perhaps because the slot stands otherwise than is known here.

        Args:
            agreement_id: of which slot.
            done: whether it holds: then what was posted after it can be understood.
            now: the present.
        """
        waiting = any(key[0] == agreement_id for key in self._unplaced)
        in_the_way = self.to_come(agreement_id) is not None  # then it is known why nothing came of the change
        return self.look(agreement_id, now) if waiting or not (done or in_the_way) else []

    def not_understood(self, message: Message) -> bool:
        """The bank has not understood what it was asked; whether it was a question of what was missed."""
        return self._inquiries.not_understood(message)

    # -- messages ------------------------------------------------------------------------------------------------

    def handle(self, message: Message, content: ReclamationWord, now: Instant) -> list[Effect]:
        """Take what bank or resource say; of what this user has not bought nothing is done.

        Raises:
            RemoteProtocolError: if it is not its sender's own word, or proves nothing, or is not by right.
        """
        agreement = self._agreements.get(agreement_of(content))
        if agreement is None:
            return []
        match content:
            case ReclamationAnnounced(noticed, seal):
                said_by(message, agreement.resource, Role.RESOURCE)
                _check_passed_on(seal, agreement)
                return self._noticed(noticed, agreement, now)
            case ReclamationNoticed():
                said_by(message, agreement.bank, Role.BANK)
                asked_for = self._inquiries.answered(message, agreement.agreement_id, now)
                effects = self._noticed(content, agreement, now)
                return effects or ([] if asked_for else self.look(agreement.agreement_id, now))
            case Reclaimed(reclamation, posted, seal):
                said_by(message, agreement.resource, Role.RESOURCE)
                _check_passed_on(seal, agreement)
                return self._reclaimed(reclamation, posted, seal, agreement, now)
            case ReclamationPosted():
                seal = said_by(message, agreement.bank, Role.BANK)
                asked_for = self._inquiries.answered(message, agreement.agreement_id, now)
                effects = self._on_posted(content, seal, agreement, now)
                unplaced = (content.agreement_id, content.number) in self._unplaced
                return effects + self.look(agreement.agreement_id, now) if unplaced and not asked_for else effects
            case ReclamationRefused():
                if message.sender == agreement.resource:
                    said_by(message, agreement.resource, Role.RESOURCE)
                else:
                    said_by(message, agreement.bank, Role.BANK)
                    if self._inquiries.answered(message, agreement.agreement_id, now):
                        return []
                return self._void(content, now)

    def tick(self, now: Instant) -> list[Effect]:
        """Ask the bank what has become of what should be over."""
        effects: list[Effect] = []
        for key, each in self._open.items():
            if each.ask_at is not None and now >= each.ask_at:
                each.ask_at = None
                each.retry.begin(now)
            elif each.retry.is_due(now):
                each.retry.again(now)
            else:
                continue
            effects.append(self._ask(key))
        return effects + self._inquiries.tick(now)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        for each in self._open.values():
            each.ask_at = moved(each.ask_at, by)
            each.retry.clock_set(by)
        self._inquiries.clock_set(by)

    # -- common --------------------------------------------------------------------------------------------------

    def _noticed(self, noticed: ReclamationNoticed, agreement: Agreement, now: Instant) -> list[Effect]:
        signed, body = noticed.reclamation, _signed_body(noticed.reclamation, agreement)
        key = body.agreement_id, body.number
        if key in self._told and key not in self._unplaced:
            return [self._heard(body, posted=key in self._posted)]
        problem = reclamation_problem(agreement, self._state(agreement.agreement_id), body)
        if problem is not None and problem[0] == "other_state":
            return []  # perhaps of a state that is not known here yet
        if problem is not None:
            raise RemoteProtocolError(f"reclamation {body.number} is not by right: {problem[0]}: {problem[1]}")
        if key in self._unplaced:
            return [*self._conclude(signed, *self._unplaced[key], agreement, now), self._heard(body, posted=True)]
        self._hear(signed, body)
        told = Report(ReclamationAdvanced(body, "noticed"))
        return [Persist(NoticeHeard(signed, now)), self._heard(body, posted=False), told]

    def _on_posted(self, posted: ReclamationPosted, seal: Seal, agreement: Agreement, now: Instant) -> list[Effect]:
        """What the bank has posted; without the document, or of another state, it is kept until it can be placed."""
        key = posted.agreement_id, posted.number
        signed = self._told.get(key)
        effects = [] if signed is None else self._conclude(signed, posted, seal, agreement, now)
        if not effects and key not in self._posted:
            self._unplaced[key] = posted, seal
        return effects

    def _reclaimed(
        self, signed: Signed, posted: ReclamationPosted, seal: Seal, agreement: Agreement, now: Instant
    ) -> list[Effect]:
        body = _signed_body(signed, agreement)
        effects = self._conclude(signed, posted, seal, agreement, now)
        known = (body.agreement_id, body.number) in self._posted
        return [*effects, self._heard(body, posted=True)] if known else effects

    def _conclude(
        self, signed: Signed, posted: ReclamationPosted, seal: Seal, agreement: Agreement, now: Instant
    ) -> list[Effect]:
        body = _signed_body(signed, agreement)
        key = body.agreement_id, body.number
        said = posted.agreement_id, posted.number, posted.refund, posted.compensation
        if said != (*key, body.refund, body.compensation):
            raise RemoteProtocolError("what the bank has posted is another reclamation, or another amount")
        if key in self._posted or body.previous != self._state(agreement.agreement_id).digest:
            return []  # of a state that is not known here yet
        self._told[key] = signed
        self._open.pop(key, None)
        self._unplaced.pop(key, None)
        self._posted.add(key)
        self._note(body)
        saved = SaveAgreement(f"{body.agreement_id}.reclamation-{body.number}", signed, seal.text)
        ended = Persist(ReclamationConcluded(*key, signed, "", "", now))
        missed = self.look(body.agreement_id, now) if body.agreement_id in self._inquiries else []
        return [saved, ended, Report(ReclamationAdvanced(body, "posted")), *missed]

    def _void(self, refused: ReclamationRefused, now: Instant) -> list[Effect]:
        key = refused.agreement_id, refused.number
        if key not in self._open or refused.code == STILL_OPEN:
            return []
        del self._open[key]
        body = _body(self._told[key])
        ended = Persist(ReclamationConcluded(*key, None, refused.code, refused.detail, now))
        return [ended, Report(ReclamationAdvanced(body, "dropped", refused.code, refused.detail))]

    def _hear(self, signed: Signed, body: Reclamation) -> None:
        key = body.agreement_id, body.number
        self._told[key] = signed
        patience = self._pace.patience(self._pace.timing.cancellation_limit)
        self._open[key] = _Open(body.valid_until + patience, Retry(self._pace))

    def _heard(self, body: Reclamation, *, posted: bool) -> Send:
        content = ReclamationHeard(body.agreement_id, body.number, posted)
        about = self._agreements[body.agreement_id].request_id
        return Send(Message(Performative.INFORM, body.user, body.resource, about, content))

    def _ask(self, key: Key) -> Send:
        agreement = self._agreements[key[0]]
        reference = f"{key[0]}#r{key[1]}"
        content = ReclamationQuery(*key)
        return Send(
            Message(
                Performative.REQUEST,
                agreement.user,
                agreement.bank,
                agreement.request_id,
                content,
                reply_with=reference,
            )
        )


def _body(signed: Signed) -> Reclamation:
    assert isinstance(signed.body, Reclamation), "it was looked at when it came"
    return signed.body


def _signed_body(signed: Signed, agreement: Agreement) -> Reclamation:
    body = signed.body
    if not isinstance(body, Reclamation) or signed.signers != (agreement.resource,):
        raise RemoteProtocolError("the document is no reclamation, or not signed by the seller, and by the seller only")
    if (body.agreement_id, body.user, body.resource) != (agreement.agreement_id, agreement.user, agreement.resource):
        raise RemoteProtocolError("the reclamation is of another agreement")
    return body


def agreement_of(content: ReclamationWord) -> str:
    """The agreement that a word is about."""
    if isinstance(content, ReclamationAnnounced):
        return content.noticed.agreement_id
    return content.posted.agreement_id if isinstance(content, Reclaimed) else content.agreement_id


def _check_passed_on(seal: Seal, agreement: Agreement) -> None:
    if (seal.signer, seal.role, seal.receiver) != (agreement.bank, Role.BANK, agreement.resource):
        raise RemoteProtocolError("the proof is not the bank's word to the seller")
