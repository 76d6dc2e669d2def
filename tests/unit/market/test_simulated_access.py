"""`ramp.launch(..., transport="simulated")`: the same door, in virtual time."""

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import ramp
from ramp.control.events import Done, MarketRefusalCode, Watching
from ramp.model.contents import DepositOrder
from ramp.model.instant import DAY, to_datetime
from ramp.protocol.events import KeeperAsked
from ramp.protocol.progress import RequestEnded, RoundClosed
from tests.blocking_line import connected
from tests.tiny_market import tiny_market
from tests.unit.market.conftest import wanted


@pytest.fixture
def market(config: Path) -> Iterator[ramp.Market]:
    with ramp.launch(config, transport="simulated") as market:
        yield market


def test_a_purchase_and_its_refund(market: ramp.Market) -> None:
    before = market.access.now()
    told = []
    bought = market.submit(wanted(), rounds=2, on_event=told.append)
    (unit,) = bought.units
    assert (bought.committed, unit.resource, unit.cores, unit.cost) == (True, "alpha", 8, unit.price_offered * 800)
    assert unit.start == to_datetime(-(-before // 10**6) * 10**6 + 600 * 10**6)
    assert sum(isinstance(event, RoundClosed) for event in told) == len(bought.rounds) == 2
    assert bought.files == {}
    account = market.statement()
    assert [(line.kind, line.amount) for line in account.postings] == [
        ("deposit", 100_000_000),
        ("payment", -unit.cost),
    ]
    assert [each.state for each in market.reservations()] == ["active"]
    assert {each.name: each.machine.start_price for each in market.resources(machines=True)} == {
        "alpha": 40,
        "beta": 60,
    }
    (back,) = market.cancel(unit.reservation_id)
    assert (back.done, back.refund) == (True, unit.cost)
    assert market.balance().balance == 100_000_000
    assert market.reservations() == ()
    assert before < market.access.now() < before + DAY


def test_the_owner_is_asked_and_may_say_no(market: ramp.Market) -> None:
    shown = []
    for answer, status in ((False, "rejected"), (True, "committed")):
        ended = market.submit(
            wanted(), approve=lambda asked, answer=answer: shown.append((len(asked.offers), asked.meets)) or answer
        )
        assert ended.status == status
    assert shown == [(1, (True,))] * 2


def test_who_has_no_money_is_refused_by_the_bank(config: Path) -> None:
    with ramp.launch(config, transport="simulated", user="poor") as market:
        ended = market.submit(wanted())
        assert (ended.status, ended.cost) == ("failed", 0)
        assert market.balance().balance == 100


def test_watching_ends_where_nothing_goes_on(market: ramp.Market) -> None:
    assert [type(event) for event in market.watch()] == [Watching, Done]
    quoted = market.quote(wanted())
    (ended,) = market.watch(quoted.request_id)
    assert isinstance(ended, RequestEnded)
    with pytest.raises(ramp.MarketRefused, match="unknown request"):
        list(market.watch("request-none"))


def test_the_same_seed_is_the_same_market(config: Path) -> None:
    def units(seed: int) -> tuple[object, ...]:
        with ramp.launch(config, transport="simulated", seed=seed) as market:
            return market.submit(wanted()).units

    assert units(3) == units(3)


def test_what_a_users_agent_does_not_serve_is_refused(market: ramp.Market) -> None:
    with connected(market.access.open) as line:
        (answer,) = line.events(KeeperAsked(DepositOrder("", "alice", 100, "")))
        assert answer.code is MarketRefusalCode.NOT_UNDERSTOOD
    with pytest.raises(ramp.ConfigurationError, match="rounds: got"):
        market.submit(wanted(), rounds=0)


async def test_tasks_of_asyncio_take_turns(config: Path) -> None:
    async with ramp.launch_async(config, transport="simulated") as market:
        bought, quoted, listed = await asyncio.gather(
            market.submit(wanted()), market.quote(wanted()), market.resources(machines=True)
        )
        assert (bought.status, quoted.status, len(listed)) == ("committed", "quoted", 2)
        assert (await market.balance()).balance == 100_000_000 - bought.cost
        assert [event async for event in market.watch(bought.request_id)][-1].outcome == bought.outcome
        (back,) = await market.cancel(bought.request_id)
        assert back.refund == bought.cost


async def test_a_cancelled_task_withdraws_its_request_and_gives_up_its_turn(config: Path) -> None:
    async with ramp.launch_async(config, transport="simulated") as market:
        going = asyncio.create_task(
            market.submit(wanted(), on_event=lambda event: isinstance(event, ramp.RoundOpened) and going.cancel())
        )
        with pytest.raises(asyncio.CancelledError):
            await going
        watched = [each async for each in market.watch((await market.requests())[0].request_id)]
        assert watched[-1].outcome.status == "rejected"
        assert (await market.balance()).balance == 100_000_000


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"transport": "simulatd"}, "did you mean 'simulated'?"),
        ({"transport": "prosody"}, "the transport 'prosody' differs from the configuration's server 'embedded'"),
        ({"transport": "simulated", "state_dir": "x"}, "keeps no state"),
        ({"transport": "simulated", "user": "carol"}, "unknown user 'carol'"),
    ],
)
def test_what_cannot_be_launched_is_said(config: Path, options: dict[str, str], told: str) -> None:
    with pytest.raises(ramp.ConfigurationError) as raised:
        ramp.launch(config, **options)
    assert told in str(raised.value)


def test_limits_and_credit_of_the_configuration_hold_in_a_simulated_market(config: Path) -> None:
    credit = config.read_text().replace('name = "poor"\n', 'name = "poor"\noverdraft = 500000\n')
    config.write_text(f"{credit}\n[quotas]\nholds_max = 1\n")
    one = ramp.request(cores=8, wall_time="1h", start="+10min", price=70)
    with ramp.launch(config, transport="simulated", user="poor") as market:
        assert market.submit(one).committed  # on credit
        two = market.submit(one, one, rounds=2)  # both units are cheapest at alpha
        assert [unit.resource for unit in two.units] == ["alpha", "beta"]


def test_a_slot_shrinks_for_half_its_price(market: ramp.Market) -> None:
    (unit,) = market.submit(wanted()).units
    (quoted,) = market.resize(unit.agreement_id, cores=4, quote_only=True)
    assert (quoted.quoted, quoted.done, quoted.refund) == (True, False, unit.cost // 2)
    assert market.balance().balance == 1_000_000 * 100 - unit.cost
    (changed,) = market.resize(unit.reservation_id, cores=4)
    assert (changed.done, changed.number, changed.cores, changed.refund) == (True, 1, 4, unit.cost // 2)
    assert market.balance().balance == 1_000_000 * 100 - unit.cost // 2
    (slot,) = market.reservations()
    assert (slot.cores, slot.cost, slot.end) == (4, unit.cost // 2, unit.end)
    (refused,) = market.resize(unit.agreement_id, cores=4)
    assert (refused.done, refused.code) == (False, "no_change")
    (given_back,) = market.cancel(unit.agreement_id)
    assert (given_back.done, given_back.refund) == (True, unit.cost // 2)


def test_a_slot_grows_for_what_its_seller_asks(market: ramp.Market) -> None:
    (unit,) = market.submit(wanted()).units
    (quoted,) = market.resize(unit.agreement_id, cores=12, quote_only=True)
    price, rest = divmod(quoted.charge, 4 * 100)  # of four cores for an hour
    assert (quoted.quoted, quoted.done, rest, 20 <= price <= 70) == (True, False, 0, True)
    (dear,) = market.resize(unit.agreement_id, cores=12, max_cost=Decimal(quoted.charge - 1) / 100)
    assert (dear.done, dear.code) == (False, "too_expensive")
    assert market.balance().balance == 1_000_000 * 100 - unit.cost
    (grown,) = market.resize(unit.agreement_id, cores=12, max_cost=Decimal(quoted.charge) / 100)
    assert (grown.done, grown.number, grown.cores, grown.charge) == (True, 1, 12, quoted.charge)
    assert market.balance().balance == 1_000_000 * 100 - unit.cost - grown.charge
    (slot,) = market.reservations()
    assert (slot.cores, slot.cost, slot.end) == (12, unit.cost + grown.charge, unit.end)
    (given_back,) = market.cancel(unit.agreement_id)
    assert (given_back.done, given_back.refund) == (True, unit.cost + grown.charge)


def test_several_slots_grow_by_one_order(market: ramp.Market) -> None:
    units = market.submit(wanted(), wanted()).units
    ids = [unit.agreement_id for unit in units]
    before = market.balance().balance
    quoted = market.resize(*ids, cores=12, quote_only=True)
    together = sum(each.charge for each in quoted)
    none = market.resize(*ids, cores=12, max_cost=Decimal(together - 1) / 100)
    assert {(each.done, each.code) for each in none} == {(False, "too_expensive")}
    both = market.resize(*ids, cores=12, max_cost=Decimal(together) / 100)
    assert [(each.agreement_id, each.done, each.cores) for each in both] == [(each, True, 12) for each in ids]
    assert market.balance().balance == before - together
    smaller = market.resize(*ids, cores=4)
    assert {(each.done, each.code) for each in smaller} == {(False, "not_together")}


def test_a_change_without_a_size_is_bad_input(market: ramp.Market) -> None:
    (unit,) = market.submit(wanted()).units
    with pytest.raises(ramp.ConfigurationError, match="no new size"):
        market.resize(unit.agreement_id)


QUEUE = tiny_market(
    {"alice": 10_000},
    prices={"queue": (40, 20)},
    machine='plugin = "queue-bound"\noptions = { system = "log", queue = { log = "synthetic", load = 0.3 } }\n',
)


def test_a_job_in_the_queue_of_a_log_is_bought_when_it_has_started(tmp_path: Path) -> None:
    """The log begins then, so the machine is nearly idle: the job starts at once, in time for sure."""
    path = tmp_path / "queue.toml"
    path.write_text(QUEUE)
    with ramp.launch(path, transport="simulated") as market:
        wanted = {"cores": 4, "wall_time": "10min", "price": 50, "end": "+2h"}
        assert market.submit(ramp.request(**wanted)).status == "no_offers"
        bought = market.submit(ramp.request(start_probability=0.9, **wanted))
        assert bought.status == "committed"
        (unit,) = bought.units
        assert unit.reservation_id == "900000000"
        assert market.machine("queue").source == "synthetic"
