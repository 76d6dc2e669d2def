"""All resizes of one user's slots: state of each slot, open amendments and commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeGuard

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message
from ramp.model.agreement import TERMINAL, Agreement, ContractChange
from ramp.model.contents import ChangeDone, ChangePosted, ChangePriced, ChangeRefused, Content
from ramp.model.instant import Duration, Instant
from ramp.model.ports import IdSource
from ramp.model.seal import Role
from ramp.model.sizes.amended import (
    AMENDMENT_NUMBER_MAX,
    SlotState,
    after,
    amendment_problem,
    first_state,
    is_growth,
    mixed_problem,
    number_problem,
    refund_owed,
)
from ramp.model.sizes.moldable import price_with
from ramp.protocol.amending.asking import (
    QUOTED,
    AgreementResized,
    AmendmentOutcome,
)
from ramp.protocol.amending.memory import AmendmentConcluded, AmendmentProposed, document_name
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Persist, Report, SaveAgreement
from ramp.protocol.faults import guarded
from ramp.protocol.progress import AmendmentEnded
from ramp.protocol.records import Record
from ramp.protocol.timing import Pace, earliest
from ramp.protocol.user.resizing.growth import OrderWord, check_proof
from ramp.protocol.user.resizing.growths import AGENT_FAILED, NOT_ACTIVE, Growths, Wanted
from ramp.protocol.user.resizing.shrinking import AmendmentWord, Change

NOT_TOGETHER = "not_together"
"""Code of resizes that one order cannot pay."""

ANOTHER_OPEN = "another_open"
"""Code of a resize while another is open."""


class Changes:
    """The resizes of one user.

    Args:
        agreements: the user's agreements by id.
        standing: returns an agreement's state (`UserParty.agreement_state`).
        pace: of the user.
        ids: source of order ids.
    """

    def __init__(
        self,
        agreements: Mapping[str, Agreement],
        standing: Callable[[str], str],
        pace: Pace,
        ids: IdSource,
    ) -> None:
        self._agreements = agreements
        self._standing = standing
        self._pace = pace
        self._proposed: dict[str, dict[int, ContractChange]] = {}
        self._posted: dict[str, list[ContractChange]] = {}
        self._states: dict[str, tuple[int, SlotState]] = {}  # with the number of amendments it includes
        self._open: dict[str, Change] = {}
        self._growths = Growths(
            standing=standing,
            pace=pace,
            ids=ids,
            proposed=self._propose,
            posted=self._note,
            not_done=self._not_done,
        )

    def __contains__(self, agreement_id: str) -> bool:
        return agreement_id in self._open or agreement_id in self._growths

    @property
    def open(self) -> tuple[str, ...]:
        return (*self._open, *self._growths.open)

    def posted(self, agreement_id: str) -> tuple[ContractChange, ...]:
        """Return the posted amendments of an agreement, in order."""
        return tuple(self._posted.get(agreement_id, ()))

    def end(self, agreement_id: str) -> Instant:
        return self.state(agreement_id).until

    def new_end(self, agreement_id: str) -> Instant:
        """Return the end of a slot that amendments have set, or 0 without amendments."""
        posted = self._posted.get(agreement_id)
        return posted[-1].until if posted else 0

    def state(self, agreement_id: str) -> SlotState:
        posted = self._posted.get(agreement_id, [])
        done, state = self._states.get(agreement_id) or (0, first_state(self._agreements[agreement_id]))
        for amendment in posted[done:]:
            state = after(state, amendment)
        self._states[agreement_id] = len(posted), state
        return state

    @property
    def doubts(self) -> dict[str, str]:
        return {agreement_id: change.doubt for agreement_id, change in self._open.items()} | self._growths.doubts

    @property
    def deadline(self) -> Instant | None:
        return earliest(self._growths.deadline, *(change.deadline for change in self._open.values()))

    # -- the journal ---------------------------------------------------------------------------------------------

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Resume open amendments after a restart; the agreements must be known."""
        effects: list[Effect] = []
        waiting = self._replayed(records)
        together = {
            (each.amendment.order_id, each.amendment.agreement_id): each.together
            for each in records
            if isinstance(each, AmendmentProposed)
        }
        orders: dict[str, list[ContractChange]] = {}
        for agreement_id, amendment in waiting.items():
            if amendment.grows:
                orders.setdefault(amendment.order_id, []).append(amendment)
            else:
                effects += guarded(agreement_id, partial(self._begin, amendment, now))
        for order_id, bodies in orders.items():
            wanted = together[order_id, bodies[0].agreement_id]
            on_record = [each for each in wanted if (order_id, each) in together]
            if len(on_record) < len(wanted):  # the agent failed before all was on record, so nothing was sent
                for body in bodies:
                    detail = "the user agent failed before it was proposed"
                    effects.append(self._not_done(body.agreement_id, AGENT_FAILED, detail))
                continue
            lines = [(body, self._agreements[body.agreement_id]) for body in bodies]
            whole = len(bodies) == len(wanted)
            effects += guarded(bodies[0].agreement_id, partial(self._growths.begin, lines, whole, now))
        return effects

    def resume(self, agreement_id: str, records: Sequence[Record], now: Instant) -> list[Effect]:
        lost = self._open.pop(agreement_id, None)
        amendment = self._replayed(records).get(agreement_id)
        grown = self._growths.resume(agreement_id, amendment is not None, now)
        if grown is not None or (amendment is not None and amendment.grows):
            return grown or []
        if amendment is not None:
            return self._begin(amendment, now)
        if lost is None or lost.outcome is not None:
            return []
        detail = "the user agent failed before it was proposed"
        return [self._not_done(agreement_id, AGENT_FAILED, detail)]

    def rest(self, agreement_id: str) -> None:
        """Suspend the amendment of an agreement until the next start."""
        self._open.pop(agreement_id, None)
        self._growths.rest(agreement_id)

    def forget(self, agreement_ids: Sequence[str]) -> None:
        for agreement_id in agreement_ids:
            self.rest(agreement_id)
            self._proposed.pop(agreement_id, None)
            self._posted.pop(agreement_id, None)
            self._states.pop(agreement_id, None)

    def _replayed(self, records: Sequence[Record]) -> dict[str, ContractChange]:
        """Replay all records; return the open amendments by agreement."""
        waiting: dict[str, ContractChange] = {}
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
        return {key: amendment for key, amendment in waiting.items() if key in self._agreements}

    def _propose(self, amendment: ContractChange) -> None:
        self._proposed.setdefault(amendment.agreement_id, {})[amendment.number] = amendment

    def _note(self, amendment: ContractChange) -> None:
        posted = self._posted.setdefault(amendment.agreement_id, [])
        if amendment not in posted:
            posted.append(amendment)

    # -- commands and messages -----------------------------------------------------------------------------------

    def resize(self, wish: AgreementResized, now: Instant) -> list[Effect]:
        """Resize active slots, or quote the refund or cost."""
        ids = tuple(dict.fromkeys((wish.agreement_id, *wish.together)))
        for each in ids:
            problem = self._standing_problem(each)
            if problem is None:
                problem = number_problem(len(self._posted.get(each, ())))
            if problem is not None:
                return self._none_done(ids, *problem)
        wanted = [self._wanted(each, wish) for each in ids]
        grows = all(is_growth(each.state, each.cores, each.until) for each in wanted)
        banks = {each.agreement.bank for each in wanted}
        if len(ids) > 1 and (not grows or len(banks) > 1):
            detail = "changes can be paid together only if each one adds and all use one bank"
            return self._none_done(ids, NOT_TOGETHER, detail)
        if grows:
            return self._grow(wanted, wish.max_cost, now, quote_only=wish.quote_only)
        (only,) = wanted
        agreement, agreement_id, state = only.agreement, only.agreement_id, only.state
        if only.cores > state.cores or only.until > state.until:
            return [self._not_done(agreement_id, *mixed_problem(state))]
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
        self._propose(amendment)
        started = Persist(AmendmentProposed(amendment, now))
        return guarded(agreement_id, lambda: [started, *self._begin(amendment, now)])

    def _standing_problem(self, agreement_id: str) -> tuple[str, str] | None:
        standing = "unknown" if agreement_id not in self._agreements else self._standing(agreement_id)
        if standing != "active":
            return NOT_ACTIVE, f"only an active agreement can be changed; {agreement_id} is {standing}"
        if agreement_id in self:
            return ANOTHER_OPEN, f"{agreement_id} is already being changed; wait until that change ends"
        return None

    def _wanted(self, agreement_id: str, wish: AgreementResized) -> Wanted:
        agreement, state = self._agreements[agreement_id], self.state(agreement_id)
        cores = state.cores if wish.cores is None else wish.cores
        until = state.until if wish.until is None else wish.until
        return Wanted(agreement, state, self._next_number(agreement_id), cores, until, _asking(wish, agreement))

    def _none_done(self, agreement_ids: Sequence[str], code: str, detail: str) -> list[Effect]:
        return [self._not_done(each, code, detail) for each in agreement_ids]

    def _grow(self, wanted: Sequence[Wanted], max_cost: int | None, now: Instant, *, quote_only: bool) -> list[Effect]:
        ids = [each.agreement_id for each in wanted]
        for each in wanted:
            if each.agreement.offer.start_probability is not None:
                return self._none_done(ids, "not_reserved", "the agreement is a submitted job, whose size is fixed")
            if each.number > AMENDMENT_NUMBER_MAX:
                detail = f"{each.agreement_id} has had {AMENDMENT_NUMBER_MAX} amendments, which is the limit"
                return self._none_done(ids, "old_number", detail)
        asks = partial(self._growths.ask, wanted, max_cost, now, quote_only=quote_only)
        return guarded(wanted[0].agreement_id, asks)

    def _next_number(self, agreement_id: str) -> int:
        return max(self._proposed.get(agreement_id, {0: None})) + 1

    def _drawn_up(self, wish: AgreementResized, agreement: Agreement, state: SlotState, now: Instant) -> ContractChange:
        """Return the wanted amendment, effective as soon as the notice allows."""
        agreement_id, timing = agreement.agreement_id, self._pace.timing
        cores = state.cores if wish.cores is None else wish.cores
        until = state.until if wish.until is None else wish.until
        effective_at = now + timing.amendment_notice
        return ContractChange(
            agreement_id=agreement_id,
            number=self._next_number(agreement_id),
            previous=state.digest,
            offer_id=agreement.offer.offer_id,
            user=agreement.user,
            resource=agreement.resource,
            bank=agreement.bank,
            cores=cores,
            until=until,
            effective_at=effective_at,
            amount=-refund_owed(agreement, state, cores, until, effective_at),
            issued_at=now,
            valid_until=min(effective_at + timing.amendment_window, until),
        )

    def concern(self, content: Content) -> TypeGuard[AmendmentWord | OrderWord]:
        """Return whether a message is about a resize, or an order that pays for one."""
        if isinstance(content, OrderWord):
            return self._growths.pays(content.order_id)
        if isinstance(content, ChangePosted | ChangeRefused):
            return content.number != TERMINAL
        return isinstance(content, AmendmentWord)

    def handle(self, message: Message, content: AmendmentWord | OrderWord, now: Instant) -> list[Effect]:
        """Take an answer of a resource or the bank about an amendment or its order.

        Raises:
            RemoteProtocolError: if its sender did not seal it, or it is about something else.
        """
        if isinstance(content, OrderWord):
            return self._growths.on_bank(message, content, now)
        body = content.change.body if isinstance(content, ChangeDone) else content
        if isinstance(body, Agreement):
            raise RemoteProtocolError(f"the proof must be of a ContractChange, got {type(body).__name__}")
        if isinstance(body, ChangePriced):
            return self._growths.on_priced(message, body, now)
        agreement_id, number = body.agreement_id, body.number
        if not isinstance(content, ChangePosted | ChangePriced):
            heard = self._growths.on_seller(message, agreement_id, number, content, now)
            if heard is not None:
                return heard
        change = self._open.get(agreement_id)
        if change is not None and change.amendment.number == number:
            return guarded(agreement_id, lambda: change.handle(message, content, now) + self._end(agreement_id, now))
        amendment = self._proposed.get(agreement_id, {}).get(number)
        agreement = self._agreements.get(agreement_id)
        if not isinstance(content, ChangeDone) or amendment is None or agreement is None:
            return []
        # the bank's answer has concluded it; this is the copy with both signatures
        said_by(message, amendment.resource, Role.RESOURCE)
        check_proof(amendment, content)
        return [SaveAgreement(document_name(agreement_id, number), content.change, content.posted_seal.text)]

    def not_understood(self, message: Message, now: Instant) -> list[Effect]:
        """Take a NOT_UNDERSTOOD about an amendment; ignore any other."""
        agreement_id, _, number = message.in_reply_to.rpartition("#")
        if agreement_id in self._growths and number.isdecimal():
            return self._growths.on_not_understood(agreement_id, int(number), message.sender, now)
        change = self._open.get(agreement_id)
        if change is None or str(change.amendment.number) != number:
            return []
        return guarded(agreement_id, partial(change.on_not_understood, message.sender, now))

    def tick(self, now: Instant) -> list[Effect]:
        effects = self._growths.tick(now)
        for agreement_id, change in list(self._open.items()):
            if change.deadline is not None and now >= change.deadline:
                effects += guarded(agreement_id, partial(change.tick, now))
        return effects

    def clock_set(self, by: Duration) -> None:
        self._growths.clock_set(by)
        for change in self._open.values():
            change.clock_set(by)

    # -- common --------------------------------------------------------------------------------------------------

    def _begin(self, amendment: ContractChange, now: Instant) -> list[Effect]:
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
        known = code != NOT_ACTIVE and agreement_id in self._agreements
        cores, until = (self.state(agreement_id).cores, self.state(agreement_id).until) if known else (0, 0)
        outcome = AmendmentOutcome(agreement_id, 0, False, cores, until, code=code, detail=detail)
        return Report(AmendmentEnded(outcome))


def _asking(wish: AgreementResized, agreement: Agreement) -> int:
    """Return the maximum price in credits per core-hour charged: the owner's, else what the request allows."""
    offer = agreement.offer
    return price_with(agreement.request, offer.cores, offer.end - offer.start) if wish.price is None else wish.price
