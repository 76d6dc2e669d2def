"""Asking a guest again what it has failed at, so that it is known to be well without anybody who wants to buy.

Only what changes nothing is asked again: a quote, a price, a picture of the machine, as it was asked last, its times
moved to the present. It is asked when the pause after the failure is over; each further failure doubles the pause. A
hold that failed is proved well by the next hold only, and what concerns a promise the party itself asks for until it is
answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.request import RequestUnit
from ramp.protocol import effects as fx
from ramp.runtime.guests.answers import Question, call_of
from ramp.runtime.guests.health import GuestHealth

PROBED: Final = frozenset({"quote", "price", "snapshot"})
"""Calls that change nothing: whoever has asked need not know how they end."""


@dataclass(slots=True)
class _Failed:
    question: Question
    at: Instant
    timer: asyncio.TimerHandle


class Probes:
    """The questions that a guest has failed at.

    Args:
        health: knows what has not been answered since, and how long the guest is left alone.
        now: the agent's clock.
        put: puts a question to the guest; nobody waits for the answer.
    """

    def __init__(self, health: GuestHealth, now: Callable[[], Instant], put: Callable[[Question], None]) -> None:
        self._health = health
        self._now = now
        self._put = put
        self._failed: dict[str, _Failed] = {}

    def failed(self, question: Question) -> None:
        """A question was not answered as it should be: it is put again after the pause."""
        call = call_of(question)
        if call not in PROBED:
            return
        before = self._failed.pop(call, None)
        if before is not None:
            before.timer.cancel()
        now = self._now()
        pause = self._health.restart_pause(call, now) / SECOND
        timer = asyncio.get_running_loop().call_later(pause, self._due, call)
        self._failed[call] = _Failed(question, now, timer)

    def _due(self, call: str) -> None:
        failed = self._failed.pop(call)
        if self._health.is_failing(call):
            self._put(_moved(failed.question, self._now() - failed.at))

    def stop(self) -> None:
        """Put nothing any more."""
        for failed in self._failed.values():
            failed.timer.cancel()
        self._failed.clear()


def _moved(question: Question, by: Duration) -> Question:
    """A question so much later: a window that has passed would be refused without a look at the machine."""
    if not isinstance(question, fx.QuoteSlots):
        return question
    return replace(question, units=tuple(_later(unit, by) for unit in question.units))


def _later(unit: RequestUnit, by: Duration) -> RequestUnit:
    begin = None if unit.not_before is None else unit.not_before + by
    return replace(unit, deadline=unit.deadline + by, not_before=begin)
