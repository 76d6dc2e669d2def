"""`/metrics`: what is counted, how the market stands, who may read it, and that the board asks for what there is."""

import json
import re
import stat

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ramp.client.machine_state import parse_snapshot
from ramp.control.status import AgentStatus, ServerStatus, SwarmStatus
from ramp.errors import ConfigurationError
from ramp.model.contents.accounts import AccountLine
from ramp.model.instant import SECOND
from ramp.model.offer import RefusalCode
from ramp.protocol.outcome import BoughtUnit, ChangeOutcome, RequestOutcome, RequestStatus
from ramp.protocol.progress import ChangeEnded, RequestEnded, RoundClosed, RoundOpened, UnitAdvanced
from ramp.shipped_files import shipped_directory
from ramp.web.levels import Levels
from ramp.web.metrics import AllMetrics, Counted, metrics_route, metrics_token
from ramp.web.security.address import served_address
from ramp.web.security.gate import Gate
from ramp.web.security.sessions import Sessions
from tests.unit.control.test_auction_story import FIRST, NOW, offer

TOKEN = "a-token-that-nobody-guesses"
SHOWN = {"authorization": f"Bearer {TOKEN}"}
HOME = "http://127.0.0.1:8765"
MINUTE = "2026-01-01T00:01:00+00:00"


def agent(name, role, state="ready", restarts=0, offset=None):
    return AgentStatus(name, role, 1, state, "", restarts, MINUTE, is_up=state == "ready", clock_offset_ms=offset)


def slot(firm):
    return {"reservation_id": "s", "cores": 1, "start": MINUTE, "end": MINUTE, "firm": firm}


STATUS = SwarmStatus(
    "up",
    MINUTE,
    1,
    "market.toml",
    ServerStatus("embedded", "127.0.0.1", 5222, 2),
    (
        agent("alice", "user"),
        agent("bob", "user", restarts=2),
        agent("curie", "resource", "broken", restarts=3, offset=-1500.0),
    ),
)
MACHINE = parse_snapshot(
    json.dumps(
        {
            "resource": "curie",
            "source": "live",
            "time": MINUTE,
            "cores": 64,
            "cores_busy": 16,
            "load": 0.25,
            "running_total": 3,
            "queued_total": 4,
            "running": [],
            "queued": [],
            "reservations": [slot(True), slot(False), slot(True)],
            "projected_load": [],
            "start_price": 40,
        }
    ),
    "curie",
)
ACCOUNTS = (
    AccountLine("alice@x", "user", 1_050, 25, 0),
    AccountLine("bob@x", "user", 10, 0, 0),
    AccountLine("curie@x", "resource", -60, 0, 100),
)
OUTCOME = RequestOutcome(
    "request-of-alice",
    RequestStatus.COMMITTED,
    "",
    (FIRST, FIRST),
    (BoughtUnit(1, offer("b", 50), 16),),
    NOW,
    3 * SECOND,
)
TOLD = (
    RoundOpened("request-of-alice", 1, ((1, 70),), 5),
    RoundClosed("request-of-alice", FIRST, ((1, FIRST.bids[1]),), (("a", SECOND // 100), ("b", SECOND // 2)), 2),
    UnitAdvanced("request-of-alice", 1, "b", "settled"),
    RequestEnded(OUTCOME),
    ChangeEnded(ChangeOutcome("agreement-of-alice", 0, False, code="quoted", charge=9900)),
    ChangeEnded(ChangeOutcome("agreement-of-alice", 1, True, charge=250)),
    ChangeEnded(ChangeOutcome("agreement-of-alice", 0, True, refund=150, ends=True)),
    ChangeEnded(ChangeOutcome("agreement-of-alice", 0, True, code="already_cancelled", ends=True)),
)


LEVELS = Levels(STATUS, {"curie": MACHINE}, ACCOUNTS)


def collected(levels=LEVELS, told=TOLD):
    """The metrics of a market with these levels, whose users have told of these events."""
    counted = Counted()
    for event in told:
        counted.take(event)
    return generate_latest(AllMetrics(counted.registry, levels)).decode()


def values(text):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_heard_is_counted():
    found = values(collected())
    assert found["ramp_auctions_opened_total",] == 1
    assert found["ramp_auctions_total", "committed"] == 1
    assert found["ramp_auctions_total", "failed"] == 0
    assert found["ramp_rounds_total",] == 1
    assert found["ramp_offers_total",] == 2
    assert found["ramp_refusals_total", RefusalCode.PRICE.value] == 2
    assert found["ramp_refusals_total", RefusalCode.NO_ANSWER.value] == 1
    assert (found["ramp_calls_for_proposals_total", "first"], found["ramp_calls_for_proposals_total", "again"]) == (
        5,
        2,
    )
    assert found["ramp_unit_stages_total", "settled"] == 1
    assert (found["ramp_cancellations_total", "done"], found["ramp_refunded_credits_total",]) == (1, 1.5)
    # 8 cores for an hour at 50 credits, and the change of their number
    assert found["ramp_paid_credits_total",] == 402.5
    assert (found["ramp_auction_seconds_sum",], found["ramp_auction_seconds_count",]) == (3, 1)
    assert (found["ramp_round_seconds_bucket", "0.5"], found["ramp_round_seconds_bucket", "1.0"]) == (0, 1)
    assert (found["ramp_auction_rounds_sum",], found["ramp_answer_seconds_count",]) == (2, 2)


def test_levels_are_those_of_the_moment():
    found = values(collected(told=()))
    assert (found["ramp_up",], found["ramp_xmpp_server_up",]) == (1, 1)
    assert (found["ramp_agents", "user", "ready"], found["ramp_agents", "resource", "broken"]) == (2, 1)
    assert (found["ramp_agents_on_market", "user"], found["ramp_agents_on_market", "resource"]) == (2, 0)
    assert (found["ramp_agent_restarts", "user"], found["ramp_agent_restarts", "resource"]) == (2, 3)
    assert found["ramp_clock_offset_seconds", "curie"] == -1.5
    assert (found["ramp_cores", "curie"], found["ramp_cores_busy", "curie"]) == (64, 16)
    assert (found["ramp_holds", "curie"], found["ramp_reservations", "curie"]) == (1, 2)
    assert (found["ramp_balance_credits", "user"], found["ramp_balance_credits", "resource"]) == (10.6, -0.6)
    assert (found["ramp_set_aside_credits", "user"], found["ramp_accounts", "user"]) == (0.25, 2)


def test_what_nobody_answers_is_absent():
    text = collected(Levels(STATUS))
    assert not re.search("^ramp_(balance|set_aside|accounts|cores)[^#]*[0-9]$", text, re.MULTILINE)
    text = collected(Levels())
    assert values(text)["ramp_up",] == 0
    assert "ramp_agents{" not in text


def test_no_user_and_no_request_is_named():
    text = collected()
    for secret in ("alice", "bob", "request-of", "agreement-of"):
        assert secret not in text


def test_only_who_shows_the_token_reads_it(tmp_path):
    async def read():
        return LEVELS

    sessions = Sessions(tmp_path / "sessions.sqlite")
    app = Starlette(routes=[metrics_route(TOKEN, read, Counted())])
    browser = TestClient(Gate(app, sessions, served_address("127.0.0.1", 8765), {}.get), base_url=HOME)
    answer = browser.get("/metrics", headers=SHOWN)
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    assert answer.headers["cache-control"] == "no-store"
    for headers in ({}, {"authorization": "Bearer é"}, {"authorization": TOKEN}, {"authorization": f"Bearer {TOKEN}x"}):
        refused = browser.get("/metrics", headers={k: v.encode() for k, v in headers.items()})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="RAMP metrics"')
        assert "ramp_" not in refused.text
    assert browser.get("/metrics", headers={**SHOWN, "host": "evil.example"}).status_code == 421
    assert browser.get("/metrics", headers={**SHOWN, "origin": "http://evil.example"}).status_code == 403
    assert browser.post("/metrics", headers={**SHOWN, "origin": HOME}).status_code == 405
    sessions.close()


def test_the_token_is_made_once_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "metrics-token"
    token = metrics_token(path)
    assert len(token) >= 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert metrics_token(path) == token
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match="other accounts may read"):
        metrics_token(path)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(ConfigurationError, match="got 5"):
        metrics_token(path)


def test_the_board_asks_for_what_is_exported():
    board = json.loads((shipped_directory("agents_config") / "grafana" / "ramp.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\bramp_\w+", target["expr"])
    }
    there = {name for name, *_ in values(collected())}
    assert asked <= there, asked - there
    rules = (shipped_directory("agents_config") / "prometheus" / "ramp-alerts.yml").read_text()
    warned = set(re.findall(r"\bramp_\w+", "".join(re.findall(r"^ *expr: (.*)$", rules, re.MULTILINE))))
    assert len(warned) > 5
    assert warned <= there, warned - there
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
