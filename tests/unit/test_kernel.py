"""The event queue: order, ties, cancelling."""

import pytest

from simulation.kernel import EventQueue


def test_events_come_by_time_then_priority_then_order_of_scheduling() -> None:
    """The heap key is (time, priority, sequence); events themselves are never compared."""
    queue: EventQueue[object] = EventQueue()
    late, second, first, urgent = object(), object(), object(), object()
    queue.schedule(20, late)
    queue.schedule(10, first, priority=1)
    queue.schedule(10, second, priority=1)
    queue.schedule(10, urgent, priority=0)
    assert [queue.pop() for _ in range(4)] == [urgent, first, second, late]
    assert queue.now == 20


def test_cancelled_events_never_happen_and_time_skips_them() -> None:
    """A cancelled event neither comes out nor holds the clock; cancelling twice is no error."""
    queue: EventQueue[str] = EventQueue()
    ticket = queue.schedule(5, "cancelled")
    queue.schedule(7, "kept")
    queue.cancel(ticket)
    queue.cancel(ticket)
    assert queue.next_time() == 7
    assert queue.pop() == "kept"
    queue.cancel(ticket)
    assert queue.next_time() is None


def test_events_after_the_end_of_a_run_stay_and_time_stands() -> None:
    queue: EventQueue[str] = EventQueue()
    ticket = queue.schedule(5, "cancelled")
    queue.schedule(7, "in time")
    queue.schedule(8, "late")
    queue.cancel(ticket)
    assert list(queue.until(7)) == ["in time"]
    assert (queue.now, queue.pop(), queue.next_time()) == (7, "late", None)


def test_the_past_is_refused() -> None:
    """Virtual time never runs backwards."""
    queue: EventQueue[str] = EventQueue(start=100)
    with pytest.raises(ValueError, match="99 us"):
        queue.schedule(99, "too late")
    queue.schedule(100, "now")
    assert queue.pop() == "now"


def test_an_empty_queue_has_nothing_to_hand_out() -> None:
    """Popping from an empty queue is an error, not None."""
    with pytest.raises(IndexError):
        EventQueue[str]().pop()


def test_events_up_to_a_time_include_those_added_meanwhile() -> None:
    """All events up to a time come out, also such as an event of that time adds."""
    queue: EventQueue[str] = EventQueue()
    queue.schedule(3, "a")
    queue.schedule(4, "later")
    seen = []
    for event in queue.until(3):
        seen.append(event)
        if event == "a":
            queue.schedule(3, "b")
    assert seen == ["a", "b"]
    assert queue.next_time() == 4
