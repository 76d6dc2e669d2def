"""Redraws parts of pages after changes, with a limited rate."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from nicegui import Client, ui

PAUSE_S: Final = 0.05
"""Changes within this many seconds are drawn together; a page shows an event within 200 ms."""

BEHIND_S: Final = 6.0
"""A browser acknowledges updates every 3 s; one that is this many seconds late gets no updates until it does, since
they would only fill memory."""

LOOK_AGAIN_S: Final = 0.5
"""Seconds before such a browser is checked again."""


class Refresher:
    """Redraws a part of the current page after changes.

    Args:
        draw: draws that part.
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
    """Whether a browser has not acknowledged updates sent `BEHIND_S` ago."""
    sent = client.outbox.message_history
    return bool(sent) and sent[0][1] < time.time() - BEHIND_S
