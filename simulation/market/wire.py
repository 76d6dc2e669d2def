"""Messages as text: every message of a simulated market goes through the codec, with real XML signatures.

The typed runs are fast; runs over this wire show that the same market also works with what really travels.
"""

from __future__ import annotations

from collections.abc import Mapping

from ramp.model.acl import Message
from ramp.model.instant import DAY, Instant
from ramp.model.seal import Role
from ramp.rfql.codec import EncodedMessage, decode, encode
from ramp.rfql.signing.notary import XmlNotary
from ramp.runtime.keys import issuing


class Wire:
    """Keys for every party of a market, and the way from message to text and back."""

    def __init__(self, roles: Mapping[str, Role], now: Instant) -> None:
        ca_key, ca = issuing.make_ca("simulated market", now, 10 * DAY)
        self._notaries: dict[str, XmlNotary] = {}
        for name, role in roles.items():
            key = issuing.new_key("p256")
            certificate = issuing.certify(name, key.public_key(), (ca_key, ca), now, 10 * DAY, role)
            self._notaries[name] = XmlNotary(name, key, certificate, (ca,))

    def notary(self, name: str) -> XmlNotary:
        """Return the party's notary."""
        return self._notaries[name]

    def encode(self, message: Message) -> EncodedMessage:
        """Return the message as it travels."""
        return encode(message)

    def decode(self, sender: str, receiver: str, encoded: EncodedMessage, now: Instant) -> Message:
        """Return the message as the receiver reads it; seals and signatures are checked by the receiver's notary.

        Raises:
            SealInvalid: if it is to be dropped.
        """
        notary = self._notaries[receiver]
        return decode(sender, receiver, encoded.metadata, encoded.thread, encoded.body, notary, now)
