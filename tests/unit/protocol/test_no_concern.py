"""What is said or happens to a party and is no concern of its own: nothing comes of it, or it is not understood."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.protocol import events as ev

PARTIES = ("alice", "res", "bank", "keeper", "directory")
FOREIGN = {
    "alice": ev.MachineOpened("live"),
    "res": ev.ResourcesAsked("q"),
    "bank": ev.MachineOpened("live"),
    "keeper": ev.MachineOpened("live"),
    "directory": ev.MachineOpened("live"),
}
NONSENSE = {
    "alice": c.Registered("resource-trader", 1),
    "res": c.DirectoryListing("q", "resource-trader", ()),
    "bank": c.DirectoryListing("q", "resource-trader", ()),
    "keeper": c.Confirmed("a1", "o1"),
    "directory": c.HoldCancelled("r1", "o1"),
}


@pytest.mark.parametrize("name", PARTIES)
def test_who_was_not_understood_answers_nothing(name: str, parties: Any) -> None:
    """Else two parties that do not understand each other would go on for ever."""
    assert parties[name]().hear("mallory", c.NotUnderstood("what?")) == []


@pytest.mark.parametrize("name", PARTIES)
def test_an_event_of_another_party_changes_nothing(name: str, parties: Any) -> None:
    assert parties[name]().party.handle(FOREIGN[name], 0) == []


@pytest.mark.parametrize("name", PARTIES)
def test_what_has_no_place_is_not_understood_and_says_what_it_was(name: str, parties: Any, refused: Any) -> None:
    with refused as caught:
        parties[name]().hear("mallory", NONSENSE[name])
    assert type(NONSENSE[name]).__name__ in caught.value.reason
