"""Resources that could never serve: what they tell the directory, what it passes on, and how the user takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, SECOND
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.services import DRAINING_SERVICE, RESOURCE_SERVICE
from ramp.model.slot import StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.directory.party import PAGE_NAMES_MAX, UNFIT_MAX
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RoundClosed
from ramp.protocol.records import RequestConcluded
from ramp.protocol.resource.directory_entry import DirectoryEntry
from ramp.protocol.timing import Timing

LEASE = 15 * SECOND
SMALL, LARGE = StaticTerms(8, operating_system="LINUX"), StaticTerms(1024, operating_system="LINUX")
NEED = StaticNeeds(64)
UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(64), not_before=HOUR, wall_time=HOUR)


def enter(directory: Any, name: str, terms: StaticTerms | None, number: int = 1) -> None:
    stated = () if terms is None else (terms,)
    directory.hear(name, c.Registration(RESOURCE_SERVICE, LEASE, number, stated), role=Role.RESOURCE)


def asked(directory: Any, *needs: StaticNeeds, after: str = "", service: str = RESOURCE_SERVICE) -> Any:
    (sent,) = directory.hear("alice", c.DirectoryQuery("q", service, after, needs))
    return sent.message.content


def test_the_directory_names_who_could_serve_and_tells_of_the_others_what_they_have_stated(directory: Any) -> None:
    for name, terms in (("small", SMALL), ("large", LARGE), ("silent", None)):
        enter(directory, name, terms)
    listing = asked(directory, NEED)
    assert listing.names == ("large", "silent"), "who states nothing may be anything"
    assert listing.unfit == (c.UnfitAgent("small", (SMALL,)),)
    assert asked(directory, NEED, StaticNeeds(8)).unfit == (), "one of the needs is enough"
    everybody = asked(directory)
    assert (everybody.names, everybody.unfit) == (("large", "silent", "small"), ())
    assert asked(directory, NEED, after="large") == c.DirectoryListing("q", RESOURCE_SERVICE, ("silent",))
    assert asked(directory, NEED, service=DRAINING_SERVICE).names == ()


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


def test_a_listing_stays_within_a_message_however_many_do_not_fit(directory: Any) -> None:
    for number in range(PAGE_NAMES_MAX + 1):
        enter(directory, f"large{number:04}", LARGE)
        enter(directory, f"small{number:04}", SMALL)
    listing = asked(directory, NEED)
    assert listing.names == tuple(f"large{number:04}" for number in range(PAGE_NAMES_MAX))
    assert listing.more
    assert [each.name for each in listing.unfit] == [f"small{number:04}" for number in range(UNFIT_MAX)]
    rest = asked(directory, NEED, after=listing.names[-1])
    assert (rest.names, rest.more, rest.unfit) == ((f"large{PAGE_NAMES_MAX:04}",), False, ())


def test_a_resource_states_its_terms_with_every_registration() -> None:
    entry = DirectoryEntry("res", ["directory"], Timing(), terms=SMALL, draining=True)
    said = [each.message.content for each in entry.renew(0) if isinstance(each, fx.Send)]
    assert [(each.service, each.terms) for each in said] == [(RESOURCE_SERVICE, (SMALL,)), (DRAINING_SERVICE, ())]


def opened(alice: Any, listing: c.DirectoryListing, *units: RequestUnit) -> list[Any]:
    options = ev.AuctionOptions(rounds=1)
    effects = alice.command(ev.RequestSubmitted("r1", RequestForQuotation(units), options), 0)
    (query,) = [each.message.content for each in effects if isinstance(each, fx.Send)]
    assert isinstance(query, c.DirectoryQuery)
    assert query.needs == tuple(dict.fromkeys(StaticNeeds(unit.cores.total) for unit in units))
    return list(alice.hear("directory", listing))


def called(effects: list[Any]) -> list[str]:
    found: list[Message] = [each.message for each in effects if isinstance(each, fx.Send)]
    return [each.receiver for each in found if isinstance(each.content, c.CallForProposals)]


def closed(effects: list[Any]) -> RoundClosed:
    (found,) = [
        each.progress for each in effects if isinstance(each, fx.Report) and isinstance(each.progress, RoundClosed)
    ]
    return found


def test_who_could_never_serve_is_not_called_and_stands_in_the_round(alice: Any) -> None:
    listing = c.DirectoryListing("r1", RESOURCE_SERVICE, ("res",), unfit=(c.UnfitAgent("mite", (SMALL,)),))
    assert called(opened(alice, listing, UNIT)) == ["res"]
    proposal = c.Proposal("r1", 1, (alice.offer("res", 60),))
    effects = alice.hear("res", proposal, performative=Performative.PROPOSE)
    (told,) = closed(effects).record.refusals
    assert (told.resource, told.refusal.code) == ("mite", RefusalCode.MACHINE_TOO_SMALL)
    assert (told.refusal.nearest, told.refusal.detail) == ("8 cores", "the machine has 8 cores")


def test_where_nobody_could_serve_the_request_ends_at_once_and_says_why(alice: Any) -> None:
    listing = c.DirectoryListing("r1", RESOURCE_SERVICE, (), unfit=(c.UnfitAgent("mite", (SMALL,)),))
    assert called(opened(alice, listing, UNIT)) == []
    effects = alice.tick(0)
    assert [each.resource for each in closed(effects).record.refusals] == ["mite"]
    (ended,) = [
        each.record for each in effects if isinstance(each, fx.Persist) and isinstance(each.record, RequestConcluded)
    ]
    assert ended.outcome.status is RequestStatus.NO_OFFERS


def test_who_could_serve_after_all_is_called(alice: Any) -> None:
    """The terms are looked at again: a directory that is wrong about what they mean keeps nobody out."""
    unfit = (c.UnfitAgent("big", (LARGE,)), c.UnfitAgent("mite", (SMALL,)))
    listing = c.DirectoryListing("r1", RESOURCE_SERVICE, ("res",), unfit=unfit)
    assert called(opened(alice, listing, UNIT, replace(UNIT, number=2))) == ["big", "res"]
