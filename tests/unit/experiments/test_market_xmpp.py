"""A plan as a swarm's configuration, and outcomes as the control channel tells them."""

from __future__ import annotations

from ramp.model.instant import MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from ramp.runtime.config_file import load_config
from ramp.runtime.record_json import to_plain
from simulation.experiments.market_plan import MarketPlan, Submission, UnitWish, table2_resources
from simulation.experiments.market_simulated import run_simulated
from simulation.experiments.market_xmpp import outcome_from_plain, swarm_toml

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
    told = to_plain(outcome)
    for record in told["rounds"]:
        for offer in record["offers"]:
            offer["resource"] += "@localhost"
    assert outcome.rounds[0].offers, "an outcome without offers would show nothing"
    assert outcome_from_plain(told) == outcome
