"""Events of one user's requests, followed while the server runs and passed on to the open pages.

A feed survives restarts of the market and of the user's agent: it reads missed events from the agent's record. It keeps
the latest requests only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final

from ramp.client import dialogues
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.line import refused
from ramp.control.auction_story import AuctionStory
from ramp.control.events import Event, Refused, request_of
from ramp.control.requests import Submit
from ramp.errors import RampError, TransportError
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.progress import CancellationEnded
from ramp.protocol.transition_tables import AuctionState
from ramp.runtime.clock import SystemClock
from ramp.web.live.follower import Follower
from ramp.web.live.size_changes import SizeChanges

STORIES_MAX: Final = 60
"""Requests in memory; earlier ones are fetched when a page needs them."""

FindMarket = Callable[[], AsyncMarket]
"""Returns the running market; raises `RampError` without one."""


class UserFeed(Follower):
    """The requests of one user.

    Args:
        user: local name.
        find_market: the market as this user.

    Attributes:
        changes: of the sizes of this user's slots.
    """

    def __init__(self, user: str, find_market: FindMarket) -> None:
        super().__init__(lambda _: find_market().watch())
        self._find_market = find_market
        self._stories: OrderedDict[str, AuctionStory] = OrderedDict()
        self._clock = SystemClock()
        self.changes = SizeChanges()
        self.keep([user])

    def listen_to_ends(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call a listener when money may have moved: an end of a request or a cancellation, or a new connection."""

        def hear(request_id: str) -> None:
            story = self._stories.get(request_id)
            if not request_id or (story is not None and story.outcome is not None):
                listener(request_id)

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
        market = self._find_market()
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
            self.tell(request_id)

    async def buy(self, request_id: str, sellers: Sequence[tuple[int, str]]) -> None:
        """Accept offers of a quote: numbers of units with the addresses of their sellers.

        Raises:
            RampError: if they stand no more, or the agent does not answer.
        """
        await self._find_market().ask(dialogues.approve(request_id, True, sellers))
        story = self._stories.get(request_id)
        if story is not None:
            story.resume()
            self.tell(request_id)

    # -- following -----------------------------------------------------------------------------------------------

    async def catch_up(self, user: str) -> None:
        self.changes.forget_agreed()
        market = self._find_market()
        for standing in (await market.requests())[-STORIES_MAX:]:
            story = self._made(standing.request_id)
            with suppress(RampError):  # a request that cannot be read hides no others
                if standing.outcome is not None and story.outcome is None:
                    await self._fill(market, story, standing.outcome)
                elif standing.stage == AuctionState.APPROVING:
                    async with aclosing(market.watch(standing.request_id)) as events:
                        self.take(await anext(events))  # what its owner is asked
        self.tell()

    async def _fill(self, market: AsyncMarket, story: AuctionStory, outcome: RequestOutcome) -> None:
        whole = await market.ask(dialogues.outcome(story.request_id)) or outcome
        story.end(whole)

    def take(self, event: Event) -> None:
        if isinstance(event, CancellationEnded) or self.changes.take(event):
            self.tell()
            return
        request_id = request_of(event)
        if request_id and self._made(request_id).take(event, self._clock.now()):
            self.tell(request_id)

    def _made(self, request_id: str) -> AuctionStory:
        story = self._stories.setdefault(request_id, AuctionStory(request_id))
        over = [key for key, each in self._stories.items() if each.outcome is not None and key != request_id]
        for key in over[: max(len(self._stories) - STORIES_MAX, 0)]:
            del self._stories[key]
        return story
