"""Events of users while the server runs, in bounded memory: the requests of each user, and everybody's sales.

A feed survives restarts of the market and of the user's agent: it reads missed events from the agent's record. It keeps
the latest requests only. A sale is what an agreement was paid, without its buyer; all users see it.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final

import nicegui

from ramp.client import dialogues
from ramp.client.access import refused
from ramp.client.asyncio_market import AsyncMarket, EveryUser
from ramp.control.auction_story import AuctionStory
from ramp.control.events import Event, Refused, request_of
from ramp.control.requests import Submit
from ramp.errors import RampError, TransportError
from ramp.model.agreement import ContractChange
from ramp.model.instant import HOUR, Duration, Instant, to_datetime
from ramp.model.money import MINOR_UNITS_PER_CREDIT
from ramp.protocol.outcome import QUOTED, RequestOutcome, RequestStatus
from ramp.protocol.progress import ChangeAdvanced, ChangeEnded, RequestEnded
from ramp.protocol.transition_tables import AuctionState
from ramp.runtime.clock import SystemClock
from ramp.runtime.journal import Archive
from ramp.runtime.state_folder import StateFolder

Changes = nicegui.Event[str]
"""Emitted with the id of a changed request, or an empty string for other changes."""

STORIES_MAX: Final = 60
"""Requests in memory; earlier ones are fetched when a page needs them."""


class UserFeed(EveryUser):
    """The requests of one user.

    Attributes:
        changed: after every change.
        agreed: with each change of a slot's size that its seller has agreed to.
        ended: when money may have moved: at the end of a request or of a change, or at a new connection.
    """

    def __init__(self, user: str, state: StateFolder) -> None:
        super().__init__(state)
        self.changed = Changes()
        self._user = user
        self._stories: OrderedDict[str, AuctionStory] = OrderedDict()
        self._clock = SystemClock()
        self.agreed = nicegui.Event[ContractChange]()
        self.ended = Changes()
        self.keep([user])

    def story(self, request_id: str) -> AuctionStory | None:
        """Return the story of a request that is in memory; `find` has all."""
        return self._stories.get(request_id)

    async def find(self, request_id: str) -> AuctionStory:
        """Return the story of a request, also of one that ended long ago.

        Raises:
            RampError: if it is not this user's, or the agent does not answer.
        """
        found = self._stories.get(request_id)
        if found is not None and (found.outcome is None or found.rounds):
            return found
        market = self.market(self._user)
        standing = next((each for each in await market.requests() if each.request_id == request_id), None)
        if standing is None:
            raise TransportError(f"no request of {market.user} has the id {request_id}")
        story = self._made(request_id)  # later events are added to it
        if standing.outcome is not None:
            await self._fill(market, story, standing.outcome)
        return story

    async def submit(self, submission: Submit) -> str:
        """Submit a request; returns its id once it is accepted.

        Raises:
            RampError: if it is refused.
        """
        access = self.market(self._user).access
        async with await access.open() as line, aclosing(line.events(submission)) as events:
            event = await anext(events)  # the agent continues without this connection
        if isinstance(event, Refused):
            raise refused(event)
        return submission.request_id

    async def answer(self, request_id: str, approved: bool, sellers: Sequence[tuple[int, str]] = ()) -> None:
        """Pass on the owner's answer to a request for approval; with sellers of units, by number, buy their quote.

        Raises:
            RampError: if the agent does not take it, or the offers stand no more; the owner may answer again.
        """
        await self.market(self._user).ask(dialogues.approve(request_id, approved, sellers))
        story = self._stories.get(request_id)
        if story is not None:
            story.resume()
            self._note(request_id)

    # -- following -----------------------------------------------------------------------------------------------

    async def catch_up(self, market: AsyncMarket) -> None:
        for standing in (await market.requests())[-STORIES_MAX:]:
            story = self._made(standing.request_id)
            with suppress(RampError):  # a request that cannot be read hides no others
                if standing.outcome is not None and story.outcome is None:
                    await self._fill(market, story, standing.outcome)
                elif standing.stage == AuctionState.APPROVING:
                    async with aclosing(market.watch(standing.request_id)) as events:
                        self.take(market.user, await anext(events))  # what its owner is asked
        self._note()

    async def _fill(self, market: AsyncMarket, story: AuctionStory, outcome: RequestOutcome) -> None:
        whole = await market.ask(dialogues.outcome(story.request_id)) or outcome
        story.end(whole)

    def take(self, user: str, event: Event) -> None:
        match event:
            case ChangeAdvanced(amendment):
                self.agreed.emit(amendment)
            case ChangeEnded(outcome):
                if outcome.code != QUOTED:
                    self._note()
            case _:
                request_id = request_of(event)
                if request_id and self._made(request_id).take(event, self._clock.now()):
                    self._note(request_id)

    def _note(self, request_id: str = "") -> None:
        self.changed.emit(request_id)
        story = self._stories.get(request_id)
        if not request_id or (story is not None and story.outcome is not None):
            self.ended.emit(request_id)

    def _made(self, request_id: str) -> AuctionStory:
        story = self._stories.setdefault(request_id, AuctionStory(request_id))
        over = [key for key, each in self._stories.items() if each.outcome is not None and key != request_id]
        for key in over[: max(len(self._stories) - STORIES_MAX, 0)]:
            del self._stories[key]
        return story


SALES_MAX: Final = 100_000
"""Sales in memory; the oldest are forgotten."""

SHOWN_MAX: Final = 5000
"""Latest sales that a page reads."""


@dataclass(frozen=True, slots=True)
class Sale:
    """A slot that was sold, at the time of its payment, with the cores charged and the cost in minor units."""

    agreement_id: str
    at: Instant
    resource: str
    cores: int
    duration: Duration
    cost: int

    @property
    def core_hours(self) -> float:
        """Volume, for charts only."""
        return self.cores * self.duration / HOUR

    @property
    def price(self) -> float:
        """Credits per core-hour charged, for charts only."""
        return mean_price((self,))


def mean_price(sales: Iterable[Sale]) -> float:
    """Return the mean price of sales weighted by volume, credits per core-hour; for charts and estimates only."""
    cost = volume = 0
    for each in sales:
        cost += each.cost
        volume += each.cores * each.duration
    return cost * HOUR / (MINOR_UNITS_PER_CREDIT * volume) if volume else 0.0


def sales_of(outcome: RequestOutcome) -> list[Sale]:
    """Return the sales of a request; none unless it was committed."""
    if outcome.status is not RequestStatus.COMMITTED:
        return []
    at = outcome.started_at + outcome.duration
    return [
        Sale(each.agreement_id, at, each.offer.resource, each.offer.cores, each.offer.end - each.offer.start, each.cost)
        for each in outcome.units
        if each.agreement_id and each.offer.end > each.offer.start
    ]


class SaleHistory:
    """The sales; keeps the latest `most`."""

    def __init__(self, most: int = SALES_MAX) -> None:
        self._most = most
        self._sales: list[Sale] = []  # by time
        self._known: set[str] = set()

    def sold(self, sales: Iterable[Sale]) -> bool:
        """Add sales; returns whether any was new."""
        new = [each for each in sales if each.agreement_id not in self._known]
        for each in new:
            self._known.add(each.agreement_id)
            insort(self._sales, each, key=lambda sale: (sale.at, sale.agreement_id))
        self._known.difference_update(each.agreement_id for each in self._sales[: -self._most])
        del self._sales[: -self._most]
        return bool(new)

    def since(self, begin: Instant) -> tuple[Sale, ...]:
        """Return the sales from an instant on, by time; at most the latest `SHOWN_MAX`."""
        return tuple(self._sales[bisect_left(self._sales, begin, key=lambda sale: sale.at) :][-SHOWN_MAX:])


class SaleWatch(EveryUser):
    """Watches a market's users from the first call of `keep` on; `count` takes every event.

    Attributes:
        changed: after new sales.
        refusals: of the last rounds of requests that ended since then, by code.
        since: when the counting began.
    """

    def __init__(self, state: StateFolder, history: SaleHistory, count: Callable[[Event], None]) -> None:
        super().__init__(state)
        self.changed = Changes()
        self._history = history
        self._count = count
        self.refusals: Counter[str] = Counter()
        self.since = to_datetime(SystemClock().now())

    def take(self, user: str, event: Event) -> None:
        self._count(event)
        if isinstance(event, RequestEnded):
            if event.outcome.rounds:
                self.refusals.update(each.refusal.code.value for each in event.outcome.rounds[-1].refusals)
            self._store([event.outcome])

    async def catch_up(self, market: AsyncMarket) -> None:
        self._store(each.outcome for each in await market.requests() if each.outcome is not None)
        archived = await asyncio.to_thread(Archive(self._state.journal(market.user)).requests)
        self._store(outcome for outcome, _ in archived)

    def _store(self, outcomes: Iterable[RequestOutcome]) -> None:
        if self._history.sold(sale for outcome in outcomes for sale in sales_of(outcome)):
            self.changed.emit("")
