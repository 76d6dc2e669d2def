"""The user's side of the reverse auction (paper section 5.1.1, steps 1 to 5).

Each round calls for proposals for all units, at prices that the auction rule sets (by default the best so far). It ends
when every expected answer is in, at the latest after the round time. A silent resource is still called, but no longer
waited for until it answers again. If no offer meets the request for some unit, one extra round asks resources for their
best offers (section 4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ramp.errors import RemoteProtocolError, RuleFailed
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.called_terms import called_otherwise
from ramp.model.instant import Duration, Instant
from ramp.model.machine_terms import needs_of
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.probable_start import start_shortcoming
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.seal import Role, Seal
from ramp.model.shortcoming import shortcoming, site_shortcoming
from ramp.model.sizes.moldable import least_cores, size_problem
from ramp.protocol.belief import sealed_by
from ramp.protocol.effects import Effect, Report, Send, not_understood, reject
from ramp.protocol.events import Approval, RequestSubmitted
from ramp.protocol.machine import StateMachine
from ramp.protocol.outcome import RequestStatus, RoundRecord
from ramp.protocol.progress import ApprovalAsked, RoundClosed, RoundOpened
from ramp.protocol.questions import Directories, Search
from ramp.protocol.rules.auction_rule import Bidding
from ramp.protocol.rules.checked_rule import RUNNER_UP_BYTES_MAX, CheckedRule, PaidPrices, passed_on_bytes
from ramp.protocol.timing import Pace, moved
from ramp.protocol.transition_tables import AUCTION, AuctionState
from ramp.protocol.user.bidding_round import BiddingRound, FinalRefusals
from ramp.protocol.user.evaluator import OffersMade, lowest_bids, misfit, over_limit
from ramp.protocol.user.voting import REQUEST_ENDED

ROUND_CLOSED = "RoundClosed"
"""Stimulus of what follows a round, whether its last answer or its time closed it."""


@dataclass(frozen=True, slots=True)
class AuctionResult:
    """How the bidding ended.

    Attributes:
        status: QUOTED, NO_OFFERS, REJECTED or FAILED; None if the candidates are to be bought.
        reason: one sentence; empty if there is something to buy.
        candidates: offers to try for each unit, best first.
        meets_request: of each unit, whether its candidates meet the request.
        code: of a failed auction rule, or empty.
        shown: costs in minor units that the owner was shown; empty without approval.
    """

    status: RequestStatus | None
    reason: str
    candidates: dict[int, tuple[Offer, ...]]
    meets_request: dict[int, bool]
    prices: PaidPrices
    code: str = ""
    shown: Mapping[Offer, int] = field(default_factory=dict)


class Auction(StateMachine[AuctionState]):
    """One request's auction.

    Attributes:
        asked: the offers that await the owner's approval, or None.
    """

    def __init__(
        self, submitted: RequestSubmitted, *, rule: CheckedRule, user: str, directories: Directories, pace: Pace
    ) -> None:
        super().__init__(submitted.request_id, AUCTION, AuctionState.NEW)
        self.request = submitted.request
        self.options = submitted.options
        self.rule = rule
        self.rounds: list[RoundRecord] = []
        self.result: AuctionResult | None = None
        self.asked: ApprovalAsked | None = None
        self._user = user
        self._directories = directories
        self._pace = pace
        self._search: Search | None = None
        self._round: BiddingRound | None = None
        self._limit: Instant | None = None
        self._resources: Mapping[str, None] = {}
        self._final = FinalRefusals()
        self._silent: set[str] = set()
        self._made = OffersMade(self.request, self.options.preference, rule)
        self._round_number = 0
        self._asked: dict[int, RequestUnit] = {}
        self._heard: set[tuple[str, int]] = set()
        self._named: set[tuple[str, str]] = set()
        self._shown: dict[Offer, int] = {}
        self._decided: frozenset[int] = frozenset()
        self._last_bids: tuple[c.Bid, ...] = ()

    @property
    def deadline(self) -> Instant | None:
        """When to call `on_timer` next, or None."""
        if self._search is not None:
            return self._search.deadline
        if self._round is None:
            return self._limit
        return self._round.due if self._limit is None else min(self._limit, self._round.due)

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """Ask a directory for sellers."""
        self._enter(AuctionState.DISCOVERING, "start")
        needs = needs_of(self.request.units)
        self._search = Search(self.conversation_id, self._user, self._directories, needs, self._pace, now)
        return [self._search.send]

    def on_message(self, message: Message, now: Instant) -> list[Effect]:
        """Take a listing, or the answer to a call not understood; late and repeated ones change nothing.

        Raises:
            RemoteProtocolError: if an auction does not expect the sender or the content.
        """
        content = message.content
        if isinstance(content, c.DirectoryListing):
            self._directories.said(message)
            return self._on_listing(content, now)
        if isinstance(content, c.NotUnderstood):
            if message.sender not in self._resources:
                return []
            refusals = self._refused_all(RefusalCode.PLUGIN_FAILED, content.reason)
            return self.on_proposal(
                message, c.Proposal(self.conversation_id, self._round_number, refusals=refusals), now
            )
        raise RemoteProtocolError(f"{type(content).__name__} is not a message of an auction")

    def _on_listing(self, listing: c.DirectoryListing, now: Instant) -> list[Effect]:
        if self._search is None:
            return []
        effects, found = self._search.on_listing(listing, now), self._search.found
        if not found.complete:
            return effects
        self._search = None
        unfit = found.unfit
        self._resources = dict.fromkeys(sorted({*found.names, *unfit}))
        self._final.foresee(self.request.units, self._resources, unfit)
        self._asked = {unit.number: unit for unit in self.request.units}
        return self._open_round(AuctionState.BIDDING, "DirectoryListing", now)

    def approve(self, approved: bool, now: Instant) -> list[Effect]:
        """Take the owner's answer; ignored unless it is awaited."""
        if self.state is not AuctionState.APPROVING:
            return []
        if approved:
            return self._close(None, "", "OffersApproved", now)
        return self._close(RequestStatus.REJECTED, "the user declined the offers", "OffersApproved", now)

    def withdraw(self, now: Instant) -> list[Effect]:
        """Withdraw the request for its owner; ignored once the auction is closed."""
        if self.state is AuctionState.CLOSED:
            return []
        return self._close(RequestStatus.REJECTED, "the user withdrew the request", "RequestWithdrawn", now)

    def on_timer(self, now: Instant) -> list[Effect]:
        """At the deadline, repeat unanswered messages or end the wait."""
        if self._search is not None:
            effects = self._search.on_timer(now)
            if not self._search.given_up:
                return effects
            empty, silent = "no resource is registered in the market", "the directory does not answer"
            reason = empty if self._search.is_empty else silent
            return self._close(RequestStatus.NO_OFFERS, reason, "deadline", now)
        if self.state is AuctionState.APPROVING:
            return self._close(RequestStatus.REJECTED, "the offers were not approved in time", "deadline", now)
        assert self._round is not None, "nothing else can be due"
        if self._limit is not None and now >= self._limit:
            return self._close_round(self._round, now)
        return self._call(self._round, self._round.time_out(now))

    def clock_set(self, by: Duration) -> None:
        if self._search is not None:
            self._search.clock_set(by)
        if self._round is not None:
            self._round.clock_set(by)
        self._limit = moved(self._limit, by)

    # -- rounds --------------------------------------------------------------------------------------------------

    def _open_round(self, state: AuctionState, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(state, stimulus)
        self._round_number += 1
        best_offers = state is AuctionState.BEST_OFFERS
        called = self._may_bid(state)  # the others have refused for good
        if self._silent.issuperset(called):
            self._silent.clear()  # the user's own line was down: the first answer must not end the round
        call = c.CallForProposals(
            self.conversation_id,
            self._round_number,
            RequestForQuotation(tuple(self._asked.values())),
            self._last_bids,
            best_offers,
            "" if self.rule.pays_offer else self.rule.name,
        )
        self._round = opened = BiddingRound(call, called, self._pace, now)
        self._limit = now + self.options.round_time if called else now
        told = RoundOpened(self.conversation_id, self._round_number, opened.asking_prices, len(called), best_offers)
        return [Report(told), *self._call(opened, called)]

    def _may_bid(self, state: AuctionState) -> tuple[str, ...]:
        return self._final.callable(self._resources, self._asked, best_offers=state is AuctionState.BEST_OFFERS)

    def _call(self, opened: BiddingRound, resources: Iterable[str]) -> list[Effect]:
        return [
            Send(
                Message(
                    Performative.CFP,
                    self._user,
                    resource,
                    self.conversation_id,
                    opened.call,
                    reply_with=f"{self.conversation_id}/round/{self._round_number}",
                    reply_by=self.options.round_time,
                )
            )
            for resource in resources
        ]

    def on_proposal(self, message: Message, proposal: c.Proposal, now: Instant) -> list[Effect]:
        """Take a resource's answer to a call, usually a proposal; late and repeated ones change nothing.

        Raises:
            RemoteProtocolError: if the sender was not called, or has not sealed what a winner may be shown.
        """
        sender, bidding, seal = message.sender, self._round, message.seal
        if proposal is message.content and not self.rule.pays_offer:
            seal = sealed_by(message, Role.RESOURCE)  # the rule shows the winner another's offer
        if bidding is None or self.state not in (AuctionState.BIDDING, AuctionState.BEST_OFFERS):
            return []
        if sender not in self._resources or proposal.round_number > self._round_number:
            raise RemoteProtocolError(f"{sender} was not called in round {proposal.round_number}")
        if (sender, proposal.round_number) in self._heard:
            return []  # a copy would be compared with a lower price and reject an offer that still counts
        self._heard.add((sender, proposal.round_number))
        effects: list[Effect] = []
        refusals = proposal.refusals
        if problem := self._unusable(sender, proposal, seal):
            refusals = self._refused_all(RefusalCode.BAD_PROPOSAL, problem)
            effects.append(not_understood(message, f"{sender} {problem}"))
        else:
            if refusals:
                self._final.add(sender, refusals)
            for offer in proposal.offers:
                rejected = self._consider(bidding, sender, offer, seal)
                unit = self._asked.get(offer.unit) if rejected else None
                if unit is not None and (unfit := misfit(offer, unit, best_offers=bidding.call.best_offer)):
                    refusals += (unfit,)
                effects += rejected
        if proposal.round_number != self._round_number:
            return effects
        again = bidding.answered(sender, refusals, now)
        self._silent.discard(sender)
        if bidding.missing.keys() <= self._silent:
            return effects + self._close_round(bidding, now)
        return effects + self._call(bidding, again) if again else effects

    def _refused_all(self, code: RefusalCode, detail: str) -> tuple[Refusal, ...]:
        return tuple(Refusal(number, code, detail=detail) for number in self._asked)

    def _unusable(self, sender: str, proposal: c.Proposal, seal: Seal | None) -> str:
        """Return why a proposal cannot be passed on to a winner, or the empty string; record its offer ids.

        If one id named two offers, the winner could be shown the wrong one.
        """
        if not self.rule.pays_offer and seal is not None and (size := passed_on_bytes(seal)) > RUNNER_UP_BYTES_MAX:
            most = f"expected at most {RUNNER_UP_BYTES_MAX}"
            return f"has sent a proposal of {size} bytes when passed on; {most}"
        for offer in proposal.offers:
            if (sender, offer.offer_id) in self._named:
                return f"reuses an offer id in round {proposal.round_number}"
            self._named.add((sender, offer.offer_id))
        return ""

    def _consider(self, bidding: BiddingRound, sender: str, offer: Offer, seal: Seal | None) -> list[Effect]:
        unit = self._asked.get(offer.unit)
        if unit is None or offer.resource != sender or offer.request_id != self.conversation_id:
            return [self._reject(sender, offer, "the offer names another resource, request or unit")]
        if not self.rule.pays_offer:
            wanted = self.request.unit(offer.unit)
            if other := called_otherwise(wanted, self.rule.name, offer, sealed=self.rule.sealed):
                return [self._reject(sender, offer, other)]
        reason = shortcoming(unit, offer)
        if reason and (unfit := start_shortcoming(unit, offer) or site_shortcoming(unit, offer)):
            return [self._reject(sender, offer, unfit)]  # no best offer either
        bidding.offers.append(offer)
        if offer.unit in self._decided:
            return [self._reject(sender, offer, "the sealed bidding for the unit is over")]
        if not reason:
            self._made.add(offer, seal)
            return []
        closest = self.state is AuctionState.BEST_OFFERS and not self._made.is_met(offer.unit)
        lasts = offer.end - offer.start
        if closest and offer.cores >= least_cores(unit) and lasts > 0 and not size_problem(unit, offer.cores, lasts):
            self._made.add_closest(offer)
            return []
        return [self._reject(sender, offer, reason)]

    def _reject(self, resource: str, offer: Offer, reason: str) -> Send:
        return reject(self._user, resource, self.conversation_id, offer.offer_id, reason)

    def _close_round(self, bidding: BiddingRound, now: Instant) -> list[Effect]:
        not_called = [
            refusal
            for name in self._resources
            if name not in bidding.called
            for refusal in self._final.of(name, self._asked)
        ]
        self._silent.update(bidding.missing)
        record = bidding.closed(not_called, now)
        self.rounds.append(record)
        answers, again = tuple(bidding.answers.items()), bidding.sent_again
        closed = RoundClosed(self.conversation_id, record, self._made.best(), answers, again)
        effects: list[Effect] = [Report(closed)]
        self._last_bids = () if self.rule.sealed else lowest_bids(record.bids)
        try:
            return effects + self._after_round(now)
        except RuleFailed as failed:
            return effects + self._close(RequestStatus.FAILED, failed.reason, ROUND_CLOSED, now, failed.code)

    def _after_round(self, now: Instant) -> list[Effect]:
        unmet = self._made.unmet()
        if self.state is not AuctionState.BIDDING or self._final.hopeless(self._resources, unmet):
            return self._evaluate(unmet, now)
        asks = self.rule.next_asks(Bidding(self._round_number, self.options.rounds, self._made.bids(self._asked)))
        if asks is not None and self._may_bid(AuctionState.BIDDING):
            for number, price in asks.items():
                self._asked[number] = replace(self._asked[number], cpu_hour_cost=price)
            return self._open_round(AuctionState.BIDDING, ROUND_CLOSED, now)
        if unmet and self.rule.sealed:  # a second bid for a decided unit would have an advantage
            self._decided = frozenset(self._asked) - frozenset(unmet)
        if unmet and self._may_bid(AuctionState.BEST_OFFERS):
            return self._open_round(AuctionState.BEST_OFFERS, ROUND_CLOSED, now)
        return self._evaluate(unmet, now)

    # -- the end of the bidding ----------------------------------------------------------------------------------

    def _evaluate(self, unmet: list[int], now: Instant) -> list[Effect]:
        hopeless = self._made.hopeless()
        quote_only = self.options.quote_only
        self._made.choose(self._asked)
        if hopeless or (unmet and (self.options.approval is Approval.AUTO or quote_only)):
            which = ", ".join(str(number) for number in hopeless or unmet)
            extra = "" if hopeless else "; the best other offers are shown"
            reason = f"no offer meets the request for unit {which}{extra}"
            return self._close(RequestStatus.NO_OFFERS, reason, ROUND_CLOSED, now)
        costs = [priced.cost for priced in self._made.best_prices(now)]
        if quote_only:
            return self._close(RequestStatus.QUOTED, "", ROUND_CLOSED, now)
        over = over_limit(costs, self.options.max_cost)
        if over:
            return self._close(RequestStatus.REJECTED, over, ROUND_CLOSED, now)
        if self.options.approval is Approval.ASK:
            return self._ask_owner(costs, now)
        return self._close(None, "", ROUND_CLOSED, now)

    def _ask_owner(self, costs: Sequence[int], now: Instant) -> list[Effect]:
        self._enter(AuctionState.APPROVING, ROUND_CLOSED)
        self._limit = now + self._pace.timing.approval_limit
        self._round = None
        best = [(number, offers[0]) for number, offers in self._made.chosen.items()]
        self._shown = {offer: cost for (_, offer), cost in zip(best, costs, strict=True)}
        self.asked = ApprovalAsked(
            self.conversation_id,
            tuple(offer for _, offer in best),
            tuple(self._made.is_met(number) for number, _ in best),
            tuple(costs),
            self._limit,
        )
        return [Report(self.asked)]

    def _close(
        self, status: RequestStatus | None, reason: str, stimulus: str, now: Instant, code: str = ""
    ) -> list[Effect]:
        self._enter(AuctionState.CLOSED, stimulus)
        self._limit = None
        self._round = None
        self.asked = None
        self._search = None
        offered = self._made.all()
        chosen = self._made.chosen or offered
        meets = {number: self._made.is_met(number) for number in chosen}
        self.result = AuctionResult(status, reason, chosen, meets, self._made.prices, code, self._shown)
        kept = (
            {offer for offers in chosen.values() for offer in offers}
            if status is None or (status is RequestStatus.QUOTED and self.rule.pays_offer)
            else set()
        )
        # the reason is private: it may reveal the owner's limit or another's offer
        text = "the auction rule did not choose this offer" if status is None else REQUEST_ENDED
        return [
            self._reject(offer.resource, offer, text)
            for offers in offered.values()
            for offer in offers
            if offer not in kept
        ]
