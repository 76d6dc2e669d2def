"""Bugs planted where slots change their size; `planted_bugs` lists them with all others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from unittest.mock import patch

from ramp.ledger import change_rules
from ramp.ledger.book import _Index
from ramp.ledger.payment_rules import Problem
from ramp.ledger.records import Records
from ramp.ledger.refusals import RefusalCode
from ramp.model.contents import OrderLine
from ramp.model.sizes import amended
from ramp.model.sizes.amended import Bought
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.records import ChangeConcluded, Record
from ramp.protocol.resource.slots.seller_change import SellerChange
from ramp.protocol.transition_tables import SellerChangeState
from ramp.protocol.user.changing.desk import Changes

Context = contextlib.AbstractContextManager[object]


def paid_back_untaken() -> Context:
    """The machine is asked for the size that the slot has instead of the smaller one."""
    original = SellerChange._ask_machine

    def ask_machine(change: SellerChange) -> ResizeSlot:
        if change.body.grows:
            return original(change)
        return ResizeSlot(change.body.offer_id, change._step(), change._state.cores, change._state.until)

    return patch.object(SellerChange, "_ask_machine", ask_machine)


def decisions_forgotten() -> Context:
    """The ledger does not note what it has decided of an amendment."""
    return patch.object(_Index, "add_change", lambda *_: None)


def rebates_refunded_again() -> Context:
    """A refund gives back what amendments have given back already."""
    return patch.object(change_rules, "left_of", lambda payment, _: payment.amount)


def changes_forgotten() -> Context:
    """A user that restarts knows nothing of what was posted before."""
    original = Changes._replayed

    def replayed(changes: Changes, records: Sequence[Record]) -> object:
        ended = [
            replace(each, outcome=replace(each.outcome, done=False)) if isinstance(each, ChangeConcluded) else each
            for each in records
        ]
        return original(changes, ended)

    return patch.object(Changes, "_replayed", replayed)


def handed_over_unpaid() -> Context:
    """What is added may be used as soon as the machine has set it aside."""
    original = vars(SellerChange)["is_binding"].fget

    def is_binding(change: SellerChange) -> bool:
        return change.state is not SellerChangeState.ENDED if change.body.grows else original(change)

    return patch.object(SellerChange, "is_binding", property(is_binding))


def addition_kept() -> Context:
    """The machine keeps what was to be added, though nobody has paid it."""
    original = SellerChange._ask_machine

    def ask_machine(change: SellerChange) -> ResizeSlot:
        if not change.body.grows:
            return original(change)
        return ResizeSlot(change.body.offer_id, change._step(), change.body.cores, change.body.until)

    return patch.object(SellerChange, "_ask_machine", ask_machine)


def additions_not_noted() -> Context:
    """The ledger posts what was added, and does not note the amendment."""
    return patch.object(change_rules, "addition_posted", lambda *_: None)


def first_bought_first_back() -> Context:
    """A smaller slot keeps what was added last and gives back what was bought first."""

    def resized(bought: tuple[Bought, ...], cores: int) -> tuple[Bought, ...]:
        kept: list[Bought] = []
        for each in reversed(bought):
            left = min(each.cores, cores)
            if left > 0:
                kept.append(Bought(left, each.price))
            cores -= left
        return tuple(reversed(kept))

    return patch.object(amended, "_resized", resized)


def addition_to_any_state() -> Context:
    """An order's line may add to a state that its slot no longer has."""
    original = change_rules.addition_problem

    def addition_problem(records: Records, user: str, line: OrderLine) -> Problem | None:
        with patch.object(change_rules, "standing_digest", lambda _: ""):
            return original(records, user, line)

    return patch.object(change_rules, "addition_problem", addition_problem)


def addition_outlives_refund() -> Context:
    """An addition that is open when its slot is refunded is paid nevertheless."""
    original = change_rules.addition_problem

    def addition_problem(records: Records, user: str, line: OrderLine) -> Problem | None:
        problem = original(records, user, line)
        return None if problem is not None and problem[0] is RefusalCode.REFUNDED else problem

    return patch.object(change_rules, "addition_problem", addition_problem)


OF_AMENDMENTS: Final[dict[str, tuple[Callable[[], Context], str, str]]] = {
    "paid_back_untaken": (paid_back_untaken, "a part of a slot is paid back that the machine keeps", "amended_once"),
    "decisions_forgotten": (
        decisions_forgotten,
        "the ledger does not write what it has decided of an amendment",
        "refunded_once",
    ),
    "rebates_refunded_again": (
        rebates_refunded_again,
        "a refund gives back what amendments have given back already",
        "refunded_once",
    ),
    "changes_forgotten": (
        changes_forgotten,
        "a user that restarts knows no amendment that was posted",
        "amended_once",
    ),
    "handed_over_unpaid": (handed_over_unpaid, "what is added to a slot may be used before it is paid", "amended_once"),
    "addition_kept": (
        addition_kept,
        "a machine keeps for a slot what was to be added and was not paid",
        "amended_once",
    ),
    "additions_not_noted": (
        additions_not_noted,
        "the ledger is paid for what is added, and does not note the amendment",
        "amended_once",
    ),
    "first_bought_first_back": (
        first_bought_first_back,
        "a smaller slot gives back what was bought first, at its price",
        "amended_once",
    ),
    "addition_to_any_state": (
        addition_to_any_state,
        "an order's line adds to a state that its slot no longer has",
        "amended_once",
    ),
    "addition_outlives_refund": (
        addition_outlives_refund,
        "a refund leaves an open addition standing, which is then paid",
        "refunded_once",
    ),
}
"""By the name of each: how it is planted, what it is, and the checker that sees it."""
