"""The directory: leases, captured messages, restarts, pages, and whom it names for which need."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.contents import DirectoryListing, UnfitAgent
from ramp.model.instant import MINUTE, SECOND
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.seal import Role
from ramp.model.services import RESOURCE_SERVICE
from ramp.model.slot import StaticTerms
from ramp.protocol.directory.discovery import PAGES_MAX, ListingPages
from ramp.protocol.directory.listed import Listed
from ramp.protocol.directory.party import KnownAgent
from ramp.protocol.directory.terms_index import TermsIndex
from ramp.protocol.timing import Timing

LEASE = 15 * SECOND
SERVICE = "resource-trader"


def test_a_heartbeat_renews_the_lease(directory: Any) -> None:
    directory.register("res", 1)
    directory.register("res", 2, now=10 * SECOND)
    assert directory.names(LEASE + 9 * SECOND).names == ("res",)
    directory.party.tick(LEASE + 10 * SECOND)
    assert directory.party.registered == ()


@pytest.mark.parametrize("number", [5, 4, -1])
def test_a_captured_registration_keeps_nobody_listed(directory: Any, number: int) -> None:
    directory.register("res", 5)
    assert directory.register("res", number, now=10 * SECOND) == c.Registered(SERVICE, 5)
    assert directory.names(LEASE).names == ()


@pytest.mark.parametrize("number", [5, 4])
def test_a_captured_withdrawal_strikes_nobody_out(directory: Any, number: int) -> None:
    directory.register("res", 5)
    directory.deregister("res", number)
    assert directory.names().names == ("res",)
    directory.deregister("res", 6)
    assert directory.names().names == ()


def test_after_a_withdrawal_a_captured_registration_lists_nobody(directory: Any) -> None:
    directory.register("res", 5)
    directory.deregister("res", 6)
    assert directory.register("res", 5) == c.Registered(SERVICE, 6)
    assert directory.names().names == ()
    directory.register("res", 7)
    assert directory.names().names == ("res",)


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.RESOURCE}))
def test_only_resources_register(directory: Any, role: Role) -> None:
    with pytest.raises(RemoteProtocolError, match="must come from a resource"):
        directory.hear("res", c.Registration(SERVICE, LEASE, 1), role=role)


def test_services_are_a_fixed_list(directory: Any) -> None:
    with pytest.raises(
        RemoteProtocolError, match="unknown service 'printer', expected resource-draining, resource-trader"
    ):
        directory.hear("res", c.Registration("printer", LEASE, 1), role=Role.RESOURCE)
    (listing,) = [each.message.content for each in directory.hear("alice", c.DirectoryQuery("q", "printer"))]
    assert listing.names == ()


def test_a_directory_that_comes_back_from_its_journal_begins_with_those_it_knew(directory_with: Any) -> None:
    again = directory_with([KnownAgent(SERVICE, "a", 9)])
    assert again.party.recover((), MINUTE) == []
    assert again.names(MINUTE + Timing().lease - 1).names == ("a",)
    assert again.names(MINUTE + Timing().lease).names == ()


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


NEEDS = (StaticNeeds(cores=64),)


@pytest.mark.parametrize("others", [0, 100])
def test_pages_by_need_name_everyone_once_and_the_last_says_so(others: int) -> None:
    """With many others few fit, which is looked for in another way; the answer is the same."""
    listed = Listed()
    for name in ("a1", "b1", "c1", "d1"):
        listed.add(name, StaticTerms(64))
    for number in range(others):
        listed.add(f"small-{number}", StaticTerms(16))
    assert listed.page_by_need(NEEDS, "", 2, 0) == (("a1", "b1"), True, ())
    assert listed.page_by_need(NEEDS, "b1", 2, 0) == (("c1", "d1"), False, ())


def test_who_does_not_fit_is_told_whatever_it_is_called() -> None:
    listed = Listed()
    listed.add("1st@west.example", StaticTerms(16))
    _, _, unfit = listed.page_by_need(NEEDS, "", 5, 5)
    assert [each.name for each in unfit] == ["1st@west.example"]


def test_words_that_nobody_states_any_more_are_forgotten() -> None:
    """Else a directory would grow with every architecture that somebody ever invented."""
    index, need = TermsIndex(), StaticNeeds(cores=1, architecture="x86_64")
    for name in ("res1", "res2"):
        index.put(name, StaticTerms(64, architecture="x86_64"))
    index.remove("res1")
    assert list(index.names(index.meeting((need,))[0])) == ["res2"]
    index.remove("res2")
    assert index._words == {}


def test_a_listing_ends_with_its_last_page_or_when_there_are_too_many() -> None:
    pages = ListingPages()
    for number in range(1, PAGES_MAX + 1):
        assert not pages.complete
        assert pages.add(DirectoryListing("q", "resource-trader", (f"m{number:06}",), True))
    assert pages.complete


def test_a_page_that_begins_where_the_last_one_ended_is_none_of_the_listing() -> None:
    pages = ListingPages()
    first = (UnfitAgent("x1", (StaticTerms(16),)),)
    assert pages.add(DirectoryListing("q", "resource-trader", ("a1", "b1"), True, first))
    assert not pages.add(DirectoryListing("q", "resource-trader", ("b1", "c1"), True))
    assert pages.add(DirectoryListing("q", "resource-trader", ("c1",), False))
    assert (pages.names, dict(pages.unfit)) == (("a1", "b1", "c1"), {"x1": StaticTerms(16)})
