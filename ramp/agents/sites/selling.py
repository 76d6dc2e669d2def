"""A seller's agent that takes calls for the other machines of its process as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramp.agents.party_agent import PartyAgent
from ramp.agents.sites.routes import BUNDLED, SITE_FIELD
from ramp.agents.sites.site import Site
from ramp.errors import DocumentError, TransportError
from ramp.model.acl import Message
from ramp.model.contents import Proposal
from ramp.rfql.codec import EncodedMessage
from ramp.xmpp.bundles import PARTS_MAX, Part, pack


class SellingWithOthers(PartyAgent):
    """Answers for the machines of its site together.

    Attributes:
        site: the agents of this process; None where each speaks for itself alone.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.site: Site | None = None
        super().__init__(*args, **keywords)

    async def setup(self) -> None:
        """Begin, and join the others."""
        await super().setup()
        if self.site is not None:
            self.site.join(str(self.jid), self)

    async def stop(self) -> None:
        """Leave the others, and end."""
        if self.site is not None:
            self.site.leave(str(self.jid), self)
        await super().stop()

    async def on_bundle(self, sender: str, parts: Sequence[Part]) -> None:
        """Hand calls to the machines that they are for, and send what those answer at once as one."""
        if self.site is None:
            await super().on_bundle(sender, parts)
            return
        answers = self.site.answers(sender, parts)
        for start in range(0, len(answers), PARTS_MAX):
            await self._answer(sender, answers[start : start + PARTS_MAX])

    async def _answer(self, user: str, answers: Sequence[Part]) -> None:
        try:
            body, metadata = pack(answers)
            await self.transmit(user, body, metadata, answers[0].thread)
        except (DocumentError, TransportError) as error:
            if len(answers) > 1:  # too long together
                half = len(answers) // 2
                await self._answer(user, answers[:half])
                await self._answer(user, answers[half:])
            else:
                self.complain(user, "the answer of %s to %s not sent: %s", answers[0].machine, user, error)

    # -- as a member of the site ---------------------------------------------------------------------------------

    @property
    def speaks(self) -> bool:
        """Whether others can be answered for by this agent just now."""
        return self.is_alive() and self.is_connected and self.host.failure is None

    def answer_together(self, user: str, part: Part) -> list[Message]:
        """Take a message that came through another agent of the site; see `SiteMember`."""
        if self.host.failure is not None or not self.admits(user):
            return []
        try:
            self.counters.received += 1
            self.take_in(user, part.metadata, part.thread, part.body, BUNDLED)
        except Exception as error:  # what ends this machine's agent ends no other
            self.on_behaviour_failed("site", error)
            return []
        answers = [each for each in self._outgoing if isinstance(each.content, Proposal) and each.receiver == user]
        for answer in answers:
            self._outgoing.remove(answer)
        self._settle_soon()
        return answers

    def written(self, message: Message) -> Part | None:
        """An answer as it travels in a bundle; see `SiteMember`."""
        try:
            self.before_sending(message)
            encoded = self._encode(message)
        except Exception as error:  # like a message lost on the way
            self.complain(message.receiver, "%s to %s not sent: %s", message.performative, message.receiver, error)
            return None
        self.counters.sent += 1
        return Part(self.host.name, encoded.metadata, encoded.thread, encoded.body)

    def before_sending(self, message: Message) -> None:
        """A message is about to leave, by itself or together with others'."""

    async def _send(self, message: Message) -> None:
        self.before_sending(message)
        await super()._send(message)

    def _encode(self, message: Message) -> EncodedMessage:
        encoded = super()._encode(message)
        if isinstance(message.content, Proposal) and self.site is not None and (spokesman := self.site.spokesman):
            encoded.metadata[SITE_FIELD] = spokesman
        return encoded
