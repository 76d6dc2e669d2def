"""A bug of ours in the middle of a conversation stays in that conversation.

Every place where a party hands work to the machine of one conversation goes through `guarded`. What raises there
becomes an effect at its place in the order, so what other conversations have to do at the same moment is still done;
the host then lets the party take that one conversation up again from its journal (`Recoverable.resume`).
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
    """A party that can take single conversations up again."""

    def resume(self, reference: str, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Forget a conversation and take it up again from what is on record of it, as after a restart.

        Args:
            reference: what the party itself calls it in `guarded`.
            records: the whole journal; none where the party keeps none.
            now: the present.
        """
        ...

    def forget(self, reference: str) -> None:
        """Let a conversation rest that raises again: it is on record, and out of memory until the next start."""
        ...


def guarded(reference: str, act: Callable[[], list[Effect]]) -> list[Effect]:
    """Let one conversation act; what raises is a bug, but for what a peer is to be told.

    Args:
        reference: names the conversation to `Recoverable.resume`.
        act: what is to be done; its effects are returned.

    Raises:
        RemoteProtocolError: if a peer's message has no place.
    """
    try:
        return act()
    except RemoteProtocolError:
        raise
    except Exception as error:
        return [TakeUpAgain(reference, error)]
