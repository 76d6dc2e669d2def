"""How a user's requests stand, kept from what is told: nobody asks the agent for all of them at every event.

Pure and bounded. What the agent lists replaces what was put together here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ramp.control.events import RequestStanding
from ramp.model.instant import Instant
from ramp.web.live.story import AuctionStory

STANDINGS_MAX: Final = 100
"""Requests that are kept, the latest; the agent knows the others."""


@dataclass(slots=True)
class Standings:
    """The latest requests of one user.

    Attributes:
        more: whether the agent has listed more of them than are kept.
    """

    more: bool = False
    _known: dict[str, RequestStanding] = field(default_factory=dict)

    def listed(self, requests: Sequence[RequestStanding]) -> None:
        """Take what the agent lists, the latest last."""
        self.more = len(requests) > STANDINGS_MAX
        self._known = {each.request_id: each for each in requests[-STANDINGS_MAX:]}

    def take(self, story: AuctionStory, now: Instant) -> None:
        """A request is different: its story says how it stands."""
        outcome = story.outcome
        known = self._known.get(story.request_id)
        if known is None:
            known = RequestStanding(story.request_id, story.stage, "", len(story.units), now)
        begun = known.started_at if outcome is None else outcome.started_at
        units = max(known.units, len(story.units))
        self._known[story.request_id] = replace(
            known, stage=story.stage, units=units, started_at=begun, outcome=outcome
        )
        while len(self._known) > STANDINGS_MAX:
            self.more = True
            del self._known[next(iter(self._known))]

    def latest(self) -> list[RequestStanding]:
        """They, the latest first."""
        return list(reversed(self._known.values()))
