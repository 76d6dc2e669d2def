"""When conversations want to be woken, the earliest first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from ramp.model.instant import Instant


class Alarms:
    """One alarm a conversation at most; setting it again puts it off or forward."""

    def __init__(self) -> None:
        self._set_for: dict[str, Instant] = {}
        self._queue: list[tuple[Instant, str]] = []

    @property
    def deadline(self) -> Instant | None:
        """When the first is due, or None."""
        queue = self._queue
        while queue and self._set_for.get(queue[0][1]) != queue[0][0]:
            heappop(queue)  # it has been put off or is not needed any more
        return queue[0][0] if queue else None

    def set(self, reference: str, due: Instant | None) -> None:
        """Wake a conversation then; None: not at all."""
        if due is None:
            self._set_for.pop(reference, None)
        elif self._set_for.get(reference) != due:
            self._set_for[reference] = due
            heappush(self._queue, (due, reference))

    def due(self, now: Instant) -> Iterator[str]:
        """Every conversation whose time has come; its alarm is gone before it is told."""
        while self._queue and self._queue[0][0] <= now:
            when, reference = heappop(self._queue)
            if self._set_for.get(reference) == when:
                del self._set_for[reference]
                yield reference

    def clear(self) -> None:
        """Forget all alarms."""
        self._set_for.clear()
        self._queue.clear()
