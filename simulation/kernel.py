"""The discrete-event kernel: virtual time and the order of events.

Time is an integer of microseconds. Events are ordered by `(time, priority, sequence)`: what happens first, then what
matters first among simultaneous events, then what was scheduled first. The last rule makes every run repeat exactly.
The kernel knows nothing of jobs, messages or machines; it has no clock and draws no random number.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

EventT = TypeVar("EventT")


class EventQueue(Generic[EventT]):
    """Future events and the virtual time reached so far.

    Events of one time and priority wait in a line, and a heap orders the lines: a large market has tens of thousands
    of messages that arrive at one time.

    Attributes:
        now: virtual time in microseconds; the time of the event handed out last.
    """

    __slots__ = ("_heap", "_lines", "_pending", "_sequence", "now")

    def __init__(self, start: int = 0) -> None:
        self.now = start
        self._heap: list[tuple[int, int]] = []
        self._lines: dict[tuple[int, int], deque[tuple[int, EventT]]] = {}
        self._pending: set[int] = set()
        self._sequence = 0

    def schedule(self, time: int, event: EventT, priority: int = 0) -> int:
        """Add an event.

        Args:
            time: when it happens, in microseconds; not before `now`.
            event: what happens; never compared.
            priority: among events of one time the smaller number comes first.

        Returns:
            A ticket for `cancel`.

        Raises:
            ValueError: the time lies in the past.
        """
        if time < self.now:
            raise ValueError(f"event at {time} us, but virtual time is already {self.now} us")
        ticket = self._sequence
        self._sequence += 1
        key = time, priority
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = deque()
            heapq.heappush(self._heap, key)
        line.append((ticket, event))
        self._pending.add(ticket)
        return ticket

    def cancel(self, ticket: int) -> None:
        """Take an event back, unless it has happened."""
        self._pending.discard(ticket)

    def next_time(self) -> int | None:
        """Time of the next event in microseconds, or None when nothing is left."""
        heap, pending = self._heap, self._pending
        while heap:
            line = self._lines[heap[0]]
            while line and line[0][0] not in pending:
                line.popleft()  # a cancelled one
            if line:
                return heap[0][0]
            del self._lines[heapq.heappop(heap)]
        return None

    def pop(self) -> EventT:
        """Advance to the next event and hand it out.

        Raises:
            IndexError: no event is left.
        """
        time = self.next_time()
        if time is None:
            raise IndexError("no event is left")
        ticket, event = self._lines[self._heap[0]].popleft()
        self._pending.remove(ticket)
        self.now = time
        return event

    def until(self, end: int) -> Iterator[EventT]:
        """Advance to each event that happens by `end` and hand it out, also those added meanwhile."""
        heap, lines, pending = self._heap, self._lines, self._pending
        while heap and heap[0][0] <= end:
            if not (line := lines[heap[0]]):
                del lines[heapq.heappop(heap)]
                continue
            ticket, event = line.popleft()
            if ticket in pending:
                pending.remove(ticket)
                self.now = heap[0][0]
                yield event
