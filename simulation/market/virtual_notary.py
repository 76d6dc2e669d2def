"""The simulator's notary: signatures as names, without keys.

It says of a document what the real one says after verifying: who signed, in which order. Forgery is the business of the
real notary's own tests.
"""

from __future__ import annotations

from dataclasses import replace

from ramp.errors import SignatureInvalid
from ramp.model.agreement import Signed
from ramp.model.instant import Instant


class VirtualNotary:
    """Signs by writing the party's name behind the earlier signers.

    Args:
        name: the party.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def sign(self, signed: Signed, now: Instant) -> Signed:
        """Add this party as the outermost signer."""
        return replace(signed, signers=(*signed.signers, self._name))

    def verify(self, document: str, now: Instant) -> Signed:
        """Documents never become text in the simulator, so there is nothing to verify.

        Raises:
            SignatureInvalid: always.
        """
        raise SignatureInvalid("the simulator passes typed documents, not text")
