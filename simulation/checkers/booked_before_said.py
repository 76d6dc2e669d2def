"""An honest resource votes yes, confirms and hands proofs over only for what its machine has set aside."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.contents import Confirmed, HoldGranted, Settled
from ramp.plugins.interface import Reservation
from simulation.market.market_view import Checker, MarketView


class BookedBeforeSaid(Checker):
    """Asks the machine at every such word."""

    name = "booked_before_said"

    def on_sent(self, message: Message, view: MarketView) -> None:
        """A vote needs a hold, a confirmation and a proof a firm reservation."""
        content = message.content
        if message.sender in view.liars or not isinstance(content, HoldGranted | Confirmed | Settled):
            return
        if isinstance(content, HoldGranted):
            if content.hold_for > 0 and self._found(message.sender, content.offer_id, view) is None:
                raise self._violated(f"{message.sender} votes for {content.offer_id}, which its machine does not hold")
            return
        found = self._found(message.sender, content.offer_id, view)
        if found is None or not found.firm:
            said = type(content).__name__
            raise self._violated(
                f"{message.sender} says {said} of {content.offer_id}, which is not firm on its machine"
            )

    def _found(self, name: str, key: str, view: MarketView) -> Reservation | None:
        return view.machines[name].reservation(key, view.time_of(name))
