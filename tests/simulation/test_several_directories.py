"""A market with two directories: one is lost for good in mid-auction, or lies; the auction ends as without."""

from dataclasses import replace

import pytest

from ramp.composition import Composition
from ramp.model.contents import DirectoryListing, UnfitAgent
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ramp.model.machine_terms import StaticNeeds
from ramp.model.slot import StaticTerms
from ramp.protocol.directory.party import DirectoryParty
from ramp.protocol.outcome import RequestOutcome, RequestStatus
from simulation.market.actors import COMPOSITION
from simulation.market.specs import UserSpec
from simulation.market.world import World
from simulation.swarm import new_checkers
from tests.simulation.small_markets import THREE, Ended, sellers, submission

TWO = replace(COMPOSITION, directories=("directory", "directory-2"))
FOR_GOOD: Duration = 1_000 * HOUR


def market(composition: Composition = TWO) -> tuple[World, list[RequestOutcome]]:
    """Three resources, res0 the cheapest, and a buyer; and how its requests end."""
    ended = Ended()
    users = [UserSpec("alice", 10**9)]
    world = World(sellers(*THREE), users, seed=1, composition=composition, checkers=new_checkers(), listen=ended.listen)
    world.run(limit=MINUTE)
    return world, ended


def bought(world: World, ended: list[RequestOutcome], request_id: str) -> tuple[RequestOutcome, Duration]:
    before, already = world.now, len(ended)
    world.command("alice", submission(request_id, rounds=3))
    world.run(until=lambda: len(ended) > already, limit=10 * MINUTE)
    return ended[-1], world.now - before


def test_without_a_loss_all_is_as_with_one_directory() -> None:
    (one, took_one), (two, took_two) = (bought(*market(each), "r1") for each in (COMPOSITION, TWO))
    assert (one.status, one.cost) == (two.status, two.cost)
    assert one.status is RequestStatus.COMMITTED
    assert abs(took_one - took_two) < 100 * MILLISECOND


@pytest.mark.parametrize("lost", TWO.directories)
def test_the_loss_of_either_for_good_in_mid_auction_is_not_noticed_by_the_auction(lost: str) -> None:
    undisturbed, _ = bought(*market(), "r1")
    world, ended = market()
    world.command("alice", submission(rounds=3))
    world.run(limit=10 * MILLISECOND)  # in the first round
    world.crash(lost, FOR_GOOD)
    world.run(until=lambda: bool(ended), limit=10 * MINUTE)
    assert ended[0].status is RequestStatus.COMMITTED
    assert ended[0].cost == undisturbed.cost
    outcome, took = bought(world, ended, "r2")
    assert outcome.status is RequestStatus.COMMITTED
    assert took < 5 * SECOND  # at most one pause before the other one is asked
    world.run(limit=HOUR)
    world.finish()


def test_with_one_directory_its_loss_would_have_been_noticed() -> None:
    world, ended = market(COMPOSITION)
    world.crash("directory", FOR_GOOD)
    outcome, _ = bought(world, ended, "r1")
    assert outcome.status is RequestStatus.NO_OFFERS


class _Liar(DirectoryParty):
    """A directory that invents resources and conceals the cheapest, or says that its machine is too small."""

    belittling = False

    def _page(self, query_id: str, service: str, after: str, needs: tuple[StaticNeeds, ...]) -> DirectoryListing:
        honest = super()._page(query_id, service, after, needs)
        names = ("ghost0", "ghost1", *(name for name in honest.names if name != "res0"))
        unfit = (UnfitAgent("res0", (StaticTerms(1),)),) if self.belittling else ()
        return replace(honest, names=names, unfit=unfit)


class _Belittler(_Liar):
    belittling = True


class _Lying(Composition):
    """A market whose directories lie."""

    liar: type[_Liar] = _Liar

    def directory_party(self, name: str, known: object = ()) -> DirectoryParty:
        return self.liar(name, timing=self.timing)


class _Belittling(_Lying):
    liar = _Belittler


@pytest.mark.parametrize("lying", [_Lying, pytest.param(_Belittling, marks=pytest.mark.slow)])
def test_a_directory_that_lies_costs_a_round_and_the_offer_that_it_conceals_and_nothing_else(
    lying: type[_Lying],
) -> None:
    world, ended = market(lying(TWO.bank, TWO.directories, TWO.keeper))
    outcome, _ = bought(world, ended, "r1")
    assert outcome.status is RequestStatus.COMMITTED
    assert [unit.offer.resource for unit in outcome.units] == ["res1"]
    world.run(limit=HOUR)
    world.finish()  # all checkers hold
