"""The story of one request: its rounds, the purchase of its units, and requests for approval.

Pure, and bounded for auctions of any length.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ramp.control.events import Event
from ramp.model.contents import Bid
from ramp.model.instant import MILLISECOND, Instant
from ramp.model.offer import RefusalCode, ease
from ramp.protocol.outcome import RequestOutcome, RequestStatus, ResourceRefusal, RoundRecord
from ramp.protocol.progress import ApprovalAsked, RequestEnded, RoundClosed, RoundOpened, UnitAdvanced

ROUNDS_MAX: Final = 60
"""Rounds in memory; the user's journal has all."""

MOMENTS_MAX: Final = 300
"""Messages in memory for the timeline."""

NEAREST_SHOWN: Final = 3
"""Maximum number of acceptable values shown for a reason; JSON has all."""

STAGES: Final[Mapping[str, str]] = {
    "asking": "vote requested",
    "agreed": "voted yes, cores reserved",
    "refused": "voted no",
    "reserving": "the bank reserves the money",
    "confirming": "the buyer signed and sent the agreement",
    "confirmed": "the seller countersigned the agreement",
    "settled": "paid, with both signatures and the payment proof",
    "failed": "failed",
    "voided": "voided, nothing paid",
}
"""Descriptions of the stages of a unit's purchase."""


@dataclass(slots=True)
class Round:
    """One bidding round.

    Attributes:
        number: from 1.
        best_offer: whether it is the extra round for best offers.
        asked: asking price by unit, credits per core-hour.
        resources: how many are called; 0 where that is not known.
        record: how it went, once it is closed.
        best: the best offer of each unit so far.
    """

    number: int
    best_offer: bool
    asked: Mapping[int, int]
    resources: int = 0
    record: RoundRecord | None = None
    best: Mapping[int, Bid] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its number, marked in the round for best offers."""
        return f"{self.number} (best offers)" if self.best_offer else str(self.number)


class UnitRound(NamedTuple):
    """A unit in a round, of which only the asking price is known until the round is closed."""

    round: Round
    unit: int
    asked: int

    @property
    def offers(self) -> list[Bid] | None:
        """Offers for the unit; None while the round is open."""
        record = self.round.record
        return None if record is None else [bid for bid in record.bids if bid.unit == self.unit]

    @property
    def refusals(self) -> list[str] | None:
        """Codes of the resources' refusals."""
        if self.round.record is None:
            return None
        return [each.refusal.code.value for each in self.round.record.refusals if each.refusal.unit == self.unit]

    @property
    def took_ms(self) -> int | None:
        """Duration of the round in milliseconds; None while it is open."""
        record = self.round.record
        return None if record is None else record.duration // MILLISECOND

    def best(self, short: Callable[[str], str]) -> str:
        """Describe the best offer so far, in the round for best offers that of the round; empty without one."""
        if self.round.best_offer and self.offers:
            cheapest = min(self.offers, key=lambda bid: bid.cpu_hour_cost)
            return f"{cheapest.cpu_hour_cost} by {short(cheapest.resource)}, not as asked"
        found = self.round.best.get(self.unit)
        return "" if found is None else f"{found.cpu_hour_cost} by {short(found.resource)}"


class Reason(NamedTuple):
    """A reason for refusals of a unit, with the refusals."""

    unit: int
    code: RefusalCode
    entries: list[ResourceRefusal]

    def passing(self, short: Callable[[str], str], written: Callable[[str], str]) -> str:
        """Describe the easiest acceptable values with their resources, or return ""; `written` writes their times."""
        nearest = [each for each in self.entries if each.refusal.nearest]
        nearest.sort(key=lambda each: ease(each.refusal.code, each.refusal.nearest))
        return first_of([f"{short(each.resource)}: {written(each.refusal.passing)}" for each in nearest], "; ")


def first_of(texts: Sequence[str], separator: str) -> str:
    """Join the first `NEAREST_SHOWN` texts, and count the others."""
    more = f" and {len(texts) - NEAREST_SHOWN} more" if len(texts) > NEAREST_SHOWN else ""
    return separator.join(texts[:NEAREST_SHOWN]) + more


def reasons_of(record: RoundRecord) -> list[Reason]:
    """Return the refusals of a round by unit and reason, the most frequent first."""
    found: dict[tuple[int, RefusalCode], list[ResourceRefusal]] = {}
    for entry in record.refusals:
        found.setdefault((entry.refusal.unit, entry.refusal.code), []).append(entry)
    ordered = sorted(found.items(), key=lambda item: (item[0][0], -len(item[1]), item[0]))
    return [Reason(unit, code, entries) for (unit, code), entries in ordered]


@dataclass(slots=True)
class AuctionStory:
    """One request.

    Attributes:
        request_id: which.
        rounds: by number.
        moments: stages of units since the auction, in order, each with its instant; the last `MOMENTS_MAX`.
        moments_heard: how many there have been.
        rounds_heard: grows with every change of the rounds.
        approval: what the owner is asked, until it is answered.
        outcome: how it ended, once it has.
    """

    request_id: str
    rounds: dict[int, Round] = field(default_factory=dict)
    moments: deque[tuple[Instant, UnitAdvanced]] = field(default_factory=lambda: deque(maxlen=MOMENTS_MAX))
    moments_heard: int = 0
    rounds_heard: int = 0
    approval: ApprovalAsked | None = None
    outcome: RequestOutcome | None = None

    def take(self, event: Event, now: Instant) -> bool:
        """Apply an event of this request; returns whether anything changed."""
        match event:
            case RoundOpened():
                self._open(Round(event.round_number, event.best_offer, dict(event.asked), event.resources))
            case RoundClosed(record=record):
                known = self.rounds.get(record.round_number)
                resources = 0 if known is None else known.resources
                self._open(
                    Round(
                        record.round_number, record.best_offer, dict(record.asked), resources, record, dict(event.best)
                    )
                )
            case UnitAdvanced():
                self.resume()
                self.moments.append((now, event))
                self.moments_heard += 1
            case ApprovalAsked():
                self.approval = event
            case RequestEnded():
                self.approval = None
                self.end(event.outcome)
            case _:
                return False
        return True

    def resume(self) -> None:
        """Apply that the owner has answered, and a quote is being bought."""
        self.approval = None
        if self.outcome is not None and self.outcome.status is RequestStatus.QUOTED:
            self.outcome = None

    def end(self, outcome: RequestOutcome) -> None:
        """Apply the outcome; its record fills in missed rounds."""
        self.outcome = outcome
        best: dict[int, Bid] = {}
        for record in outcome.rounds:
            for bid in () if record.best_offer else record.bids:
                if bid.unit not in best or bid.cpu_hour_cost < best[bid.unit].cpu_hour_cost:
                    best[bid.unit] = bid
            known = self.rounds.get(record.round_number)
            if known is None or known.record is None:
                self._open(Round(record.round_number, record.best_offer, dict(record.asked), 0, record, dict(best)))

    @property
    def units(self) -> tuple[int, ...]:
        return tuple(sorted({unit for each in self.rounds.values() for unit in each.asked}))

    @property
    def stage(self) -> str:
        """What the request waits for, or how it ended, in words."""
        if self.outcome is not None:
            return self.outcome.status.replace("_", " ")
        if self.approval is not None:
            return "waiting for your approval"
        if self.moments:
            return "buying"
        if not self.rounds:
            return "looking for sellers"
        last = self.rounds[max(self.rounds)]
        return f"round {last.name}" + ("" if last.record is not None else ": waiting for offers")

    def leader(self, unit: int) -> Bid | None:
        """Return the best offer of a unit so far."""
        for number in sorted(self.rounds, reverse=True):
            found = self.rounds[number].best.get(unit)
            if found is not None:
                return found
        return None

    def reasons(self) -> list[Reason]:
        """Return the reasons of the last closed round, but for one of best offers."""
        closed = [each.record for each in self.rounds.values() if each.record is not None and not each.best_offer]
        return reasons_of(max(closed, key=lambda record: record.round_number)) if closed else []

    def _open(self, found: Round) -> None:
        self.rounds[found.number] = found
        self.rounds_heard += 1
        for number in sorted(self.rounds)[: max(len(self.rounds) - ROUNDS_MAX, 0)]:
            del self.rounds[number]
