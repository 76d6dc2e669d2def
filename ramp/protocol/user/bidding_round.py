"""One round of bidding: who has been called, who has answered, and what has come."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ramp.model.contents import CallForProposals
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.protocol.outcome import ResourceRefusal, RoundRecord
from ramp.protocol.timing import Pace
from ramp.protocol.user.calls import Calls


class BiddingRound:
    """A round that is open.

    Args:
        call: what everybody called is asked; one content for all, so that the shells write it once.
        called: names of those who are called.
        pace: of the calling party.
        now: when.

    Attributes:
        call: as above.
        called: as above.
        calls: which of them to send again, and when.
        offers: what has been offered.
        answers: how long each answer took.
    """

    def __init__(self, call: CallForProposals, called: Sequence[str], pace: Pace, now: Instant) -> None:
        self.call = call
        self.called = tuple(called)
        self.calls = Calls(pace, self.called, now)
        self.offers: list[Offer] = []
        self.answers: dict[str, Duration] = {}
        self._begun = now
        self._refusals: list[ResourceRefusal] = []

    @property
    def asking_prices(self) -> tuple[tuple[int, int], ...]:
        """The price asked for each unit, by its number."""
        return tuple((unit.number, unit.cpu_hour_cost) for unit in self.call.request.units)

    @property
    def silent(self) -> list[str]:
        """Who has been called and has not answered."""
        return [name for name in self.called if name not in self.answers]

    def is_over(self, not_waited_for: Collection[str]) -> bool:
        """Whether everybody has answered who is waited for."""
        return all(name in not_waited_for for name in self.silent)

    def answered(self, sender: str, refusals: Iterable[Refusal], now: Instant) -> list[str]:
        """Somebody has answered; returns whom to call again now."""
        self._refusals += [ResourceRefusal(sender, refusal) for refusal in refusals]
        self.answers.setdefault(sender, now - self._begun)
        return self.calls.answered(sender, now)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        self._begun += by
        self.calls.clock_set(by)

    def closed(self, not_called: Iterable[ResourceRefusal], now: Instant) -> RoundRecord:
        """The round as it has ended.

        Args:
            not_called: what those have refused who were not called any more.
            now: the present.
        """
        nobody = [
            ResourceRefusal(name, Refusal(number, RefusalCode.NO_ANSWER))
            for name in self.silent
            for number, _ in self.asking_prices
        ]
        return RoundRecord(
            self.call.round_number,
            self.asking_prices,
            tuple(self.offers),
            (*self._refusals, *not_called, *nobody),
            now - self._begun,
            self.call.best_offer,
        )
