"""Changes of size of one user's slots, as far as they were heard of: what is agreed on, and how the last one ended."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar

from ramp.control.events import Event
from ramp.model.agreement import Amendment
from ramp.protocol.amending.asking import QUOTED, AmendmentOutcome
from ramp.protocol.progress import AmendmentAdvanced, AmendmentEnded

Value = TypeVar("Value")

SLOTS_MAX: Final = 200
"""Slots whose last change is known; of earlier ones the agent's record tells."""


class SizeChanges:
    """What was heard of changes of size."""

    def __init__(self) -> None:
        self._agreed: OrderedDict[str, Amendment] = OrderedDict()
        self._ended: OrderedDict[str, AmendmentOutcome] = OrderedDict()

    def take(self, event: Event) -> bool:
        """Hear an event; whether it says something new of a slot's size. A quotation changes nothing."""
        match event:
            case AmendmentAdvanced(amendment):
                _keep(self._agreed, amendment.agreement_id, amendment)
            case AmendmentEnded(outcome) if outcome.code != QUOTED:
                self._agreed.pop(outcome.agreement_id, None)
                _keep(self._ended, outcome.agreement_id, outcome)
            case _:
                return False
        return True

    def agreed(self, agreement_id: str) -> Amendment | None:
        """The amendment that the seller has agreed to, and that has not ended."""
        return self._agreed.get(agreement_id)

    def ended(self, agreement_id: str) -> AmendmentOutcome | None:
        """How the last change has ended."""
        return self._ended.get(agreement_id)


def _keep(kept: OrderedDict[str, Value], agreement_id: str, value: Value) -> None:
    kept[agreement_id] = value
    kept.move_to_end(agreement_id)
    while len(kept) > SLOTS_MAX:
        kept.popitem(last=False)
