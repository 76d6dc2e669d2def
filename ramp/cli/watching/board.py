"""What a watcher of a market has seen so far, bounded; pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ramp.cli.watching.lines import Line, lines_of
from ramp.cli.watching.stream import AgentsSeen, AuctionHeard, EventLogged, MachinesSeen, Seen
from ramp.client.machine_state import MachineState
from ramp.control.events import request_of
from ramp.control.status import SwarmStatus
from ramp.web.live.story import AuctionStory

AUCTIONS_MAX: Final = 50
"""Requests that are kept; those that have ended go first."""

EVENTS_MAX: Final = 200
"""Lines of the log that are kept."""


@dataclass(slots=True)
class Board:
    """What has been seen.

    Attributes:
        status: what the supervisor said last; None: no market runs.
        auctions: by user and request, those that have changed last at the end.
        machines: as they answered last, by the resource's local name.
        log: the market's events, the latest at the end.
    """

    status: SwarmStatus | None = None
    auctions: OrderedDict[tuple[str, str], AuctionStory] = field(default_factory=OrderedDict)
    machines: Mapping[str, MachineState] = field(default_factory=dict)
    log: deque[Line] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))

    def take(self, seen: Seen) -> None:
        match seen:
            case AuctionHeard():
                self._hear(seen)
            case AgentsSeen(status=status):
                self.status = status
            case MachinesSeen(machines=machines):
                self.machines = machines
            case EventLogged():
                self.log.extend(lines_of(seen))

    def _hear(self, heard: AuctionHeard) -> None:
        request_id = request_of(heard.event)
        if not request_id:
            return
        key = (heard.user, request_id)
        story = self.auctions.setdefault(key, AuctionStory(request_id))
        story.take(heard.event, heard.at)
        self.auctions.move_to_end(key)
        while len(self.auctions) > AUCTIONS_MAX:
            ended = (each for each, story in self.auctions.items() if story.outcome is not None)
            del self.auctions[next(ended, next(iter(self.auctions)))]
