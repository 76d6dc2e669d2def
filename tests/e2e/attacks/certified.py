"""Rogue parties that speak the market's language: with a certificate of the market's own authority, or with none.

    mallory = await Party.enter(market, rogues, "mallory", Role.USER)
    await mallory.say(Performative.AGREE, "small1", PaymentMade(...))          # sealed as honest parties seal
    await mallory.put(unsealed(mallory.message(...)), "small1")                 # whatever a test has made of it
    answer = await mallory.answer("request-1", HoldGranted, HoldRefused)

`put` sends anything, under the party's own account.
"""

import asyncio
import contextlib
import itertools
from dataclasses import replace
from typing import Any, Self

from cryptography.hazmat.primitives.serialization import Encoding

from ramp.errors import RampError
from ramp.model.acl import LANGUAGE, ONTOLOGY, EncodedMessage, Message, Performative
from ramp.model.contents import CallForProposals, Content, NotUnderstood, Proposal
from ramp.model.offer import Offer
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.seal import Role
from ramp.rfql import codec, documents
from ramp.rfql.signing import seals
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import PublicNotary
from ramp.runtime.clock import SystemClock
from ramp.runtime.keys.store import KeyStore
from ramp.xmpp.bundles import BUNDLE_KEY, unpack
from tests.e2e.attacks.rogue import LIMIT_S, Rogue, door

ANSWERED = {each.value for each in Performative} - {Performative.NOT_UNDERSTOOD.value}
"""Performatives that are answered with NOT_UNDERSTOOD if nobody understands them."""

_NUMBERS = itertools.count(1)


def address(name: str) -> str:
    """A party's address by its local name."""
    return name if "@" in name else f"{name}@localhost"


def fresh(what: str) -> str:
    """An identifier that no test has used."""
    return f"{what}-rogue-{next(_NUMBERS)}"


def unsealed(message: Message) -> EncodedMessage:
    """A message as it would travel without a seal, whether or not it must have one."""
    body = documents.write_content(message.content)
    metadata = codec._metadata(message, seals.unsigned(message, body, ""))
    return EncodedMessage(message.receiver, body, metadata, message.conversation_id)


def with_seal(encoded: EncodedMessage, sealed: seals.SealedText) -> EncodedMessage:
    """A message with a seal put to it, whether or not it fits."""
    given = {"signed-at": sealed.signed_at, "signature": sealed.signature, "certificate": sealed.certificate}
    return replace(encoded, metadata={**encoded.metadata, **given})


def text_by_hand(message: Message, store: KeyStore, signer: str) -> seals.SealedText:
    """A message's text sealed with a party's key, though that party may not say it, or is not its sender."""
    key, certificate = store.identity(signer)
    body = documents.write_content(message.content)
    text = seals.unsigned(replace(message, reply_by=None), body, seals.write_moment(SystemClock().now()))
    der = certificate.public_bytes(Encoding.DER)
    return replace(text, signature=seals.sign(text.sealed_part(), key), certificate=seals.pack(der))


def sealed_by_hand(message: Message, store: KeyStore, signer: str) -> EncodedMessage:
    """A message sealed with a party's key, though that party may not say it, or is not the sender that it names."""
    return with_seal(unsealed(message), text_by_hand(message, store, signer))


class Party:
    """A rogue that reads and writes the market's messages.

    Attributes:
        name: its address.
        rogue: its session.
        role: what it is certified to be, None where it is not.
        heard: every message that has come and could be read, in order.
    """

    def __init__(self, market: Any, rogue: Rogue, name: str, role: Role | None) -> None:
        self.market = market
        self.rogue = rogue
        self.name = address(name)
        self.heard: list[Message] = []
        self.keys = KeyStore(market.state.keys)
        self._trust = PublicNotary(Trust(self.keys.ca_certificates()))
        self._used: dict[str, set[str]] = {}
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())
        self.role = role
        self.notary: Any = None
        if role is not None:
            self.keys.issue(self.name, role, self.now)
            self.notary = self.keys.notary(self.name)

    @classmethod
    async def enter(cls, market: Any, rogues: Any, name: str, role: Role | None = None) -> Self:
        """Log in and, with a role, be certified in it."""
        return cls(market, await rogues(door(market), name), name, role)

    @property
    def now(self) -> int:
        """The present."""
        return SystemClock().now()

    async def _read(self) -> None:
        while True:
            incoming = await self.rogue.inbox.get()
            if not isinstance(incoming, EncodedMessage):
                continue
            for encoded in unpack(incoming) if BUNDLE_KEY in incoming.metadata else (incoming,):
                with contextlib.suppress(RampError):  # its own nonsense, come back to it
                    message = codec.decode(encoded, self.name, self._trust, self.now, sealed=frozenset())
                    async with self._news:
                        self.heard.append(message)
                        self._news.notify_all()

    def message(
        self,
        performative: Performative,
        to: str,
        content: Content,
        conversation_id: str = "",
        *,
        sender: str = "",
        reply_with: str = "",
        in_reply_to: str = "",
    ) -> Message:
        """A message of its own, or in another's name."""
        return Message(
            performative,
            address(sender) if sender else self.name,
            address(to),
            conversation_id or fresh("conversation"),
            content,
            reply_with=reply_with,
            in_reply_to=in_reply_to,
        )

    async def put(self, encoded: EncodedMessage, to: str) -> None:
        """Send whatever has been made, under its own account."""
        self.used(to, encoded.metadata["performative"])
        await self.rogue.send(address(to), encoded.body, encoded.metadata, encoded.thread)

    def used(self, to: str, performative: str) -> None:
        """Remember with which behaviour of an agent there is something to be waited for; see `is_read_by`."""
        if performative in ANSWERED:
            self._used.setdefault(address(to), set()).add(performative)

    async def say(
        self, performative: Performative, to: str, content: Content, conversation_id: str = "", **slots: str
    ) -> Message:
        """Send a message sealed as honest parties seal; returns it."""
        message = self.sealed(performative, to, content, conversation_id, **slots)
        await self.put(codec.encode(message), to)
        return message

    def sealed(self, *what: Any, **slots: str) -> Message:
        """A message (see `message`) sealed as honest parties seal."""
        sealed: Message = self.notary.seal(self.message(*what, **slots), self.now)
        return sealed

    async def tell(
        self, performative: Performative, to: str, content: Content, conversation_id: str = "", **slots: str
    ) -> None:
        """Send a message without a seal."""
        await self.put(unsealed(self.message(performative, to, content, conversation_id, **slots)), to)

    async def answer(self, conversation_id: str, *kinds: type) -> Message:
        """Wait for a message of a conversation and of some kinds; the earliest that has come."""
        return (await self.answers(1, conversation_id, *kinds))[0]

    async def answers(self, count: int, conversation_id: str, *kinds: type) -> list[Message]:
        """Wait for so many messages of a conversation and of some kinds; all that have come."""

        def found() -> list[Message]:
            ours = [each for each in self.heard if each.conversation_id == conversation_id]
            return [each for each in ours if not kinds or isinstance(each.content, kinds)]

        async with asyncio.timeout(LIMIT_S), self._news:
            await self._news.wait_for(lambda: len(found()) >= count)
        return found()

    async def offer(self, resource: str, unit: RequestUnit, request_id: str = "") -> Offer:
        """A resource's offer for one unit."""
        request_id = request_id or fresh("request")
        call = CallForProposals(request_id, 1, RequestForQuotation((unit,)))
        await self.tell(Performative.CFP, resource, call, request_id)
        proposal = (await self.answer(request_id, Proposal)).content
        assert isinstance(proposal, Proposal)
        assert proposal.offers, proposal
        return proposal.offers[0]

    async def is_read_by(self, target: str) -> None:
        """Wait until an agent has taken everything that this rogue has sent to it.

        Each of its behaviours takes its messages in order, so each is sent one more that it has to answer.
        """
        for performative in sorted(self._used.pop(address(target), set())):
            conversation_id = fresh("ping")
            metadata = {"performative": performative, "ontology": ONTOLOGY, "language": LANGUAGE}
            await self.rogue.send(address(target), "<ping/>", metadata, conversation_id)
            await self.answer(conversation_id, NotUnderstood)

    def leave(self) -> None:
        """Read no more."""
        self._reader.cancel()
