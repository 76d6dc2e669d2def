"""The market's agents and their behaviours, named as in the paper's section 6.

A behaviour here says which messages it serves; what is done with them is the party's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ramp.agents.behaviour import Courier
from ramp.agents.party_agent import DOCUMENT_FIELD, PartyAgent
from ramp.model.acl import Performative
from ramp.protocol.directory_party import DirectoryParty
from ramp.protocol.progress import Progress
from ramp.protocol.resource_party import ResourceParty
from ramp.protocol.user_party import UserParty

Registered = tuple[tuple[str, str], ...]
"""(service, name) of registered agents."""


class RequestAQuote(Courier):
    """User: the auction's answers (section 6.1)."""

    performatives = (Performative.PROPOSE.value, Performative.REFUSE.value, Performative.INFORM.value)


class ResourceNotifier(Courier):
    """User: votes and confirmations of the two-phase commit (section 6.1)."""

    performatives = (Performative.AGREE.value, Performative.CONFIRM.value, Performative.FAILURE.value)


class RFQResponseServer(Courier):
    """Resource: calls for proposals and rejections (section 6.2)."""

    performatives = (Performative.CFP.value, Performative.REJECT_PROPOSAL.value)


class PurchaseOrdersServer(Courier):
    """Resource: acceptances, the voting phase (section 6.2)."""

    performatives = (Performative.ACCEPT_PROPOSAL.value,)


class FinaliseServer(Courier):
    """Resource: confirmations, the commit phase, and the bank's answers to the notification (sections 6.2, 5.1.2)."""

    performatives = (Performative.CONFIRM.value, Performative.AGREE.value, Performative.REFUSE.value)


class CancelServer(Courier):
    """Resource: cancelled holds and signed cancellations (section 6.2)."""

    performatives = (Performative.CANCEL.value,)


class TransactionUpdate(Courier):
    """Bank: countersigned agreements (section 6.3)."""

    performatives = (Performative.REQUEST.value,)
    conditions = {DOCUMENT_FIELD: "Agreement"}  # noqa: RUF012 - the base declares it a class variable


class CancelListener(Courier):
    """Bank: countersigned cancellations (section 6.3)."""

    performatives = (Performative.REQUEST.value,)
    conditions = {DOCUMENT_FIELD: "Cancellation"}  # noqa: RUF012


class BalanceRequest(Courier):
    """Bank: signed account queries and questions about payments (section 6.3)."""

    performatives = (Performative.QUERY_REF.value,)


class RegistrationServer(Courier):
    """Directory: registrations, withdrawals and searches."""

    performatives = (Performative.SUBSCRIBE.value, Performative.CANCEL.value, Performative.QUERY_REF.value)


class UserAgent(PartyAgent):
    """Buys for one owner, who commands it through its control channel.

    Attributes:
        watchers: told the progress of everything that goes on.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (RequestAQuote, ResourceNotifier)

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.watchers: set[Callable[[Progress], None]] = set()
        super().__init__(*args, **keywords)

    @property
    def party(self) -> UserParty:
        """The user's protocol."""
        assert isinstance(self.host.party, UserParty)
        return self.host.party

    def watch(self, progress: Progress) -> None:
        """Pass progress on to the watchers."""
        for watcher in tuple(self.watchers):
            watcher(progress)


class ResourceAgent(PartyAgent):
    """Sells the time of one machine."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        RFQResponseServer,
        PurchaseOrdersServer,
        FinaliseServer,
        CancelServer,
    )

    async def leave(self) -> None:
        """Strike this resource out of the directory."""
        party = self.host.party
        assert isinstance(party, ResourceParty)
        self.host.perform(party.leave(), self.clock.now())
        await self._settle()
        await self.drain(limit_s=1.0)


class BankingAgent(PartyAgent):
    """Keeps the accounts."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (TransactionUpdate, CancelListener, BalanceRequest)


class DirectoryAgent(PartyAgent):
    """Knows who sells.

    Attributes:
        keep: stores who is registered, for the next life of this agent; called when that has changed.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (RegistrationServer,)

    def __init__(self, *args: Any, keep: Callable[[Registered], None], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.keep = keep
        self._kept: Registered = ()

    async def _settle(self) -> None:
        party = self.host.party
        assert isinstance(party, DirectoryParty)
        if party.registered != self._kept:
            self._kept = party.registered
            self.keep(self._kept)
        await super()._settle()
