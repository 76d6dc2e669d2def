"""A real cluster behind agents on a real XMPP server: bought, kept through crashes, moved or paid back at need."""

from collections.abc import Iterator

import pytest

import ramp
from ramp.batch.node_lists import expand
from ramp.runtime.logs import read_events
from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.slurm.cluster_fixture import NODES, in_service, market_of, reservation_names, running_cluster, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1500)]

IN_TROUBLE_S = 400.0
"""A slot is moved or paid back once it has been in trouble for a minute, as seen four times a minute; several times
longer where dozens of processes share two cores."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmulatedCluster]:
    with running_cluster("cm") as started:
        yield started


@pytest.fixture(scope="module")
def market(cluster: EmulatedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ramp.Market]:
    folder = tmp_path_factory.mktemp("m")
    with ramp.launch(market_of(cluster, folder), state_dir=folder / "state") as launched:
        yield launched


@pytest.fixture(autouse=True)
def nodes_in_service(cluster: EmulatedCluster) -> None:
    """No test depends on what an earlier one has left of the nodes."""
    in_service(cluster)


def _bought(market: ramp.Market, cores: int) -> str:
    wanted = ramp.request(cores=cores, wall_time="30min", start="+1h", end="+3h", price=70)
    purchases: list[ramp.Purchase] = []

    def committed() -> bool:  # on a busy computer the cluster is not asked in time at once, and nobody offers
        purchases.append(market.submit(wanted, rounds=2))
        return purchases[-1].committed

    wait_for(committed, f"{cores} cores are bought")
    name = purchases[-1].units[0].reservation_id
    assert name is not None
    return name


def test_what_is_cancelled_is_gone_and_what_loses_nodes_is_moved_or_else_paid_back(
    cluster: EmulatedCluster, market: ramp.Market
) -> None:
    before = market.balance().available
    given_back = _bought(market, 8)
    market.cancel(given_back)
    wait_for(lambda: given_back not in reservation_names(cluster), "the reservation is deleted")
    moved = _bought(market, 24)
    first, *others = _nodes(cluster, moved)
    _drain(cluster, [first])
    wait_for(lambda: (nodes := _nodes(cluster, moved)) and first not in nodes, "the slot is moved", IN_TROUBLE_S)
    assert len(_nodes(cluster, moved)) == len([first, *others])
    wait_for(lambda: _told(market, moved) == set(_nodes(cluster, moved)), "the buyer is told of the new nodes")
    events = [each.text for each in read_events(market.access.state.events, "alice") if each.event == "move"]
    assert len(events) == 1, "whoever looks later is told as well"
    assert market.balance().available < before, "nothing is paid back"
    _drain(cluster, [f"cm{number}" for number in range(1, NODES + 1)])
    # the money first: while a slot is made again its reservation is away for a moment, and it is not lost yet
    wait_for(lambda: market.balance().available == before, "its price is paid back", IN_TROUBLE_S)
    wait_for(lambda: moved not in reservation_names(cluster), "the lost slot is released")
    (lost,) = [each for each in market.reservations(everything=True) if each.reservation_id == moved]
    assert lost.state == "lost"
    assert "drained" in lost.standing.cause
    assert "no 24 other cores are free for it" in lost.standing.cause
    seen = [each.agent for each in read_events(market.access.state.events) if each.event == "loss"]
    assert sorted(seen) == ["alice", "emulated"], "both sides are told"


def test_a_bought_slot_becomes_smaller_and_larger_on_the_cluster_and_its_buyer_is_told_where(
    cluster: EmulatedCluster, market: ramp.Market
) -> None:
    name = _bought(market, 32)
    whole, paid = _nodes(cluster, name), market.balance().available
    assert len(whole) == 4
    (changed,) = market.resize(name, cores=16)
    assert changed.done, changed.detail
    kept = _nodes(cluster, name)
    assert (len(kept), set(kept) - set(whole)) == (2, set())
    assert market.balance().available == paid + changed.refund > paid
    wait_for(lambda: _told(market, name) == set(kept), "the buyer is told of the nodes that are left")
    left = market.balance().available
    (grown,) = market.resize(name, cores=24)
    assert grown.done, grown.detail
    more = _nodes(cluster, name)
    assert (len(more), set(kept) - set(more)) == (3, set())
    assert market.balance().available == left - grown.charge < left
    wait_for(lambda: _told(market, name) == set(more), "the buyer is told of the nodes that were added")
    market.cancel(name)
    wait_for(lambda: name not in reservation_names(cluster), "the reservation is deleted")


def _told(market: ramp.Market, reservation_id: str) -> set[str]:
    """The nodes that the buyer was told a slot was moved to; none before."""
    (found,) = [each for each in market.reservations() if each.reservation_id == reservation_id]
    return set() if found.standing.moved is None else set(expand(found.standing.moved.placement))


def _nodes(cluster: EmulatedCluster, name: str) -> list[str]:
    """The nodes of a reservation; none while it is not there, as in the midst of a move."""
    for line in cluster.run("scontrol", "-o", "show", "reservation").splitlines():
        if line.startswith(f"ReservationName={name} "):
            return list(expand(line.split(" Nodes=")[1].split()[0]))
    return []


def _drain(cluster: EmulatedCluster, nodes: list[str]) -> None:
    cluster.run("scontrol", "update", f"NodeName={','.join(nodes)}", "State=DRAIN", "Reason=fan")
