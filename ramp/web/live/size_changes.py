"""The latest requests and changes of size of a user, kept from events, so that pages need not query the agent.

Pure and bounded. What the agent lists replaces what was put together here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from ramp.control.events import Event, RequestStanding
from ramp.model.agreement import ContractChange
from ramp.model.instant import Instant
from ramp.protocol.outcome import QUOTED, ChangeOutcome
from ramp.protocol.progress import ChangeAdvanced, ChangeEnded
from ramp.web.live.story import AuctionStory

Value = TypeVar("Value")

STANDINGS_MAX: Final = 100
"""Latest requests in memory; the user's agent has all."""

SLOTS_MAX: Final = 200
"""Reservations with a change of size in memory; the user's agent has all."""


@dataclass(slots=True)
class Standings:
    """The latest requests of one user.

    Attributes:
        more: whether the agent has listed more of them than are kept.
        stale: whether something was refunded or resized since; only the agent knows the costs now.
    """

    more: bool = False
    stale: bool = False
    _known: dict[str, RequestStanding] = field(default_factory=dict)

    def listed(self, requests: Sequence[RequestStanding]) -> None:
        """Replace all by the agent's list, the latest last."""
        self.more = len(requests) > STANDINGS_MAX
        self.stale = False
        self._known = {each.request_id: each for each in requests[-STANDINGS_MAX:]}

    def take(self, story: AuctionStory, now: Instant) -> None:
        outcome = story.outcome
        known = self._known.get(story.request_id)
        if known is None:
            known = RequestStanding(story.request_id, story.stage, "", len(story.units), now)
        begun = known.started_at if outcome is None else outcome.started_at
        units = max(known.units, len(story.units))
        self._known[story.request_id] = replace(
            known,
            stage=story.stage,
            units=units,
            started_at=begun,
            outcome=outcome,
            charged=known.charged if outcome is None else max(known.charged, outcome.cost),
        )
        while len(self._known) > STANDINGS_MAX:
            self.more = True
            del self._known[next(iter(self._known))]

    def latest(self) -> list[RequestStanding]:
        return list(reversed(self._known.values()))


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
