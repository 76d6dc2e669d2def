"""Messages as text: every message of a simulated market goes through the codec, with real XML signatures.

The typed runs are fast; runs over this wire show that the same market also works with what really travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ramp.errors import DocumentError, SealInvalid
from ramp.model.acl import EncodedMessage, Message
from ramp.model.instant import DAY, Instant
from ramp.model.seal import Role
from ramp.rfql.codec import decode, encode, not_understood
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import XmlNotary
from ramp.runtime.keys import issuing


class Wire:
    """Keys for every party of a market, and the way from message to text and back."""

    def __init__(self, roles: Mapping[str, Role], now: Instant) -> None:
        ca_key, ca = issuing.make_ca("simulated market", now, 10 * DAY)
        self._notaries: dict[str, XmlNotary] = {}
        for name, role in roles.items():
            key = issuing.new_key()
            certificate = issuing.certify(name, key.public_key(), (ca_key, ca), now, 10 * DAY, role)
            self._notaries[name] = XmlNotary(name, key, certificate, Trust((ca,)))

    def notary(self, name: str) -> XmlNotary:
        """Return the party's notary."""
        return self._notaries[name]

    def encode(self, message: Message) -> EncodedMessage:
        """Return the message as it travels."""
        return encode(message)

    def read(self, message: Message, encoded: EncodedMessage, now: Instant) -> tuple[Message | None, Message | None]:
        """Return a message as its receiver reads it, or None, and the answer to one that it cannot read."""
        arrived, receiver = replace(encoded, peer=message.sender), message.receiver
        try:
            return decode(arrived, receiver, self._notaries[receiver], now), None
        except SealInvalid:
            return None, None
        except DocumentError as error:
            return None, not_understood(arrived, receiver, str(error))
