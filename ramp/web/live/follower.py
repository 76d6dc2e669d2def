"""Follows events of users while the server runs, and tells the open pages of what has changed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from ramp.client.every_user import EveryUser, WatchUser
from ramp.control.events import Event, Watching
from ramp.errors import RampError

Listener = Callable[[str], None]
"""Called with the id of a changed request, or an empty string for other changes."""


class Follower(ABC):
    """Events of some users; those missed before a connection or during an interruption come from agents' records.

    Args:
        watch: begins to watch a user's requests.
    """

    def __init__(self, watch: WatchUser) -> None:
        self._users = EveryUser(watch, self._hear)
        self._listeners: set[Listener] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    def take(self, event: Event) -> None:
        """Apply an event."""

    @abstractmethod
    async def catch_up(self, user: str) -> None:
        """Read what happened to a user before the connection; a `RampError` leaves that to the next connection."""

    def keep(self, users: Iterable[str]) -> None:
        """Follow exactly these users from now on."""
        self._users.keep(users)

    async def end(self) -> None:
        """Stop following; requests continue at the users' agents."""
        await self._users.end()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def listen(self, listener: Listener, about: str | None = None) -> Callable[[], None]:
        """Call a listener after changes; the returned function ends that.

        Args:
            listener: what is called.
            about: the request whose changes matter, beside changes of no request; None for every change.
        """

        def hear(which: str) -> None:
            if about is None or which in ("", about):
                listener(which)

        self._listeners.add(hear)
        return lambda: self._listeners.discard(hear)

    def tell(self, which: str = "") -> None:
        """Call the listeners; one that fails is called no more."""
        for listener in list(self._listeners):
            try:
                listener(which)
            except Exception:
                logging.getLogger(__name__).exception("telling a page")
                self._listeners.discard(listener)

    def _hear(self, user: str, event: Event) -> None:
        if isinstance(event, Watching):
            task = asyncio.get_running_loop().create_task(self._caught_up(user))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self.take(event)

    async def _caught_up(self, user: str) -> None:
        with contextlib.suppress(RampError):
            await self.catch_up(user)
