"""How a guest (a plug-in, a price strategy) does: what it last failed at, and until when it is left alone.

Whoever asks a guest tells here what became of it. A guest that has failed is not asked for offers for a while, first a
second and then twice as long each time: its callers are refused at once, with the reason. It is well again when the
call that failed has been answered as it should.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.protocol.progress import GuestFailed, Progress

PAUSE_FIRST: Final[Duration] = SECOND
"""A guest that has failed is asked for no offer for so long; twice as long after each further failure of the call."""

PAUSE_LONGEST: Final[Duration] = MINUTE
"""No pause is longer."""

SNAPSHOT: Final = "snapshot"
"""The call that anybody may bring about: that it fails keeps nobody from buying."""

PROCESS: Final = frozenset({"open", "process"})
"""What concerns every call: that the guest cannot be opened, or that its process has ended by itself."""


class Health(Protocol):
    """What is told how a guest's calls end."""

    def resting(self, call: str, now: Instant) -> str:
        """Why the guest is not asked this now, or the empty string."""
        ...

    def failed(self, call: str, reason: str, now: Instant) -> None:
        """A call has failed, or was answered with what cannot be."""
        ...

    def answered(self, call: str) -> None:
        """A call was answered as it should be."""
        ...


ALSO_SHOWS: Final = {
    "release": ("reservation",),
    "hold": ("release", "reservation"),
    "confirm": ("hold", "release", "reservation"),
}
"""What else a call that was answered well shows to be well: nobody may have a reason to make the others again soon."""


@dataclass(slots=True)
class _Trouble:
    """A call that has failed."""

    reason: str
    pause: Duration
    until: Instant


class GuestHealth:
    """Tells of every failure of a guest, and once that it answers well again.

    Args:
        guest: what it is called in words (`plug-in`, `price strategy`).
        watch: is told the progress of the resource.
    """

    def __init__(self, guest: str, watch: Callable[[Progress], None]) -> None:
        self.guest = guest
        self._watch = watch
        self._troubles: dict[str, _Trouble] = {}  # by call, the latest last

    @property
    def reason(self) -> str:
        """What it failed at last and has not answered since, or the empty string."""
        return next((trouble.reason for trouble in reversed(self._troubles.values())), "")

    def resting(self, call: str, now: Instant) -> str:
        """Why the guest is not asked this now, or the empty string.

        Args:
            call: `quote`, `hold` and `price` rest after whatever has failed, but for the snapshot; that rests alone.
            now: the present.
        """
        for name, trouble in reversed(self._troubles.items()):
            concerned = name == call or name in PROCESS or SNAPSHOT not in (name, call)
            if concerned and 0 < trouble.until - now <= PAUSE_LONGEST:  # more: the clock was set back
                return trouble.reason
        return ""

    def is_on_trial(self, call: str) -> bool:
        """Whether this call has failed last, or the guest itself has: the next one shows whether it is well again."""
        return not self._troubles.keys().isdisjoint({call, *PROCESS})

    def is_failing(self, call: str) -> bool:
        """Whether this call has failed and has not been answered well since."""
        return call in self._troubles

    def failed(self, call: str, reason: str, now: Instant) -> None:
        """A call has failed; while its pause runs, that it fails again does not make the next one longer."""
        before = self._troubles.pop(call, None)
        if before is None:
            trouble = _Trouble(reason, PAUSE_FIRST, now + PAUSE_FIRST)
        elif 0 < before.until - now <= PAUSE_LONGEST:
            trouble = _Trouble(reason, before.pause, before.until)
        else:
            pause = min(2 * before.pause, PAUSE_LONGEST)
            trouble = _Trouble(reason, pause, now + pause)
        self._troubles[call] = trouble
        self._watch(GuestFailed(self.guest, reason))

    def answered(self, call: str) -> None:
        """A call was answered as it should be; what else has failed must be too, unless this shows that it is well."""
        well = [name for name in (call, *ALSO_SHOWS.get(call, ())) if name in self._troubles]
        for name in well:
            del self._troubles[name]
        if well:
            self._watch(GuestFailed(self.guest, self.reason))

    def restart_pause(self, call: str, now: Instant) -> Duration:
        """How long to wait before a guest that has failed at a call is started anew, or asked again."""
        trouble = self._troubles.get(call)
        return min(max(trouble.until - now, 0), PAUSE_LONGEST) if trouble is not None else 0
