"""Ports: what a party needs from the world, as interfaces that shells and simulator implement."""

from __future__ import annotations

from typing import Protocol

from ramp.model.acl import Message
from ramp.model.agreement import Signed
from ramp.model.instant import Instant


class Notary(Protocol):
    """Signs in the name of one party and verifies what others signed.

    The real one (`ramp.rfql.signing.notary`) does XML-DSig with X.509 certificates; the simulator's passes the typed
    body along with the signers' names.
    """

    def sign(self, signed: Signed, now: Instant) -> Signed:
        """Add this party's signature as the outermost one; fills `signers` and `document`."""
        ...

    def seal(self, message: Message, now: Instant) -> Message:
        """Seal a message of this party's: the same with `seal` filled.

        Raises:
            CertificateExpired: if the party's own certificate does not hold now.
        """
        ...

    def open(self, text: str, now: Instant) -> Message:
        """Read a sealed message that has come, was kept or passed on; the message bears its seal.

        Raises:
            DocumentError: if anything about message or seal is not right.
        """
        ...

    def verify(self, document: str, now: Instant) -> Signed:
        """Check every signature of a document and return what they cover.

        Raises:
            DocumentError: if anything about document or signatures is not right.
        """
        ...
