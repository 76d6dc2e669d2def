"""Failures of a guest (a plug-in or a price strategy), and the pauses after them.

A failed guest gets no requests for offers during a pause: a second at first, then twice as long each time. Its callers
get a refusal with the reason at once. The pause ends the series when the failed call succeeds again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.protocol.progress import GuestFailed, Progress
from ramp.runtime.guests.questions import ROWS

PAUSE_FIRST: Final[Duration] = SECOND
"""Pause after the first failure of a call, without requests for offers; it doubles after each further failure."""

PAUSE_LONGEST: Final[Duration] = MINUTE

PROCESS: Final = frozenset({"open", "process"})
"""Failures that concern every call: the guest cannot be opened, or its process has ended."""


_SHOWS: Final = {row.call: row.shows for row in ROWS}
_ALONE: Final = frozenset(row.call for row in ROWS if row.alone)


@dataclass(slots=True)
class _Trouble:
    reason: str
    pause: Duration
    until: Instant


class GuestHealth:
    """Reports every failure of a guest (`plug-in`, `price strategy`), and once that it works again."""

    def __init__(self, guest: str, watch: Callable[[Progress], None]) -> None:
        self.guest = guest
        self.is_well = True
        self._watch = watch
        self._troubles: dict[str, _Trouble] = {}  # by call, the latest last

    @property
    def reason(self) -> str:
        """Reason of the last failure that no valid answer has followed, or empty."""
        return next((trouble.reason for trouble in reversed(self._troubles.values())), "")

    def resting(self, call: str, now: Instant) -> str:
        """Return why to skip a question now; empty to ask it.

        `quote`, `hold` and `price` pause after any failure except one of a snapshot, which pauses alone.
        """
        for name, trouble in reversed(self._troubles.items()):
            concerned = name == call or name in PROCESS or _ALONE.isdisjoint((name, call))
            if concerned and 0 < trouble.until - now <= PAUSE_LONGEST:  # more: the clock was set back
                return trouble.reason
        return ""

    def is_on_trial(self, call: str) -> bool:
        """Return whether the next answer decides if this call works again."""
        return not self._troubles.keys().isdisjoint({call, *PROCESS})

    def is_failing(self, call: str) -> bool:
        """Return whether this call has failed without a later success."""
        return call in self._troubles

    def failed(self, call: str, reason: str, now: Instant) -> None:
        """Record a failed call; a failure during its pause does not extend the next pause."""
        before = self._troubles.pop(call, None)
        if before is None:
            trouble = _Trouble(reason, PAUSE_FIRST, now + PAUSE_FIRST)
        elif 0 < before.until - now <= PAUSE_LONGEST:
            trouble = _Trouble(reason, before.pause, before.until)
        else:
            pause = min(2 * before.pause, PAUSE_LONGEST)
            trouble = _Trouble(reason, pause, now + pause)
        self._troubles[call] = trouble
        self.is_well = False
        self._watch(GuestFailed(self.guest, reason))

    def answered(self, call: str) -> None:
        """Record a valid answer; other failed calls must succeed too, unless this one shows that they do."""
        if not self._troubles:
            return
        well = [name for name in (call, *_SHOWS.get(call, ())) if name in self._troubles]
        for name in well:
            del self._troubles[name]
        self.is_well = not self._troubles
        if well:
            self._watch(GuestFailed(self.guest, self.reason))

    def restart_pause(self, call: str, now: Instant) -> Duration:
        """Return the pause before a restart of the guest, or a repeat of the call."""
        trouble = self._troubles.get(call)
        return min(max(trouble.until - now, 0), PAUSE_LONGEST) if trouble is not None else 0
