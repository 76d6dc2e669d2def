"""`ramp watch` over a fake stream: lines, objects, and pictures that fit their terminal."""

import json
from operator import methodcaller

from rich.console import Console

from ramp.cli.watching.screen import Screen
from ramp.cli.watching.stream import AUCTIONS_MAX, KINDS, Board, Lines
from ramp.control.events import Submitted
from ramp.control.status import AgentStatus, ServerStatus, SwarmStatus
from ramp.model.instant import SECOND, from_iso
from ramp.protocol.outcome import BoughtUnit, RequestOutcome, RequestStatus
from ramp.protocol.progress import RequestEnded, RoundClosed, RoundOpened, UnitAdvanced
from ramp.runtime.logs import MarketEvent
from tests.unit.control.test_auction_story import FIRST, offer
from tests.unit.web.test_metrics import MACHINE

AT = from_iso("2026-01-01T00:01:00+00:00")
ID = "request-0123456789abcdef0123456789abcdef"


def agent(name, role, state="ready", restarts=0, detail=""):
    return AgentStatus(name, role, 1, state, detail, restarts, "", is_up=state == "ready")


def swarm(*agents):
    return SwarmStatus("up", "", 1, "market.toml", ServerStatus("embedded", "127.0.0.1", 5222, 2), agents)


STATUS = swarm(agent("alice", "user"), agent("bank", "bank"), agent("curie", "resource", "broken", 3, "no queue"))
OUTCOME = RequestOutcome(
    ID, RequestStatus.COMMITTED, "", (FIRST,), (BoughtUnit(1, offer("b", 50), 16),), AT, 3 * SECOND
)


def heard(*events, user="alice"):
    return [methodcaller("auction", AT, user, event) for event in events]


AUCTION = heard(
    Submitted(ID),
    RoundOpened(ID, 1, ((1, 70),), 5),
    RoundClosed(ID, FIRST, ((1, FIRST.bids[1]),)),
    UnitAdvanced(ID, 1, "b", "settled"),
    RequestEnded(OUTCOME),
)
SALE = methodcaller(
    "logged", MarketEvent("2026-01-01T00:01:00+00:00", "curie", "sale", "8 cores to alice", {"cost": 400})
)
STREAM = [methodcaller("agents", AT, STATUS), methodcaller("machines", AT, {"curie": MACHINE}), *AUCTION, SALE]


def drawn(width, height=24, stream=STREAM, only=KINDS):
    board = Board()
    for seen in stream:
        seen(board)
    console = Console(width=width, height=height, force_terminal=False, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(Screen(board, only, now=AT), height=height)
    return capture.get().rstrip("\n").splitlines()


def lines(stream=STREAM):
    found = []
    made = Lines(found.append)
    for seen in stream:
        seen(made)
    return found


def test_each_event_is_a_sentence():
    told = [line.sentence for line in lines()]
    assert told[0] == "2026-01-01T00:01:00Z  up  the market runs"
    assert "2026-01-01T00:01:00Z  curie  broken: no queue  resource, 3 restarts" in told
    assert (
        "2026-01-01T00:01:00Z  curie  machine  16 of 64 cores taken, 3 running, 4 waiting, 1 held, 2 sold, "
        "start price 40 credits/core-hour"
    ) in told
    assert f"{ID} round 1: unit 1 for 70 credits/core-hour to 5 resources" in "\n".join(told)
    closed = next(each for each in told if "round_closed" in each)
    assert (
        "2 offers; 3 refusals (2 price_below_minimum, 1 no_answer); unit 1: b leads with 50 credits/core-hour" in closed
    )
    assert f"{ID} committed after 1 round, 3.000 s, from b, 400.00 credits" in "\n".join(told)
    assert told[-1] == "2026-01-01T00:01:00Z  curie  sale  8 cores to alice"


def test_all_times_are_in_the_readers_zone(new_york):
    text = "8 cores from 2026-01-01T00:01:00.25Z on"
    sale = methodcaller("logged", MarketEvent("2026-01-01T00:01:00+00:00", "curie", "sale", text, {}))
    (told,) = [line.sentence for line in lines([sale])]
    assert told == "2025-12-31T19:01:00-05:00  curie  sale  8 cores from 2025-12-31T19:01:00-05:00 on"
    (row,) = [line.split() for line in drawn(100, stream=[sale]) if "sale" in line]
    assert row == [told.split()[0][11:19], *told.split()[1:]]


def test_each_event_is_an_object():
    plain = [json.loads(json.dumps(line.plain)) for line in lines()]
    assert {each["kind"] for each in plain} == set(KINDS)
    (ended,) = [each for each in plain if each["event"] == "ended"]
    assert (ended["request_id"], ended["status"], ended["cost"], ended["seconds"]) == (ID, "committed", "400.00", 3.0)
    (closed,) = [each for each in plain if each["event"] == "round_closed"]
    assert closed["leaders"] == {"1": {"resource": "b", "price": 50}}
    assert closed["refusals"] == {"price_below_minimum": 2, "no_answer": 1}


def test_of_agents_and_machines_a_line_says_what_is_different():
    found = []
    each = Lines(found.append)
    well = swarm(agent("alice", "user"), agent("curie", "resource", restarts=4))
    for status, told in (
        (STATUS, ["up", "ready", "ready", "broken: no queue"]),
        (STATUS, []),
        (well, ["ready", "removed"]),
        (None, ["down"]),
    ):
        each.agents(AT, status)
        assert [line.event for line in found] == told
        found.clear()
    for told in (["machine"], []):
        each.machines(AT, {"curie": MACHINE})
        assert [line.event for line in found] == told
        found.clear()


def test_the_picture_has_everything_and_fits():
    for width in (80, 120):
        found = drawn(width)
        text = "\n".join(found)
        assert len(found) <= 24
        assert max(map(len, found)) <= width
        assert found[0].startswith("RAMP market  2026-01-01T00:01:00Z  degraded: curie (resource) is broken")
        for wanted in ("committed 400.00 credits", "alice", "70", "50", "25 %", "broken: no queue", "8 cores to alice"):
            assert wanted in text, (width, wanted, text)
        beside = [line for line in found if "Agents" in line and "Machines" in line]
        assert bool(beside) == (width == 120)


def test_a_crowd_does_not_push_anything_off_the_screen():
    many = {f"curie{number}": MACHINE for number in range(24)}
    requests = [
        each for number in range(20) for each in heard(RoundOpened(f"request-{number:032}", 1, ((1, 70), (2, 60)), 5))
    ]
    stream = [methodcaller("agents", AT, STATUS), methodcaller("machines", AT, many), *requests, *[SALE] * 30]
    for width, height in ((80, 24), (120, 30), (120, 60), (80, 18)):
        found = drawn(width, height, stream)
        assert len(found) <= height, (width, height, "\n".join(found))
        text = "\n".join(found)
        for title in ("Auctions", "Machines", "Agents", "Log"):
            assert title in text
        assert "more" in text


def test_only_what_is_asked_for_is_drawn():
    text = "\n".join(drawn(80, only=("log",)))
    assert "sale" in text
    assert "Auctions" not in text
    assert "Machines" not in text


def test_nothing_yet_and_no_market():
    text = "\n".join(drawn(80, stream=[]))
    for wanted in ("no market runs", "no auction yet", "no answer yet", "nothing yet"):
        assert wanted in text


def test_requests_that_have_ended_go_first():
    board = Board()
    for seen in AUCTION:
        seen(board)
    for number in range(AUCTIONS_MAX):
        (opened,) = heard(RoundOpened(f"request-{number}", 1, ((1, 70),), 5))
        opened(board)
    assert len(board.auctions) == AUCTIONS_MAX
    assert ("alice", ID) not in board.auctions
    assert ("alice", "request-0") in board.auctions
