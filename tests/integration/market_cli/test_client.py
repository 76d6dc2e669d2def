"""`import ramp` against a market that runs: the blocking market, its asyncio twin, and who speaks another version."""

import asyncio
import json
import socket
import threading

import pytest

import ramp
from ramp.client import dialogues
from ramp.control.codec import VERSION
from ramp.control.events import Done, Watching
from ramp.control.requests import ListRequests, Submit, Watch
from ramp.model.contents import DepositOrder
from ramp.protocol.events import Approval, AuctionOptions, KeeperAsked, OffersApproved
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import ApprovalAsked, RequestEnded
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.state_folder import StateFolder
from tests.blocking_line import connected
from tests.integration.market_cli.tiny_market import CONFIG, NAMES

pytestmark = pytest.mark.slow  # a market of five processes

WANTED = ramp.request(cores=8, wall_time="1h", start="+10min", price=70)


def test_a_purchase_from_quotation_to_refund(swarm):
    with ramp.connect(swarm) as market:
        before = market.balance()
        quoted = market.quote(WANTED)
        assert (quoted.status, quoted.cost, quoted.units[0].reservation_id) == ("quoted", 0, "")
        bought = market.submit(WANTED, rounds=2)
        (unit,) = bought.units
        assert (bought.committed, len(bought.rounds), unit.resource in NAMES) == (True, 2, True)
        assert unit.cost == bought.cost == unit.price_paid * 8 * 100
        assert (unit.end - unit.start).total_seconds() == 3600
        assert bought.files[unit.agreement_id].is_file()
        held = {each.agreement_id: each for each in market.reservations()}[unit.agreement_id]
        assert (held.state, held.reservation_id, held.start) == ("active", unit.reservation_id, unit.start)
        assert {each.request_id: each.stage for each in market.requests()}[bought.request_id] == "committed"
        statement = market.statement(since="-10min")
        assert statement.postings[-1].amount == -unit.cost
        assert statement.available == before.available - unit.cost
        (back,) = market.cancel(unit.agreement_id.removeprefix("agreement-")[:10], reason="enough")
        assert (back.done, back.refund, back.request_id) == (True, unit.cost, bought.request_id)
        assert market.balance().balance == before.balance
        again = market.cancel(unit.agreement_id)
        assert (again[0].done, again[0].code, again[0].refund) == (True, "already_cancelled", 0)


async def test_questions_at_the_same_time_with_asyncio(swarm):
    async with ramp.connect_async(swarm, user="alice") as market:
        quoted, listed = await asyncio.gather(market.quote(WANTED), market.resources(machines=True))
        bought = await market.submit(WANTED)
        watched = [event async for event in market.watch(bought.request_id)]
        machine = await market.machine(bought.units[0].resource)
    assert quoted.status is ramp.RequestStatus.QUOTED
    assert {each.name: each.machine.architecture for each in listed} == dict.fromkeys(NAMES, "x86_64")
    assert [type(event) for event in watched] == [RequestEnded]
    assert (machine.cores, machine.start_price in (40, 60, 90)) == (512, True)
    assert 0 < machine.cores_free == 512 - machine.cores_busy <= 384  # a quarter is taken from the beginning


async def test_a_market_of_ones_own_for_asyncio(tmp_path):
    config = tmp_path / "tiny.toml"
    config.write_text(CONFIG)
    async with ramp.launch_async(config, transport="embedded", user="alice") as market:
        state = market.access.state
        bought = await market.submit(WANTED)
        assert bought.committed
        assert (await market.balance()).balance == 100_000_000 - bought.cost
    with pytest.raises(ramp.NoMarket):
        ramp.connect(state.path)
    assert not state.path.exists()


async def test_a_task_that_is_cancelled_while_it_launches_leaves_no_market(tmp_path):
    config = tmp_path / "tiny.toml"
    config.write_text(CONFIG)

    async def launched(folder):
        async with ramp.launch_async(config, state_dir=folder):
            raise AssertionError("nobody waits for it any more")

    state = StateFolder(tmp_path / "state")
    launching = asyncio.create_task(launched(state.path))
    await asyncio.sleep(0)
    launching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launching
    assert state.ledger.exists()
    with pytest.raises(ramp.NoMarket):
        ramp.connect(state.path)


def test_watching_all_that_goes_on(swarm):
    """Of one request after the other: the end of one is not the end of what goes on."""
    with ramp.connect(swarm) as market:
        events = market.watch()
        assert isinstance(next(events), Watching)
        buying = threading.Thread(target=lambda: [market.quote(WANTED, rounds=1) for _ in range(2)])
        buying.start()
        told = []
        for event in events:
            told.append(type(event).__name__)
            if told.count("RequestEnded") == 2:
                break
        events.close()
        buying.join(300)
    assert told == ["RoundOpened", "RoundClosed", "RequestEnded"] * 2


def test_who_lost_the_connection_when_asked_has_not_declined(swarm):
    """The next who watches the request is asked again."""
    with ramp.connect(swarm) as market:
        request_id = RandomIds().new("request")
        document = write_request(WANTED.at(SystemClock().now()))
        asking = Submit(document, request_id, AuctionOptions(approval=Approval.ASK))
        with connected(market.access.open) as line:
            asked = next(event for event in line.events(asking) if isinstance(event, ApprovalAsked))
        for _ in range(2):
            with connected(market.access.open) as line:
                assert next(line.events(Watch(request_id))) == asked
        assert {each.request_id: each.stage for each in market.requests()}[request_id] == "approving"
        with connected(market.access.open) as line:
            events = line.events(Watch(request_id))
            assert next(events) == asked
            market.ask(dialogues.approve(request_id, True))
            *_, ended = events
        assert ended.outcome.status is RequestStatus.COMMITTED
        with connected(market.access.open) as line:
            assert isinstance(next(line.events(Watch(request_id))), RequestEnded), "nobody is asked any more"


def test_who_was_asked_when_another_answered_is_told_and_may_go_on(swarm):
    with (
        ramp.connect(swarm) as market,
        connected(market.access.open) as waiting,
        connected(market.access.open) as other,
    ):
        request_id = RandomIds().new("request")
        document = write_request(WANTED.at(SystemClock().now()))
        told = waiting.events(Submit(document, request_id, AuctionOptions(approval=Approval.ASK)))
        assert any(isinstance(event, ApprovalAsked) for event in told)
        assert list(other.events(OffersApproved(request_id, False))) == [Done()]
        *_, ended = other.events(Watch(request_id))
        assert list(told)[-1] == ended
        for line in (waiting, other):
            assert any(each.request_id == request_id for each in next(line.events(ListRequests())).requests)


def test_an_approver_that_fails_has_declined(swarm):
    def approve(_):
        raise ValueError("no terminal")

    with ramp.connect(swarm) as market:
        with pytest.raises(ValueError, match="no terminal"):
            market.submit(WANTED, approve=approve)
        latest = max(market.requests(), key=lambda each: each.started_at)
        with connected(market.access.open) as line:  # it ends at once, not at the limit of an approval
            *_, ended = line.events(Watch(latest.request_id))
        assert ended.outcome.reason == "the user declined the offers"


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ({"verb": "list_requests"}, "other_version", "got none, expected 1"),
        ({"verb": "hello", "version": VERSION + 1}, "other_version", "control channel: got 2, expected 1; `ramp down`"),
        ({"verb": "hello", "version": VERSION, "compress": True}, "not_understood", "extra fields found (compress)"),
        ({"verb": "greet"}, "not_understood", "unknown verb 'greet'"),
    ],
)
def test_a_client_of_another_version_is_told_so_and_nothing_else(swarm, line, code, told):
    with socket.socket(socket.AF_UNIX) as raw, raw.makefile("rb") as answers:
        raw.settimeout(300)
        raw.connect(str(StateFolder(swarm).socket("alice")))
        raw.sendall(json.dumps(line).encode() + b"\n" + b'{"verb": "list_requests"}\n')
        answer = json.loads(answers.readline())
        assert (answer["event"], answer["code"]) == ("refused", code)
        assert told in answer["reason"]
        assert answers.readline() == b""


def test_a_line_that_is_no_request_harms_nobody(swarm):
    with socket.socket(socket.AF_UNIX) as raw, raw.makefile("rb") as answers:
        raw.settimeout(300)
        raw.connect(str(StateFolder(swarm).socket("alice")))
        raw.sendall(
            b'{"verb": "hello", "version": %d}\n{"verb": "submit"}\nnonsense\n{"verb": "list_requests"}\n' % VERSION
        )
        told = [json.loads(answers.readline()) for _ in range(4)]
    assert [each["event"] for each in told] == ["welcome", "refused", "refused", "requests_listed"]


def test_each_agent_serves_its_own_verbs(swarm):
    for name, request in (("alice", KeeperAsked(DepositOrder("", "alice", 100, ""))), ("keeper", ListRequests())):
        with connected(StateFolder(swarm).socket(name)) as line:
            (answer,) = line.events(request)
            assert answer.code is ramp.MarketRefusalCode.NOT_UNDERSTOOD
            assert "does not serve the verb" in answer.reason
