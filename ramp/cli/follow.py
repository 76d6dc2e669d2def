"""A request from submission to its end, through restarts of the User Agent and the owner's Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ramp.cli.auction_view import AuctionView
from ramp.cli.connection import Market, checked
from ramp.cli.output import say
from ramp.errors import TransportError
from ramp.runtime.control_client import ControlClient
from ramp.runtime.identifiers import RandomIds

Approver = Callable[[Sequence[Mapping[str, Any]], Sequence[bool]], bool]
"""Asks the owner about offers; the second list says which of them meet the request."""


def nobody_approves(_: Sequence[Mapping[str, Any]], __: Sequence[bool]) -> bool:
    """Says no, for requests that were submitted without asking."""
    return False


@dataclass(slots=True)
class Followed:
    """A request being followed.

    Args:
        market: where.
        document: the RFQL document as text.
        options: of the auction, as the control channel takes them.
        view: shown every event.
        approve: asked about offers.
    """

    market: Market
    document: str
    options: dict[str, Any]
    view: AuctionView
    approve: Approver = nobody_approves
    request_id: str = ""
    interrupted: bool = False

    def run(self) -> dict[str, Any]:
        """Submit the request and return its `request_ended` event.

        Ctrl-C withdraws the request and waits for its end; a second one stops waiting. A User Agent that ends in the
        middle is waited for, and asked what became of the request: submitting again under the same id is harmless.

        Raises:
            RampError: if it was not accepted, or the market has ended.
        """
        self.request_id = RandomIds().new("request")
        submission: dict[str, Any] = {
            "verb": "submit",
            "request_id": self.request_id,
            "document": self.document,
            "options": self.options,
        }
        watch: dict[str, Any] = {"verb": "watch", "request_id": self.request_id}
        client = self.market.connect()
        request, tried = submission, False
        while True:
            try:
                with client:
                    event = self._events(client, request)
                if event["event"] == "error" and request is watch and not self.interrupted:
                    request = submission  # it ended before it had written the request down
                    client = self.market.reconnect()
                    continue
                return checked(event)
            except (TransportError, OSError):
                if request is submission and tried:
                    raise
                self.view.pause()
                say("ramp: the User Agent ended in the middle of the request; waiting until it is back")
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self._withdraw()
            tried = request is submission
            request = watch
            client = self.market.reconnect()

    def _events(self, client: ControlClient, request: dict[str, Any]) -> dict[str, Any]:
        event: dict[str, Any] = {}
        for event in client.events(request):
            self.view.show(event)
            if event["event"] == "approval_asked":
                self.view.pause()
                client.send({"approved": self.approve(event["offers"], event["meets"])})
        return event

    def _withdraw(self) -> None:
        self.interrupted = True
        self.view.pause()
        say(f"ramp: withdrawing {self.request_id}; Ctrl-C again stops waiting for its end")
        with self.market.reconnect() as client:
            client.answer({"verb": "withdraw", "request_id": self.request_id})
