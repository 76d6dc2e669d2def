"""A plan as a swarm's configuration, and outcomes as the control channel tells them."""

from dataclasses import replace

from ramp.model.instant import MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from ramp.runtime.configuration.file import load_config
from simulation.experiments.market.trading import sharing, with_local_names
from simulation.experiments.market.users import plans_of
from simulation.experiments.trials.plan import Links, MarketPlan, Submission, UnitWish, table2_resources
from simulation.experiments.trials.simulated import run_simulated
from simulation.experiments.trials.xmpp import swarm_toml

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
