"""`simulation.market(...)`: what an auction study takes and what it gives."""

import itertools
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import ramp
import simulation
from ramp.model.request import RequestForQuotation
from ramp.protocol.pricing import PriceQuestion, PricingStrategy
from tests.tiny_market import tiny_market
from tests.unit.market.conftest import wanted


def test_prices_are_those_of_the_papers_formula(config: Path) -> None:
    """Section 6.2.3: the price asked less (start - minimum) / 4 x (1 - load), rounded.

    The load is a quarter, so alpha goes down by 3.75 and beta by 5.625, from 70: alpha 66, beta 64; then alpha 60,
    while beta's own offer stands; then beta 54.375, and alpha's offer stands.
    """
    study = simulation.market(wanted(), swarm=config, rounds=3)
    assert study.prices[["round", "asked", "best", "offers", "refusals"]].tolist() == [
        (1, 70, 64, 2, 0),
        (2, 64, 60, 1, 1),
        (3, 60, 54, 1, 1),
    ]
    (purchase,) = study.purchases
    won = study.offers[study.offers["won"]]
    assert won[["resource", "price_offered", "cores", "start_s", "cost"]].tolist() == [("beta", 54, 8, 600, 43_200)]
    assert (purchase.committed, purchase.cost, study.requests["cost"].tolist()) == (True, 43_200, [43_200])


def test_a_sealed_second_price_is_what_the_next_best_offered(config: Path) -> None:
    """Vickrey: beta's 64 wins over alpha's 66 in the one sealed round, and is paid 66; the first price is its own."""
    configured = config.with_name("second.toml")
    configured.write_text('[market]\nauction_rule = "second-price"\n' + config.read_text())
    for file, rule, paid in (
        (config, "second-price", 66),
        (config, "sealed-first-price", 64),
        (configured, "", 66),
        (configured, "sealed-first-price", 64),
    ):
        study = simulation.market(wanted(), swarm=file, rule=rule)
        assert study.prices["round"].tolist() == [1]
        assert study.offers[study.offers["won"]][["resource", "price_offered"]].tolist() == [("beta", 64)]
        assert study.requests["cost"].tolist() == [paid * 8 * 100]
        columns = ["cores", "price_offered", "price_paid", "cost"]
        assert study.units[columns].tolist() == [(8, 64, paid, paid * 8 * 100)]
        (unit,) = study.purchases[0].units
        assert (unit.price_offered, unit.price_paid, unit.cost) == (64, paid, paid * 8 * 100)


def test_what_is_not_bought_has_no_price_paid(config: Path) -> None:
    study = simulation.market(wanted(price=5), swarm=config)
    assert (study.purchases[0].status, len(study.units), study.offers["won"].any()) == ("no_offers", 0, False)


def test_messages_are_counted_by_kind_without_heartbeats(config: Path) -> None:
    """One unit, one round, two resources that both offer: the paper's steps, each message once."""
    study = simulation.market(wanted(), swarm=config, rounds=1)
    assert study.messages == {
        "DirectoryQuery": 1, "DirectoryListing": 1, "CallForProposals": 2, "Proposal": 2, "Acceptance": 1,
        "Rejection": 1, "HoldGranted": 1, "PaymentOrder": 1, "FundsReserved": 1, "Commitment": 1, "Confirmed": 1,
        "Signed": 1, "PaymentMade": 1, "Settled": 1,
    }  # fmt: skip


def test_requests_follow_one_another_or_come_at_their_times(config: Path) -> None:
    one_by_one = simulation.market(wanted(), wanted(), swarm=config, users=1)
    first, second = one_by_one.requests
    assert second["submitted_s"] == first["submitted_s"] + first["duration_s"]
    spaced = simulation.market(*[wanted()] * 3, swarm=config, users=2, every="1min")
    assert spaced.requests["submitted_s"].tolist() == [0, 60, 120]
    assert spaced.users == ("user1", "user2", "user1")


def test_all_at_once_share_what_there_is(config: Path) -> None:
    """Two machines with 48 free cores each serve two of three requests for 40; an offer holds nothing yet."""
    study = simulation.market(*[wanted(cores=40, slack="0s")] * 3, swarm=config, users=3, every="0s")
    assert sorted(study.requests["status"].tolist()) == ["committed", "committed", "withdrawn"]


def test_buyers_of_the_same_hour_get_the_hours_after_it(tmp_path: Path) -> None:
    """All are offered the seller's first free hour; four of five lose it, and the first of the rest again."""
    path = tmp_path / "market.toml"
    path.write_text(tiny_market({f"user{number}": 10_000 for number in range(5)}, prices={"alpha": (60, 20)}))
    study = simulation.market(*[wanted(cores=40, slack="9h")] * 5, swarm=path, every="0s")
    assert set(study.requests["status"].tolist()) == {"committed"}
    starts = sorted(unit.start for bought in study.purchases for unit in bought.units)
    assert {after - before for before, after in itertools.pairwise(starts)} == {timedelta(hours=1)}


def test_several_units_are_bought_together_or_not_at_all(config: Path) -> None:
    both = simulation.market([wanted(), wanted(cores=16)], swarm=config)
    assert (both.requests["units"].tolist(), len(both.purchases[0].units)) == ([2], 2)
    assert sorted(set(both.prices["unit"].tolist())) == [1, 2]
    neither = simulation.market([wanted(), wanted(cores=16, price=1)], swarm=config)
    assert neither.requests["status"].tolist() == ["no_offers"]


def test_a_configured_buyer_without_money_is_refused_by_the_bank(config: Path) -> None:
    study = simulation.market(wanted(), wanted(), swarm=config)
    assert list(zip(study.users, study.requests["status"].tolist(), strict=True)) == [
        ("alice", "committed"),
        ("poor", "failed"),
    ]


def thirty(question: PriceQuestion) -> int:
    return 31


def test_a_price_of_ones_own_for_all_or_for_some(config: Path) -> None:
    everybody = simulation.market(wanted(), swarm=config, pricing=thirty, quote_only=True)
    assert set(everybody.offers["price_offered"].tolist()) == {31}
    beta = simulation.market(wanted(), swarm=config, rounds=1, pricing={"beta": thirty}, quote_only=True)
    assert {str(row["resource"]): int(row["price_offered"]) for row in beta.offers}["beta"] == 31
    assert beta.offers["price_offered"].max() > 31
    assert beta.purchases[0].status is ramp.RequestStatus.QUOTED


def fails(_: PriceQuestion) -> int:
    raise KeyError("boom")


def fraction(_: PriceQuestion) -> int:
    return 70.5  # type: ignore[return-value]  # a mistake of the strategy's author


@pytest.mark.parametrize(("pricing", "told"), [(fails, "KeyError: 'boom'"), (fraction, "invalid price: got 70.5")])
def test_a_price_strategy_that_fails_ends_the_run_with_its_reason(
    config: Path, pricing: PricingStrategy, told: str
) -> None:
    with pytest.raises(ramp.ConfigurationError, match=f"beta: the price strategy failed: price: {told}"):
        simulation.market(wanted(), swarm=config, pricing={"beta": pricing})


def test_the_same_arguments_give_the_same_result(config: Path) -> None:
    one, other = (simulation.market(wanted(), wanted(), swarm=config, seed=5) for _ in range(2))
    assert (one.offers == other.offers).all()
    assert one.purchases == other.purchases


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"swarm": "table3"}, "table3"),
        ({"pricing": "rampe"}, "rampe"),
        ({"every": [1]}, "every: got [1], expected text or timedelta"),
        ({"age": 5}, "age: got 5, expected text or timedelta"),
        ({"rule": "vickrey"}, "vickrey"),
        ({"pricing": {"alpah": "ramp"}}, "did you mean 'alpha'?"),
        ({"users": 0}, "users must be at least 1, got 0"),
        ({"every": "soon"}, "every"),
        ({"age": "old"}, "age"),
        ({"rounds": 0}, "rounds must be 1 to 100, got 0"),
        ({"prefer": "best"}, "best"),
    ],
)
def test_bad_options_are_named(config: Path, options: dict[str, object], told: str) -> None:
    with pytest.raises(ramp.ConfigurationError) as raised:
        simulation.market(wanted(), **{"swarm": config, **options})
    assert told in str(raised.value)


def test_nothing_to_submit_is_an_error(config: Path) -> None:
    with pytest.raises(ramp.ConfigurationError, match="no requests; submit at least one"):
        simulation.market(swarm=config)


TORUS = tiny_market(
    {"alice": 1_000_000},
    prices={"rack1": (40, 20)},
    cores=131_072,
    machine=(
        'cores_per_node = 4\ntorus = true\nplugin = "modelled"\n'
        'options = { machine = "bgl", log = "synthetic", load = 0 }\n'
    ),
)


def test_cores_that_are_charged_beyond_what_was_asked_are_told(tmp_path: Path) -> None:
    """A machine that sells whole midplanes of 512 nodes charges for one where 63 nodes are asked for."""
    path = tmp_path / "torus.toml"
    path.write_text(TORUS)
    (quoted,) = simulation.market(wanted(cores=63, geometry="8x8x1"), swarm=path, quote_only=True).purchases
    (bought,) = simulation.market(wanted(cores=63, geometry="8x8x1"), swarm=path).purchases
    for purchase in (quoted, bought):
        (unit,) = purchase.units
        assert (unit.cores_asked, unit.bought.charges_more) == (63, True)
        assert unit.cores > 63
        assert unit.cost == unit.cores * unit.price_paid * 100


def test_the_greatest_cost_of_a_document_binds_like_the_option(config: Path) -> None:
    """The offer of one round costs 8 x 64 = 512 credits; the smaller limit counts."""
    (template,) = wanted().at(1_800_000_000_000_000).units
    for in_document, option, status in (
        (None, None, "committed"),
        (51_199, None, "rejected"),
        (51_200, "511.99", "rejected"),
        (51_200, "600", "committed"),
    ):
        document = RequestForQuotation((template,), max_cost=in_document)
        study = simulation.market(document, swarm=config, rounds=1, max_cost=option)
        assert study.requests["status"].tolist() == [status]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import simulation", "import simulation.market.world, simulation"])
def test_the_package_can_be_called_whatever_was_imported_before(first: str, config: Path) -> None:
    code = f"""
{first}
import ramp
study = simulation.market(ramp.request(cores=8, wall_time="1h", price=70), swarm={str(config)!r}, rounds=1)
import simulation.market.network
simulation.market.network.Network, simulation.market
print(study.purchases[0].status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("committed", "")


def test_a_rule_that_fails_ends_the_run_with_its_reason(config: Path, tmp_path: Path) -> None:
    rule = tmp_path / "broken.py"
    rule.write_text(
        "from ramp import AuctionRule, Price\n\n\n"
        "class Broken(AuctionRule):\n    sealed, pays_offer = True, False\n\n"
        "    def price(self, bids, winner, remaining):\n        return Price(winner.cost // 2)\n"
    )
    with pytest.raises(ramp.ConfigurationError, match=r"request-1: the auction rule .*Broken failed.*rule_wrong_price"):
        simulation.market(wanted(), swarm=config, rule=f"{rule}:Broken")
