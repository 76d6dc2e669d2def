"""The SPADE shell of a party: passes messages, timers and commands to its host, and sends the host's messages.

The shell makes no decisions. It handles the events of an agent one after another, and sends messages in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from ramp.errors import DocumentError, EffectFailed, MembershipRevoked, SealInvalid, TransportError
from ramp.model.acl import EncodedMessage, Message, Performative
from ramp.model.contents import Content, RevocationNotice
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.ports import Notary
from ramp.protocol import events as ev
from ramp.protocol.enrolment.authority import AskAuthority
from ramp.protocol.enrolment.revocation_watch import RevocationWatch
from ramp.protocol.party import Party
from ramp.protocol.progress import MembershipEnded, Progress, RevocationsFollowed
from ramp.protocol.timing import earliest
from ramp.rfql import codec
from ramp.runtime.clock import SystemClock
from ramp.runtime.host import Guest, Host, Ports
from ramp.runtime.logs import brief
from ramp.xmpp.behaviour import Courier
from ramp.xmpp.bundles import BUNDLE_KEY, unpack
from ramp.xmpp.link import TransportSettings
from ramp.xmpp.transport import MarketAgent

LOOK_AGAIN: Duration = 5 * SECOND
"""Maximum time between two checks of the clock, so an agent soon notices a step of the clock or a suspend."""

_log = logging.getLogger(__name__)


class PartyAgent(MarketAgent):
    """Runs a party's host on XMPP.

    Its address is also the party's name. `ports` makes the ports of the host from the agent's own callbacks.
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
        """Return the current time; if the clock was set, tell the party first."""
        now = self.clock.now()
        by = self.clock.set_by - self._followed
        if by:
            self._followed += by
            for host in self._hosts:
                host.clock_set(by)
            self.on_clock_set()
        return now

    def watch(self, progress: Progress) -> None:
        """Handle progress of the party."""

    def on_clock_set(self) -> None:
        """Handle a step of the clock, after the party."""

    async def setup(self) -> None:
        for courier in self.behaviours_served:
            self.add_behaviour(courier())
        now = self.now()
        for host in self._hosts:
            host.start(now)
        await self._settle()

    async def on_message(self, message: EncodedMessage) -> None:
        """Decode a message and pass it to the host; answer an unreadable one with NOT_UNDERSTOOD.

        After any other error the message is dropped, counted and logged.

        Raises:
            EffectFailed: the party's decision cannot be carried out, which is not the message's fault.
        """
        if BUNDLE_KEY not in message.metadata:
            self.take_in(message)
        else:
            try:
                messages = unpack(message)
            except DocumentError as error:
                self.drop(message.peer, "cannot read a bundle from %s: %s", message.peer, error)
            else:
                await self.on_bundle(message.peer, messages)
        await self._settle()

    async def on_bundle(self, sender: str, messages: Sequence[EncodedMessage]) -> None:
        """Handle a bundle of messages; this kind of agent refuses it."""
        self.drop(sender, "bundle from %s dropped: this agent accepts none", sender)

    def take_in(self, encoded: EncodedMessage, kinds: tuple[type, ...] = ()) -> None:
        """Decode a message and pass it to the host, if its content is of one of these kinds; none for all kinds.

        The host's messages wait to be sent.

        Raises:
            EffectFailed: the party's decision cannot be carried out.
        """
        sender = encoded.peer
        now = self.now()
        try:
            message = codec.decode(encoded, self.host.name, self._notary, now, sealed=self.host.ports.sealed)
        except SealInvalid as error:  # no answer: strangers must not be able to make an agent send messages
            self.drop(sender, "message from %s dropped: %s", sender, error)
        except DocumentError as error:
            self.complain(sender, "cannot read a message from %s: %s", sender, error)
            answer = codec.not_understood(encoded, self.host.name, str(error))
            if answer is not None:
                self._outgoing.append(answer)
        except Exception as error:  # a bug in decoding: no answer to the sender
            self.faults += 1
            self.complain(sender, "message from %s dropped: %s", sender, brief(error))
        else:
            if not kinds or isinstance(message.content, kinds):
                follower = self._follower if isinstance(message.content, RevocationNotice) else None
                (follower or self.host).deliver(message, now)
                return
            kind = type(message.content).__name__
            self.drop(sender, "%s from %s dropped: not accepted in a bundle", kind, sender)

    def follow_revocations(self, watch: RevocationWatch, authority: Guest[AskAuthority]) -> None:
        """Let this agent at another site ask for the market's revocation lists; `authority` stores them."""
        ports = Ports(send=self._outgoing.append, authority=authority, watch=self._on_revocations, fault=self.on_fault)
        self._follower = Host(watch, ports)

    def _on_revocations(self, progress: Progress) -> None:
        match progress:
            case MembershipEnded(reason):
                self.fail(MembershipRevoked(f"the market no longer accepts this certificate: {reason}"))
            case RevocationsFollowed(number, problem) if problem:
                self.complain("", "revocation list %s: %s", number or "(unreadable)", problem)

    @property
    def _hosts(self) -> tuple[Host, ...]:
        return (self.host,) if self._follower is None else (self.host, self._follower)

    def take_notary(self, notary: Notary) -> None:
        """Replace the notary after the certificate was renewed."""
        self._notary = self.host.ports.notary = notary

    def on_fault(self, reference: str, error: Exception) -> None:
        """Count and log a bug in one conversation, which the host restores."""
        self.faults += 1
        self.complain(reference, "internal error in %s, which continues from its records: %s", reference, brief(error))

    def on_unsent(self, message: Message, error: DocumentError) -> None:
        """Log a message that could not be sealed."""
        self.complain(message.receiver, "%s to %s not sent: %s", message.performative, message.receiver, error)

    def take_answer(self, answer: ev.Answer) -> None:
        """Pass a later answer of a machine or price strategy to the host; send its messages in the background."""
        try:
            self.host.take(answer, self.clock.now())
        except Exception as error:
            self.on_behaviour_failed("answer", error)
            return
        self._settle_soon()

    async def command(self, command: ev.Command) -> None:
        """Pass a command of the owner to the party.

        Raises:
            EffectFailed: the command cannot be carried out. The agent then ends: it must not run without records.
        """
        try:
            self.host.take(command, self.now())
        except Exception as error:
            if self.host.failure is not None:
                self.fail(error)
            raise
        await self._settle()

    def on_behaviour_failed(self, name: str, error: BaseException) -> None:
        if isinstance(error, EffectFailed):  # for example a full disk, which needs no traceback
            self.fail(error)
        else:
            super().on_behaviour_failed(name, error)

    async def stop(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        await super().stop()

    # -- out -----------------------------------------------------------------------------------------------------

    def _settle_soon(self) -> None:
        self._arm()
        if self._outgoing and (self._settling is None or self._settling.done()):
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        """Set the timer for the next deadline, then send all waiting messages."""
        self._arm()
        async with self._sending:
            while self._outgoing:
                await self._send_waiting()

    async def _send_waiting(self) -> None:
        """Send the first waiting message, and possibly others with it."""
        await self._send(self._outgoing.popleft())

    async def _send(self, message: Message) -> None:
        try:
            await self.send(self._encode(message))
        except (DocumentError, TransportError) as error:
            _log.error("%s: %s to %s not sent: %s", self.host.name, message.performative, message.receiver, error)
            if not self._stopped:
                self.host.not_sent(message, str(error), self.now())
        except Exception as error:  # like a lost message: the protocol sends it again
            self.faults += 1
            self.complain(
                message.receiver, "%s to %s not sent: %s", message.performative, message.receiver, brief(error)
            )

    def _encode(self, message: Message) -> EncodedMessage:
        """Encode a message; a call for proposals once for all its receivers."""
        if self._encoded is not None and self._encoded[0] is message.content:
            return replace(self._encoded[1], peer=message.receiver)
        encoded = codec.encode(message)
        if message.performative is Performative.CFP and message.seal is None:
            self._encoded = message.content, encoded
        return encoded

    # -- timers --------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Set the timer to ring at the next deadline or before, in at most `LOOK_AGAIN`: it pauses in a suspend."""
        now = self.now()  # first, because a step of the clock moves the deadline
        deadline = earliest(*(host.deadline for host in self._hosts))
        delay = LOOK_AGAIN if deadline is None else min(max(0, deadline - now), LOOK_AGAIN)
        loop = asyncio.get_running_loop()
        due = loop.time() + delay / SECOND
        if self._stopped or (self._alarm is not None and self._alarm.when() <= due):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._alarm_task = asyncio.get_running_loop().create_task(self._on_alarm())

    async def _on_alarm(self) -> None:
        try:
            now = self.now()
            for host in self._hosts:
                host.tick(now)
            await self._settle()
        except Exception as error:
            self.on_behaviour_failed("deadline", error)
