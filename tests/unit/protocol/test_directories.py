"""Several directories: resources are entered in all, users ask any, and one that is silent or lies costs little."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import SECOND
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.seal import Role
from ramp.model.services import RESOURCE_SERVICE
from ramp.model.slot import StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.directory.discovery import Directories, Discovery
from ramp.protocol.directory.terms_index import TermsIndex
from ramp.protocol.progress import QueryAnswered
from ramp.protocol.resource.directory_entry import DirectoryEntry
from ramp.protocol.rules.rule_book import RuleBook
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.party import UserParty
from ramp.runtime.auction_rules import RULES
from simulation.market.counted_ids import CountedIds

TWO = ("first", "second")


def sent(effects: list[fx.Effect]) -> list[tuple[str, Any]]:
    return [(each.message.receiver, each.message.content) for each in effects if isinstance(each, fx.Send)]


def discovery(directories: Directories, request_id: str = "r1") -> Discovery:
    return Discovery(request_id, asking="alice", directories=directories, service=RESOURCE_SERVICE, pace=Pace(Timing()))


def listing(*names: str, more: bool = False) -> c.DirectoryListing:
    return c.DirectoryListing("r1", RESOURCE_SERVICE, names, more=more)


def test_a_set_of_machines_names_each_of_them() -> None:
    index, names = TermsIndex(), [f"machine-{number}" for number in range(40)]
    for name in names:
        index.put(name, None)
    for chosen in ([0], [7], [8], [15, 16], [3, 4, 5, 31], [39], list(range(40))):
        assert sorted(index.names(sum(1 << place for place in chosen))) == sorted(names[place] for place in chosen)
    assert list(index.names(0)) == []


def test_a_directory_lost_between_two_pages_is_no_loss() -> None:
    search = discovery(Directories(TWO))
    search.start(0)
    assert sent(search.on_listing(listing("a", "b", more=True), 0)) == [
        ("first", c.DirectoryQuery("r1", RESOURCE_SERVICE, "b"))
    ]
    assert sent(search.tick(SECOND)) == [("second", c.DirectoryQuery("r1", RESOURCE_SERVICE, "b"))]
    search.on_listing(listing("c"), SECOND)
    assert search.names == ("a", "b", "c")


def test_there_is_always_one() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Directories(())


@pytest.fixture
def seal(seal_message: Any) -> Any:
    def make(sender: str, receiver: str, content: Any, role: Role) -> Message:
        message: Message = seal_message(Message(Performative.INFORM, sender, receiver, "r1", content), role)
        return message

    return make


@pytest.mark.parametrize(("sender", "role"), [("mallory", Role.DIRECTORY), ("second", Role.RESOURCE)])
def test_only_a_directory_of_the_market_is_believed(seal: Any, sender: str, role: Role) -> None:
    entry = DirectoryEntry("res", TWO, Timing())
    with pytest.raises(RemoteProtocolError):
        entry.entered(seal(sender, "res", c.Registered(RESOURCE_SERVICE, 5), role), 5)


def test_an_owners_question_falls_over_too_and_any_answer_counts(seal: Any) -> None:
    party = UserParty(
        "alice", bank="bank", directories=TWO, ids=CountedIds("alice"), timing=Timing(), rules=RuleBook(RULES.find)
    )
    assert [name for name, _ in sent(party.handle(ev.ResourcesAsked("q"), 0))] == ["first"]
    assert ("second", c.DirectoryQuery("q", RESOURCE_SERVICE, "")) in sent(party.tick(SECOND))
    late = seal("first", "alice", c.DirectoryListing("q", RESOURCE_SERVICE, ("res",)), Role.DIRECTORY)
    (told,) = [each.progress for each in party.handle(ev.MessageReceived(late), 2 * SECOND) if type(each) is fx.Report]
    assert told == QueryAnswered("q", c.DirectoryListing("q", RESOURCE_SERVICE, ("res",)))


def test_a_machine_whose_terms_change_is_there_once() -> None:
    index = TermsIndex()
    for cores in (64, 128):
        index.put("res1", StaticTerms(cores))
    met, unmet = index.meeting((StaticNeeds(cores=100),))
    assert (list(index.names(met)), list(index.names(unmet)), len(index)) == (["res1"], [], 1)


def test_what_is_stated_for_the_first_time_is_not_taken_for_another_since_something_is_stated_no_more() -> None:
    index = TermsIndex()
    for name, architecture in (("res1", "sparc"), ("res2", "powerpc")):
        index.put(name, StaticTerms(64, architecture=architecture))
    index.remove("res1")
    index.put("res3", StaticTerms(64, architecture="x86_64"))
    for name, architecture in (("res2", "powerpc"), ("res3", "x86_64")):
        met, _ = index.meeting((StaticNeeds(cores=1, architecture=architecture),))
        assert list(index.names(met)) == [name]
