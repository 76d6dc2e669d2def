"""State that all pages share: the market, the sessions, and the session of each open page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from ramp.client.access import RunningMarket, find_market, running
from ramp.client.asyncio_market import AsyncMarket
from ramp.errors import NoMarket
from ramp.runtime.state_folder import StateFolder
from ramp.web.draft import Drafts
from ramp.web.laboratory.runs import Runs
from ramp.web.levels import Levels, MarketReader
from ramp.web.live import SaleWatch, UserFeed
from ramp.web.machines.sale_history import SaleHistory
from ramp.web.metrics import Counted
from ramp.web.security.address import ServedAddress
from ramp.web.security.sessions import Role, Session, Sessions


@dataclass(frozen=True, slots=True)
class Served:
    """What is served.

    Attributes:
        state: the market's state folder.
        sessions: of signed-in users.
        address: of the pages.
        results: folder of results of experiments; by default that in the state folder.
        notice: one line on the first page.
        openid: file of a provider of OpenID Connect; None without one.
    """

    state: StateFolder
    sessions: Sessions
    address: ServedAddress
    results: Path | None = None
    notice: str = ""
    openid: Path | None = None


class Site:
    """The pages of one market.

    Args:
        served: what is served.

    Attributes:
        state: the market's state folder.
        sessions: of signed-in users.
        notice: one line on the first page; empty for none.
        owners: key of the session of each open page, by the page's id.
        sales: of the market over time.
        counted: what metrics count of the events of all users.
        sale_watch: follows all users.
        results: folder of results of experiments and of traces.
        runs: experiments that the keeper runs.
        drafts: forms of requests by session.
    """

    def __init__(self, served: Served) -> None:
        self.state, self.sessions, self.notice = served.state, served.sessions, served.notice
        self.owners: dict[str, str] = {}
        self.sales = SaleHistory(self.state.web_sales)
        self.counted = Counted()
        self.sale_watch = SaleWatch(self.state, self.sales, self.counted.take)
        self._feeds: dict[str, UserFeed] = {}
        self.results = (served.results or self.state.web_results).resolve()
        self.runs = Runs(self.results)
        self._reader = MarketReader(self.state)
        self.drafts = Drafts()

    async def end(self) -> None:
        """Stop everything that runs, at the server's end."""
        await asyncio.gather(self.runs.end(), *(each.end() for each in (self.sale_watch, *self._feeds.values())))
        self.sales.close()

    async def levels(self) -> Levels:
        """Return the state of the market, and follow the sales to its present users."""
        found = await self._reader.read()
        if found.status is not None:
            self.sale_watch.keep(found.status.names("user"))
        return found

    def market_of(self, session: Session) -> AsyncMarket:
        """Return the market for actions of a session's user, signed by that user's agent.

        Raises:
            NoMarket: if none is running.
            ConfigurationError: if the user has left the market.
        """
        assert session.role is Role.USER, "the keeper buys nothing"
        return AsyncMarket(find_market(self.state, session.name))

    def feed_of(self, session: Session) -> UserFeed:
        """Return the events of a user's requests, which are followed from the first call on."""
        if session.name not in self._feeds:
            self._feeds[session.name] = UserFeed(session.name, lambda: self.market_of(session))
        return self._feeds[session.name]

    def looking_market(self, session: Session) -> AsyncMarket:
        """Return the market for information that all its members may see; the keeper reads it as any user.

        Raises:
            NoMarket: if none is running.
            ConfigurationError: if there is no such user.
        """
        if session.role is Role.USER:
            return self.market_of(session)
        return AsyncMarket(find_market(self.state, None))

    def keeper_access(self, session: Session) -> RunningMarket:
        """Return the access to the keeper's agent.

        Raises:
            NoMarket: if no market is running, or it has no such keeper.
        """
        assert session.role is Role.KEEPER, "users see their own account only"
        found = running(self.state)
        if session.name not in found.names("keeper"):
            raise NoMarket(f"the market that runs has no keeper {session.name}")
        return RunningMarket(self.state, session.name, found.domain, found.names("user"))
