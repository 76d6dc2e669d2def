"""A message as it travels, the second of the two types of a message beside `ramp.model.acl.Message`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """A message as it travels; `ramp.rfql.codec` converts it from and to a `Message`.

    Attributes:
        peer: the other party, `user@domain`: the receiver of an outgoing message, or the sender of an incoming one as
            the server states it. Only the signature in the document proves identity.
        body: the document.
        metadata: FIPA slots by name, and the seal.
        thread: conversation id; "" if the peer gave none.
    """

    peer: str
    body: str
    metadata: dict[str, str]
    thread: str
