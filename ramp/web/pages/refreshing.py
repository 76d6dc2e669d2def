"""Pages that follow what goes on: drawn anew soon after a change, not at each of a hundred changes a second."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from nicegui import Client, ui

PAUSE_S: Final = 0.05
"""Changes within so many seconds are drawn together; a page shows an event well within 200 ms."""

BEHIND_S: Final = 6.0
"""A browser acknowledges what it has drawn every 3 s; one that is so many seconds behind gets nothing before it has:
what nobody draws would only fill memory, here and there."""

LOOK_AGAIN_S: Final = 0.5
"""Pause before such a browser is looked at again, in seconds."""


class Refresher:
    """Draws a part of the page that is being built again after changes.

    Args:
        draw: draws it.
        pause: seconds between two drawings.
    """

    def __init__(self, draw: Callable[[], None], pause: float = PAUSE_S) -> None:
        self._draw = draw
        self._pause = pause
        self._client: Client = ui.context.client
        self._due: asyncio.TimerHandle | None = None
        self._gone = False
        self._client.on_delete(self._stop)

    def changed(self) -> None:
        """Something is different: draw it soon."""
        if self._due is None and not self._gone and not self._client.is_deleted:
            self._due = asyncio.get_running_loop().call_later(self._pause, self._now)

    def _now(self) -> None:
        self._due = None
        if self._gone or self._client.is_deleted:
            return
        if is_behind(self._client):
            self._due = asyncio.get_running_loop().call_later(LOOK_AGAIN_S, self._now)
            return
        try:
            with self._client:
                self._draw()
        except Exception:
            logging.getLogger(__name__).exception("drawing a page")

    def _stop(self) -> None:
        self._gone = True
        if self._due is not None:
            self._due.cancel()


def is_behind(client: Client) -> bool:
    """Whether a browser has not yet acknowledged what it was sent `BEHIND_S` ago."""
    sent = client.outbox.message_history
    return bool(sent) and sent[0][1] < time.time() - BEHIND_S
