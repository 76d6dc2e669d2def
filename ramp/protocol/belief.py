"""Why a message is believed: its sender sealed it in the right role, and recently if it starts a conversation.

The host has verified the seal of every message (`ramp.model.ports.Notary`); its meaning is judged here, for agents and
simulator alike. docs/design/trust.md lists the conditions for each message.
"""

from __future__ import annotations

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message
from ramp.model.instant import Instant, iso, seconds
from ramp.model.seal import Role, Seal
from ramp.protocol.timing import Timing


def sealed_by(message: Message, role: Role) -> Seal:
    """Return the seal of a message that its sender sealed in a role.

    Raises:
        RemoteProtocolError: if the seal is missing, of another party, or its signer is certified for another role.
    """
    seal = message.seal
    kind = type(message.content).__name__
    if seal is None:
        raise RemoteProtocolError(f"{kind} is not sealed")
    if seal.signer != message.sender or seal.receiver != message.receiver:
        raise RemoteProtocolError(f"{kind} is sealed by another party")
    if seal.role is not role:
        raise RemoteProtocolError(
            f"{kind} must come from a {role.value}; {seal.signer} is certified as {seal.role.value}"
        )
    return seal


def sealed_lately(message: Message, role: Role, now: Instant, timing: Timing) -> Seal:
    """Return the seal of a message that starts a conversation; it must be recent by the own clock.

    Answers need no such check: they are bound to what they answer.

    Raises:
        RemoteProtocolError: as `sealed_by`, or if it is older than `message_age`, or from the future.
    """
    seal = sealed_by(message, role)
    if abs(now - seal.signed_at) > timing.message_age:
        raise RemoteProtocolError(
            f"{type(message.content).__name__} was sealed at {iso(seal.signed_at)}, the clock here says {iso(now)}; "
            f"expected at most {seconds(timing.message_age):g} s apart, check both clocks"
        )
    return seal


def said_by(message: Message, name: str, role: Role) -> Seal:
    """Return the seal of a message that only one party may send.

    Raises:
        RemoteProtocolError: as `sealed_by`, or if another party sent it.
    """
    if message.sender != name:
        raise RemoteProtocolError(f"{message.sender} may not speak for {name}")
    return sealed_by(message, role)
