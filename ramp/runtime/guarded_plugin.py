"""A plug-in as the host asks it: a guest, whose failures stay where they are and whose answers are checked.

Whatever a guest raises, and whatever it answers that cannot be, is told once to whoever listens and becomes an answer
that the pure machines know: a quote is refused with a code at once; a hold, confirmation or release is in doubt, for
nobody knows what has been done, and is asked about again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from ramp.errors import PluginError, StorageFailed
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol.events import MachineInDoubt
from ramp.runtime.snapshot import snapshot_text

Answer = TypeVar("Answer")


class GuardedPlugin:
    """A plug-in that answers nothing that cannot be, and raises nothing but `StorageFailed` of a change.

    Args:
        plugin: the guest.
        told: is told what was wrong, a sentence each time; an empty text when it has answered well again.
    """

    def __init__(self, plugin: ResourcePlugin, told: Callable[[str], None]) -> None:
        self.plugin = plugin
        self._told = told

    @property
    def source(self) -> str:
        """What drives the machine's queue."""
        return self.plugin.source

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """The earliest slot for a unit, or a coded refusal."""
        answer = self._ask("quote", lambda: self.plugin.quote(unit, now), lambda given: quote_problem(unit, given))
        if isinstance(answer, MachineInDoubt):
            return Refusal(unit.number, RefusalCode.PLUGIN_FAILED, detail=answer.reason)
        return answer

    def hold(
        self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant
    ) -> Reservation | Refusal | MachineInDoubt:
        """Set a slot aside."""
        return self._ask(
            "hold",
            lambda: self.plugin.hold(key, unit, slot, until, now),
            lambda given: _refusal_problem(given) or reservation_problem(key, slot, given),
            changes=True,
        )

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal | MachineInDoubt:
        """Make a hold firm."""
        return self._ask(
            "confirm", lambda: self.plugin.confirm(key, now), lambda given: firm_problem(key, given), changes=True
        )

    def look_up(self, key: str, now: Instant) -> Reservation | MachineInDoubt | None:
        """What the machine has under a key."""

        def problem(given: object) -> str:
            return "" if given is None else reservation_problem(key, None, given)

        return self._ask("reservation", lambda: self.plugin.reservation(key, now), problem)

    def release(self, key: str, now: Instant) -> MachineInDoubt | None:
        """Give a hold or reservation back; None once that is done."""
        return self._ask("release", lambda: self.plugin.release(key, now), lambda _: "", changes=True)

    def snapshot(self, now: Instant, horizon: Duration) -> str:
        """The machine as a JSON object in text; one with an `error` where it cannot be had."""
        found = self._ask("snapshot", lambda: snapshot_text(self.plugin.snapshot(now, horizon)), lambda _: "")
        return json.dumps({"error": found.reason}) if isinstance(found, MachineInDoubt) else found

    def _ask(
        self, what: str, call: Callable[[], Answer], problem_of: Callable[[Answer], str], *, changes: bool = False
    ) -> Answer | MachineInDoubt:
        try:
            answer = call()
            problem = problem_of(answer)
        except StorageFailed as error:
            if changes:  # the book of reservations is the agent's own memory, which ends it like the journal's failure
                raise
            problem = str(error)
        except PluginError as error:
            problem = error.reason
        except Exception as error:  # a guest's fault is the guest's, whatever it is
            problem = f"{type(error).__name__}: {error}"
        else:
            if not problem:
                self._told("")
                return answer
        sentence = f"{what}: {' '.join(problem.split())[:300]}"
        self._told(sentence)
        return MachineInDoubt(sentence)


def quote_problem(unit: RequestUnit, answer: Any) -> str:
    """What is impossible about the answer to a quote, or the empty string."""
    if isinstance(answer, Slot):
        return slot_problem(answer, unit.cores.total)
    return _refusal_problem(answer) or (_no("Slot or Refusal", answer) if not isinstance(answer, Refusal) else "")


def slot_problem(slot: Any, cores_min: int) -> str:
    """What is impossible about a slot, or the empty string."""
    if not all(type(value) is int for value in (slot.start, slot.end, slot.cores)):
        return f"start {slot.start!r}, end {slot.end!r} and cores {slot.cores!r} are not all whole numbers"
    if not 0 <= slot.start < slot.end:
        return f"the slot ends at {slot.end}, which is not after its start {slot.start}"
    if slot.cores < cores_min:
        return f"{slot.cores} cores are fewer than the {cores_min} asked"
    shares = (slot.load, slot.fragmentation, slot.links_taken)
    if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares):
        return f"load {slot.load!r}, fragmentation {slot.fragmentation!r} or links {slot.links_taken!r} is no share"
    if not isinstance(slot.placement, str) or not isinstance(slot.token, str):
        return "placement or token is no text"
    return ""


def reservation_problem(key: str, slot: Slot | None, answer: Any) -> str:
    """What is impossible about a reservation, or the empty string; refusals are judged elsewhere."""
    if isinstance(answer, Refusal):
        return ""
    if not isinstance(answer, Reservation):
        return _no("Reservation", answer)
    name: Any = answer.reservation_id
    given: Any = answer.slot
    if answer.key != key:
        return f"the reservation is for {answer.key!r}, not {key!r}"
    if not isinstance(name, str) or not name:
        return f"the reservation's id is {name!r}; right would be a text"
    if not isinstance(given, Slot):
        return _no("Slot", given)
    if slot is not None and (given.start, given.end) != (slot.start, slot.end):
        return "the slot set aside is not the one asked for"
    return slot_problem(given, slot.cores if slot is not None else 0)


def firm_problem(key: str, answer: Any) -> str:
    """What is impossible about the answer to a confirmation, or the empty string."""
    problem = _refusal_problem(answer) or reservation_problem(key, None, answer)
    if not problem and isinstance(answer, Reservation) and not answer.firm:
        return "the reservation is not firm after its confirmation"
    return problem


def _refusal_problem(answer: Any) -> str:
    code: Any = answer.code if isinstance(answer, Refusal) else RefusalCode.PLUGIN_FAILED
    return "" if isinstance(code, RefusalCode) else f"the refusal's code is {code!r}; right would be one of RefusalCode"


def _no(right: str, answer: Any) -> str:
    return f"the answer is a {type(answer).__name__}; right would be a {right}"
