"""All changes of what one user has bought: how each slot stands, what is being changed, and what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message
from ramp.model.agreement import Agreement, Amendment, Cancellation, Reclamation
from ramp.model.contents import Amended
from ramp.model.instant import Duration, Instant
from ramp.model.seal import Role
from ramp.model.sizes.amended import SlotState, amendment_problem, first_state, refund_owed
from ramp.model.sizes.reclaimed import changed
from ramp.protocol.amending.asking import (
    BANK_TOO_OLD,
    QUOTED,
    AgreementResized,
    AmendmentOutcome,
    old_bank_problem,
)
from ramp.protocol.amending.memory import AmendmentConcluded, AmendmentProposed
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Persist, Report, SaveAgreement
from ramp.protocol.faults import guarded
from ramp.protocol.progress import AmendmentEnded
from ramp.protocol.records import Record
from ramp.protocol.timing import Pace, earliest
from ramp.protocol.user.resizing.change import AmendmentWord, Change
from ramp.protocol.user.resizing.taken_back import ReclamationWord, TakenBack, agreement_of

NOT_ACTIVE = "not_active"
"""Code of a change of what this user has not bought, or has no longer."""

ANOTHER_OPEN = "another_open"
"""Code of a change of what is being changed already."""

AGENT_FAILED = "agent_failed"
"""Code of a change that a bug of the user's own agent has ended before anything of it was on record."""


class Changes:
    """All of one user.

    Args:
        agreements: the user's agreements by id.
        standing: what an agreement of them is now (`UserParty.agreement_state`).
        pace: of the user.
        bank_minor: minor version of the wire format that the bank speaks; None where that is not known.

    Attributes:
        taken: what the sellers take back of it by right.
    """

    def __init__(
        self,
        agreements: Mapping[str, Agreement],
        standing: Callable[[str], str],
        pace: Pace,
        bank_minor: Callable[[], int | None],
    ) -> None:
        self._agreements = agreements
        self._standing = standing
        self._pace = pace
        self._bank_minor = bank_minor
        self._proposed: dict[str, dict[int, Amendment]] = {}
        self._posted: dict[str, list[Amendment | Reclamation]] = {}
        self._open: dict[str, Change] = {}
        self.taken = TakenBack(agreements, self.state, self._note, pace)

    def __contains__(self, agreement_id: str) -> bool:
        return agreement_id in self._open

    @property
    def open(self) -> tuple[str, ...]:
        """Agreements that are being changed."""
        return tuple(self._open)

    def posted(self, agreement_id: str) -> tuple[Amendment, ...]:
        """The amendments of an agreement that hold, in their order."""
        return tuple(each for each in self.chain(agreement_id) if isinstance(each, Amendment))

    def reclaimed(self, agreement_id: str) -> tuple[Reclamation, ...]:
        """What its seller has taken back of something bought, in its order."""
        return tuple(each for each in self.chain(agreement_id) if isinstance(each, Reclamation))

    def chain(self, agreement_id: str) -> tuple[Amendment | Reclamation, ...]:
        """All changes of something bought that hold, its seller's too, in their order."""
        return tuple(self._posted.get(agreement_id, ()))

    def state(self, agreement_id: str) -> SlotState:
        """How something bought stands."""
        state = first_state(self._agreements[agreement_id])
        for change in self.chain(agreement_id):
            state = changed(state, change)
        return state

    @property
    def doubts(self) -> dict[str, str]:
        """What is not known yet of each change, and how it will end, by agreement."""
        return {agreement_id: change.doubt for agreement_id, change in self._open.items()}

    @property
    def deadline(self) -> Instant | None:
        """When `tick` wants to be called."""
        return earliest(self.taken.deadline, *(change.deadline for change in self._open.values()))

    # -- the journal ---------------------------------------------------------------------------------------------

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Take up again after a restart what is not concluded; the agreements are known by then."""
        effects: list[Effect] = []
        for agreement_id, amendment in self._replayed(records).items():
            effects += guarded(agreement_id, partial(self._begin, amendment, now))
        return effects

    def resume(self, agreement_id: str, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Take one of them up again after a bug has raised in it."""
        lost = self._open.pop(agreement_id, None)
        amendment = self._replayed(records).get(agreement_id)
        if amendment is not None:
            return self._begin(amendment, now)
        if lost is None or lost.outcome is not None:
            return []
        detail = "the user agent failed before it was proposed"
        return [self._not_done(agreement_id, AGENT_FAILED, detail)]

    def rest(self, agreement_id: str) -> None:
        """Let one of them rest until the next start."""
        self._open.pop(agreement_id, None)

    def forget(self, agreement_ids: Sequence[str]) -> None:
        """Let what has been over for long enough go."""
        for agreement_id in agreement_ids:
            self._open.pop(agreement_id, None)
            self._proposed.pop(agreement_id, None)
            self._posted.pop(agreement_id, None)
        self.taken.forget(agreement_ids)

    def _replayed(self, records: Sequence[Record]) -> dict[str, Amendment]:
        """What is on record and not concluded, by agreement; what is posted is known afterwards."""
        waiting: dict[str, Amendment] = {}
        for record in records:
            if isinstance(record, AmendmentProposed):
                amendment = record.amendment
                self._proposed.setdefault(amendment.agreement_id, {})[amendment.number] = amendment
                waiting[amendment.agreement_id] = amendment
            elif isinstance(record, AmendmentConcluded):
                outcome = record.outcome
                waiting.pop(outcome.agreement_id, None)
                if outcome.done:
                    self._note(self._proposed[outcome.agreement_id][outcome.number])
            else:
                self.taken.replay(record)
        return {key: amendment for key, amendment in waiting.items() if key in self._agreements}

    def _note(self, change: Amendment | Reclamation) -> None:
        posted = self._posted.setdefault(change.agreement_id, [])
        if change not in posted:
            posted.append(change)

    # -- commands and messages -----------------------------------------------------------------------------------

    def resize(self, wish: AgreementResized, now: Instant) -> list[Effect]:
        """Make an active slot smaller, or tell what that would give back."""
        agreement_id = wish.agreement_id
        agreement = self._agreements.get(agreement_id)
        standing = "unknown" if agreement is None else self._standing(agreement_id)
        if agreement is None or standing != "active":
            detail = f"only an active agreement can be changed; {agreement_id} is {standing}"
            outcome = AmendmentOutcome(agreement_id, 0, False, 0, 0, code=NOT_ACTIVE, detail=detail)
            return [Report(AmendmentEnded(outcome))]
        if agreement_id in self._open:
            detail = f"{agreement_id} is being changed already; right would be to wait for the end of that"
            return [self._not_done(agreement_id, ANOTHER_OPEN, detail)]
        if old_bank := old_bank_problem(agreement.bank, self._bank_minor()):
            return [self._not_done(agreement_id, BANK_TOO_OLD, old_bank)]
        state = self.state(agreement_id)
        amendment = self._drawn_up(wish, agreement, state, now)
        problem = amendment_problem(agreement, state, amendment)
        if problem is not None:
            return [self._not_done(agreement_id, *problem)]
        if wish.quote_only:
            quoted = AmendmentOutcome(
                agreement_id,
                0,
                False,
                amendment.cores,
                amendment.until,
                amendment.effective_at,
                amendment.refund,
                QUOTED,
                "nothing is proposed",
            )
            return [Report(AmendmentEnded(quoted))]
        self._proposed.setdefault(agreement_id, {})[amendment.number] = amendment
        started = Persist(AmendmentProposed(amendment, now))
        return guarded(agreement_id, lambda: [started, *self._begin(amendment, now)])

    def _drawn_up(self, wish: AgreementResized, agreement: Agreement, state: SlotState, now: Instant) -> Amendment:
        """The amendment that says what the owner wants, to take effect as soon as the notice allows."""
        agreement_id, timing = agreement.agreement_id, self._pace.timing
        cores = state.cores if wish.cores is None else wish.cores
        until = state.until if wish.until is None else wish.until
        effective_at = now + timing.amendment_notice
        return Amendment(
            agreement_id=agreement_id,
            number=max(self._proposed.get(agreement_id, {0: None})) + 1,
            previous=state.digest,
            offer_id=agreement.offer.offer_id,
            user=agreement.user,
            resource=agreement.resource,
            bank=agreement.bank,
            cores=cores,
            until=until,
            effective_at=effective_at,
            refund=refund_owed(agreement, state, cores, until, effective_at),
            issued_at=now,
            valid_until=min(effective_at + timing.amendment_window, until),
        )

    def handle(self, message: Message, content: AmendmentWord | ReclamationWord, now: Instant) -> list[Effect]:
        """Take what resource or bank say of an amendment, or of what is taken back.

        Raises:
            RemoteProtocolError: if it is not its sender's own word, or is of something else.
        """
        if isinstance(content, ReclamationWord):
            return guarded(agreement_of(content), partial(self.taken.handle, message, content, now))
        body = content.amendment.body if isinstance(content, Amended) else content
        if isinstance(body, Agreement | Cancellation):
            raise RemoteProtocolError(f"the proof is of {type(body).__name__}; right would be an Amendment")
        agreement_id, number = body.agreement_id, body.number
        change = self._open.get(agreement_id)
        if change is not None and change.amendment.number == number:
            return guarded(agreement_id, lambda: change.handle(message, content, now) + self._end(agreement_id, now))
        amendment = self._proposed.get(agreement_id, {}).get(number)
        agreement = self._agreements.get(agreement_id)
        if not isinstance(content, Amended) or amendment is None or agreement is None:
            return []
        # it was concluded on the bank's word already: this is the copy with both signatures
        said_by(message, amendment.resource, Role.RESOURCE)
        Change(amendment, agreement, self._pace).check_proof(content)
        return [SaveAgreement(f"{agreement_id}.amendment-{number}", content.amendment, content.posted_seal.text)]

    def not_understood(self, message: Message, now: Instant) -> list[Effect]:
        """Somebody has not understood a message of an amendment; of anything else nothing is done."""
        agreement_id, _, number = message.in_reply_to.rpartition("#")
        change = self._open.get(agreement_id)
        if change is None or str(change.amendment.number) != number:
            return []
        return guarded(agreement_id, partial(change.on_not_understood, message.sender, now))

    def tick(self, now: Instant) -> list[Effect]:
        """Let everything act whose deadline has come."""
        effects: list[Effect] = []
        for agreement_id, change in list(self._open.items()):
            if change.deadline is not None and now >= change.deadline:
                effects += guarded(agreement_id, partial(self._tick, change, now))
        return effects + self.taken.tick(now)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        for change in self._open.values():
            change.clock_set(by)
        self.taken.clock_set(by)

    # -- common --------------------------------------------------------------------------------------------------

    def _tick(self, change: Change, now: Instant) -> list[Effect]:
        old_bank = old_bank_problem(change.amendment.bank, self._bank_minor())
        return change.tick(now, old_bank=old_bank) + self._end(change.amendment.agreement_id, now)

    def _begin(self, amendment: Amendment, now: Instant) -> list[Effect]:
        change = Change(amendment, self._agreements[amendment.agreement_id], self._pace)
        self._open[amendment.agreement_id] = change
        return change.start(now)

    def _end(self, agreement_id: str, now: Instant) -> list[Effect]:
        change = self._open[agreement_id]
        if change.outcome is None:
            return []
        del self._open[agreement_id]
        outcome, seal = change.outcome
        if outcome.done:
            self._note(change.amendment)
        return [Persist(AmendmentConcluded(outcome, seal, now)), Report(AmendmentEnded(outcome))]

    def _not_done(self, agreement_id: str, code: str, detail: str) -> Report:
        state = self.state(agreement_id)
        outcome = AmendmentOutcome(agreement_id, 0, False, state.cores, state.until, code=code, detail=detail)
        return Report(AmendmentEnded(outcome))
