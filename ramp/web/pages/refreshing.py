"""Redraws parts of pages after changes, with a limited rate."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from nicegui import Client, ui

from ramp.errors import RampError
from ramp.web.live import Changes

PAUSE_S: Final = 0.05
"""Changes within this many seconds are drawn together; a page shows an event within 200 ms."""

BEHIND_S: Final = 6.0
"""A browser acknowledges updates every 3 s; one that is this many seconds late gets no updates until it does, since
they would only fill memory."""

LOOK_AGAIN_S: Final = 0.5
"""Seconds before such a browser is checked again."""


class PageClosed(Exception):
    """The page was closed while it was built."""


class Refresher:
    """Redraws a part of the current page after changes, one drawing at a time, until the page is closed.

    Args:
        draw: draws that part, possibly after a query; changes during this lead to another drawing.
        changes: after which it is drawn; None for none.
        about: the request whose changes matter, beside changes of no request; None for every change.
        pause: seconds between two drawings.
        every: seconds after which the part is drawn again in any case; 0 for never.

    Raises:
        PageClosed: if the page is closed already.
    """

    def __init__(
        self,
        draw: Callable[[], Awaitable[None] | None],
        changes: Changes | None = None,
        *,
        about: str | None = None,
        pause: float = PAUSE_S,
        every: float = 0,
    ) -> None:
        self._draw = draw
        self._about = about
        self._pause = pause
        self._client: Client = ui.context.client
        if self._client.is_deleted:
            raise PageClosed
        self._changed = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._client.on_delete(self._task.cancel)
        if changes is not None:
            changes.subscribe(self.changed, expect_args=True)
        if every:
            ui.timer(every, self.changed, immediate=False)

    def changed(self, which: str = "") -> None:
        """Take a change of a request, or with "" of something else."""
        if self._about is None or which in ("", self._about):
            self._changed.set()

    async def _run(self) -> None:
        while not self._client.is_deleted:
            await self._changed.wait()
            await asyncio.sleep(self._pause)
            while is_behind(self._client):
                await asyncio.sleep(LOOK_AGAIN_S)
            self._changed.clear()
            try:
                with self._client:
                    drawn = self._draw()
                    if drawn is not None:
                        await drawn
            except RampError as error:
                logging.getLogger(__name__).info("cannot redraw a page: %s", error)
            except Exception:
                logging.getLogger(__name__).exception("drawing a page")


def is_behind(client: Client) -> bool:
    """Whether a browser has not acknowledged updates sent `BEHIND_S` ago."""
    sent = client.outbox.message_history
    return bool(sent) and sent[0][1] < time.time() - BEHIND_S
