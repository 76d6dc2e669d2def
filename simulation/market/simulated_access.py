"""A simulated market behind the same door as a running one: the control channel's table, served in this process.

Parties and hosts are the agents' own; the messages travel through the simulated network without a server. Virtual time
passes only while something is asked, and as far as that takes. Nothing is kept on disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from types import TracebackType
from typing import Final, Self

from ramp.client.access import Line
from ramp.control import answering
from ramp.control.events import Done, Event, MarketRefusalCode, Refused, refusal
from ramp.control.requests import EVERYTHING, Request, wire_name
from ramp.errors import RampError, TransportError
from ramp.model.instant import DAY, SECOND, Duration, Instant
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.user.party import UserParty
from ramp.runtime.configuration.values import SwarmConfig
from simulation.market.actors import CountedIds
from simulation.market.specs import UserSpec, composition_of, configured
from simulation.market.world import START, World

REGISTRATION: Final[Duration] = 1 * SECOND
"""From the start of the parties until all have registered."""

ANSWER_LIMIT: Final[Duration] = 2 * DAY
"""How far virtual time may advance until something happens; far above every limit of the protocol."""


def open_market(config: SwarmConfig, user: str | None, seed: int) -> SimulatedAccess:
    """Open a market of a configuration in virtual time (entry point group `ramp.transports`).

    Args:
        config: its users, resources and limits; server, ledger and quotas of messages mean nothing here.
        user: as which user, or None for the first.
        seed: of whatever is drawn.

    Raises:
        ConfigurationError: if it has no such user, or a plug-in cannot be opened.
    """
    name = config.users[0].name if user is None else config.user(user).name
    unread: list[list[pr.Progress]] = []

    def hear(who: str, progress: pr.Progress, _: Instant) -> None:
        if who == name:
            for each in unread:
                each.append(progress)

    users = [UserSpec(each.name, each.deposit, config.auction_rule, each.overdraft) for each in config.users]
    world = World(
        configured(config.resources, START, seed),
        users,
        seed=seed,
        composition=composition_of(config),
        listen=hear,
    )
    world.approve = lambda _: None
    world.run(limit=REGISTRATION)
    return SimulatedAccess(world, unread, name)


class SimulatedAccess:
    """A simulated market, seen by one of its users; an `Access` of `ramp.client`.

    The world adds the user's progress to each list of `unread`, one for each question under way.
    """

    domain = ""

    def __init__(self, world: World, unread: list[list[pr.Progress]], user: str) -> None:
        self.world = world
        self.unread = unread
        self.user = user
        self.lock = threading.Lock()
        self._ids = CountedIds(f"{user}-asks")

    def now(self) -> Instant:
        return self.world.now

    def new_id(self, kind: str) -> str:
        """Return an identifier that is counted, so that runs repeat."""
        return self._ids.new(kind)

    async def open(self) -> Line:
        """Return a connection; there may be several, in several threads."""
        return _SimulatedLine(self)

    async def reopen(self) -> Line:
        """Return the connection itself: no market crashes here."""
        return await self.open()


class _SimulatedLine:
    """A connection to a simulated user."""

    def __init__(self, access: SimulatedAccess) -> None:
        self._access = access
        self._world = access.world
        self._unread: list[pr.Progress] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave submissions running; they continue with the next question."""

    async def events(self, request: Request) -> AsyncGenerator[Event, None]:
        unread = self._unread = []
        with self._access.lock:
            self._access.unread.append(unread)
        try:
            found = self._answer(request)
            while (event := self._step(found)) is not None:
                yield event
                await asyncio.sleep(0)  # let other tasks run
        finally:
            with self._access.lock:
                self._access.unread[:] = [each for each in self._access.unread if each is not unread]

    def _step(self, found: Iterator[Event]) -> Event | None:
        """Let the market run up to the next event; None at the end."""
        with self._access.lock:
            try:
                return next(found, None)
            except RampError as error:
                return refusal(error)

    def _answer(self, request: Request) -> Iterator[Event]:
        steps = self._watched() if request == EVERYTHING else self._steps(request)
        step = answering.advance(steps)
        if step is None:
            reason = f"a user's agent does not support {wire_name(type(request))!r}"
            yield Refused(MarketRefusalCode.NOT_UNDERSTOOD, reason)
        while step is not None:
            progress = None
            if isinstance(step, ev.Command):
                self._world.command(self._access.user, step)
            elif callable(step):
                progress = self._next(step)
            else:
                yield step
            step = answering.advance(steps, progress)

    def _steps(self, request: Request) -> answering.Conversation:
        return answering.answered(request, self._party, self._access.new_id, "", answering.no_files)

    def _watched(self) -> answering.Conversation:
        """Follow everything under way to its end: between two questions no time passes here."""
        steps = self._steps(EVERYTHING)
        step, progress = answering.advance(steps), None
        while step is not None:
            if callable(step) and all(each.outcome is not None for each in self._party.purchases.values()):
                yield Done()
                return
            progress = yield step
            step = answering.advance(steps, progress)

    @property
    def _party(self) -> UserParty:
        return self._world.users[self._access.user]

    def _next(self, wanted: Callable[[pr.Progress], bool]) -> pr.Progress:
        """Let virtual time pass until a wanted report of the user comes; discard the rest.

        Raises:
            TransportError: if nothing comes.
        """
        end = self._world.now + ANSWER_LIMIT
        while True:
            self._world.run(until=self._unread.__len__, limit=end - self._world.now)
            if not self._unread:
                raise TransportError("the simulated market stopped without an answer")
            progress = self._unread.pop(0)
            if wanted(progress):
                return progress
