"""Log lines about senders, at most one a minute and sender: nobody fills a disk by sending what is refused."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from typing import Final

PAUSE_S: Final = 60.0
"""Pause between two lines about one sender, in seconds."""

SENDERS_MAX: Final = 1_000
"""Senders remembered; the one heard of longest ago is forgotten first."""


class RareLines:
    """Warnings about senders.

    Args:
        log: where to.
        what: what has happened; sender and reason follow.
    """

    def __init__(self, log: logging.Logger, what: str) -> None:
        self._log = log
        self._what = what
        self._told: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def tell(self, sender: str, reason: str) -> None:
        """Log it, unless this sender has had its line within the last minute; then it is counted into the next."""
        now = time.monotonic()
        told_at, since = self._told.get(sender, (now - PAUSE_S, 0))
        if now - told_at < PAUSE_S:
            self._told[sender] = (told_at, since + 1)
            return
        more = f" (and {since} more in the last minutes)" if since else ""
        self._log.warning("%s: %.200s: %.500s%s", self._what, sender, reason, more)
        self._told[sender] = (now, 0)
        self._told.move_to_end(sender)
        if len(self._told) > SENDERS_MAX:
            self._told.popitem(last=False)
