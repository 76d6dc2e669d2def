"""The latest changes of the sizes of a user's slots, from events. Pure and bounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar

from ramp.control.events import Event
from ramp.model.agreement import ContractChange
from ramp.protocol.outcome import QUOTED, ChangeOutcome
from ramp.protocol.progress import ChangeAdvanced, ChangeEnded

Value = TypeVar("Value")

SLOTS_MAX: Final = 200
"""Reservations with a change of size in memory; the user's agent has all."""


class SizeChanges:
    """Changes of size that are agreed or have ended."""

    def __init__(self) -> None:
        self._agreed: OrderedDict[str, ContractChange] = OrderedDict()
        self._ended: OrderedDict[str, ChangeOutcome] = OrderedDict()

    def take(self, event: Event) -> bool:
        """Apply an event; returns whether it changed a slot's size. A quotation does not."""
        match event:
            case ChangeAdvanced(amendment):
                _keep(self._agreed, amendment.agreement_id, amendment)
            case ChangeEnded(outcome) if outcome.code != QUOTED:
                self._agreed.pop(outcome.agreement_id, None)
                _keep(self._ended, outcome.agreement_id, outcome)
            case _:
                return False
        return True

    def forget_agreed(self) -> None:
        """Forget the agreed changes, whose ends may have been missed."""
        self._agreed.clear()

    def agreed(self, agreement_id: str) -> ContractChange | None:
        """Return the agreed amendment that is not yet in effect, or None."""
        return self._agreed.get(agreement_id)

    def ended(self, agreement_id: str) -> ChangeOutcome | None:
        """Return the outcome of the last change, or None."""
        return self._ended.get(agreement_id)


def _keep(kept: OrderedDict[str, Value], agreement_id: str, value: Value) -> None:
    kept[agreement_id] = value
    kept.move_to_end(agreement_id)
    while len(kept) > SLOTS_MAX:
        kept.popitem(last=False)
