"""A market on two hosts with federated servers and a slow link between them."""

from dataclasses import replace
from pathlib import Path

import pytest

from ramp.declarations import load_file
from ramp.model.instant import MILLISECOND
from simulation.experiments.market.network import deployments_of
from simulation.experiments.market.trading import Tally
from simulation.experiments.market.users import plans_of
from simulation.experiments.trials.plan import table2_resources

pytestmark = [pytest.mark.e2e, pytest.mark.full]

TWO_HOSTS = load_file(Path(__file__).parents[3] / "examples" / "studies" / "two_hosts.py")
FAR_LATENCY = 150 * MILLISECOND


def test_every_resource_answers_and_the_far_ones_later() -> None:
    reason = TWO_HOSTS.reason_against()
    if reason:
        pytest.skip(reason)
    resources = table2_resources()[:15]
    links = deployments_of(resources)["fifteen hosts"]
    assert links is not None
    far = {name for name, host in links.host_of.items() if links.latency[host] >= MILLISECOND}
    slow = {host: FAR_LATENCY if each >= MILLISECOND else each for host, each in links.latency.items()}
    (plan,) = plans_of(1, 1, (2,), resources, replace(links, latency=slow, jitter=0))
    told: list[tuple[int, int]] = []
    tally = Tally(2, lambda done, total: told.append((done, total)))
    TWO_HOSTS.run_over_hosts({0: plan}, tally)
    result = tally.results[0]
    assert told == [(1, 2), (2, 2)]
    assert len(far) == 5
    for auction in result.auctions:
        assert auction.sold
        (answered,) = auction.answered
        times = dict(answered)
        assert set(times) == {each.name for each in resources}
        assert min(times[name] for name in far) >= 2 * FAR_LATENCY
