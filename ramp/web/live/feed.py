"""Events of one user's requests, followed while the server runs and passed on to the open pages.

A feed survives restarts of the market and of the user's agent: it reconnects after growing pauses, and reads missed
events from the agent's record. It keeps the latest requests only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

from ramp.client import dialogues
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.submission import Following
from ramp.control.events import Event, RequestEnded, RequestStanding, Submitted, Watching, request_of
from ramp.control.requests import Approve, Submit, Watch
from ramp.errors import RampError, TransportError
from ramp.protocol.progress import ApprovalAsked, CancellationEnded, RoundClosed
from ramp.protocol.transition_tables import AuctionState
from ramp.runtime.clock import SystemClock
from ramp.web.live.standings import SizeChanges, Standings
from ramp.web.live.story import AuctionStory
from ramp.web.machines.price_history import PriceHistory, PricePoint, outcome_points, round_points

STORIES_MAX: Final = 60
"""Requests in memory; earlier ones are fetched when a page needs them."""

PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0)
"""Seconds between retries while the market does not answer; the last value repeats."""

Listener = Callable[[str], None]
"""Called with the id of a changed request, or an empty string for other changes."""

FindMarket = Callable[[], AsyncMarket]
"""Returns the running market; raises `RampError` without one."""


OnOffers = Callable[[Sequence[PricePoint]], None]
"""Called with offers to a user."""


class UserFeed:
    """The requests of one user.

    Args:
        find_market: the market as this user.
        on_offers: called with the offers of each round.

    Attributes:
        standings: status of the requests, current while `is_heard`.
        is_heard: whether the agent is connected.
        problem: why it is not, or empty.
        changes: of the sizes of this user's slots.
    """

    def __init__(self, find_market: FindMarket, on_offers: OnOffers = lambda _: None) -> None:
        self._find_market = find_market
        self._on_offers = on_offers
        self._stories: OrderedDict[str, AuctionStory] = OrderedDict()
        self._listeners: set[Listener] = set()
        self._approvals: dict[str, asyncio.Future[bool]] = {}
        self._followed: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._clock = SystemClock()
        self.standings = Standings()
        self.is_heard = False
        self.problem = ""
        self.changes = SizeChanges()

    def begin(self) -> None:
        self._keep(self._follow_all())

    async def end(self) -> None:
        """Stop following; requests continue at the user's agent."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener after every change; the returned function ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def listen_to_ends(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener when money may have moved: an end of a request or a cancellation, or a new connection."""

        def hear(request_id: str) -> None:
            story = self._stories.get(request_id)
            if not request_id or (story is not None and story.outcome is not None):
                listener()

        return self.listen(hear)

    def story(self, request_id: str) -> AuctionStory | None:
        return self._stories.get(request_id)

    async def find(self, request_id: str) -> AuctionStory:
        """Return the story of a request, also of one that ended long ago.

        Raises:
            RampError: if it is not this user's, or the agent does not answer.
        """
        found = self._stories.get(request_id)
        if found is not None and (found.outcome is None or found.rounds):
            return found
        story = found or AuctionStory(request_id)
        market = self._find_market()
        listed = await market.requests()
        standing = next((each for each in listed if each.request_id == request_id), None)
        if standing is None:
            raise TransportError(f"no request of {market.user} has the id {request_id}")
        if standing.outcome is None:
            return self._made(request_id)  # later events are added to this story
        await self._fill(market, story, standing)
        return story

    async def submit(self, submission: Submit) -> str:
        """Submit a request and follow it for approvals; returns its id once it is accepted.

        Raises:
            RampError: if it is refused.
        """
        taken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._keep(self._follow_one(submission, taken))
        return await taken

    def answer(self, request_id: str, approved: bool) -> None:
        """Pass on the owner's answer to a request for approval."""
        waiting = self._approvals.pop(request_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(approved)
        story = self._stories.get(request_id)
        if story is not None:
            story.approval = None
            self._tell(request_id)

    # -- following -----------------------------------------------------------------------------------------------

    async def _follow_all(self) -> None:
        failures = 0
        while True:
            try:
                market = self._find_market()
                await self._watch(market)
            except RampError as error:
                heard = not self.problem
                failures = 0 if heard else failures + 1
                self.problem = str(error)
                self.is_heard = False
                self._tell("")
            except Exception:
                logging.getLogger(__name__).exception("following requests")
                self.is_heard = False
                failures += 1
            await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])

    async def _watch(self, market: AsyncMarket) -> None:
        async with aclosing(market.watch()) as events:
            async for event in events:
                if isinstance(event, Watching):  # what happened before is on record
                    self.problem = ""
                    await self._catch_up(market)
                    self.is_heard = True
                    self._tell("")
                else:
                    self._take(event)
        raise TransportError("the User Agent has ended")

    async def _catch_up(self, market: AsyncMarket) -> None:
        listed = await market.requests()
        self.standings.listed(listed)
        for standing in listed[-STORIES_MAX:]:
            story = self._made(standing.request_id)
            if standing.outcome is not None and story.outcome is None:
                with contextlib.suppress(RampError):
                    await self._fill(market, story, standing)
            elif standing.stage == AuctionState.APPROVING:
                self._ask_as_well(standing.request_id)

    async def _fill(self, market: AsyncMarket, story: AuctionStory, standing: RequestStanding) -> None:
        if standing.outcome is None:
            return
        whole = None if standing.archived else await market.ask(dialogues.outcome(story.request_id))
        ended = whole or standing.outcome
        story.end(ended)
        self._on_offers(outcome_points(ended))

    def _take(self, event: Event) -> None:
        if isinstance(event, CancellationEnded):
            self.standings.stale = True
            self._tell("")
            return
        if self.changes.take(event):
            self.standings.stale = True
            self._tell("")
            return
        if isinstance(event, RoundClosed):
            self._on_offers(round_points(event.request_id, event.record, self._clock.now()))
        if isinstance(event, ApprovalAsked):
            self._ask_as_well(event.request_id)
        request_id = request_of(event)
        if isinstance(event, RequestEnded) and (waiting := self._approvals.get(request_id)) and not waiting.done():
            waiting.set_result(False)  # it was answered elsewhere, or too late
        if request_id and (story := self._made(request_id)).take(event, self._clock.now()):
            self.standings.take(story, self._clock.now())
            self._tell(request_id)

    async def _follow_one(self, submission: Submit, taken: asyncio.Future[str]) -> None:
        """Keep the connection of a request open until its end: approvals are answered on it."""
        following = Following.begin(submission)
        self._followed.add(submission.request_id)
        try:
            access = self._find_market().access
            line = await access.open()
            while following.ended is None:
                try:
                    async with line, aclosing(line.events(following.request)) as events:
                        async for event in events:
                            asked = following.heard(event)
                            if isinstance(event, Submitted):
                                story = self._made(submission.request_id)
                                self.standings.take(story, self._clock.now())
                                self._tell(submission.request_id)
                                if not taken.done():
                                    taken.set_result(submission.request_id)
                            if asked is not None:
                                await line.send(Approve(await self._asked(asked)))
                            elif isinstance(event, RequestEnded):
                                self._take(event)
                except TransportError as error:
                    following.lost(error)
                if following.ended is None:
                    line = await access.reopen()
        except RampError as error:
            if not taken.done():
                taken.set_exception(error)
            else:
                self.problem = str(error)
                self._tell("")
        finally:
            self._followed.discard(submission.request_id)
            if not taken.done():
                taken.cancel()

    def _ask_as_well(self, request_id: str) -> None:
        """Let the pages approve a request that was submitted elsewhere or before a restart."""
        if request_id not in self._followed:
            self._followed.add(request_id)
            self._keep(self._ask_for(request_id))

    async def _ask_for(self, request_id: str) -> None:
        try:
            access = self._find_market().access
            async with await access.open() as line, aclosing(line.events(Watch(request_id))) as events:
                async for event in events:
                    if isinstance(event, ApprovalAsked):
                        await line.send(Approve(await self._asked(event)))
        except RampError as error:
            logging.getLogger(__name__).info("asking for approval of %s: %s", request_id, error)
        finally:
            self._followed.discard(request_id)

    async def _asked(self, asked: ApprovalAsked) -> bool:
        answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._approvals[asked.request_id] = answered
        self._take(asked)
        try:
            return await answered
        finally:
            self._approvals.pop(asked.request_id, None)

    def _made(self, request_id: str) -> AuctionStory:
        story = self._stories.setdefault(request_id, AuctionStory(request_id))
        over = [key for key, each in self._stories.items() if each.outcome is not None and key != request_id]
        for key in over[: max(len(self._stories) - STORIES_MAX, 0)]:
            del self._stories[key]
        return story

    def _tell(self, request_id: str) -> None:
        for listener in list(self._listeners):
            try:
                listener(request_id)
            except Exception:
                logging.getLogger(__name__).exception("telling a page")
                self._listeners.discard(listener)

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Feeds:
    """The feeds of all users by name.

    Args:
        prices: store of offers.
    """

    def __init__(self, prices: PriceHistory) -> None:
        self._prices = prices
        self._feeds: dict[str, UserFeed] = {}

    def of(self, user: str, find_market: FindMarket) -> UserFeed:
        """Return the feed of a user; start it at the first call."""
        found = self._feeds.get(user)
        if found is None:
            found = self._feeds[user] = UserFeed(find_market, partial(self._prices.offered, user))
            found.begin()
        return found

    async def end(self) -> None:
        await asyncio.gather(*(each.end() for each in self._feeds.values()))
        self._feeds.clear()
