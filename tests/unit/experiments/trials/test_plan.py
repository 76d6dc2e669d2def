"""Market plans, their swarms over XMPP and on two hosts, and the queues in front of processes."""

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from ramp.declarations import load_file
from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND
from ramp.model.slot import StaticTerms
from ramp.protocol.events import AuctionOptions
from ramp.protocol.resource.seller import PriceRange
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import ResourceConfig
from ramp.shipped_files import find_config
from simulation.experiments.market import network as market_network
from simulation.experiments.market.trading import sharing, with_local_names
from simulation.experiments.market.users import comparisons_of, plans_of
from simulation.experiments.study import Found, Run
from simulation.experiments.trials.plan import (
    Links,
    MarketPlan,
    Mode,
    Submission,
    UnitWish,
    stand_ins,
    table2_resources,
    workload_of,
)
from simulation.experiments.trials.simulated import Stations, link_delay, run_simulated
from simulation.experiments.trials.xmpp import swarm_toml


def steady(name: str, cores: int, start: int, minimum: int, load: float) -> ResourceConfig:
    return ResourceConfig(name, "steady", {"load": load}, StaticTerms(cores), PriceRange(start, minimum))


# Decrements by the paper's formula: a (80-40)/4 x 0.5 = 5; b (60-50)/4 x 0.9 = 2.25 (a load below 0.1 counts as 0.1).
MARKET = (steady("a", 100, 80, 40, 0.5), steady("b", 100, 60, 50, 0.0), steady("small", 8, 20, 10, 0.0))


def auctions(*rounds: int, price: int = 70, cores: int = 16) -> MarketPlan:
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


class Clock:
    """What a station needs of a world."""

    now = 0


def stations() -> Stations:
    plan = MarketPlan("none", table2_resources()[:1], 1, ())
    made = Stations(plan)
    made.attach(Clock())  # type: ignore[arg-type]
    return made


def test_bookings_never_overlap_and_start_as_early_as_they_can() -> None:
    """Against a search over every microsecond."""
    random = Random(5)
    made, taken = stations(), set()
    for _ in range(200):
        arrival, work = random.randrange(400), random.randrange(1, 9)
        end = made._serve("s", arrival, work)
        start = next(t for t in range(arrival, 5_000) if not any(t + i in taken for i in range(work)))
        assert end == start + work
        taken.update(range(start, end))
    assert made.busy_s()["s"] == len(taken) / SECOND


def test_what_is_over_is_forgotten() -> None:
    made = stations()
    made._serve("s", 0, 10)
    made._world.now = 20  # type: ignore[union-attr]
    made._serve("s", 30, 10)
    assert made._booked["s"] == [(30, 40)]


def test_a_lost_packet_costs_a_retransmission() -> None:
    """Expected delay: latency + jitter + loss / (1 - loss) retransmissions."""
    links = Links({"a": "far"}, {"far": 10_000}, jitter=2_000, loss=0.2, retransmission=100_000)
    random = Random(1)
    mean = sum(link_delay(links, "a", random) for _ in range(40_000)) / 40_000
    assert mean == pytest.approx(10_000 + 2_000 + 0.25 * 100_000, rel=0.03)
    assert link_delay(links, "somebody else", random) == 0


def plan(users: int, links: Links | None = None) -> MarketPlan:
    wish, options = UnitWish(70, 16, 5 * MINUTE), AuctionOptions(rounds=1, quote_only=True, round_time=5 * MINUTE)
    submissions = tuple(Submission(f"r{n}", f"user{n}", SECOND, (wish,), options) for n in range(1, users + 1))
    resources = tuple(each for each in table2_resources() if each.name.startswith("atlas"))
    return MarketPlan("queue", resources, users, submissions, links=links)


def mean_round(market_plan: MarketPlan) -> float:
    durations = [duration for each in run_simulated(market_plan).auctions for duration in each.round_durations]
    return sum(durations) / len(durations)


def test_more_users_wait_longer() -> None:
    one, ten = mean_round(plan(1)), mean_round(plan(10))
    assert ten > 4 * one


def test_a_far_resource_delays_the_round_by_its_round_trip() -> None:
    far = Links({"atlas2": "far"}, {"far": 25 * MILLISECOND})
    extra = mean_round(plan(1, far)) - mean_round(plan(1))
    assert 49 * MILLISECOND <= extra <= 51 * MILLISECOND


def test_heartbeats_do_not_hold_a_purchase_up() -> None:
    """In virtual time all resources send theirs at the same instants, every five seconds."""
    resources = tuple(each for each in table2_resources() if each.name.startswith("atlas"))
    wish, options = UnitWish(70, 16, 5 * MINUTE), AuctionOptions(rounds=1, quote_only=True)
    submissions = tuple(Submission(f"at-{s}", "user1", s * SECOND, (wish,), options) for s in range(1, 12))
    results = run_simulated(MarketPlan("beat", resources, 1, submissions)).auctions
    assert len({each.outcome.duration for each in results}) == 1


WISH = UnitWish(70, 16, 5 * MINUTE)


def test_the_configuration_is_the_plan(tmp_path) -> None:
    plan = MarketPlan("p", table2_resources(), 3, (), heartbeat=7 * SECOND, resources_per_process=4, server="prosody")
    path = tmp_path / "swarm.toml"
    path.write_text(swarm_toml(plan), "utf-8")
    config = load_config(path)
    assert config.resources == plan.resources
    assert [user.name for user in config.users] == ["user1", "user2", "user3"]
    assert (config.timing.heartbeat, config.timing.lease) == (7 * SECOND, 21 * SECOND)
    assert config.resources_per_process == 4
    assert config.server.kind == "prosody"


def test_outcomes_come_back_with_local_names() -> None:
    resources = tuple(each for each in table2_resources() if each.name.startswith("atlas"))
    plan = MarketPlan("p", resources, 1, (Submission("one", "user1", SECOND, (WISH,), AuctionOptions(rounds=2)),))
    outcome = run_simulated(plan).auctions[0].outcome
    told = replace(
        outcome,
        rounds=tuple(
            replace(
                record, offers=tuple(replace(each, resource=f"{each.resource}@localhost") for each in record.offers)
            )
            for record in outcome.rounds
        ),
    )
    assert outcome.rounds[0].offers, "an outcome without offers would show nothing"
    assert told != outcome
    assert with_local_names(told) == outcome


def test_plans_that_differ_in_users_alone_share_a_market() -> None:
    """Three ages of the machines and four numbers of users: one market an age, with its plans in their order."""
    plans = plans_of(1, 3, (1, 5, 10, 30), table2_resources())
    markets = sharing(plans)
    assert markets == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    assert [plans[number].users for number in markets[1]] == [1, 5, 10, 30]


def test_markets_of_another_kind_are_launched_apart() -> None:
    resources = table2_resources()
    submissions = (Submission("one", "user1", SECOND, (WISH,)),)
    base = MarketPlan("p", resources, 1, submissions)
    others = [
        replace(base, age=MINUTE),
        replace(base, resources=resources[:15]),
        replace(base, server="prosody"),
        replace(base, links=Links({}, {})),
        replace(base, resources_per_process=1),
        replace(base, heartbeat=MINUTE),
    ]
    assert sharing([base, *others]) == [[number] for number in range(7)]


two_hosts = load_file(Path(__file__).parents[4] / "examples" / "studies" / "two_hosts.py")


def test_without_root_there_are_no_namespaces(monkeypatch) -> None:
    monkeypatch.setattr(two_hosts.shutil, "which", lambda program: program)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert two_hosts.reason_against() == "network namespaces need root"


def test_a_missing_program_is_named(monkeypatch) -> None:
    monkeypatch.setattr(two_hosts.shutil, "which", lambda program: None if program == "prosody" else program)
    assert two_hosts.reason_against() == "prosody is not installed"


def test_one_host_alone_is_still_compared() -> None:
    row = {"users": 1, "response_s": 0.01, "response_s_sd": 0.0, "round_s": 0.02}
    table = [row, {**row, "users": 10, "response_s": 0.1, "round_s": 0.2}]
    rows = [{"deployment": "one host", **row} for row in table]
    compared = market_network._comparisons(Found(Run(True, 1, {"mode": Mode.XMPP}), {}, tables={"figure13": rows}))
    assert any("R²" in each.what for each in compared)
    slope = next(each for each in compared if each.what == "response time, one more user")
    assert abs(slope.ours - 10.0) < 1e-6  # 90 ms over 9 users


def test_a_computer_that_cannot_be_two_hosts_is_refused_with_the_reason(monkeypatch) -> None:
    monkeypatch.setattr(two_hosts, "reason_against", lambda: "prosody is not installed")
    with pytest.raises(ConfigurationError, match="prosody is not installed"):
        two_hosts.STUDY.cases(Run(True, 1, two_hosts.STUDY.options))
    with pytest.raises(ConfigurationError, match="--xmpp"):
        two_hosts.STUDY.cases(Run(True, 1, {**two_hosts.STUDY.options, "mode": Mode.SIMULATED}))


def test_one_host_and_two_have_the_same_servers(monkeypatch) -> None:
    monkeypatch.setattr(two_hosts, "reason_against", lambda: "")
    cases = two_hosts.STUDY.cases(Run(True, 1, two_hosts.STUDY.options))
    assert list(cases) == ["one host", "two hosts", "bad network"]
    assert {plan.server for plans in cases.values() for plan in plans} == {"prosody"}
    assert {plan.links is None for plan in cases["one host"]} == {True}


def test_agents_have_the_domain_of_their_host() -> None:
    config = two_hosts.federated(load_config(find_config("table2")), {"curie1": "far.test"})
    assert config.address("curie1") == "curie1@far.test"
    assert config.address("curie2") == "curie2@localhost"
    assert config.address(config.bank) == "bank@localhost"
