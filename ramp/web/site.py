"""State that all pages share: the market, the sessions, and the session of each open page."""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from pathlib import Path
from typing import Final

from ramp.runtime.state_folder import StateFolder
from ramp.web.draft import DRAFTS_MAX, Draft
from ramp.web.levels import Levels, read_levels
from ramp.web.live import SaleHistory, SaleWatch, UserFeed
from ramp.web.metrics import Counted
from ramp.web.pages.laboratory.runs import Runs
from ramp.web.security.sessions import Sessions

FRESH_S: Final = 5.0
"""How long the state of the market is kept, in seconds."""


class Site:
    """The pages of one market.

    Attributes:
        notice: one line on the first page; empty for none.
        owners: key of the session of each open page, by the page's id.
        sales: of the market over time.
        counted: what metrics count of the events of all users.
        sale_watch: follows all users.
        results: folder of results of experiments and of traces.
        runs: experiments that the keeper runs.
        draft_of: finds the form of a session's request by the session's key.
    """

    def __init__(self, state: StateFolder, sessions: Sessions, results: Path | None = None, notice: str = "") -> None:
        self.state, self.sessions, self.notice = state, sessions, notice
        self.owners: dict[str, str] = {}
        self.sales = SaleHistory()
        self.counted = Counted()
        self.sale_watch = SaleWatch(self.state, self.sales, self.counted.take)
        self._feeds: dict[str, UserFeed] = {}
        self.results = (results or state.web_results).resolve()
        self.runs = Runs(self.results)
        self._one_at_a_time = asyncio.Lock()
        self._levels, self._fresh_until = Levels(), 0.0
        self.draft_of = lru_cache(DRAFTS_MAX)(lambda _session: Draft())

    async def end(self) -> None:
        """Stop everything that runs, at the server's end."""
        await asyncio.gather(self.runs.end(), *(each.end() for each in (self.sale_watch, *self._feeds.values())))

    async def levels(self) -> Levels:
        """Return the state of the market, at most `FRESH_S` old, and follow the sales to its present users."""
        async with self._one_at_a_time:
            if time.monotonic() >= self._fresh_until:
                self._levels = await read_levels(self.state)
                self._fresh_until = time.monotonic() + FRESH_S
        if self._levels.status is not None:
            self.sale_watch.keep(self._levels.status.names("user"))
        return self._levels

    def feed_of(self, user: str) -> UserFeed:
        """Return the events of a user's requests, which are followed from the first call on."""
        if user not in self._feeds:
            self._feeds[user] = UserFeed(user, self.state)
        return self._feeds[user]
