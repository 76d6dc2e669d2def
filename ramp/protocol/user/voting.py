"""First phase of the two-phase commit on the user's side (paper section 5.1.1, steps 5 to 7 and 9).

The user accepts every unit's best offer, which asks its resource to hold the slot. After a refusal or silence it tries
the next best. When no offer is left, or when the user restarts before its decision (presumed abort), every hold is
cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ramp.errors import RemoteProtocolError, RuleFailed
from ramp.model.acl import Message, Performative
from ramp.model.contents import Acceptance, HoldCancelled, HoldGranted, HoldRefused, NotUnderstood
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit
from ramp.model.seal import Role, Seal
from ramp.model.shortcoming import shortcoming
from ramp.protocol.agreement_terms import HeldUnit
from ramp.protocol.belief import sealed_by
from ramp.protocol.effects import Effect, Persist, Report, Send, cancel_hold
from ramp.protocol.events import Preference
from ramp.protocol.machine import StateMachine
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.questions import Question
from ramp.protocol.records import AcceptanceAsked
from ramp.protocol.rules.checked_rule import PaidPrices, Priced
from ramp.protocol.timing import Pace, Retry, earliest
from ramp.protocol.transition_tables import VOTING, VotingState
from ramp.protocol.user.evaluator import over_limit, rank

INTERRUPTED = "the user agent was interrupted before the decision; nothing was bought"
"""Reason of a request that a restarted coordinator presumes aborted."""

REQUEST_ENDED = "the request has ended"
"""Reason sent to sellers when a request ends without a purchase."""

PRICE_RISEN = "the price has risen since approval"
"""Reason of a rejected request whose price rose after approval, because an offer that set it has expired."""


INSTEAD_MAX = 16
"""Maximum offers of one unit that replace taken slots; each follows from another buyer's purchase."""


@dataclass(frozen=True, slots=True)
class VotingResult:
    """How the vote ended: all units held (`status` None), or WITHDRAWN, REJECTED or FAILED with the reason.

    `code` is that of a failed auction rule, or empty.
    """

    status: RequestStatus | None
    reason: str
    held: tuple[HeldUnit, ...]
    code: str = ""


@dataclass(slots=True)
class _Ballot:
    """One unit's vote: the candidate being asked, and its answer once there."""

    number: int
    candidates: tuple[Offer, ...]
    retry: Retry
    index: int = 0
    instead: int = 0
    held: HeldUnit | None = None
    lost: bool = False

    @property
    def offer(self) -> Offer:
        return self.candidates[self.index]

    @property
    def open(self) -> bool:
        return self.held is None and not self.lost


class Voting(StateMachine[VotingState]):
    """The vote on one request's units.

    Args:
        candidates: offers to try for each unit, best first.
        max_cost: maximum total cost in minor units, as a next best offer may be dearer.
        prices: computes the prices paid; None if each offer is paid as offered.
        shown: costs in minor units that the owner approved; the units are not bought for more.
        units: of the request, which an offer instead of a taken slot must meet.
        preference: by which such an offer takes its place among the candidates.
    """

    def __init__(
        self,
        request_id: str,
        candidates: dict[int, tuple[Offer, ...]],
        *,
        user: str,
        pace: Pace,
        max_cost: int | None = None,
        prices: PaidPrices | None = None,
        shown: Mapping[Offer, int] | None = None,
        units: Sequence[RequestUnit] = (),
        preference: Preference = Preference.CHEAPEST,
    ) -> None:
        super().__init__(request_id, VOTING, VotingState.NEW)
        self.result: VotingResult | None = None
        self._user = user
        self._pace = pace
        self._max_cost = max_cost
        self._prices = prices
        self._shown = dict(shown or {})
        self._units = {unit.number: unit for unit in units}
        self._preference = preference
        self._ballots = {number: _Ballot(number, offers, Retry(pace)) for number, offers in candidates.items()}
        self._cancelling: dict[str, Question] = {}
        self._end = VotingResult(RequestStatus.FAILED, INTERRUPTED, ())

    @property
    def deadline(self) -> Instant | None:
        """When to call `on_timer` next, or None."""
        deadlines = [cancelling.deadline for cancelling in self._cancelling.values()]
        if self.state is VotingState.VOTING:
            deadlines += [ballot.retry.deadline for ballot in self._ballots.values() if ballot.open]
        return earliest(*deadlines)

    def start(self, now: Instant) -> list[Effect]:
        self._enter(VotingState.VOTING, "start")
        effects: list[Effect] = []
        for ballot in self._ballots.values():
            effects += self._ask(ballot, now)
        return effects

    def recover(self, records: Sequence[AcceptanceAsked], now: Instant) -> list[Effect]:
        self._resume(VotingState.ABORTING)
        effects: list[Effect] = [self._cancel_hold(record.offer, now) for record in records]
        self._end_if_cancelled("nothing to cancel")
        return effects

    def on_message(self, message: Message, now: Instant) -> list[Effect]:
        """Take a vote, or the acknowledgement of a cancelled hold; late and repeated ones change nothing.

        Raises:
            RemoteProtocolError: if the content is not a vote, or the voter is not the resource asked.
        """
        content = message.content
        if isinstance(content, NotUnderstood):
            return []
        if not isinstance(content, HoldGranted | HoldRefused | HoldCancelled):
            raise RemoteProtocolError(f"{type(content).__name__} is not a vote")
        seal = sealed_by(message, Role.RESOURCE)
        if isinstance(content, HoldGranted):
            return self._on_granted(message.sender, content, seal, now)
        if isinstance(content, HoldCancelled):
            self._forget_cancelling(message.sender, content.offer_id, now)
            self._end_if_cancelled("HoldCancelled")
            return []
        self._check_voter(message.sender, content.offer_id)
        if ballot := self._ballot_of(content.offer_id):
            ballot.retry.answered(now)
        self._take_instead(content)
        return self._on_refused(content.offer_id, str(content.code), content.detail, "HoldRefused", now)

    def withdraw(self, now: Instant) -> list[Effect]:
        """Withdraw the request; ignored once the vote is over."""
        if self.state is not VotingState.VOTING:
            return []
        reason = "the user withdrew the request"
        return self._abort(RequestStatus.REJECTED, reason, "RequestWithdrawn", now)

    def on_timer(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for ballot in self._ballots.values():
            if self.state is VotingState.VOTING and ballot.open:
                effects += self._wait_for_vote(ballot, now)
        for offer_id, cancelling in list(self._cancelling.items()):
            if cancelling.deadline is not None and now >= cancelling.deadline:
                effects += cancelling.on_timer(now)
            if cancelling.given_up:
                del self._cancelling[offer_id]
        self._end_if_cancelled("deadline")
        return effects

    def clock_set(self, by: Duration) -> None:
        for ballot in self._ballots.values():
            ballot.retry.clock_set(by)
            if ballot.held is not None:
                ballot.held = replace(ballot.held, held_until=ballot.held.held_until + by)
        for cancelling in self._cancelling.values():
            cancelling.clock_set(by)

    @property
    def held_until(self) -> Instant | None:
        """The end of the first hold to expire, or None without holds."""
        return earliest(*(ballot.held.held_until for ballot in self._ballots.values() if ballot.held is not None))

    def losers(self) -> tuple[Offer, ...]:
        """Return the candidates that were never asked because a better one was held."""
        return tuple(offer for ballot in self._ballots.values() for offer in ballot.candidates[ballot.index + 1 :])

    def remaining(self, blamed: frozenset[str]) -> dict[int, tuple[Offer, ...]]:
        """Return the candidates of each unit that were never asked, without those of blamed resources, best first."""
        return {
            number: tuple(offer for offer in ballot.candidates[ballot.index + 1 :] if offer.resource not in blamed)
            for number, ballot in self._ballots.items()
        }

    # -- asking --------------------------------------------------------------------------------------------------

    def _ask(self, ballot: _Ballot, now: Instant) -> list[Effect]:
        ballot.retry.begin(now, now + self._pace.vote_limit)
        asked = UnitAdvanced(self.conversation_id, ballot.number, ballot.offer.resource, "asking")
        return [
            Persist(AcceptanceAsked(self.conversation_id, ballot.offer, now)),
            self._accept(ballot.offer),
            Report(asked),
        ]

    def _accept(self, offer: Offer) -> Send:
        return Send(
            Message(
                Performative.ACCEPT_PROPOSAL,
                self._user,
                offer.resource,
                self.conversation_id,
                Acceptance(self.conversation_id, offer.offer_id),
                reply_with=offer.offer_id,
                reply_by=self._pace.vote_limit,
            )
        )

    def _wait_for_vote(self, ballot: _Ballot, now: Instant) -> list[Effect]:
        if ballot.retry.is_over(now):
            silent = f"{ballot.offer.resource} does not answer"
            effects: list[Effect] = [self._cancel_hold(ballot.offer, now)]
            return effects + self._on_refused(ballot.offer.offer_id, "no_answer", silent, "deadline", now)
        if ballot.retry.is_due(now):
            ballot.retry.again(now)
            return [self._accept(ballot.offer)]
        return []

    # -- votes ---------------------------------------------------------------------------------------------------

    def _ballot_of(self, offer_id: str) -> _Ballot | None:
        return next((ballot for ballot in self._ballots.values() if ballot.offer.offer_id == offer_id), None)

    def _check_voter(self, sender: str, offer_id: str) -> None:
        ballot = self._ballot_of(offer_id)
        if ballot is not None and sender != ballot.offer.resource:
            raise RemoteProtocolError(f"{sender} votes on another resource's offer")

    def _on_granted(self, sender: str, granted: HoldGranted, seal: Seal, now: Instant) -> list[Effect]:
        ballot = self._ballot_of(granted.offer_id)
        if ballot is None or ballot.lost or self.state in (VotingState.ABORTING, VotingState.ENDED):
            return [cancel_hold(self._user, sender, self.conversation_id, granted.offer_id)]
        self._check_voter(sender, granted.offer_id)
        if ballot.held is not None:  # a repeated vote: the clock of the resource may have been set
            ballot.held = replace(ballot.held, held_until=min(ballot.held.held_until, now + granted.hold_for))
            return []
        held_until = ballot.retry.begun + granted.hold_for  # counted from the question, as the answer may be late
        ballot.held = HeldUnit(
            ballot.number, ballot.offer, granted.reservation_id, held_until, seal, Priced(ballot.offer.cost)
        )
        ballot.retry.answered(now)
        agreed = UnitAdvanced(self.conversation_id, ballot.number, sender, "agreed", granted.reservation_id)
        return [Report(agreed), *self._count(now)]

    def _count(self, now: Instant) -> list[Effect]:
        held = tuple(ballot.held for ballot in self._ballots.values() if ballot.held is not None)
        if len(held) < len(self._ballots):
            return []
        if min(unit.held_until for unit in held) < now + self._pace.timing.decision_margin:
            reason = "a hold was about to expire before all units were agreed"
            return self._abort(RequestStatus.WITHDRAWN, reason, "HoldGranted", now)
        try:
            held = tuple(self._priced(unit, now) for unit in held)
        except RuleFailed as failed:
            return self._abort(RequestStatus.FAILED, failed.reason, "HoldGranted", now, failed.code)
        over = over_limit([unit.priced.cost for unit in held], self._max_cost)
        if over:
            return self._abort(RequestStatus.REJECTED, over, "HoldGranted", now)
        if any(unit.priced.cost > self._shown.get(unit.offer, unit.priced.cost) for unit in held):
            return self._abort(RequestStatus.REJECTED, PRICE_RISEN, "HoldGranted", now)
        self._enter(VotingState.AGREED, "HoldGranted")
        self.result = VotingResult(None, "", held)
        return []

    def _priced(self, unit: HeldUnit, now: Instant) -> HeldUnit:
        if self._prices is None:
            return unit
        ballot = self._ballots[unit.unit]
        behind = ballot.candidates[ballot.index + 1 :]
        return replace(unit, priced=self._prices.of(unit.unit, unit.offer, behind, now))

    def _take_instead(self, refused: HoldRefused) -> None:
        """Give the seller's next slot its place among the candidates, if it costs the same and meets the request.

        So a seller cannot win by an early slot that it does not have, and then put a late one before better offers.
        """
        ballot = self._ballot_of(refused.offer_id)
        unit = None if ballot is None else self._units.get(ballot.number)
        if ballot is None or unit is None or not refused.instead or ballot.instead >= INSTEAD_MAX:
            return
        taken, (offer,) = ballot.offer, refused.instead
        place = {name: getattr(offer, name) for name in ("offer_id", "start", "end", "load", "placement")}
        known = any(offer.offer_id == each.offer_id for each in ballot.candidates)
        same = replace(taken, **place) == offer and offer.end - offer.start == taken.end - taken.start
        if known or not same or shortcoming(unit, offer):
            return
        if taken in self._shown:
            self._shown[offer] = self._shown[taken]
        ballot.instead += 1
        key = rank(offer, self._preference)
        following = ballot.index + 1
        while following < len(ballot.candidates) and rank(ballot.candidates[following], self._preference) < key:
            following += 1
        ballot.candidates = (*ballot.candidates[:following], offer, *ballot.candidates[following:])

    def _on_refused(self, offer_id: str, code: str, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        ballot = self._ballot_of(offer_id)
        if self.state is not VotingState.VOTING or ballot is None or not ballot.open:
            return []
        refused = UnitAdvanced(self.conversation_id, ballot.number, ballot.offer.resource, "refused", detail or code)
        effects: list[Effect] = [Report(refused)]
        if ballot.index + 1 < len(ballot.candidates):
            ballot.index += 1
            return effects + self._ask(ballot, now)
        ballot.lost = True
        reason = f"no resource holds a slot for unit {ballot.number}; the last refusal: {detail or code}"
        return effects + self._abort(RequestStatus.WITHDRAWN, reason, stimulus, now)

    # -- aborting ------------------------------------------------------------------------------------------------

    def _abort(self, status: RequestStatus, reason: str, stimulus: str, now: Instant, code: str = "") -> list[Effect]:
        self._enter(VotingState.ABORTING, stimulus)
        self._end = VotingResult(status, reason, (), code)
        effects: list[Effect] = []
        for ballot in self._ballots.values():
            ballot.retry.stop()
            if not ballot.lost:
                effects.append(self._cancel_hold(ballot.offer, now))
        self._end_if_cancelled("nothing to cancel")
        return effects

    def _cancel_hold(self, offer: Offer, now: Instant) -> Send:
        cancel = cancel_hold(self._user, offer.resource, self.conversation_id, offer.offer_id)
        self._cancelling[offer.offer_id] = Question(cancel, None, self._pace, now, limit=self._pace.vote_limit)
        return cancel

    def _forget_cancelling(self, sender: str, offer_id: str, now: Instant) -> None:
        cancelling = self._cancelling.get(offer_id)
        if cancelling is not None and cancelling.send.message.receiver == sender:
            cancelling.answered(now)
            del self._cancelling[offer_id]

    def _end_if_cancelled(self, stimulus: str) -> None:
        if self.state is VotingState.ABORTING and not self._cancelling:
            self._enter(VotingState.ENDED, stimulus)
            self.result = self._end
