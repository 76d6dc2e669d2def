"""The market's agents and their behaviours, named as in the paper's section 6.

A behaviour here says which messages it serves; what is done with them is the party's business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ramp.agents.clock_watch import ComparingAgent
from ramp.agents.guests.isolated import IsolatedGuest
from ramp.agents.job_launcher import JobLauncher
from ramp.agents.party_agent import DOCUMENT_FIELD, PartyAgent
from ramp.agents.sites.buying import BuyingThroughSites
from ramp.agents.sites.selling import SellingWithOthers
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement
from ramp.model.contents import HoldRefused, Proposal
from ramp.model.instant import iso
from ramp.model.money import credits_text
from ramp.protocol.directory.party import DirectoryParty, KnownAgent
from ramp.protocol.progress import (
    CancellationEnded,
    ClockCompared,
    GuestFailed,
    KeeperOrdered,
    Progress,
    RecordsMissing,
    RequestEnded,
    UnitMoved,
)
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.user.party import UserParty
from ramp.runtime.logs.events import record
from ramp.runtime.storage_errors import reason_of
from ramp.xmpp.behaviour import Courier

WRITE_PAUSE_S = 1.0
"""How long the directory waits before it writes down who is registered, in seconds: many come and go at once."""

WRITE_AGAIN_S = 15.0
"""How long it waits after that has failed, in seconds."""

_log = logging.getLogger(__name__)

REFUSALS_TOLD_S = 60.0
"""A refusal of one buyer for one reason is an event at most so often, in seconds, with how many there were."""

REFUSALS_COUNTED_MAX = 1_000
"""Buyers and reasons whose refusals are counted at a time."""


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
    """Resource: confirmations, the commit phase, and what the bank says of payments (sections 6.2, 5.1.2)."""

    performatives = (
        Performative.CONFIRM.value,
        Performative.AGREE.value,
        Performative.REFUSE.value,
        Performative.INFORM.value,
    )


class JobServer(Courier):
    """Resource: orders of jobs on what was sold, and questions about them."""

    performatives = (Performative.REQUEST.value, Performative.QUERY_REF.value)


class CancelServer(Courier):
    """Resource: cancelled holds and jobs, and signed cancellations (section 6.2)."""

    performatives = (Performative.CANCEL.value,)


class TransactionUpdate(Courier):
    """Bank: countersigned agreements (section 6.3)."""

    performatives = (Performative.REQUEST.value,)
    conditions = {DOCUMENT_FIELD: "Agreement"}  # noqa: RUF012 - the base declares it a class variable


class CancelListener(Courier):
    """Bank: countersigned cancellations (section 6.3)."""

    performatives = (Performative.REQUEST.value,)
    conditions = {DOCUMENT_FIELD: "Cancellation"}  # noqa: RUF012


class OrderListener(Courier):
    """Bank: orders of users and of the keeper, claims, and resources that say they have failed."""

    performatives = (Performative.REQUEST.value, Performative.FAILURE.value)


class BalanceRequest(Courier):
    """Bank: questions about accounts, payments and all trading (section 6.3)."""

    performatives = (Performative.QUERY_REF.value,)


class RegistrationServer(Courier):
    """Directory: registrations, withdrawals and searches."""

    performatives = (Performative.SUBSCRIBE.value, Performative.CANCEL.value, Performative.QUERY_REF.value)


class BankAnswers(Courier):
    """Keeper: what the bank answers to its orders."""

    performatives = (Performative.AGREE.value, Performative.REFUSE.value, Performative.INFORM.value)


class CommandedAgent(PartyAgent):
    """An agent whose owner commands it through its control channel.

    Attributes:
        watchers: told the progress of everything that goes on.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.watchers: set[Callable[[Progress], None]] = set()
        super().__init__(*args, **keywords)

    def watch(self, progress: Progress) -> None:
        """Pass progress on to the watchers; what the journal does not have is for the log."""
        if isinstance(progress, RecordsMissing):
            _log.warning("%s: request %s: %s", self.jid, progress.request_id, progress.what)
            return
        for watcher in tuple(self.watchers):
            watcher(progress)


def ending_text(ended: RequestEnded | CancellationEnded) -> str:
    """How a request or a cancellation ended, as a line of the log."""
    if isinstance(ended, CancellationEnded):
        what = ended.outcome
        how = f"given back for {credits_text(what.refund)} credits" if what.done else f"not given back: {what.code}"
        return f"{what.agreement_id} {how}"
    outcome = ended.outcome
    sold = ", ".join(f"unit {unit.unit} of {unit.offer.resource}" for unit in outcome.units) if outcome.cost else ""
    how = f"{sold} for {credits_text(outcome.cost)} credits" if sold else outcome.reason or "nothing was bought"
    return f"{outcome.request_id} {outcome.status}: {how}"


def tell_sale(sold: Agreement) -> None:
    """Tell that a resource has sold a slot, and is paid."""
    offer = sold.offer
    text = (
        f"{offer.cores} cores from {iso(offer.start)} to {iso(offer.end)} sold to {sold.user} for "
        f"{credits_text(sold.cost)} credits ({sold.agreement_id})"
    )
    record(
        sold.resource,
        "sale",
        text,
        agreement_id=sold.agreement_id,
        request_id=sold.request_id,
        buyer=sold.user,
        cores=offer.cores,
        cost_minor_units=sold.cost,
    )


def event_of(ended: RequestEnded | CancellationEnded) -> str:
    """The kind of event that an ending is."""
    return "cancellation" if isinstance(ended, CancellationEnded) else "request"


class UserAgent(BuyingThroughSites, ComparingAgent, CommandedAgent):
    """Buys for one owner."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (RequestAQuote, ResourceNotifier)

    @property
    def party(self) -> UserParty:
        """The user's protocol."""
        assert isinstance(self.host.party, UserParty)
        return self.host.party

    def watch(self, progress: Progress) -> None:
        """Pass progress on to the watchers; of comparisons of the clock those that tell something new."""
        if isinstance(progress, RequestEnded | CancellationEnded):
            record(str(self.jid), event_of(progress), ending_text(progress))
        if isinstance(progress, UnitMoved):
            moved = f"{progress.agreement_id} was moved by {progress.resource} to {progress.placement}"
            record(str(self.jid), "move", moved, agreement_id=progress.agreement_id, request_id=progress.request_id)
        if not isinstance(progress, ClockCompared) or self.take_comparison(progress):
            super().watch(progress)


class KeeperAgent(CommandedAgent):
    """Gives the bank the orders of the market's keeper (section 6.3: the administrator of the Banking Agent)."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (BankAnswers,)


class ResourceAgent(SellingWithOthers, ComparingAgent):
    """Sells the time of one machine.

    Attributes:
        guests: what answers for the machine and its prices from processes of their own.
        launcher: what runs jobs on its slots, if anything does.
        troubles: what the machine's plug-in and price strategy fail at, by what they are called.
        on_troubles: told when that has changed.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        RFQResponseServer,
        PurchaseOrdersServer,
        FinaliseServer,
        CancelServer,
        JobServer,
    )

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.guests: list[IsolatedGuest[Any]] = []
        self.launcher: JobLauncher | None = None
        self.troubles: dict[str, str] = {}
        self.on_troubles: Callable[[], None] = lambda: None
        self._refused: dict[tuple[str, str], int] = {}
        self._refusals_told: dict[tuple[str, str], float] = {}
        super().__init__(*args, **keywords)

    async def setup(self) -> None:
        """Start the guests' processes, and then what all agents do."""
        for guest in self.guests:
            guest.begin()
        await super().setup()

    async def guests_opened(self) -> None:
        """Wait until every guest is open, or it is plain that some take long; those are tried on in the background.

        Raises:
            ConfigurationError: if a guest's options are wrong.
            PluginError: if a guest says that it can never be opened.
        """
        await asyncio.gather(*(guest.opened() for guest in self.guests))

    async def stop(self) -> None:
        """End the agent, and the guests' processes with it."""
        try:
            await asyncio.gather(*(guest.stop() for guest in self.guests))
            if self.launcher is not None:
                await self.launcher.stop()
        finally:
            await super().stop()

    def watch(self, progress: Progress) -> None:
        """Tell, and write to the log at most once a minute, that a guest does not do what it should."""
        if isinstance(progress, ClockCompared):
            self.take_comparison(progress)
        if not isinstance(progress, GuestFailed):
            return
        if progress.reason:
            self.complain(progress.guest, "its %s failed: %s", progress.guest, progress.reason)
        before = dict(self.troubles)
        self.troubles.pop(progress.guest, None)
        if progress.reason:
            self.troubles[progress.guest] = progress.reason
        if self.troubles != before:
            self.on_troubles()

    def heard(self, guest: str, line: str) -> None:
        """Write to the log what a guest has printed."""
        _log.warning("%s: its %s says: %s", self.jid, guest, line)

    def before_sending(self, message: Message) -> None:
        """Count refusals."""
        content = message.content
        if isinstance(content, Proposal):
            for code in {refusal.code for refusal in content.refusals}:
                self._count_refusal(message.receiver, code, content.request_id)
        elif isinstance(content, HoldRefused):
            self._count_refusal(message.receiver, content.code, content.request_id)

    def _count_refusal(self, buyer: str, code: str, request_id: str) -> None:
        """One event for a buyer and a reason, and then one a minute with how many there were."""
        key = buyer, code
        if len(self._refused) > REFUSALS_COUNTED_MAX:
            self._refused.clear()
            self._refusals_told.clear()
        self._refused[key] = count = self._refused.get(key, 0) + 1
        now = asyncio.get_running_loop().time()
        if now - self._refusals_told.get(key, -REFUSALS_TOLD_S) < REFUSALS_TOLD_S:
            return
        self._refusals_told[key], self._refused[key] = now, 0
        times = f"{count} times" if count > 1 else "once"
        text = f"{buyer} refused {times}: {code}, last for {request_id}"
        record(str(self.jid), "refusal", text, buyer=buyer, code=str(code), count=count, request_id=request_id)

    async def set_selling(self, prices: PriceRange, *, draining: bool) -> None:
        """Ask other prices from now on, and sell nothing new or again."""
        party = self.host.party
        assert isinstance(party, ResourceParty)
        now = self.now()
        self.host.perform(party.set_selling(prices, draining=draining, now=now), now)
        await self._settle()

    async def leave(self) -> None:
        """Strike this resource out of the directory."""
        party = self.host.party
        assert isinstance(party, ResourceParty)
        now = self.now()
        self.host.perform(party.leave(now), now)
        await self._settle()
        await self.drain(limit_s=1.0)


class BankingAgent(PartyAgent):
    """Keeps the accounts."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        TransactionUpdate,
        CancelListener,
        OrderListener,
        BalanceRequest,
    )

    def watch(self, progress: Progress) -> None:
        """Log what the bank has done on the keeper's order."""
        if isinstance(progress, KeeperOrdered):
            record(str(self.jid), "deposit", f"on the order of {progress.keeper}: {progress.what}")


class DirectoryAgent(PartyAgent):
    """Knows who sells.

    Attributes:
        keep: stores who is registered, for the next life of this agent; called soon after that has changed.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (RegistrationServer,)

    def __init__(self, *args: Any, keep: Callable[[Sequence[KnownAgent]], None], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.keep = keep
        self._kept = 0
        self._writing: asyncio.TimerHandle | None = None

    async def stop(self) -> None:
        """End the agent; what has not been written yet is written now."""
        if self._writing is not None:
            self._writing.cancel()
            self._write()
            if self._writing is not None:
                self._writing.cancel()
        await super().stop()

    async def _settle(self) -> None:
        if self._directory.changes != self._kept and self._writing is None:
            self._writing = asyncio.get_running_loop().call_later(WRITE_PAUSE_S, self._write)
        await super()._settle()

    @property
    def _directory(self) -> DirectoryParty:
        assert isinstance(self.host.party, DirectoryParty)
        return self.host.party

    def _write(self) -> None:
        self._writing = None
        changes = self._directory.changes
        try:
            self.keep(self._directory.registered)
        except OSError as error:  # nothing is lost: whoever sells registers again within a heartbeat
            self.complain("", "who is registered cannot be written down: %s", reason_of(error))
            if not self._stopped:
                self._writing = asyncio.get_running_loop().call_later(WRITE_AGAIN_S, self._write)
            return
        self._kept = changes
