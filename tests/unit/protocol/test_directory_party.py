"""The directory: leases, numbers that only go up, pages, and a restart with those who were known."""

from __future__ import annotations

from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.instant import MINUTE, SECOND
from ramp.model.seal import Role
from ramp.protocol.directory import party
from ramp.protocol.directory.party import KnownAgent
from ramp.protocol.timing import Timing

LEASE = 15 * SECOND
SERVICE = "resource-trader"


def test_who_registers_is_listed_until_the_lease_ends(directory: Any) -> None:
    assert directory.register("res", 7) == c.Registered(SERVICE, 7)
    assert directory.names(LEASE - 1).names == ("res",)
    assert directory.names(LEASE).names == ()


def test_no_more_are_listed_than_memory_is_meant_for(directory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party, "REGISTRATIONS_MAX", 2)
    for name in ("res1", "res2", "res3"):
        directory.register(name)
    assert directory.names().names == ("res1", "res2")
    directory.register("res1", 2, now=LEASE - 1)
    assert directory.names(LEASE).names == ("res1",)  # who is listed renews as ever


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


def test_who_is_unknown_cannot_be_struck_out_in_advance(directory: Any) -> None:
    directory.deregister("res", 10**9)
    directory.register("res", 1)
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


def test_nobody_is_listed_for_ever(directory: Any) -> None:
    directory.register("res", 1, lease=10**15)
    assert directory.names(10 * MINUTE - 1).names == ("res",)
    assert directory.names(10 * MINUTE).names == ()


def test_a_listing_comes_in_pages_of_500(directory: Any) -> None:
    names = sorted(f"r{number}" for number in range(1_201))
    for name in names:
        directory.register(name)
    found: list[str] = []
    sizes = []
    more = []
    for _ in range(3):
        page = directory.names(after=found[-1] if found else "")
        found += page.names
        sizes.append(len(page.names))
        more.append(page.more)
    assert (found, sizes, more) == (names, [500, 500, 201], [True, True, False])


def test_a_full_last_page_says_that_it_is_the_last(directory: Any) -> None:
    for number in range(500):
        directory.register(f"r{number}")
    assert not directory.names().more


def test_the_page_behind_a_name_that_has_left_goes_on_there(directory: Any) -> None:
    for name in ("a", "b", "c"):
        directory.register(name)
    directory.deregister("b", 2)
    assert directory.names(after="b").names == ("c",)


def test_a_restarted_directory_begins_with_those_it_knew(directory: Any, directory_with: Any) -> None:
    directory.register("b", 5)
    directory.register("a", 9)
    directory.register("gone", 1)
    directory.deregister("gone", 2)
    known = directory.party.registered
    assert known == (KnownAgent(SERVICE, "a", 9), KnownAgent(SERVICE, "b", 5))
    again = directory_with([*known, KnownAgent("printer", "p", 1)])
    again.party.start(MINUTE)
    assert again.names(MINUTE).names == ("a", "b")
    assert again.register("b", 5, now=MINUTE) == c.Registered(SERVICE, 5)
    again.deregister("a", 9, now=MINUTE)  # captured in its earlier life
    assert again.names(MINUTE + Timing().lease - 1).names == ("a", "b")
    assert again.names(MINUTE + Timing().lease).names == ()


def test_a_directory_that_comes_back_from_its_journal_begins_with_those_it_knew(directory_with: Any) -> None:
    again = directory_with([KnownAgent(SERVICE, "a", 9)])
    assert again.party.recover((), MINUTE) == []
    assert again.names(MINUTE + Timing().lease - 1).names == ("a",)
    assert again.names(MINUTE + Timing().lease).names == ()


def test_all_whose_leases_have_run_out_go_together(directory: Any) -> None:
    """Also behind one who has shortened its lease meanwhile."""
    directory.register("a", 1)
    directory.register("a", 2, lease=10 * SECOND)
    directory.register("b", 1, now=SECOND)
    directory.party.tick(LEASE + SECOND)
    assert directory.party.registered == ()
    assert directory.party.deadline is None


def test_changes_count_names_and_not_heartbeats(directory: Any) -> None:
    """Its memory is written when this changes."""
    for number in range(1, 50):
        directory.register("res", number, now=number)
    assert directory.party.changes == 1
    directory.deregister("res", 50, now=50)
    assert directory.party.changes == 2


AGENTS = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), AGENTS, st.integers(0, 8), st.integers(1, 12)),
        st.tuples(st.just("deregister"), AGENTS, st.integers(0, 8)),
        st.tuples(st.just("wait"), st.integers(1, 6)),
        st.tuples(st.just("tick")),
    ),
    max_size=40,
)


@settings(max_examples=examples(600))
@given(steps=STEPS)
def test_any_history_agrees_with_the_rules_read_out_of_a_table(parties: Any, steps: Any) -> None:
    """The model keeps of each agent the highest number and the end of its lease, and looks at all of them each time."""
    directory = parties["directory"]()
    highest: dict[str, int] = {}
    until: dict[str, int] = {}
    now = 0
    for step in steps:
        match step:
            case ("register", name, number, lease):
                if name not in highest or number > highest[name]:
                    highest[name], until[name] = number, now + lease
                assert directory.register(name, number, now, lease).number == highest[name]
            case ("deregister", name, number):
                if name in highest and number > highest[name]:
                    highest[name], until[name] = number, 0
                directory.deregister(name, number, now)
            case ("wait", time):
                now += time
            case _:
                directory.party.tick(now)
        listed = tuple(sorted(name for name, end in until.items() if end > now))
        assert directory.names(now).names == listed
        directory.party.tick(now)
        known = directory.party.registered
        assert [(each.name, each.number) for each in known] == [(name, highest[name]) for name in listed]
        if listed:
            assert directory.party.deadline <= min(until[name] for name in listed)
