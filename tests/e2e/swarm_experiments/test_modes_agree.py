"""One plan in virtual time, over XMPP and on two hosts: the same market, apart from wall time, and none left behind.

The machines' loads do not change, so that bids depend on no moment at which they are made.
"""

import contextlib
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ramp.declarations import load_file
from ramp.model.instant import MILLISECOND, MINUTE
from simulation.experiments.market import users as market_users
from simulation.experiments.market.network import deployments_of
from simulation.experiments.market.trading import Tally
from simulation.experiments.market.users import plans_of
from simulation.experiments.trials.plan import AuctionResult, MarketPlan, MarketResult, table2_resources
from simulation.experiments.trials.simulated import run_simulated
from simulation.experiments.trials.xmpp import run_over_xmpp
from tests.waiting import ended_by, until

pytestmark = [pytest.mark.e2e, pytest.mark.full]


def course(auction: AuctionResult) -> list[object]:
    """Everything about an auction but times and the order in which answers came."""
    rounds = [
        (
            record.round_number,
            record.asked,
            sorted((offer.resource, offer.cpu_hour_cost, offer.cores, offer.source) for offer in record.offers),
            sorted((each.resource, str(each.refusal.code)) for each in record.refusals),
        )
        for record in auction.bidding
    ]
    return [auction.submission.label, str(auction.outcome.status), auction.price(), rounds]


def local(address: str) -> str:
    return address.partition("@")[0]


def best_of_last_price(auction: AuctionResult) -> set[str]:
    """Who bid the sale price: among equal bids the first to arrive wins, which is a matter of wall time."""
    return {
        offer.resource
        for record in auction.bidding
        for offer in record.offers
        if offer.cpu_hour_cost == auction.price()
    }


def run_in_one_market(plans: list[MarketPlan]) -> list[MarketResult]:
    tally = Tally(sum(len(plan.submissions) for plan in plans))
    run_over_xmpp(dict(enumerate(plans)), tally)
    return [tally.results[number] for number in range(len(plans))]


def timeless(plan: MarketPlan) -> MarketPlan:
    """The plan with machines that are always as busy as now, and rounds that end when all have answered."""
    resources = tuple(
        replace(each, plugin="steady", options={"load": number % 8 / 10}) for number, each in enumerate(plan.resources)
    )
    submissions = tuple(
        replace(each, options=replace(each.options, round_time=10 * MINUTE)) for each in plan.submissions
    )
    return replace(plan, resources=resources, submissions=submissions)


def check_result(plan: MarketPlan, over_xmpp: MarketResult) -> None:
    simulated = run_simulated(plan)
    assert [course(each) for each in over_xmpp.auctions] == [course(each) for each in simulated.auctions]
    for auction in over_xmpp.auctions:
        if auction.sold:
            assert auction.winner() in best_of_last_price(auction)
    assert any(auction.sold for auction in over_xmpp.auctions)
    everybody = {each.name for each in plan.resources}
    for auction in over_xmpp.auctions:
        # who is too small is not called but told of, who refuses for good not called again
        first = auction.bidding[0]
        too_small = {local(each.resource) for each in first.refusals if str(each.refusal.code) == "machine_too_small"}
        assert {name for name, _ in auction.answered[0]} == everybody - too_small
        assert {local(each.resource) for each in (*first.offers, *first.refusals)} == everybody
        answered = [len(each) for each in auction.answered]
        assert answered == sorted(answered, reverse=True)
    assert {each.name for each in over_xmpp.processes} >= {"market", "users", "resources-1", "server"}
    assert over_xmpp.cpu_s > 0


def test_plans_in_one_market_are_as_plans_in_markets_of_their_own() -> None:
    """What one plan has bought is given back before the next: each finds the machines as if it were the first."""
    plans = [timeless(plan) for plan in market_users.plans_of(9, 1, (3, 1, 6), table2_resources())]
    for plan, result in zip(plans, run_in_one_market(plans), strict=True):
        check_result(plan, result)
        assert [each.submission.user for each in result.auctions] == [f"user{n}" for n in range(1, plan.users + 1)]


TWO_HOSTS = load_file(Path(__file__).parents[3] / "examples" / "studies" / "two_hosts.py")
FAR_LATENCY = 150 * MILLISECOND


def test_every_resource_answers_and_the_far_ones_later() -> None:
    reason = TWO_HOSTS.reason_against()
    if reason:
        pytest.skip(reason)
    resources = table2_resources()[:15]
    links = deployments_of(resources)["fifteen hosts"]
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


EXPERIMENT = [sys.executable, "-m", "ramp.cli.main", "experiment", "run", "users", "--quick", "--xmpp"]


def whole_family(process: psutil.Process) -> list[psutil.Process]:
    """All descendants, once supervisor, server and the groups of agents are among them."""

    def complete() -> list[psutil.Process] | None:
        family = process.children(recursive=True)
        lines = []
        for each in family:
            with contextlib.suppress(psutil.Error):
                lines.append(" ".join(each.cmdline()))
        running = [line for line in lines if " -S -c " not in line]  # what is still to become another program
        counts = [sum(part in line for line in running) for part in ("supervise", "servers.embedded", "agents.process")]
        return family if counts[0] >= 1 and counts[1] >= 1 and counts[2] >= 4 else None

    found: list[psutil.Process] = until(complete, "a market is up")
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_behind(number, tmp_path):
    experiment = subprocess.Popen(
        [*EXPERIMENT, "--out", str(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    said = ended_by(number, experiment, whole_family)
    expected = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}
    assert experiment.returncode == expected[number], said.decode()
