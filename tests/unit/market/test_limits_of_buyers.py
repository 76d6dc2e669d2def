"""What a buyer asks bounds what it pays, in a market whose largest machine sells whole midplanes only."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ramp
from ramp.cli.views.reports import print_outcome
from ramp.model.offer import RefusalCode

MARKET = """
[[users]]
name = "alice"
deposit = 1_000_000

[machines.small]
cores = 64
plugin = "steady"

[machines.midplanes]
cores = 131_072
cores_per_node = 2
torus = true
plugin = "modelled"
options = { machine = "bgl", log = "synthetic", load = 0 }

[[resources]]
name = "north"
machine = "small"
start_price = 30
minimum_price = 29

[[resources]]
name = "south"
machine = "small"
start_price = 31
minimum_price = 29

[[resources]]
name = "bgl700"
machine = "midplanes"
start_price = 28
minimum_price = 20
"""


@pytest.fixture
def market(tmp_path: Path) -> Iterator[ramp.Market]:
    path = tmp_path / "market.toml"
    path.write_text(MARKET)
    with ramp.launch(path, transport="simulated") as market:
        yield market


def wanted(price: int) -> ramp.RequestTemplate:
    return ramp.request(cores=16, wall_time="1h", price=price, start="+10min", end="+12h")


@pytest.mark.parametrize("rule", ["open-rounds", "sealed-first-price", "second-price"])
@pytest.mark.parametrize("rounds", [1, 4])
def test_nothing_above_the_limit_is_offered_or_bought(market: ramp.Market, rule: str, rounds: int) -> None:
    """16 cores for an hour at 20 cost at most 320 credits; the midplane costs 20 480 at its minimum."""
    before = market.balance().balance
    ended = market.submit(wanted(20), rounds=rounds, rule=rule)
    assert (ended.status, ended.cost, market.balance().balance) == ("no_offers", 0, before)
    assert [offer for record in ended.rounds if not record.best_offer for offer in record.offers] == []
    refusals = {each.resource.partition("@")[0]: each.refusal for each in ended.rounds[0].refusals}
    assert {name: (each.code, each.nearest, each.detail) for name, each in refusals.items()} == {
        "north": (RefusalCode.PRICE, "29 credits/core-hour", ""),
        "south": (RefusalCode.PRICE, "29 credits/core-hour", ""),
        "bgl700": (RefusalCode.PRICE, "1280 credits/core-hour", "charges 1 024 cores; or ask for 1 024 cores"),
    }


@pytest.mark.parametrize(
    ("terms", "charged", "serves"),
    [
        ({"cores": 16}, "1 024", 1280),
        ({"nodes": 4, "node_cores": 2}, "1 024", 2560),
        ({"cores": 16, "geometry": "8x8x16", "connection": "torus", "node_use": "virtual"}, "2 048", 2560),
        ({"cores": 1030}, "2 048", 40),
    ],
)
def test_no_shape_connection_or_granularity_changes_what_is_asked(
    market: ramp.Market, terms: dict[str, object], charged: str, serves: int
) -> None:
    refused = market.quote(ramp.request(wall_time="1h", price=serves - 1, **terms))
    (told,) = [each.refusal for each in refused.rounds[0].refusals if each.resource.startswith("bgl700")]
    assert (told.code, told.nearest) == (RefusalCode.PRICE, f"{serves} credits/core-hour")
    assert told.detail.startswith(f"charges {charged} cores")
    offered = market.quote(ramp.request(wall_time="1h", price=serves, **terms), rounds=1)
    (cost,) = [each.cost for each in offered.rounds[0].offers if each.resource.startswith("bgl700")]
    assert cost == 20 * int(charged.replace(" ", "")) * 100


def test_the_least_cost_wins_however_many_cores_are_charged(market: ramp.Market) -> None:
    small = market.submit(wanted(29))
    (unit,) = small.units
    assert (unit.resource in {"north", "south"}, unit.cores, unit.cost) == (True, 16, 29 * 16 * 100)
    large = market.quote(wanted(1400), rounds=1)
    bids = {each.resource.partition("@")[0]: each.cpu_hour_cost for each in large.rounds[0].bids}
    assert bids == {"bgl700": 1280, "north": 1400, "south": 1400}, "per core-hour asked"
    (unit,) = large.units
    assert (unit.resource, unit.cores, unit.cores_asked, unit.cost) == ("bgl700", 1024, 16, 20 * 1024 * 100)
    second = market.quote(wanted(1400), rule="second-price")
    assert second.units[0].cost == 1400 * 16 * 100, "the next offer's cost, which is the limit"


def test_a_later_round_asks_the_best_cost_of_the_cores_asked(market: ramp.Market) -> None:
    ended = market.quote(wanted(1400), rounds=2)
    assert [record.asked for record in ended.rounds] == [((1, 1400),), ((1, 1280),)]


def test_a_refusal_names_the_price_and_the_cores_charged(
    market: ramp.Market, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = market.quote(wanted(15))
    print_outcome(ended.outcome, {}, market.short)
    text = capsys.readouterr().out
    assert "north: 29 credits/core-hour; south: 29 credits/core-hour" in text
    assert "1280 credits/core-hour (charges 1 024 cores; or ask for 1 024 cores at 20 credits/core-hour)" in text


def test_without_a_person_a_best_offer_is_bought_within_a_total_only(market: ramp.Market) -> None:
    with pytest.raises(ramp.MarketRefused, match="needs a maximum total cost"):
        market.submit(wanted(25), approve="best-offer")
    assert market.submit(wanted(25), approve="best-offer", max_cost="463.99").status == "rejected"
    ended = market.submit(wanted(25), approve="best-offer", max_cost=464)
    assert (ended.status, ended.cost, ended.units[0].meets_request) == ("committed", 46_400, False)
