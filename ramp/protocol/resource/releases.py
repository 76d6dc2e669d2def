"""Slots that a resource releases, until its machine has confirmed it, so that the cores can be sold again."""

from __future__ import annotations

from functools import partial

from ramp.model.instant import Duration, Instant
from ramp.protocol.conversations import Conversations, Registry
from ramp.protocol.effects import Effect, ReleaseSlot
from ramp.protocol.timing import Pace, Retry


class Release:
    """The releases of one slot.

    A slot may be released several times, and answers may overtake each other. It counts as free only when all answers
    are in and none is in doubt; else it is released once more.

    Args:
        key: of the slot.
        pace: of the resource.
    """

    def __init__(self, key: str, pace: Pace) -> None:
        self.key = key
        self._retry = Retry(pace)
        self._under_way = 0
        self._in_doubt = False
        self._repeated = False

    @property
    def deadline(self) -> Instant | None:
        return self._retry.due

    @property
    def is_done(self) -> bool:
        return self._under_way == 0 and self._retry.due is None

    def asked(self) -> list[Effect]:
        """Note that the machine is asked to release the slot."""
        self._under_way += 1
        self._retry.stop()
        return []

    def on_answer(self, now: Instant, *, in_doubt: bool) -> list[Effect]:
        """Take an answer; after the last one, wait for another try if any was in doubt."""
        self._in_doubt |= in_doubt
        self._under_way -= 1
        if self._under_way == 0 and self._in_doubt:
            self._in_doubt = False
            if self._repeated:
                self._retry.again(now)
            else:
                self._retry.begin(now)
            self._repeated = True
        return []

    def on_timer(self, now: Instant) -> list[Effect]:
        """Release the slot once more."""
        return [*self.asked(), ReleaseSlot(self.key)]

    def clock_set(self, by: Duration) -> None:
        self._retry.clock_set(by)


class Releases:
    """All releases of one resource."""

    def __init__(self, pace: Pace, registry: Registry) -> None:
        self._pace = pace
        self._open: Conversations[Release] = Conversations(registry, followed=self._followed)

    def __bool__(self) -> bool:
        return len(self._open) > 0

    def __contains__(self, key: str) -> bool:
        return key in self._open

    def asked(self, key: str, now: Instant) -> None:
        """Note that the machine is asked to release a slot."""
        release = self._open.get(key) or self._open.add(key, Release(key, self._pace))
        self._open.act(key, release.asked, now)

    def answered(self, key: str, now: Instant, *, in_doubt: bool) -> list[Effect]:
        """Take an answer of the machine."""
        return self._open.act(key, partial(self._open[key].on_answer, now, in_doubt=in_doubt), now)

    def _followed(self, release: Release, effects: list[Effect], now: Instant) -> list[Effect]:
        if release.is_done:
            self._open.drop(release.key)
        return effects
