"""Pages that follow what goes on: drawn anew soon after a change, not at each of a hundred changes a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from nicegui import Client, ui

PAUSE_S: Final = 0.05
"""Changes within so many seconds are drawn together; a page shows an event well within 200 ms."""


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
        if self._due is None and not self._gone:
            self._due = asyncio.get_running_loop().call_later(self._pause, self._now)

    def _now(self) -> None:
        self._due = None
        if self._gone:
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
