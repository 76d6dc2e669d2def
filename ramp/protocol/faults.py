"""Confines a bug to the conversation in which it was raised.

A party hands work to the machine of a conversation only through `guarded`. An exception there becomes an effect at its
place in the order, so other conversations still do their work. The host then lets the party resume that conversation
from its journal (`Recoverable.resume`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from ramp.errors import RemoteProtocolError
from ramp.model.instant import Instant
from ramp.protocol.effects import Effect, TakeUpAgain
from ramp.protocol.records import Record


@runtime_checkable
class Recoverable(Protocol):
    """A party that can resume single conversations."""

    def resume(self, reference: str, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Forget a conversation and resume it from its records, as after a restart.

        Args:
            reference: the party's name for it in `guarded`.
            records: the whole journal; empty without a journal.
            now: the present.
        """
        ...

    def forget(self, reference: str) -> None:
        """Suspend a conversation that raises again: it stays on record, and out of memory until the next start."""
        ...


def guarded(reference: str, act: Callable[[], list[Effect]]) -> list[Effect]:
    """Run a conversation's action; an exception other than RemoteProtocolError becomes `TakeUpAgain`.

    Args:
        reference: names the conversation to `Recoverable.resume`.
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
