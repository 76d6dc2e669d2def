"""The SPADE shell of a party: messages, timers and commands go into its host, what the host sends goes out.

Nothing is decided here. The host is called without interruption, so one agent's events happen one after another; what
it sends leaves in order.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from ramp.errors import DocumentError, EffectFailed, MembershipRevoked, SealInvalid, TransportError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Signed
from ramp.model.contents import Content, NotUnderstood, RevocationNotice
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.ports import Notary
from ramp.protocol import events as ev
from ramp.protocol.enrolment.authority import AskAuthority
from ramp.protocol.enrolment.revocation_watch import RevocationWatch
from ramp.protocol.party import Party
from ramp.protocol.progress import MembershipEnded, Progress, RevocationsFollowed
from ramp.protocol.timing import earliest
from ramp.rfql import codec
from ramp.rfql.codec import EncodedMessage
from ramp.runtime.clock import SystemClock
from ramp.runtime.host import Guest, Host, Ports
from ramp.xmpp.behaviour import Courier
from ramp.xmpp.bundles import BUNDLE_KEY, Part, unpack
from ramp.xmpp.settings import TransportSettings
from ramp.xmpp.transport import MarketAgent

DOCUMENT_FIELD = "x-document"
"""Metadata field with the kind of document, by which behaviours with equal performatives tell theirs."""

LOOK_AGAIN: Duration = 5 * SECOND
"""An agent looks at the clock this often at least: so long after a step or a suspend all processes agree again."""

_log = logging.getLogger(__name__)


def brief(error: BaseException) -> str:
    """An unexpected exception in one line: what it is and where in our code it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:200]!a}{place}"


class PartyAgent(MarketAgent):
    """Runs one party's host on XMPP.

    Args:
        jid: the agent's address, which is also the party's name.
        password: of its account.
        settings: how to reach the server.
        party: its protocol.
        ports: makes the ports of its host, given what the agent itself does for it.
        clock: the time.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = ()

    def __init__(
        self,
        jid: str,
        password: str,
        settings: TransportSettings,
        *,
        party: Party,
        ports: Callable[..., Ports],
        clock: SystemClock,
    ) -> None:
        super().__init__(jid, password, settings)
        self.clock = clock
        self._followed = clock.set_by
        self._outgoing: deque[Message] = deque()
        self._sending = asyncio.Lock()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_task: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._encoded: tuple[Content, EncodedMessage] | None = None
        own = ports(send=self._outgoing.append, watch=self.watch, fault=self.on_fault, unsent=self.on_unsent)
        assert own.notary is not None, f"{jid} has no notary"
        self._notary = own.notary
        self.host = Host(party, own)
        self._follower: Host | None = None

    def now(self) -> Instant:
        """The present instant, after the party has been told if the clock has been set."""
        now = self.clock.now()
        by = self.clock.set_by - self._followed
        if by:
            self._followed += by
            for host in self._hosts:
                host.clock_set(by)
            self.on_clock_set()
        return now

    def watch(self, progress: Progress) -> None:
        """The party has come on with something."""

    def on_clock_set(self) -> None:
        """The clock has been set, and the party knows."""

    async def setup(self) -> None:
        """Add the behaviours and let the party begin, or go on where its journal ends."""
        for courier in self.behaviours_served:
            self.add_behaviour(courier())
        now = self.now()
        for host in self._hosts:
            host.start(now)
        await self._settle()

    async def on_text(self, sender_bare: str, metadata: dict[str, str], thread: str, body: str) -> None:
        """Read a message and hand it to the host; what cannot be read is answered NOT_UNDERSTOOD.

        Whatever else a message brings about, it ends here: dropped, counted, and a line in the log.

        Raises:
            EffectFailed: if what the party decides on it cannot be carried out; that is no fault of the message.
        """
        if BUNDLE_KEY in metadata:
            await self._on_bundle(sender_bare, metadata, body)
        else:
            self.take_in(sender_bare, metadata, thread, body)
        await self._settle()

    async def _on_bundle(self, sender: str, metadata: Mapping[str, str], body: str) -> None:
        try:
            parts = unpack(body, metadata[BUNDLE_KEY])
        except DocumentError as error:
            self.counters.refused += 1
            self.complain(sender, "a bundle of %s cannot be read: %s", sender, error)
        else:
            await self.on_bundle(sender, parts)

    async def on_bundle(self, sender: str, parts: Sequence[Part]) -> None:
        """Take several messages that have come together; this kind of agent takes none."""
        self.counters.refused += 1
        self.complain(sender, "a bundle of %s is not for this agent", sender)

    def take_in(
        self, sender: str, metadata: Mapping[str, str], thread: str, body: str, kinds: tuple[type, ...] = ()
    ) -> None:
        """Read a message and hand it to the host; what comes of it waits to be sent.

        Args:
            sender: who says it.
            metadata: FIPA parameters.
            thread: conversation id.
            body: the document.
            kinds: the only contents that are taken; empty for any.

        Raises:
            EffectFailed: if what the party decides on it cannot be carried out.
        """
        now = self.now()
        try:
            message = codec.decode(
                sender, self.host.name, metadata, thread, body, self._notary, now, sealed=self.host.ports.sealed
            )
        except SealInvalid as error:  # nobody's word: no answer, or strangers could make an agent talk
            self.counters.refused += 1
            self.complain(sender, "a message of %s is not believed: %s", sender, error)
        except DocumentError as error:
            self.complain(sender, "a message of %s cannot be read: %s", sender, error)
            self._answer_unreadable(sender, metadata, thread, str(error))
        except Exception as error:  # a bug in reading: the sender learns nothing of it
            self.counters.faults += 1
            self.complain(sender, "a message of %s dropped: %s", sender, brief(error))
        else:
            if not kinds or isinstance(message.content, kinds):
                follower = self._follower if isinstance(message.content, RevocationNotice) else None
                (follower or self.host).deliver(message, now)
                return
            self.counters.refused += 1
            self.complain(sender, "%s of %s does not travel in a bundle", type(message.content).__name__, sender)

    def follow_revocations(self, watch: RevocationWatch, authority: Guest[AskAuthority]) -> None:
        """Let this agent learn what the market revokes; it is at another site than the market's files.

        Args:
            watch: asks the market's enrolment office.
            authority: keeps the lists beside the keys of this site.
        """
        ports = Ports(send=self._outgoing.append, authority=authority, watch=self._on_revocations, fault=self.on_fault)
        self._follower = Host(watch, ports)

    def _on_revocations(self, progress: Progress) -> None:
        match progress:
            case MembershipEnded(reason):
                self.fail(MembershipRevoked(f"the market does not believe this certificate any more: {reason}"))
            case RevocationsFollowed(number, problem) if problem:
                self.complain("", "revocation list %s: %s", number or "that has come", problem)

    @property
    def _hosts(self) -> tuple[Host, ...]:
        return (self.host,) if self._follower is None else (self.host, self._follower)

    def take_notary(self, notary: Notary) -> None:
        """Sign, seal and verify with another notary from now on: the certificate has been renewed."""
        self._notary = self.host.ports.notary = notary

    def on_fault(self, reference: str, error: Exception) -> None:
        """A bug has raised in one conversation, which is taken up again: count it and write a line to the log."""
        self.counters.faults += 1
        self.complain(reference, "a fault of the program in %s, which is taken up again: %s", reference, brief(error))

    def on_unsent(self, message: Message, error: DocumentError) -> None:
        """A message cannot be sealed: like one lost on the way."""
        self.complain(message.receiver, "%s to %s not sent: %s", message.performative, message.receiver, error)

    def take_answer(self, answer: ev.Answer) -> None:
        """Take an answer of a machine or a price strategy that needed time; what comes of it is sent meanwhile."""
        try:
            self.host.answer(answer, self.clock.now())
        except Exception as error:
            self.on_behaviour_failed("answer", error)
            return
        self._settle_soon()

    async def command(self, command: ev.Command) -> None:
        """Give the party a command of its owner.

        Raises:
            EffectFailed: if it cannot be carried out; the agent ends then, for nothing may go on from memory alone.
        """
        try:
            self.host.command(command, self.now())
        except Exception as error:
            if self.host.failure is not None:
                self.fail(error)
            raise
        await self._settle()

    def on_behaviour_failed(self, name: str, error: BaseException) -> None:
        """End the agent; that a disk is full is worth one line and no traceback."""
        if isinstance(error, EffectFailed):
            self.fail(error)
        else:
            super().on_behaviour_failed(name, error)

    async def stop(self) -> None:
        """End the agent; its timers end with it."""
        if self._alarm is not None:
            self._alarm.cancel()
        await super().stop()

    # -- out -----------------------------------------------------------------------------------------------------

    def _settle_soon(self) -> None:
        """Let what is left to send leave, and nobody wait for it."""
        self._arm()
        if self._outgoing and (self._settling is None or self._settling.done()):
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        """Send what the host has left to send, then wait for its next deadline."""
        self._arm()
        async with self._sending:
            while self._outgoing:
                await self._send_next()

    async def _send_next(self) -> None:
        """Send the first message that waits, and maybe others with it."""
        await self._send(self._outgoing.popleft())

    async def _send(self, message: Message) -> None:
        try:
            encoded = self._encode(message)
            await self.transmit(message.receiver, encoded.body, encoded.metadata, encoded.thread)
        except (DocumentError, TransportError) as error:
            _log.error("%s: %s to %s not sent: %s", self.host.name, message.performative, message.receiver, error)
        except Exception as error:  # like a message lost on the way; the protocol sends it again
            self.counters.faults += 1
            self.complain(
                message.receiver, "%s to %s not sent: %s", message.performative, message.receiver, brief(error)
            )

    def _encode(self, message: Message) -> EncodedMessage:
        """Turn a message into text; a call that goes to many resources is written once."""
        if self._encoded is not None and self._encoded[0] is message.content:
            return self._encoded[1]
        encoded = codec.encode(message)
        content = message.content
        kind = type(content.body if isinstance(content, Signed) else content).__name__
        encoded.metadata[DOCUMENT_FIELD] = kind
        if message.performative is Performative.CFP and message.seal is None:
            self._encoded = (content, encoded)
        return encoded

    def _answer_unreadable(self, sender: str, metadata: Mapping[str, str], thread: str, reason: str) -> None:
        if metadata.get("performative") == Performative.NOT_UNDERSTOOD.value:
            return
        conversation_id = metadata.get("conversation-id") or thread or "unknown"
        self._outgoing.append(
            Message(
                Performative.NOT_UNDERSTOOD,
                self.host.name,
                sender,
                conversation_id,
                NotUnderstood(reason[:1000]),
                in_reply_to=metadata.get("reply-with", ""),
            )
        )

    # -- timers --------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Wake at the next deadline, and every `LOOK_AGAIN` at least: timers of the loop stand still in a suspend."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._stopped:
            return
        now = self.now()  # before the deadline is read, which moves when the clock has been set
        deadline = earliest(*(host.deadline for host in self._hosts))
        delay = LOOK_AGAIN if deadline is None else min(max(0, deadline - now), LOOK_AGAIN)
        self._alarm = asyncio.get_running_loop().call_later(delay / SECOND, self._ring)

    def _ring(self) -> None:
        self._alarm_task = asyncio.get_running_loop().create_task(self._on_alarm())

    async def _on_alarm(self) -> None:
        try:
            now = self.now()
            for host in self._hosts:
                host.tick(now)
            await self._settle()
        except Exception as error:
            self.on_behaviour_failed("deadline", error)
