"""A request of which the journal has lost the first records is told and not taken up."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model.instant import SECOND
from ramp.protocol import effects as fx
from ramp.protocol.progress import RecordsMissing
from ramp.protocol.records import CommitDecided, FundsAsked, RequestStarted


def told(effects: list[Any]) -> list[str]:
    progress = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [each.what for each in progress if isinstance(each, RecordsMissing) and each.request_id == "r1"]


def without(journal: list[Any], *kinds: type) -> list[Any]:
    return [each for each in journal if not isinstance(each, kinds)]


@pytest.mark.parametrize(
    ("lost", "names"),
    [
        ((RequestStarted,), "no RequestStarted of it"),
        ((FundsAsked,), "no FundsAsked of it"),
        ((FundsAsked, CommitDecided), "no FundsAsked of it"),
        ((RequestStarted, FundsAsked), "no RequestStarted and no FundsAsked of it"),
    ],
)
def test_it_is_told_and_not_taken_up(lost: tuple[type, ...], names: str, alice: Any, restarted_user: Any) -> None:
    alice.bought()
    again, effects = restarted_user(without(alice.journal, *lost), SECOND)
    (reason,) = told(effects)
    assert reason == f"the journal has {names}; it is not taken up, restore a backup"
    assert again.party.purchases == {}
    assert again.party.agreements == {}


def test_a_whole_journal_lacks_nothing(alice: Any, restarted_user: Any) -> None:
    alice.bought()
    again, effects = restarted_user(alice.journal, SECOND)
    assert told(effects) == []
    assert again.party.agreements == alice.party.agreements != {}
