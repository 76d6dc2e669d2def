"""Interfaces to the world of a party, which shells and simulator implement."""

from __future__ import annotations

from typing import Protocol

from ramp.model.acl import Message
from ramp.model.agreement import Signed
from ramp.model.instant import Instant


class Verifier(Protocol):
    """Verifies signatures and seals of other parties."""

    def open(self, text: str, now: Instant) -> Message:
        """Read a sealed message that has arrived, was kept or passed on; the message bears its seal.

        Raises:
            DocumentError: if message or seal are invalid.
        """
        ...

    def verify(self, document: str, now: Instant) -> Signed:
        """Check every signature of a document and return the signed content.

        Raises:
            DocumentError: if document or signatures are invalid.
        """
        ...


class Notary(Verifier, Protocol):
    """Signs in the name of one party as well.

    The real one (`ramp.rfql.signing.notary`) does XML-DSig with X.509 certificates; the simulator's passes the typed
    body along with the signers' names.
    """

    def sign(self, signed: Signed, now: Instant) -> Signed:
        """Add this party's signature as the outermost one; fills `signers` and `document`."""
        ...

    def seal(self, message: Message, now: Instant) -> Message:
        """Seal a message of this party's; `CertificateExpired` if the party's own certificate is not valid now."""
        ...


class IdSource(Protocol):
    """A source of identifiers that never repeat; they are the idempotency keys of the protocol.

    In production they are unguessable; in the simulator they are counted, so that runs repeat.
    """

    def new(self, kind: str) -> str:
        """Return a new identifier that begins with `kind` (`request`, `offer`, `agreement`)."""
        ...
