"""All changes of one user's contracts: the state of each slot, open changes, and the owner's commands.

Proposals, cancellations and failures are recorded before they are sent. At most one change of size and one end of an
agreement are open at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeGuard

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message
from ramp.model.agreement import TERMINAL, Agreement, ContractChange, Signed, change_key, document_name, end_of
from ramp.model.contents import ChangeDone, ChangePosted, ChangePriced, Content
from ramp.model.instant import Instant
from ramp.model.money import credits_text
from ramp.model.offer import RefusalCode
from ramp.model.ports import IdSource
from ramp.model.seal import Role, Seal
from ramp.model.sizes import amended
from ramp.protocol import records as rc
from ramp.protocol.agreement_terms import OrderWord
from ramp.protocol.belief import said_by
from ramp.protocol.conversations import Conversations, Registry
from ramp.protocol.effects import Effect, Persist, Report, SaveAgreement
from ramp.protocol.events import AgreementResized
from ramp.protocol.outcome import ALREADY_CANCELLED, QUOTED, REFUND_ORDERED, ChangeOutcome
from ramp.protocol.progress import ChangeEnded
from ramp.protocol.timing import Pace
from ramp.protocol.user.changing.change import BuyerChange, ChangeWord, check_proof
from ramp.protocol.user.changing.history import History
from ramp.protocol.user.changing.resizes import (
    PriceInquiry,
    growth_problem,
    not_done,
    quoted,
    reduction,
    wanted_size,
)
from ramp.protocol.user.confirmed_unit import checked_failure

AGENT_FAILED = "agent_failed"
"""Code of a change that a bug of the user agent ended before it was recorded."""

FAILED_BEFORE = "the user agent failed before it was proposed"

NOT_ACTIVE = "not_active"
"""Code of a change of an agreement that is not active."""

NOT_TOGETHER = "not_together"
"""Code of resizes that one order cannot pay."""

ANOTHER_OPEN = "another_open"
"""Code of a resize while another is open."""

OpenChange = BuyerChange | PriceInquiry


class Changes:
    """The changes of one user's contracts.

    Args:
        standing: returns an agreement's state (`UserParty.agreement_state`).

    Attributes:
        history: of all changes that have ended.
    """

    def __init__(
        self,
        agreements: Mapping[str, Agreement],
        standing: Callable[[str], str],
        pace: Pace,
        ids: IdSource,
        registry: Registry,
    ) -> None:
        self.history = History(agreements)
        self._agreements = agreements
        self._standing = standing
        self._pace = pace
        self._ids = ids
        self._open: Conversations[OpenChange] = Conversations(
            registry, lambda change: change.agreement_ids[0], self._followed
        )  # by the key of the first change
        self._found_at: dict[str, str] = {}  # key of the conversation of each open change, by the change's key

    def __contains__(self, agreement_id: str) -> bool:
        """Whether a change is open, or its price is being asked."""
        return bool(self._changes_of(agreement_id))

    def is_ending(self, agreement_id: str) -> bool:
        """Return whether an agreement is being cancelled, or its money claimed."""
        return change_key(agreement_id, TERMINAL) in self._found_at

    @property
    def open(self) -> tuple[str, ...]:
        """Agreements with an open change, or whose price is being asked."""
        return tuple(each for change in self._open.values() for each in change.agreement_ids)

    @property
    def doubts(self) -> dict[str, str]:
        """What is in doubt about each agreement; its end before its size."""
        changes = sorted(self._sent(), key=lambda each: each.is_terminal)
        return {each: change.doubt for change in changes for each in change.agreement_ids}

    def _sent(self) -> list[BuyerChange]:
        return [each for each in self._open.values() if isinstance(each, BuyerChange)]

    def _changes_of(self, agreement_id: str) -> list[OpenChange]:
        """Return the open changes of an agreement: of its size, and its end."""
        return [change for change in self._open.values() if agreement_id in change.agreement_ids]

    # -- the journal ---------------------------------------------------------------------------------------------

    def recover(self, records: Sequence[rc.Record], now: Instant) -> list[Effect]:
        """Resume open changes after a restart; the agreements must be known."""
        return self._taken_up(self.history.replay(records).values(), now)

    def _taken_up(self, waiting: Iterable[rc.ChangeProposed], now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        orders: dict[str, list[rc.ChangeProposed]] = {}
        for each in waiting:
            body = each.signed.change
            orders.setdefault(body.order_id or body.key, []).append(each)
        for lines in orders.values():
            order_id, wanted = lines[0].signed.change.order_id, lines[0].together
            on_record = ({body.order_id for body in self.history.proposed(each)} for each in wanted)
            if not all(order_id in ids for ids in on_record):  # the agent failed before, so nothing was sent
                failed = [each.signed.body.agreement_id for each in lines]
                effects += self._none_done(failed, AGENT_FAILED, FAILED_BEFORE)
            else:
                effects += self._begin(lines, now, on_record=True)
        return effects

    def resume(self, agreement_id: str, records: Sequence[rc.Record], now: Instant) -> list[Effect]:
        """Resume the changes of one agreement after a bug in them."""
        lost = self._changes_of(agreement_id)
        self.rest(agreement_id)
        waiting = self.history.replay(records)
        effects: list[Effect] = []
        for change in lost:
            if change.keys[0] not in waiting and not change.outcomes:  # a bug ended it before it was on record
                ends = change.is_terminal
                detail = "the user agent failed before it was sent" if ends else FAILED_BEFORE
                effects += self._none_done(change.agreement_ids, AGENT_FAILED, detail, ends=ends)
        orders = {change.order_id for change in lost}
        again = [
            each
            for body, each in ((each.signed.change, each) for each in waiting.values())
            if (body.order_id in orders if body.grows else body.agreement_id == agreement_id)
        ]
        return effects + self._taken_up(again, now)

    def rest(self, agreement_id: str) -> None:
        """Suspend the changes of an agreement until the next start."""
        for change in self._changes_of(agreement_id):
            self._close(change)

    def forget(self, agreement_ids: Sequence[str]) -> None:
        """Forget archived agreements."""
        for agreement_id in agreement_ids:
            self.rest(agreement_id)
            self.history.forget(agreement_id)

    # -- commands ------------------------------------------------------------------------------------------------

    def cancel(self, agreement_id: str, reason: str, now: Instant) -> list[Effect]:
        """Give an active slot back."""
        if self.is_ending(agreement_id):
            return []
        agreement = self._agreements.get(agreement_id)
        standing = None if agreement is None else self._standing(agreement_id)
        if agreement is None or standing != "active":
            return self._not_cancelled(agreement_id, standing)
        return self._propose([end_of(agreement, reason, now)], now)

    def _not_cancelled(self, agreement_id: str, standing: str | None) -> list[Effect]:
        """Report that an agreement is not cancelled now: its state (None if it is unknown), or its end before."""
        before = self.history.ended.get(agreement_id)
        if before is not None:  # nothing is refunded again
            how = "lost by its seller" if before.cause else "cancelled"
            detail = f"it was {how} before, with a refund of {credits_text(before.refund)} credits"
            again = ChangeOutcome(agreement_id, TERMINAL, True, code=ALREADY_CANCELLED, detail=detail, ends=True)
            return [Report(ChangeEnded(again))]
        detail = f"only an active agreement can be cancelled; {agreement_id} is {standing or 'unknown'}"
        return self._none_done([agreement_id], NOT_ACTIVE, detail, ends=True)

    def claim(self, failure: Signed, now: Instant) -> list[Effect]:
        """Claim a refund for a failure that a paid resource has signed.

        Raises:
            RemoteProtocolError: if the resource has not signed that it fails to deliver the agreement.
        """
        agreement = self._agreements[failure.body.agreement_id]
        body = checked_failure(failure, agreement)
        if self.is_ending(body.agreement_id) or body.agreement_id in self.history.ended:
            return []
        return self._begin([rc.ChangeProposed(failure, now)], now)

    def resize(self, wish: AgreementResized, now: Instant) -> list[Effect]:
        """Resize active slots, or quote the refund or cost."""
        ids = tuple(dict.fromkeys((wish.agreement_id, *wish.together)))
        for each in ids:
            problem = self._standing_problem(each) or amended.number_problem(len(self.history.posted(each)))
            if problem is not None:
                return self._none_done(ids, *problem)
        wanted = [wanted_size(wish, self._agreements[each], self.history) for each in ids]
        grows = all(amended.is_growth(each.state, each.cores, each.until) for each in wanted)
        banks = {each.agreement.bank for each in wanted}
        if len(ids) > 1 and (not grows or len(banks) > 1):
            detail = "changes can be paid together only if each one adds and all use one bank"
            return self._none_done(ids, NOT_TOGETHER, detail)
        if grows:
            problem = next(filter(None, map(growth_problem, wanted)), None)
            if problem is not None:
                return self._none_done(ids, *problem)
            inquiry = PriceInquiry(wanted, wish.max_cost, self._pace, quote_only=wish.quote_only)
            return self._opened(inquiry, partial(inquiry.start, now), now)
        (smaller,) = wanted
        if smaller.cores > smaller.state.cores or smaller.until > smaller.state.until:
            return self._none_done(ids, *amended.mixed_problem(smaller.state))
        body = reduction(smaller, self._pace.timing, now)
        problem = amended.change_problem(smaller.agreement, smaller.state, body)
        if problem is not None:
            return self._none_done(ids, *problem)
        return [quoted(body)] if wish.quote_only else self._propose([body], now)

    def _standing_problem(self, agreement_id: str) -> tuple[str, str] | None:
        standing = "unknown" if agreement_id not in self._agreements else self._standing(agreement_id)
        if standing != "active":
            return NOT_ACTIVE, f"only an active agreement can be changed; {agreement_id} is {standing}"
        if agreement_id in self:
            return ANOTHER_OPEN, f"{agreement_id} is already being changed; wait until that change ends"
        return None

    def _inquired(self, inquiry: PriceInquiry, now: Instant) -> list[Effect]:
        """Report an inquiry that has failed, or propose what every seller has named a price for."""
        gone = [each for each in inquiry.wanted if self._standing(each.agreement_id) != "active"]
        if inquiry.is_answered and gone:
            what = f"{gone[0].agreement_id} is {self._standing(gone[0].agreement_id)} now"
            inquiry.failure = inquiry.failure or (NOT_ACTIVE, what)
        bodies: list[ContractChange] = []
        if inquiry.is_answered and inquiry.failure is None:
            bodies = inquiry.drawn_up(QUOTED if inquiry.quote_only else self._ids.new("order"), now)
        if inquiry.failure is not None:
            return [not_done(each.agreement_id, each.state, *inquiry.failure) for each in inquiry.wanted]
        return [quoted(body) for body in bodies] if inquiry.quote_only else self._propose(bodies, now)

    def _none_done(self, agreement_ids: Sequence[str], code: str, detail: str, *, ends: bool = False) -> list[Effect]:
        """Report that nothing was proposed for agreements, and why."""
        known = [each for each in agreement_ids if code != NOT_ACTIVE and each in self._agreements]
        states = {each: self.history.state(each) for each in known}
        return [not_done(each, states.get(each), code, detail, ends=ends) for each in agreement_ids]

    def _propose(self, bodies: Sequence[ContractChange], now: Instant) -> list[Effect]:
        """Record and propose changes; all of one order are recorded before any is proposed."""
        together = tuple(body.agreement_id for body in bodies if body.grows)
        for body in bodies:
            self.history.propose(body)
        return self._begin([rc.ChangeProposed(Signed(body), now, together) for body in bodies], now)

    # -- messages ------------------------------------------------------------------------------------------------

    def concern(self, content: Content) -> TypeGuard[ChangeWord | ChangePriced | OrderWord]:
        """Return whether a message is about a change, or an order that pays for one."""
        if isinstance(content, OrderWord):
            return any(each.order_id == content.order_id for each in self._sent())
        return isinstance(content, ChangeWord | ChangePriced)

    def handle(self, message: Message, content: ChangeWord | ChangePriced | OrderWord, now: Instant) -> list[Effect]:
        """Take an answer of a resource or the bank about a change or its order.

        Raises:
            RemoteProtocolError: if its sender did not seal it, or it is about something else.
        """
        if isinstance(content, OrderWord):
            paid = next(each for each in self._sent() if each.order_id == content.order_id)
            return self._open.act(paid.keys[0], partial(paid.on_order, message, content, now), now)
        about = content.change.body if isinstance(content, ChangeDone) else content
        if isinstance(about, Agreement):
            raise RemoteProtocolError("the proof must be of a ContractChange, got Agreement")
        key = self._found_at.get(change_key(about.agreement_id, about.number))
        if key is not None:
            change = self._open[key]
            return self._open.act(key, partial(change.on_message, message, about.agreement_id, content, now), now)
        if isinstance(content, ChangeDone):
            return self._late_proof(message, content)
        if isinstance(content, ChangePosted) and content.is_terminal:
            return self._refunded(message, content, now)
        return []

    def _late_proof(self, message: Message, proof: ChangeDone) -> list[Effect]:
        """Save the copy with both signatures of a change that the bank's answer has concluded."""
        about = proof.change.change
        body = self.history.proposal(about.agreement_id, about.number)
        if body is None or about.agreement_id not in self._agreements:
            return []
        said_by(message, body.resource, Role.RESOURCE)
        check_proof(body, proof)
        return [SaveAgreement(document_name(about.agreement_id, about.number), proof.change, proof.posted_seal.text)]

    def _refunded(self, message: Message, posted: ChangePosted, now: Instant) -> list[Effect]:
        """Take a refund that was not asked for, or comes after its refusal.

        The resource has told the bank of its failure, and its message to this user is late; or the keeper ordered it.
        """
        agreement = self._agreements.get(posted.agreement_id)
        if agreement is None or posted.agreement_id in self.history.ended:
            return []
        seal = said_by(message, agreement.bank, Role.BANK)
        seller = (RefusalCode.NOT_DELIVERED, f"{agreement.resource} has given it back")
        why = ("", "") if self.history.was_refused(posted.agreement_id) else seller
        if posted.ordered_for:
            why = (REFUND_ORDERED, f"the market's keeper has refunded it: {posted.ordered_for}")
        code, detail = why
        ended = ChangeOutcome(
            posted.agreement_id, TERMINAL, True, refund=posted.refund, code=code, detail=detail, ends=True
        )
        return self._concluded(ended, seal, now)

    def not_understood(self, message: Message, now: Instant) -> list[Effect]:
        """Take a NOT_UNDERSTOOD about a change; ignore any other."""
        key = self._found_at.get(message.in_reply_to)
        if key is None:
            return []
        return self._open.act(key, partial(self._open[key].on_not_understood, message.sender, now), now)

    # -- common --------------------------------------------------------------------------------------------------

    def _begin(self, lines: Sequence[rc.ChangeProposed], now: Instant, *, on_record: bool = False) -> list[Effect]:
        """Start one change, or those of one order that are not concluded, and record them unless they are on record.

        If the order had other changes, it has ended, and only the bank is asked.
        """
        change = BuyerChange(
            [(each.signed, self._agreements[each.signed.body.agreement_id]) for each in lines], self._pace
        )
        begin = change.start if len(lines) >= len(lines[0].together) else change.decide
        records = [] if on_record else [Persist(each) for each in lines]
        return self._opened(change, lambda: [*records, *begin(now)], now)

    def _opened(self, change: OpenChange, begin: Callable[[], list[Effect]], now: Instant) -> list[Effect]:
        key, *_ = change.keys
        self._open.add(key, change)
        self._found_at |= dict.fromkeys(change.keys, key)
        return self._open.act(key, begin, now)

    def _followed(self, change: OpenChange, effects: list[Effect], now: Instant) -> list[Effect]:
        """Conclude a change that has ended; report or propose what an inquiry has found."""
        if isinstance(change, PriceInquiry):
            if not change.is_over:
                return effects
            self._close(change)
            return self._inquired(change, now)
        if not change.outcomes:
            return effects
        self._close(change)
        ends = (effect for outcome, seal in change.outcomes for effect in self._concluded(outcome, seal, now))
        return [*effects, *ends]

    def _close(self, change: OpenChange) -> None:
        self._open.drop(change.keys[0])
        for key in change.keys:
            del self._found_at[key]

    def _concluded(self, outcome: ChangeOutcome, seal: Seal, now: Instant) -> list[Effect]:
        self.history.note(outcome)
        return [Persist(rc.ChangeConcluded(outcome, seal, now)), Report(ChangeEnded(outcome))]
