"""Market plans: requests with relative times, which workloads are stand-ins, and what results say of themselves."""

import pytest

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.slot import StaticTerms
from ramp.protocol.events import AuctionOptions
from ramp.protocol.resource.seller import PriceRange
from ramp.runtime.configuration.values import ResourceConfig
from simulation.experiments.market.users import comparisons_of
from simulation.experiments.trials.plan import (
    MarketPlan,
    Mode,
    Submission,
    UnitWish,
    stand_ins,
    table2_resources,
    workload_of,
)
from simulation.experiments.trials.simulated import run_simulated


def steady(name: str, cores: int, start: int, minimum: int, load: float) -> ResourceConfig:
    """A machine with a constant load."""
    return ResourceConfig(name, "steady", {"load": load}, StaticTerms(cores), PriceRange(start, minimum))


# Decrements by the paper's formula: a (80-40)/4 x 0.5 = 5; b (60-50)/4 x 0.9 = 2.25 (a load below 0.1 counts as 0.1).
MARKET = (steady("a", 100, 80, 40, 0.5), steady("b", 100, 60, 50, 0.0), steady("small", 8, 20, 10, 0.0))


def auctions(*rounds: int, price: int = 70, cores: int = 16) -> MarketPlan:
    """One auction of each number of rounds."""
    wish = UnitWish(price, cores, 5 * MINUTE)
    submissions = tuple(
        Submission(
            f"{count}-rounds", "user1", position * SECOND, (wish,), AuctionOptions(rounds=count, quote_only=True)
        )
        for position, count in enumerate(rounds)
    )
    return MarketPlan("by hand", MARKET, 1, submissions)


def test_times_of_a_request_count_from_its_submission() -> None:
    submission = Submission("x", "user1", 7 * SECOND, (UnitWish(70, 16, 5 * MINUTE, HOUR, slack=10 * MINUTE),))
    (unit,) = submission.request(opening=1_000 * SECOND).units
    assert unit.not_before == (1_000 + 7 + 300) * SECOND
    assert unit.deadline == (1_000 + 7 + 300 + 3600 + 600) * SECOND
    assert (unit.wall_time, unit.cores.total, unit.cpu_hour_cost) == (HOUR, 16, 70)


def test_table_2_is_the_papers() -> None:
    resources = table2_resources()
    assert [each.name for each in resources[:3]] == ["atlas1", "atlas2", "thunder1"]
    assert len(resources) == 20
    curie3 = next(each for each in resources if each.name == "curie3")
    assert (curie3.prices.start_price, curie3.prices.minimum_price) == (80, 30)
    assert (curie3.terms.cores, curie3.options["base_time_s"]) == (93312, 350000)


def test_machines_without_their_log_have_stand_ins(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RAMP_LOGS", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    intrepid = next(each for each in table2_resources() if each.name == "intrepid3")
    assert workload_of(intrepid) == "stand-in"
    assert workload_of(MARKET[0]) == "generated"
    assert stand_ins([intrepid, MARKET[0]]) == "1 of 2 stand-ins"
    assert stand_ins([MARKET[0]]) == ""
    (tmp_path / f"{intrepid.options['log']}.swf").write_text("; a log\n")
    assert workload_of(intrepid) == "real log"


def test_prices_fall_as_the_formula_says() -> None:
    """Asked 70: a bids 65, b 67.75 -> 68. Asked 65: a's own offer stands, b bids 62.75 -> 63. Asked 63: a bids 58."""
    result = run_simulated(auctions(1, 2, 3))
    assert [(each.price(), each.winner()) for each in result.auctions] == [(65, "a"), (63, "b"), (58, "a")]
    assert [dict(record.asked)[1] for record in result.auctions[2].bidding] == [70, 65, 63]


def test_able_are_those_with_the_slot_whatever_they_ask() -> None:
    result = run_simulated(auctions(1, price=45))  # below b's minimum price, too many cores for small
    assert result.auctions[0].able() == {"a", "b"}
    assert [offer.resource for offer in result.auctions[0].bidding[0].offers] == ["a"]


def test_nothing_is_sold_below_every_minimum() -> None:
    (auction,) = run_simulated(auctions(2, price=30)).auctions
    assert auction.price() is None
    assert auction.winner() is None
    assert len(auction.bidding) == 1  # nobody is left to call for a second; the round of best offers does not count
    assert len(auction.outcome.rounds) == 2


def test_every_answer_of_a_round_has_its_time() -> None:
    (auction,) = run_simulated(auctions(2)).auctions
    called = [["a", "b"], ["a", "b"]]  # the third could never serve, and is not called
    for names, answered, duration in zip(called, auction.answered, auction.round_durations, strict=True):
        assert sorted(name for name, _ in answered) == names
        assert max(time for _, time in answered) == duration  # a round closes with the last answer
        assert all(time > 0 for _, time in answered)


@pytest.mark.parametrize("as_text", [False, True])
def test_a_purchase_takes_messages_and_pays(as_text: bool) -> None:
    wish = UnitWish(70, 16, 5 * MINUTE)
    plan = MarketPlan("buy", MARKET, 1, (Submission("one", "user1", SECOND, (wish,), AuctionOptions(rounds=1)),))
    result = run_simulated(plan, as_text=as_text)
    (auction,) = result.auctions
    assert str(auction.outcome.status) == "committed"
    # 3 calls, 3 answers, directory 2; vote 2, rejection of b, confirm 2, payment 2 at least
    assert result.messages >= 12
    assert auction.negotiation > 0


def test_a_tail_off_is_a_growth_well_below_one() -> None:
    """The paper's figure 12b in a made-up shape: 100 ms for each of the first ten users, 20 ms for each further one."""
    table = [
        {"users": users, "response_s": 0.1 * users, "round_s": 0.1 * min(users, 10) + 0.02 * max(0, users - 10)}
        for users in range(1, 31)
    ]
    (knee,) = (each for each in comparisons_of(table, Mode.XMPP, "") if "up to 10" in each.what)
    assert knee.ours == pytest.approx(0.2)
    assert knee.verdict == "agrees"
