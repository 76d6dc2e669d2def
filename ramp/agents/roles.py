"""The market's agents and their behaviours, named as in section 6 of the paper.

A behaviour only selects messages; the party handles them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from ramp.agents.clock_watch import ComparingAgent
from ramp.agents.guests.isolated import IsolatedGuest
from ramp.agents.job_launcher import JobLauncher
from ramp.agents.party_agent import PartyAgent
from ramp.agents.sites import BUNDLED, SITE_FIELD, Routes, Site
from ramp.errors import DocumentError, LedgerUnavailable, TransportError
from ramp.model.acl import EncodedMessage, Message, Performative
from ramp.model.agreement import Agreement
from ramp.model.contents import HoldRefused, Proposal
from ramp.model.instant import iso
from ramp.model.money import credits_text
from ramp.protocol import progress as pr
from ramp.protocol.directory.party import DirectoryParty, KnownAgent
from ramp.protocol.outcome import QUOTED, RequestOutcome
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.user.party import UserParty
from ramp.rfql.codec import DOCUMENT_FIELD
from ramp.runtime.logs import record
from ramp.runtime.storage_errors import reason_of
from ramp.xmpp.behaviour import Courier, behaviour
from ramp.xmpp.bundles import pack

if TYPE_CHECKING:
    from ramp.runtime.ledger.bank_lease import BankLease

WRITE_PAUSE_S = 1.0
"""Pause before the directory saves changed registrations in seconds, so that many changes cost one write."""

_log = logging.getLogger(__name__)

REFUSALS_TOLD_S = 60.0
"""Minimum time in seconds between two refusal events for one buyer and reason; each event has their number."""

REFUSALS_COUNTED_MAX = 1_000
"""Maximum number of pairs of buyer and reason with counted refusals."""

CALLS_TOGETHER = 10  # calls of a bundle answered in one bundle: the buyer reads its offers while the next are made


class CommandedAgent(PartyAgent):
    """An agent with an owner and a control channel; `watchers` are called with all progress."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.watchers: set[Callable[[pr.Progress], None]] = set()
        super().__init__(*args, **keywords)

    def watch(self, progress: pr.Progress) -> None:
        if isinstance(progress, pr.RecordsMissing):
            _log.warning("%s: request %s: %s", self.jid, progress.request_id, progress.what)
            return
        for watcher in tuple(self.watchers):
            watcher(progress)


def ending_text(outcome: RequestOutcome) -> str:
    """Return the outcome of a request as a line for the log."""
    sold = ", ".join(f"unit {unit.unit} of {unit.offer.resource}" for unit in outcome.units) if outcome.cost else ""
    how = f"{sold} for {credits_text(outcome.cost)} credits" if sold else outcome.reason or "nothing was bought"
    return f"{outcome.request_id} {outcome.status}: {how}"


def tell_sale(sold: Agreement) -> None:
    """Record the event that a resource has sold a slot and was paid."""
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


class UserAgent(ComparingAgent, CommandedAgent):
    """Buys for one owner.

    It sends calls and rejections for several machines of a site as one stanza, once the machines have named an agent
    that accepts them.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        # answers of the auction, then votes and confirmations of the two-phase commit (section 6.1)
        behaviour("RequestAQuote", Performative.PROPOSE, Performative.REFUSE, Performative.INFORM),
        behaviour("ResourceNotifier", Performative.AGREE, Performative.CONFIRM, Performative.FAILURE),
    )

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.routes = Routes()
        super().__init__(*args, **keywords)

    @property
    def party(self) -> UserParty:
        assert isinstance(self.host.party, UserParty)
        return self.host.party

    def watch(self, progress: pr.Progress) -> None:
        if isinstance(progress, pr.RequestEnded):
            record(str(self.jid), "request", ending_text(progress.outcome))
        if isinstance(progress, pr.ChangeEnded) and progress.outcome.code != QUOTED:
            record(str(self.jid), progress.outcome.kind, progress.outcome.sentence)
        if isinstance(progress, pr.UnitMoved):
            moved = f"{progress.agreement_id} was moved by {progress.resource} to {progress.placement}"
            record(str(self.jid), "move", moved, agreement_id=progress.agreement_id, request_id=progress.request_id)
        super().watch(progress)

    # -- several machines of a site together ---------------------------------------------------------------------

    async def on_message(self, message: EncodedMessage) -> None:
        if site := message.metadata.get(SITE_FIELD):  # an offer may name the agent of its machine's site
            self.routes.learn(message.peer, site)
        await super().on_message(message)

    async def on_bundle(self, sender: str, messages: Sequence[EncodedMessage]) -> None:
        """Accept offers of several machines from the agent that they have named, and nothing else."""
        for message in messages:
            if self.routes.speaks_for(sender, message.peer):
                self.take_in(message, (Proposal,))
            else:
                self.drop(sender, "message from %s for %s dropped: not named by it", sender, message.peer)

    def on_bounce(self, message: EncodedMessage, condition: str) -> None:
        # the next messages go to the machines themselves
        self.routes.unreachable(message.peer)
        super().on_bounce(message, condition)

    async def _send_waiting(self) -> None:
        for receiver, messages in self.routes.next_together(self._outgoing):
            if len(messages) == 1 or not await self._send_together(receiver, messages):
                for message in messages:
                    await self._send(message)

    async def _send_together(self, site: str, messages: Sequence[Message]) -> bool:
        """Send several messages as one bundle; False if that fails and each must be sent alone."""
        try:
            await self.send(pack(site, [self._encode(each) for each in messages]))
        except (DocumentError, TransportError):  # the bundle is too large, or a message is invalid
            return False
        return True


class KeeperAgent(CommandedAgent):
    """Sends orders of the market's keeper to the bank (section 6.3: the administrator of the Banking Agent)."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        behaviour("BankAnswers", Performative.AGREE, Performative.REFUSE, Performative.INFORM),
    )


class ResourceAgent(ComparingAgent):
    """Sells the time of one machine.

    Attributes:
        guests: plug-in and price strategy that run in separate processes.
        launcher: launcher of jobs on its slots; None without one.
        site: the Resource Agents of this process.
        troubles: current problems of plug-in and price strategy by their names.
        on_troubles: called when `troubles` has changed.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        # calls for proposals, acceptances, confirmations and the bank's messages on payments, and what is cancelled
        # (sections 6.2, 5.1.2); then orders of jobs on sold slots, and questions about jobs
        behaviour("RFQResponseServer", Performative.CFP, Performative.REJECT_PROPOSAL),
        behaviour("PurchaseOrdersServer", Performative.ACCEPT_PROPOSAL),
        behaviour("FinaliseServer", Performative.CONFIRM, Performative.AGREE, Performative.REFUSE, Performative.INFORM),
        behaviour("CancelServer", Performative.CANCEL),
        behaviour("JobServer", Performative.REQUEST, Performative.QUERY_REF),
    )

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.guests: list[IsolatedGuest] = []
        self.launcher: JobLauncher | None = None
        self.site = Site()
        self.troubles: dict[str, str] = {}
        self.on_troubles: Callable[[], None] = lambda: None
        self._refused: dict[tuple[str, str], tuple[float, int]] = {}  # last event, and refusals since then
        super().__init__(*args, **keywords)

    async def setup(self) -> None:
        for guest in self.guests:
            guest.begin()
        await super().setup()
        self.site.join(str(self.jid), self)

    async def guests_opened(self) -> None:
        """Wait until all guests are open, or a timeout; slow guests continue in the background.

        Raises:
            ConfigurationError: a guest's options are invalid.
            PluginError: a guest reports that it can never be opened.
        """
        await asyncio.gather(*(guest.opened() for guest in self.guests))

    async def stop(self) -> None:
        try:
            await asyncio.gather(*(guest.stop() for guest in self.guests))
            if self.launcher is not None:
                await self.launcher.stop()
        finally:
            self.site.leave(str(self.jid), self)
            await super().stop()

    def watch(self, progress: pr.Progress) -> None:
        if isinstance(progress, pr.SlotLost):
            lost = f"slot of {progress.user} lost and to be refunded: {progress.reason} ({progress.agreement_id})"
            record(str(self.jid), "loss", lost, agreement_id=progress.agreement_id, buyer=progress.user)
        super().watch(progress)
        if not isinstance(progress, pr.GuestFailed):
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
        """Log a line that a guest has printed."""
        _log.warning("%s: output of its %s: %s", self.jid, guest, line)

    def _count_refusals(self, message: Message) -> None:
        content = message.content
        if isinstance(content, Proposal):
            for code in {refusal.code for refusal in content.refusals}:
                self._count_refusal(message.receiver, code, content.request_id)
        elif isinstance(content, HoldRefused):
            self._count_refusal(message.receiver, content.code, content.request_id)

    def _count_refusal(self, buyer: str, code: str, request_id: str) -> None:
        """Record the first refusal of a buyer for a reason, then at most one event a minute with their number."""
        key = buyer, code
        if len(self._refused) > REFUSALS_COUNTED_MAX:
            self._refused.clear()
        now = asyncio.get_running_loop().time()
        told_at, count = self._refused.get(key, (now - REFUSALS_TOLD_S, 0))
        count += 1
        is_due = now - told_at >= REFUSALS_TOLD_S
        self._refused[key] = (now, 0) if is_due else (told_at, count)
        if not is_due:
            return
        times = f"{count} times" if count > 1 else "once"
        text = f"{buyer} refused {times}: {code}, last for {request_id}"
        record(str(self.jid), "refusal", text, buyer=buyer, code=str(code), count=count, request_id=request_id)

    async def set_selling(self, prices: PriceRange, *, draining: bool) -> None:
        """Set the range of prices, and stop (`draining`) or resume new sales."""
        party = self.host.party
        assert isinstance(party, ResourceParty)
        now = self.now()
        self.host.perform(party.set_selling(prices, draining=draining, now=now), now)
        await self._settle()

    async def leave(self) -> None:
        """Deregister from the directory, and wait a moment until that is sent."""
        party = self.host.party
        assert isinstance(party, ResourceParty)
        now = self.now()
        self.host.perform(party.leave(now), now)
        await self._settle()
        await self.drain(limit_s=1.0)

    # -- several machines of a site together ---------------------------------------------------------------------

    async def on_bundle(self, sender: str, messages: Sequence[EncodedMessage]) -> None:
        """Pass calls to the machines that they are for, and send the immediate answers in bundles."""
        for start in range(0, len(messages), CALLS_TOGETHER):
            answers = self.site.answers(sender, messages[start : start + CALLS_TOGETHER])
            if answers:
                await self._send_answers(sender, answers)
                os.sched_yield()  # to the server, which passes them on

    async def _send_answers(self, user: str, answers: Sequence[EncodedMessage]) -> None:
        try:
            await self.send(pack(user, answers))
        except (DocumentError, TransportError) as error:
            if len(answers) > 1:  # the bundle may be too large
                half = len(answers) // 2
                await self._send_answers(user, answers[:half])
                await self._send_answers(user, answers[half:])
            else:
                self.complain(user, "answer of %s to %s not sent: %s", answers[0].peer, user, error)

    # -- as a member of the site ---------------------------------------------------------------------------------

    @property
    def speaks(self) -> bool:
        """Whether this agent can answer for the others of its site now."""
        return self.is_alive() and self.is_connected and self.host.failure is None

    def answers(self, message: EncodedMessage) -> list[EncodedMessage]:
        """Handle a message from its authenticated peer, and return the immediate answers with this machine as peer."""
        user = message.peer
        if self.host.failure is not None or not self.admits(user):
            return []
        try:
            self.take_in(message, BUNDLED)
        except Exception as error:  # must not end the other agents of the site
            self.on_behaviour_failed("site", error)
            return []
        answers = [each for each in self._outgoing if isinstance(each.content, Proposal) and each.receiver == user]
        for answer in answers:
            self._outgoing.remove(answer)
        self._settle_soon()
        return [encoded for answer in answers if (encoded := self._encode_answer(answer)) is not None]

    def _encode_answer(self, message: Message) -> EncodedMessage | None:
        try:
            self._count_refusals(message)
            encoded = super()._encode(message)
        except Exception as error:  # like a lost message
            self.complain(message.receiver, "%s to %s not sent: %s", message.performative, message.receiver, error)
            return None
        return replace(encoded, peer=self.host.name)

    def _encode(self, message: Message) -> EncodedMessage:
        self._count_refusals(message)
        encoded = super()._encode(message)
        if isinstance(message.content, Proposal) and (spokesman := self.site.spokesman):
            encoded.metadata[SITE_FIELD] = spokesman
        return encoded


class BankingAgent(PartyAgent):
    """Runs the bank; with a lease it is one of two redundant ones, and sends messages only while it holds that.

    Both agents have the bank's name, account and key, so the market sees one bank. The ledger's database decides which
    of them is active; the other one is not logged in. The lease is taken before, and protects the ledger too.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        # countersigned agreements and changes of these, orders and reports, questions about accounts (section 6.3)
        behaviour("TransactionUpdate", Performative.REQUEST, conditions={DOCUMENT_FIELD: "Agreement"}),
        behaviour("CancelListener", Performative.REQUEST, conditions={DOCUMENT_FIELD: "ContractChange"}),
        behaviour("OrderListener", Performative.REQUEST, Performative.FAILURE),
        behaviour("BalanceRequest", Performative.QUERY_REF),
    )

    def __init__(self, *args: Any, lease: BankLease | None, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._lease = lease
        self._renewing: asyncio.Task[None] | None = None

    def watch(self, progress: pr.Progress) -> None:
        if isinstance(progress, pr.KeeperOrdered):
            record(str(self.jid), progress.kind, f"on the order of {progress.keeper}: {progress.what}")

    async def setup(self) -> None:
        if self._lease is not None:
            self._renewing = asyncio.get_running_loop().create_task(self._renew(self._lease))
            record(str(self.jid), "takeover", f"{self._lease.active} is the bank now (epoch {self._lease.epoch})")
        await super().setup()

    async def stop(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
        await super().stop()
        if self._lease is not None:
            with contextlib.suppress(LedgerUnavailable):
                await asyncio.to_thread(self._lease.give_up)  # so the other agent need not wait for its end

    async def _renew(self, lease: BankLease) -> None:
        while True:
            await asyncio.sleep(lease.pause_s)
            try:
                await asyncio.to_thread(lease.renew)
            except LedgerUnavailable as error:
                self.fail(error)
                return

    async def _send(self, message: Message) -> None:
        """Send a message, unless another bank is active by now, which may have decided differently."""
        try:
            if self._lease is not None:
                self._lease.assert_held()
        except LedgerUnavailable as error:
            _log.warning("%s: %s to %s not sent: %s", self.jid, message.performative, message.receiver, error)
            self.fail(error)
            return
        await super()._send(message)


class DirectoryAgent(PartyAgent):
    """Keeps the register of resources; `keep`, called soon after a change, saves it for the next start."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        behaviour("RegistrationServer", Performative.SUBSCRIBE, Performative.CANCEL, Performative.QUERY_REF),
    )

    def __init__(self, *args: Any, keep: Callable[[Sequence[KnownAgent]], None], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.keep = keep
        self._kept = 0
        self._writing: asyncio.TimerHandle | None = None

    async def stop(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._write()
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
        self._writing, changes = None, self._directory.changes
        try:
            self.keep(self._directory.registered)
        except OSError as error:  # no loss: resources register again within a heartbeat, after which it is tried again
            self.complain("", "cannot save the registrations: %s", reason_of(error))
        else:
            self._kept = changes


class EnrolmentAgent(PartyAgent):
    """The market's enrolment office."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        behaviour("EnrolmentServer", Performative.REQUEST, Performative.QUERY_REF),
    )

    def watch(self, progress: pr.Progress) -> None:
        match progress:
            case pr.EnrolmentAnswered(sender=sender, invitation_id=invitation, code=""):
                record(str(self.jid), "enrolment", f"granted {invitation} to {sender}")
            case pr.EnrolmentAnswered(sender=sender, invitation_id=invitation, code=code):
                self.complain(sender, "%s: refused a request of %s: %s", invitation, sender, code)
