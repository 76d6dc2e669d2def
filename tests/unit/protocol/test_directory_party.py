"""Directories: leases, captured messages, restarts, pages, whom they name for which need, and several of them."""

from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.contents import DirectoryListing, UnfitAgent
from ramp.model.contents.directory import RESOURCE_SERVICE
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.machine_terms import StaticNeeds, needs_of
from ramp.model.request import RequestForQuotation
from ramp.model.seal import Role
from ramp.model.slot import StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.directory import party
from ramp.protocol.directory.party import KnownAgent, Listed
from ramp.protocol.progress import QueryAnswered, RequestEnded
from ramp.protocol.questions import PAGES_MAX, Directories, ListingPages
from ramp.protocol.resource.directory_entry import DirectoryEntry
from ramp.protocol.timing import Timing
from ramp.protocol.user.party import UserParty
from tests.unit.protocol.conftest import PARTIES, UNIT, directory_with, new_user, sealed

LEASE = 15 * SECOND
SERVICE = "resource-trader"


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


def test_services_are_a_fixed_list(directory: Any) -> None:
    with pytest.raises(
        RemoteProtocolError, match="unknown service 'printer', expected resource-draining, resource-trader"
    ):
        directory.hear("res", c.Registration("printer", LEASE, 1), role=Role.RESOURCE)
    (listing,) = [each.message.content for each in directory.hear("alice", c.DirectoryQuery("q", "printer"))]
    assert listing.names == ()


def test_a_directory_that_comes_back_from_its_journal_begins_with_those_it_knew() -> None:
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


def test_pages_by_need_name_everyone_once_and_the_last_says_so() -> None:
    listed = Listed()
    for name in ("a1", "b1", "c1", "d1"):
        listed.put(name, StaticTerms(64))
    assert listed.page(NEEDS, "", 2, 0) == (("a1", "b1"), True, ())
    assert listed.page(NEEDS, "b1", 2, 0) == (("c1", "d1"), False, ())


def test_who_does_not_fit_is_told_whatever_it_is_called() -> None:
    listed = Listed()
    listed.put("1st@west.example", StaticTerms(16))
    _, _, unfit = listed.page(NEEDS, "", 5, 5)
    assert [each.name for each in unfit] == ["1st@west.example"]


def test_kinds_of_machines_that_are_gone_are_forgotten() -> None:
    """Else a directory would grow with every architecture that somebody ever invented."""
    listed = Listed()
    for cores in (64, 128):
        listed.put("res1", StaticTerms(cores))
    assert list(listed._kinds) == [StaticTerms(128)]
    listed.remove("res1")
    assert (listed._kinds, listed._terms, listed.names) == ({}, {}, [])


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


def test_no_more_are_listed_than_memory_is_meant_for(directory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party, "REGISTRATIONS_MAX", 2)
    for name in ("res1", "res2", "res3"):
        directory.register(name)
    assert directory.names().names == ("res1", "res2")
    directory.register("res1", 2, now=LEASE - 1)
    assert directory.names(LEASE).names == ("res1",)  # who is listed renews as ever


@settings(max_examples=examples(600))
@given(steps=STEPS)
def test_any_history_agrees_with_the_rules_read_out_of_a_table(steps: Any) -> None:
    """The model keeps of each agent the highest number and the end of its lease, and looks at all of them each time."""
    directory = PARTIES["directory"]()
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


TWO = ("first", "second")


def sent(effects: list[fx.Effect]) -> list[tuple[str, Any]]:
    return [(each.message.receiver, each.message.content) for each in effects if isinstance(each, fx.Send)]


def request(party: UserParty, request_id: str, now: int) -> list[tuple[str, Any]]:
    """Submit a request, which searches for sellers."""
    wanted = RequestForQuotation((UNIT,))
    return sent(party.handle(ev.RequestSubmitted(request_id, wanted, ev.AuctionOptions(1)), now))


def list_names(party: UserParty, directory: str, *names: str, now: int, more: bool = False) -> list[tuple[str, Any]]:
    content = c.DirectoryListing("r1", RESOURCE_SERVICE, names, more=more)
    return sent(party.handle(seal(directory, "alice", content, Role.DIRECTORY), now))


def test_a_directory_lost_between_two_pages_is_no_loss() -> None:
    party = new_user(*TWO)
    request(party, "r1", 0)
    query = c.DirectoryQuery("r1", RESOURCE_SERVICE, "b", needs_of((UNIT,)))
    assert list_names(party, "first", "a", "b", now=0, more=True) == [("first", query)]
    assert sent(party.tick(SECOND)) == [("second", query)]
    assert [name for name, _ in list_names(party, "second", "c", now=SECOND)] == ["a", "b", "c"]


def test_there_is_always_one() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Directories(())


def seal(sender: str, receiver: str, content: Any, role: Role) -> Message:
    return sealed(Message(Performative.INFORM, sender, receiver, "r1", content), role)


@pytest.mark.parametrize(("sender", "role"), [("mallory", Role.DIRECTORY), ("second", Role.RESOURCE)])
def test_only_a_directory_of_the_market_is_believed(sender: str, role: Role) -> None:
    entry = DirectoryEntry("res", TWO, Timing(), terms=StaticTerms(64), draining=False)
    with pytest.raises(RemoteProtocolError):
        entry.entered(seal(sender, "res", c.Registered(RESOURCE_SERVICE, 5), role), 5)


def test_an_owners_question_falls_over_too_and_any_answer_counts() -> None:
    party = new_user(*TWO)
    assert [name for name, _ in sent(party.handle(ev.ResourcesAsked("q"), 0))] == ["first"]
    assert ("second", c.DirectoryQuery("q", RESOURCE_SERVICE, "")) in sent(party.tick(SECOND))
    late = seal("first", "alice", c.DirectoryListing("q", RESOURCE_SERVICE, ("res",)), Role.DIRECTORY)
    (told,) = [each.progress for each in party.handle(late, 2 * SECOND) if type(each) is fx.Report]
    assert told == QueryAnswered("q", c.DirectoryListing("q", RESOURCE_SERVICE, ("res",)))


def test_searches_that_find_out_together_pass_it_over_once() -> None:
    party = new_user(*TWO)
    for number in range(2):
        request(party, f"r{number}", 0)
    assert [name for name, _ in sent(party.tick(SECOND))] == ["second", "second"]


def test_a_directory_that_is_silent_is_passed_over_for_the_next_in_order() -> None:
    directories = Directories(("first", "second", "third"))
    assert [directories.pass_over(directories.preferred) for _ in range(3)] == ["second", "third", "first"]


def test_an_empty_market_is_waited_for_as_long_as_before_when_the_clock_is_set() -> None:
    party = new_user(*TWO)
    request(party, "r1", SECOND)
    party.clock_set(HOUR)
    assert list_names(party, "first", now=2 * SECOND + HOUR) == []
    over = SECOND + HOUR + Timing().empty_limit
    told = [
        each.progress.outcome.reason
        for now in (over - 1, over)
        for each in party.tick(now)
        if isinstance(each, fx.Report) and isinstance(each.progress, RequestEnded)
    ]
    assert (told, party.purchases["r1"].outcome.duration) == (
        ["no resource is registered in the market"],
        Timing().empty_limit,
    )


@pytest.mark.parametrize("by", [-HOUR, HOUR])
def test_a_lease_lasts_as_long_as_before_when_the_clock_is_set(directory: Any, by: int) -> None:
    directory.register(lease=LEASE)
    directory.party.clock_set(by)
    assert directory.party.deadline == LEASE + by
    assert directory.names(LEASE + by - 1).names == ("res",)
    assert directory.names(LEASE + by).names == ()


def test_every_change_of_the_listed_names_is_noticed(directory: Any) -> None:
    counts = [directory.party.changes]
    for change in (directory.register, lambda: directory.deregister(number=2), lambda: directory.register(number=3)):
        change()
        counts.append(directory.party.changes)
    assert len(set(counts)) == len(counts)
