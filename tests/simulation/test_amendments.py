"""Slots that shrink in markets under faults: crashes, losses, late machines, cancellations and liars meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from ramp.ledger import rules as ledger_rules
from ramp.ledger.book import _Index
from ramp.protocol.amending.asking import ResizeSlot
from ramp.protocol.amending.memory import AmendmentConcluded
from ramp.protocol.resource.slots.size_change import SizeChange
from ramp.protocol.user.resizing.changes import Changes
from simulation.market.swarm import run_seed

SEEDS_MAX = 60
"""Within so many seeds each planted bug shows; most show in the first."""


@pytest.mark.parametrize("seed", range(8))
def test_amendments_under_faults(seed: int) -> None:
    report = run_seed(seed, resized=True)
    assert report.violation is None, f"seed {seed}: {report.checker}: {report.violation}"


def paid_back_untaken() -> AbstractContextManager[Any]:
    """The machine is never asked for the smaller size."""

    def asks_for_the_same(change: SizeChange) -> ResizeSlot:
        return ResizeSlot(change.body.offer_id, change._step(), change._state.cores, change._state.until)

    return patch.object(SizeChange, "_ask_machine", asks_for_the_same)


def decisions_forgotten() -> AbstractContextManager[Any]:
    """The ledger does not note what it has decided of an amendment."""
    return patch.object(_Index, "add_amendment", lambda *_: None)


def refunded_whole() -> AbstractContextManager[Any]:
    """A refund gives back what amendments have given back already."""
    return patch.object(ledger_rules, "given_back", lambda _: 0)


def forgotten_at_restart() -> AbstractContextManager[Any]:
    """A user that restarts knows nothing of what was posted before."""
    original = Changes._replayed

    def without_ends(changes: Changes, records: Any) -> Any:
        ended = [
            replace(each, outcome=replace(each.outcome, done=False)) if isinstance(each, AmendmentConcluded) else each
            for each in records
        ]
        return original(changes, ended)

    return patch.object(Changes, "_replayed", without_ends)


PLANTED: dict[Callable[[], AbstractContextManager[Any]], set[str]] = {
    paid_back_untaken: {"amended_once"},
    decisions_forgotten: {"amended_once", "money_conserved"},
    refunded_whole: {"money_conserved", "refunded_once"},
    forgotten_at_restart: {"amended_once"},
}


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_checkers_see_planted_bugs(plant: Callable[[], AbstractContextManager[Any]]) -> None:
    with plant():
        for seed in range(SEEDS_MAX):
            report = run_seed(seed, resized=True)
            if report.violation is not None:
                assert report.checker in PLANTED[plant], f"seed {seed}: {report.checker}: {report.violation}"
                return
    pytest.fail(f"no seed below {SEEDS_MAX} shows it")
