"""Messages as text: every message of a simulated market goes through the codec, with real XML signatures.

The typed runs are fast; runs over this wire show that the same market also works with what really travels.
"""

from __future__ import annotations

from collections.abc import Iterable

from ramp.model.acl import Message
from ramp.model.instant import DAY, Instant
from ramp.rfql.codec import EncodedMessage, decode, encode
from ramp.rfql.notary import XmlNotary
from ramp.runtime import issuing


class Wire:
    """Keys for every party of a market, and the way from message to text and back.

    Args:
        names: the parties.
        now: when the certificates are issued.
    """

    def __init__(self, names: Iterable[str], now: Instant) -> None:
        ca_key, ca = issuing.make_ca("simulated market", now, 10 * DAY)
        self._notaries: dict[str, XmlNotary] = {}
        for name in names:
            key = issuing.new_key("p256")
            certificate = issuing.certify(name, key, (ca_key, ca), now, 10 * DAY)
            self._notaries[name] = XmlNotary(name, key, certificate, (ca,))

    def notary(self, name: str) -> XmlNotary:
        """The party's notary."""
        return self._notaries[name]

    def encode(self, message: Message) -> EncodedMessage:
        """The message as it travels."""
        return encode(message)

    def decode(self, sender: str, receiver: str, encoded: EncodedMessage, now: Instant) -> Message:
        """The message as the receiver reads it; signed documents are verified by the receiver's notary."""
        notary = self._notaries[receiver]
        return decode(
            sender,
            receiver,
            encoded.metadata,
            encoded.thread,
            encoded.body,
            lambda document: notary.verify(document, now),
        )
