"""Confines a bug to the conversation in which it was raised.

A party hands work to the machine of a conversation only through `guarded`. An exception there becomes an effect at its
place in the order, so other conversations still do their work. The host then lets the party resume that conversation
from its journal (`ramp.protocol.party.Party.resume`).
"""

from __future__ import annotations

from collections.abc import Callable

from ramp.errors import RemoteProtocolError
from ramp.protocol.effects import Effect, TakeUpAgain


def guarded(reference: str, act: Callable[[], list[Effect]]) -> list[Effect]:
    """Run a conversation's action; an exception other than RemoteProtocolError becomes `TakeUpAgain`.

    Args:
        reference: names the conversation to `Party.resume`.
        act: returns its effects.

    Raises:
        RemoteProtocolError: if a peer's message is unexpected.
    """
    try:
        return act()
    except RemoteProtocolError:
        raise
    except Exception as error:
        return [TakeUpAgain(reference, error)]
