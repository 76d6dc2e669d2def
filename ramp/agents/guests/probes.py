"""Repeats failed questions to a guest, to find out without a buyer whether it works again.

Only questions that change nothing are repeated: the last quote, price or snapshot of the machine, with its times moved
to the present. They are repeated after the pause that follows a failure; each further failure doubles the pause. Only
the next hold can prove that holds work again. The party itself repeats questions about promises until their answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.request import RequestUnit
from ramp.protocol import effects as fx
from ramp.runtime.guests.health import GuestHealth
from ramp.runtime.guests.questions import ROW_OF, Question


@dataclass(slots=True)
class _Failed:
    question: Question
    at: Instant
    timer: asyncio.TimerHandle


class Probes:
    """The failed questions of a guest.

    Args:
        health: knows which calls still fail, and the pauses.
        now: the agent's clock.
        put: asks the guest a question without delivering the answer.
    """

    def __init__(self, health: GuestHealth, now: Callable[[], Instant], put: Callable[[Question], None]) -> None:
        self._health = health
        self._now = now
        self._put = put
        self._failed: dict[str, _Failed] = {}

    def failed(self, question: Question) -> None:
        """Repeat a failed question after the pause."""
        row = ROW_OF[type(question)]
        if not row.can_be_repeated:
            return
        call = row.call
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
        for failed in self._failed.values():
            failed.timer.cancel()
        self._failed.clear()


def _moved(question: Question, by: Duration) -> Question:
    """Move the times of a question; the guest could refuse a past window without asking the machine."""
    if not isinstance(question, fx.QuoteSlots):
        return question
    return replace(question, units=tuple(_later(unit, by) for unit in question.units))


def _later(unit: RequestUnit, by: Duration) -> RequestUnit:
    begin = None if unit.not_before is None else unit.not_before + by
    return replace(unit, deadline=unit.deadline + by, not_before=begin)
