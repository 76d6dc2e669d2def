"""One request of a user from submission to its end: auction, then voting, then confirmation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from ramp.errors import RuleFailed
from ramp.model.acl import Message
from ramp.model.agreement import Agreement
from ramp.model.contents import HoldCancelled, HoldGranted, HoldRefused, Proposal
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer
from ramp.model.ports import IdSource
from ramp.model.sizes.moldable import as_offered
from ramp.protocol.effects import Effect, Persist, Report, cancel_hold, reject
from ramp.protocol.events import RequestSubmitted
from ramp.protocol.outcome import BoughtUnit, RequestOutcome, RequestStatus
from ramp.protocol.progress import ApprovalAsked, RequestEnded
from ramp.protocol.questions import Directories
from ramp.protocol.records import AcceptanceAsked, FundsAsked, OrderClosed, Record, RequestConcluded, RequestStarted
from ramp.protocol.rules.checked_rule import CheckedRule
from ramp.protocol.timing import Pace
from ramp.protocol.user.auction import Auction, AuctionResult
from ramp.protocol.user.confirmation import Confirmation
from ramp.protocol.user.voting import REQUEST_ENDED, Voting

OTHERS_MAX = 50
"""Offers of one unit that a quote shows."""


class Purchase:
    """The machines of one request in turn: auction, voting, confirmation.

    Args:
        clock_warning: returns a warning if the user's clock is wrong, else the empty string.
    """

    def __init__(
        self,
        submitted: RequestSubmitted,
        *,
        user: str,
        bank: str,
        directories: Directories,
        rule: CheckedRule,
        ids: IdSource,
        pace: Pace,
        clock_warning: Callable[[], str],
    ) -> None:
        self.request_id = submitted.request_id
        self.request = submitted.request
        self.options = submitted.options
        self.outcome: RequestOutcome | None = None
        self.started_at: Instant = 0
        self.confirmation: Confirmation | None = None
        self._user = user
        self._bank = bank
        self._ids = ids
        self._pace = pace
        self._clock_warning = clock_warning
        self._rule = rule
        self._new_auction = partial(Auction, submitted, rule=rule, user=user, directories=directories, pace=pace)
        self._auction = self._new_auction()
        self._voting: Voting | None = None
        self._won: AuctionResult | None = None
        self._quote: AuctionResult | None = None
        self._recalled = False
        self._decided = False

    @property
    def deadline(self) -> Instant | None:
        """The earliest deadline of the machines, or of a quote that can be bought."""
        first = self.outcome.until if self._quote is not None and self.outcome is not None else None
        for machine in (self._auction, self._voting, self.confirmation):
            due = None if machine is None else machine.deadline
            if due is not None and (first is None or due < first):
                first = due
        return first

    @property
    def stage(self) -> str:
        """The state of the active machine, for `ramp status`."""
        if self.outcome is not None:
            return self.outcome.status.value
        if self.confirmation is not None:
            return self.confirmation.state.value
        return self._voting.state.value if self._voting is not None else self._auction.state.value

    @property
    def asked(self) -> ApprovalAsked | None:
        return self._auction.asked

    @property
    def doubt(self) -> str:
        return "" if self.confirmation is None else self.confirmation.doubt

    def start(self, now: Instant) -> list[Effect]:
        self.started_at = now
        started = RequestStarted(self.request_id, self.request, self.options, now)
        return [Persist(started), *self._auction.start(now)]

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Resume after a restart from the records of this request."""
        self.started_at = next(record.at for record in records if isinstance(record, RequestStarted))
        asked = [record for record in records if isinstance(record, FundsAsked)]
        closed = {record.order_id: record for record in records if isinstance(record, OrderClosed)}
        if asked and (asked[-1].order_id not in closed or closed[asked[-1].order_id].transfers):
            self.confirmation = Confirmation(asked[-1].agreements, pace=self._pace)
            effects = self.confirmation.recover(records, now)
        else:
            ordered = {agreement.offer.offer_id for each in asked for agreement in each.agreements}
            open_offers = [
                record
                for record in records
                if isinstance(record, AcceptanceAsked) and record.offer.offer_id not in ordered
            ]
            self._voting = Voting(self.request_id, {}, user=self._user, pace=self._pace)
            effects = self._voting.recover(open_offers, now)
        return effects + self._advance(now)

    def recall(self, outcome: RequestOutcome, *, decided: bool) -> None:
        """Restore only the outcome of an ended request.

        Args:
            outcome: without its rounds, which stay on record.
            decided: whether the two-phase commit was decided, so that no hold may be cancelled.
        """
        self.outcome = replace(outcome, rounds=(), others=(), until=0)
        self.started_at = outcome.started_at
        self._recalled = True
        self._decided = decided

    def shorten(self) -> None:
        """Keep only the outcome, as after a restart; ignored while the request runs."""
        if self.outcome is None or self._recalled:
            return
        self.recall(self.outcome, decided=self.confirmation is not None and self.confirmation.decided)
        self._voting = self.confirmation = self._won = None

    def on_message(self, message: Message, now: Instant) -> list[Effect]:
        content, confirmation = message.content, self.confirmation
        if self._recalled:
            return self._late_hold(message)
        if isinstance(content, Proposal) and self._voting is not None:
            effects = self._late_proposal(message, content)
        elif isinstance(content, Proposal):
            effects = self._auction.on_proposal(message, content, now)
        elif isinstance(content, HoldRefused) and confirmation is not None and confirmation.concerns(content.offer_id):
            effects = confirmation.on_message(message, now)
        elif isinstance(content, HoldGranted | HoldRefused | HoldCancelled):
            effects = self._on_vote(message, now)
        elif confirmation is not None:
            effects = confirmation.on_message(message, now)
        elif self._voting is None:
            effects = self._auction.on_message(message, now)
        else:
            effects = []
        return effects + self._advance(now)

    def stands(self, sellers: Sequence[tuple[int, str]]) -> bool:
        """Whether this is a quote that can be bought from these sellers."""
        return self._quote is not None and _offers_of(self._quote, sellers) is not None

    def approve(self, approved: bool, sellers: Sequence[tuple[int, str]], now: Instant) -> list[Effect]:
        """Answer `ApprovalAsked`, or accept the offers of a quote; ignored unless they stand."""
        if self._quote is not None:
            return self._buy(self._quote, sellers, now) if approved else self._lapse(self._quote)
        return self._auction.approve(approved, now) + self._advance(now)

    def _buy(self, quote: AuctionResult, sellers: Sequence[tuple[int, str]], now: Instant) -> list[Effect]:
        """Buy exactly these offers: no other is tried in their place."""
        chosen = _offers_of(quote, sellers)
        if chosen is None:
            return []
        assert self.outcome is not None
        self._auction.rounds.extend(self.outcome.rounds)
        self.outcome = None
        left = self._lapse(quote, kept={offers[0] for offers in chosen.values()})
        self._won = quote
        self._voting = self._vote(quote, chosen, instead=False)
        return left + self._voting.start(now)

    def _lapse(self, quote: AuctionResult, kept: Collection[Offer] = ()) -> list[Effect]:
        """Give up the offers of a quote, but for those kept."""
        self._quote = None
        return [
            reject(self._user, offer.resource, self.request_id, offer.offer_id, REQUEST_ENDED)
            for offers in quote.candidates.values()
            for offer in offers
            if offer not in kept
        ]

    def withdraw(self, now: Instant) -> list[Effect]:
        """Withdraw the request; ignored once it has ended. A quote can be bought no more."""
        if self._quote is not None:
            return self._lapse(self._quote)
        if self.outcome is not None:
            return []
        machine = self.confirmation or self._voting or self._auction
        return machine.withdraw(now) + self._advance(now)

    def on_timer(self, now: Instant) -> list[Effect]:
        if self._quote is not None and self.outcome is not None and now >= self.outcome.until:
            return self._lapse(self._quote)
        effects: list[Effect] = []
        for machine in (self._auction, self._voting, self.confirmation):
            if machine is not None and machine.deadline is not None and now >= machine.deadline:
                effects += machine.on_timer(now)
        return effects + self._advance(now)

    def clock_set(self, by: Duration) -> None:
        self.started_at += by
        if self._quote is not None and self.outcome is not None:
            self.outcome = replace(self.outcome, until=self.outcome.until + by)
        for machine in (self._auction, self._voting, self.confirmation):
            if machine is not None:
                machine.clock_set(by)

    def _on_vote(self, message: Message, now: Instant) -> list[Effect]:
        if self._voting is not None:
            effects = self._voting.on_message(message, now)
            if self.confirmation is not None:
                self.confirmation.holds_end(self._voting.held_until)
            return effects
        return self._late_hold(message)  # a restart interrupted the vote

    # -- late messages -------------------------------------------------------------------------------------------

    def _late_hold(self, message: Message) -> list[Effect]:
        """Cancel a late hold of an undecided request; ignore everything else."""
        content = message.content
        decided = self._decided if self.confirmation is None else self.confirmation.decided
        if isinstance(content, HoldGranted) and not decided:
            return [cancel_hold(self._user, message.sender, self.request_id, content.offer_id)]
        return []

    # -- from one machine to the next ----------------------------------------------------------------------------

    def _late_proposal(self, message: Message, proposal: Proposal) -> list[Effect]:
        candidates = self._won.candidates.values() if self._won is not None else ()
        known = {offer.offer_id for offers in candidates for offer in offers}
        late = "the offer came after the bidding"
        return [
            reject(self._user, message.sender, self.request_id, offer.offer_id, late)
            for offer in proposal.offers
            if offer.offer_id not in known
        ]

    def _advance(self, now: Instant) -> list[Effect]:
        if self.outcome is not None:
            return []
        if self.confirmation is not None:
            return self._after_confirmation(self.confirmation, now)
        if self._voting is not None:
            return self._after_voting(self._voting, now)
        return [] if self._auction.result is None else self._after_auction(self._auction.result, now)

    def _after_auction(self, result: AuctionResult, now: Instant) -> list[Effect]:
        if result.status is not None:
            shown = tuple(
                self._quoted(result, number, offers, now) for number, offers in result.candidates.items() if offers
            )
            if result.status is RequestStatus.QUOTED and self._rule.pays_offer:
                self._quote = result
            return self._end(result.status, result.reason, shown, now, result.code)
        self._won = result
        self._voting = self._vote(result, result.candidates)
        return self._voting.start(now)

    def _quoted(self, result: AuctionResult, number: int, offers: Sequence[Offer], now: Instant) -> BoughtUnit:
        """Return the best offer of a unit that is not bought; at the offered price if its rule failed."""
        asked = as_offered(self.request.unit(number), offers[0]).cores.total
        quoted = BoughtUnit(number, offers[0], asked, meets_request=result.meets_request[number])
        try:
            priced = result.prices.of(number, offers[0], offers[1:], now)
        except RuleFailed:
            return quoted
        return replace(quoted, paid=None if priced.price is None else priced.cost)

    def _others(self, quote: AuctionResult) -> tuple[BoughtUnit, ...]:
        return tuple(
            BoughtUnit(unit.number, offer, as_offered(unit, offer).cores.total)
            for unit in self.request.units
            for offer in quote.candidates[unit.number][1:OTHERS_MAX]
        )

    def _vote(self, won: AuctionResult, candidates: dict[int, tuple[Offer, ...]], *, instead: bool = True) -> Voting:
        return Voting(
            self.request_id,
            candidates,
            user=self._user,
            pace=self._pace,
            max_cost=self.options.max_cost,
            prices=won.prices,
            shown=won.shown,
            units=self.request.units if instead else (),
            preference=self.options.preference,
        )

    def _after_voting(self, voting: Voting, now: Instant) -> list[Effect]:
        result = voting.result
        if result is None:
            return []
        if result.status is not None:
            return self._end(result.status, result.reason, (), now, result.code)
        assert self._won is not None
        order_id, valid_until = self._ids.new("order"), now + self._pace.timing.agreement_validity
        agreements = [  # one for each held unit (section 5.2.1), all of one order
            Agreement(
                agreement_id=self._ids.new("agreement"),
                request_id=self.request_id,
                units_total=len(result.held),
                user=self._user,
                resource=unit.offer.resource,
                bank=self._bank,
                request=self.request.unit(unit.unit),
                offer=unit.offer,
                reservation_id=unit.reservation_id,
                cost=unit.priced.cost,
                issued_at=now,
                order_id=order_id,
                valid_until=valid_until if unit.offer.start_probability is None else unit.offer.start,
                best_offer=not self._won.meets_request[unit.unit],
                price=unit.priced.price,
            )
            for unit in result.held
        ]
        self.confirmation = Confirmation(agreements, pace=self._pace)
        return self.confirmation.start(result.held, now)

    def _after_confirmation(self, confirmation: Confirmation, now: Instant) -> list[Effect]:
        result = confirmation.result
        if result is None:
            return []
        if result.posted:
            status = RequestStatus.FAILED if result.reason else RequestStatus.COMMITTED
            return self._end(status, result.reason, result.units, now)
        left = self._voting.remaining(result.blamed) if self._voting is not None and result.blamed else {}
        if self._won is None or not left or not all(left.values()):
            warning = self._clock_warning() if result.expired else ""
            reason = f"{result.reason}; {warning}" if warning else result.reason
            return self._end(RequestStatus.FAILED, reason, (), now)
        self.confirmation = None  # nothing was paid: try the next best of every unit
        self._voting = self._vote(self._won, left)
        return self._voting.start(now)

    def _end(
        self, status: RequestStatus, reason: str, units: tuple[BoughtUnit, ...], now: Instant, code: str = ""
    ) -> list[Effect]:
        rounds = tuple(self._auction.rounds)
        self._auction = self._new_auction()  # this request is kept for a while, its bidding is not
        duration = max(0, now - self.started_at)  # the clock may have been set back while this agent was down
        self.outcome = RequestOutcome(
            self.request_id,
            status,
            reason,
            rounds,
            units,
            self.started_at,
            duration,
            self.options.rule,
            code,
            name=self.options.name,
        )
        if self._quote is not None:
            until = now + self._pace.timing.approval_limit
            self.outcome = replace(self.outcome, others=self._others(self._quote), until=until)
        lost = "another offer was accepted" if status is RequestStatus.COMMITTED else REQUEST_ENDED
        left = self._voting.losers() if self._voting is not None else ()
        return [
            Persist(RequestConcluded(self.request_id, self.outcome, now)),
            Report(RequestEnded(self.outcome)),
            *(reject(self._user, offer.resource, self.request_id, offer.offer_id, lost) for offer in left),
        ]


def _offers_of(quote: AuctionResult, sellers: Sequence[tuple[int, str]]) -> dict[int, tuple[Offer, ...]] | None:
    """Return the offers of these sellers, and the best of other units; None if a seller has none."""
    chosen = {number: offers[:1] for number, offers in quote.candidates.items()}
    for number, seller in sellers:
        chosen[number] = tuple(offer for offer in quote.candidates.get(number, ()) if offer.resource == seller)
    return chosen if all(chosen.values()) else None
