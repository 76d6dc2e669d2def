"""Bugs planted on purpose, to prove that the checkers see them.

Each replaces one method of the protocol or the host by a broken one while its context lasts. What they break: the
decision is not persisted; the vote leaves before it is persisted; nothing is sent again; a hold's timer is ignored; a
payment is debited for every request that asks for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from ramp.ledger.interface import Ledger
from ramp.ledger.order import Order
from ramp.model.contents import HoldGranted
from ramp.model.instant import Instant
from ramp.protocol import effects as fx
from ramp.protocol.participant import Participant
from ramp.protocol.records import CommitDecided, HoldIntended, HoldMade
from ramp.protocol.tables import ParticipantState
from ramp.protocol.timing import Retry
from ramp.runtime.host import Host


@contextlib.contextmanager
def _replaced(owner: type, method: str, make: Callable[[Any], Any]) -> Iterator[None]:
    with patch.object(owner, method, make(getattr(owner, method))):
        yield


def _decision_not_persisted() -> contextlib.AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def carry_out_one(host: Host, effect: fx.Effect, now: Instant) -> None:
            if not (isinstance(effect, fx.Persist) and isinstance(effect.record, CommitDecided)):
                original(host, effect, now)

        return carry_out_one

    return _replaced(Host, "_carry_out_one", make)


def _vote_before_persist() -> contextlib.AbstractContextManager[None]:
    """The intention to hold and the hold are written only after AGREE has left."""
    delayed: WeakKeyDictionary[Host, list[fx.Effect]] = WeakKeyDictionary()

    def make(original: Any) -> Any:
        def carry_out(host: Host, effects: list[fx.Effect], now: Instant) -> None:
            votes = [e for e in effects if isinstance(e, fx.Send) and isinstance(e.message.content, HoldGranted)]
            late = [e for e in effects if isinstance(e, fx.Persist) and isinstance(e.record, HoldIntended | HoldMade)]
            delayed.setdefault(host, []).extend(late)
            early = [e for e in effects if e not in late]
            original(host, [*early, *delayed.pop(host)] if votes else early, now)

        return carry_out

    return _replaced(Host, "_carry_out", make)


def _no_retransmission() -> contextlib.AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def begin(retry: Retry, now: Instant) -> None:
            original(retry, now)
            retry.due = now + 10**15

        return begin

    return _replaced(Retry, "begin", make)


def _hold_timer_ignored() -> contextlib.AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def tick(participant: Participant, now: Instant) -> Any:
            if participant.state is ParticipantState.HELD:
                participant.deadline = None
                return []
            return original(participant, now)

        return tick

    return _replaced(Participant, "tick", make)


def _double_debit() -> contextlib.AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def countersign(ledger: Ledger, agreement_id: str, **terms: Any) -> Order:
            order: Order = original(ledger, agreement_id, **terms)
            count = len(ledger.statement(order.user).lines)
            again = tuple(replace(line, agreement_id=f"{line.agreement_id}#{count}") for line in order.lines)
            if agreement_id == order.lines[-1].agreement_id:
                at: Instant = terms["at"]
                ledger.reserve_order(f"{order.order_id}#{count}", order.user, again, order.valid_until, at=at)
                for line in again:
                    original(ledger, line.agreement_id, at=at, starts_at=at)
            return order

        return countersign

    return _replaced(Ledger, "countersign", make)


PLANTED_BUGS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "decision_not_persisted": _decision_not_persisted,
    "vote_before_persist": _vote_before_persist,
    "no_retransmission": _no_retransmission,
    "hold_timer_ignored": _hold_timer_ignored,
    "double_debit": _double_debit,
}
"""Context managers by name."""
