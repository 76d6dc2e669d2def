"""Resources that could never serve: what they tell the directory, what it passes on, and how the user takes it."""

from __future__ import annotations

from typing import Any

from ramp.model import contents as c
from ramp.model.instant import SECOND
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.seal import Role
from ramp.model.services import RESOURCE_SERVICE
from ramp.model.slot import StaticTerms

LEASE = 15 * SECOND
SMALL, LARGE = StaticTerms(8, operating_system="LINUX"), StaticTerms(1024, operating_system="LINUX")
NEED = StaticNeeds(64)


def enter(directory: Any, name: str, terms: StaticTerms | None, number: int = 1) -> None:
    stated = () if terms is None else (terms,)
    directory.hear(name, c.Registration(RESOURCE_SERVICE, LEASE, number, stated), role=Role.RESOURCE)


def asked(directory: Any, *needs: StaticNeeds, after: str = "", service: str = RESOURCE_SERVICE) -> Any:
    (sent,) = directory.hear("alice", c.DirectoryQuery("q", service, after, needs))
    return sent.message.content


def test_the_latest_word_counts_and_a_captured_one_does_not(directory: Any) -> None:
    enter(directory, "res", SMALL, 1)
    enter(directory, "res", LARGE, 2)
    assert asked(directory, NEED).names == ("res",)
    enter(directory, "res", SMALL, 1)
    assert asked(directory, NEED).names == ("res",)
    enter(directory, "res", SMALL, 3)
    assert asked(directory, NEED).names == ()
    enter(directory, "res", None, 4)
    assert asked(directory, NEED).names == ("res",)
    directory.deregister("res", 5)
    assert asked(directory, NEED) == c.DirectoryListing("q", RESOURCE_SERVICE, ())
    enter(directory, "res", SMALL, 6)
    assert [each.name for each in asked(directory, NEED).unfit] == ["res"]
