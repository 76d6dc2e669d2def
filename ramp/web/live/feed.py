"""Events of one user's requests, followed while the server runs and passed on to the open pages.

A feed survives restarts of the market and of the user's agent: it reads missed events from the agent's record. It keeps
the latest requests only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Final

from ramp.client import dialogues
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.every_user import EveryUser
from ramp.client.line import refused
from ramp.control.auction_story import AuctionStory
from ramp.control.events import Event, Refused, Watching, request_of
from ramp.control.requests import Submit
from ramp.errors import RampError, TransportError
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.progress import CancellationEnded
from ramp.protocol.transition_tables import AuctionState
from ramp.runtime.clock import SystemClock
from ramp.web.live.size_changes import SizeChanges

STORIES_MAX: Final = 60
"""Requests in memory; earlier ones are fetched when a page needs them."""

Listener = Callable[[str], None]
"""Called with the id of a changed request, or an empty string for other changes."""

FindMarket = Callable[[], AsyncMarket]
"""Returns the running market; raises `RampError` without one."""


class UserFeed:
    """The requests of one user.

    Args:
        user: local name.
        find_market: the market as this user.

    Attributes:
        changes: of the sizes of this user's slots.
    """

    def __init__(self, user: str, find_market: FindMarket) -> None:
        self._user = user
        self._find_market = find_market
        self._following = EveryUser(lambda _: find_market().watch(), lambda _, event: self._hear(event))
        self._stories: OrderedDict[str, AuctionStory] = OrderedDict()
        self._listeners: set[Listener] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._clock = SystemClock()
        self.changes = SizeChanges()

    def begin(self) -> None:
        self._following.keep([self._user])

    async def end(self) -> None:
        """Stop following; requests continue at the user's agent."""
        await self._following.end()
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
        await self._fill(market, story, standing.outcome)
        return story

    async def submit(self, submission: Submit) -> str:
        """Submit a request; returns its id once it is accepted.

        Raises:
            RampError: if it is refused.
        """
        access = self._find_market().access
        async with await access.open() as line, aclosing(line.events(submission)) as events:
            event = await anext(events)  # the agent continues without this connection
        if isinstance(event, Refused):
            raise refused(event)
        return submission.request_id

    async def answer(self, request_id: str, approved: bool) -> None:
        """Pass on the owner's answer to a request for approval.

        Raises:
            RampError: if the agent does not take it; the owner may answer again.
        """
        await self._find_market().ask(dialogues.approve(request_id, approved))
        story = self._stories.get(request_id)
        if story is not None:
            story.approval = None
            self._tell(request_id)

    async def buy(self, request_id: str, sellers: Sequence[tuple[int, str]]) -> None:
        """Accept offers of a quote: numbers of units with the addresses of their sellers.

        Raises:
            RampError: if they stand no more, or the agent does not answer.
        """
        await self._find_market().ask(dialogues.buy_quote(request_id, sellers))
        story = self._stories.get(request_id)
        if story is not None:
            story.resume()
            self._tell(request_id)

    # -- following -----------------------------------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        if isinstance(event, Watching):  # what happened before is on record
            self._keep(self._catch_up())
        else:
            self._take(event)

    async def _catch_up(self) -> None:
        market = self._find_market()
        with contextlib.suppress(RampError):  # the next connection catches up
            for standing in (await market.requests())[-STORIES_MAX:]:
                story = self._made(standing.request_id)
                if standing.outcome is not None and story.outcome is None:
                    await self._fill(market, story, standing.outcome)
                elif standing.stage == AuctionState.APPROVING:
                    async with aclosing(market.watch(standing.request_id)) as events:
                        self._take(await anext(events))  # what its owner is asked
            self._tell("")

    async def _fill(self, market: AsyncMarket, story: AuctionStory, outcome: RequestOutcome) -> None:
        whole = await market.ask(dialogues.outcome(story.request_id)) or outcome
        story.end(whole)

    def _take(self, event: Event) -> None:
        if isinstance(event, CancellationEnded) or self.changes.take(event):
            self._tell("")
            return
        request_id = request_of(event)
        if request_id and self._made(request_id).take(event, self._clock.now()):
            self._tell(request_id)

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
    """The feeds of all users by name."""

    def __init__(self) -> None:
        self._feeds: dict[str, UserFeed] = {}

    def of(self, user: str, find_market: FindMarket) -> UserFeed:
        """Return the feed of a user; start it at the first call."""
        found = self._feeds.get(user)
        if found is None:
            found = self._feeds[user] = UserFeed(user, find_market)
            found.begin()
        return found

    async def end(self) -> None:
        await asyncio.gather(*(each.end() for each in self._feeds.values()))
        self._feeds.clear()
