"""A market whose agents are spread over a cluster of two ejabberd nodes, one of which is killed for good."""

import pytest

from tests.e2e.ejabberd.ejabberd_cluster import is_installed, running_cluster
from tests.e2e.swarm.swarm_books import Books
from tests.e2e.swarm.swarm_market import Machine, Market, in_hours, unit, until, write_config

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not is_installed(), reason="ejabberd is not installed (apt-get install ejabberd)"),
]

NAMES = ("bank", "directory", "keeper", "alice", "small1", "small2", "big1")


@pytest.fixture(scope="module")
def cluster():
    with running_cluster(NAMES) as made:
        yield made


@pytest.fixture(scope="module")
def market(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    config = write_config(
        folder / "swarm.toml",
        users={"alice": 1_000_000},
        machines=(Machine("small1", 64, 20), Machine("small2", 64, 25), Machine("big1", 256, 35)),
        kind="external",
        server={
            "addresses": [f"127.0.0.1:{node.port}" for node in cluster.nodes],
            "spread": True,
            "ca_file": str(cluster.certificate.ca_file),
            "passwords": str(cluster.folder / "passwords.json"),
        },
        per_process=4,
    )
    market = Market(config, folder / "state")
    market.up()
    market.wait_ready()
    yield market
    market.end()


def test_a_node_that_is_killed_for_good_in_mid_auction_costs_time_only(cluster, market):
    first, second = cluster.nodes
    at_first, at_second = cluster.sessions(first), cluster.sessions(second)
    assert at_first | at_second == set(NAMES)
    assert len(at_first) >= 2
    assert len(at_second) >= 2
    begin = in_hours(1)
    with market.submitted("alice", "request-node", [unit(1, 8, begin), unit(2, 100, begin)], rounds=6) as events:
        until(lambda: next(events)["event"] == "round_opened", "the first round is open")
        cluster.kill(first)
        *_, last = events
    assert last["outcome"]["status"] == "committed", last["outcome"]
    until(lambda: cluster.sessions(second) == set(NAMES), lambda: f"all are at the second: {cluster.sessions(second)}")
    outcome = market.buy("alice", "request-after", [unit(1, 8, begin), unit(2, 100, begin)])
    assert outcome["status"] == "committed", outcome
    assert [each["offer"]["resource"].partition("@")[0] for each in outcome["units"]] == ["small1", "big1"]
    Books(market).come_right()
