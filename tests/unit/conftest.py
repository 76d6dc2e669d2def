"""A User Agent's control channel played from a script, and events as it gives them."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from ramp.client import access
from ramp.client.access import RunningMarket
from ramp.client.market import Market
from ramp.control.codec import VERSION, decode_request, encode_event
from ramp.control.events import Done, MarketRefusalCode, Refused, Submitted, Welcome
from ramp.control.requests import Hello
from ramp.control.status import ServerStatus, SwarmStatus
from ramp.model.contents import Bid
from ramp.model.instant import HOUR, SECOND, from_iso
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.protocol.outcome import BoughtUnit, RequestOutcome, RequestStatus, ResourceRefusal, RoundRecord
from ramp.protocol.progress import ApprovalAsked, RequestEnded, RoundClosed, RoundOpened, UnitAdvanced
from ramp.runtime.state_folder import StateFolder, socket_address
from tests.agreements import agreement_of

START = from_iso("2026-12-01T10:00:00Z")


def offer(resource="thunder1", price=30, unit=1, cores=64, hours=1):
    return Offer(
        offer_id=f"offer-{resource}-{unit}-{price}",
        request_id="request-1",
        unit=unit,
        resource=f"{resource}@localhost",
        cpu_hour_cost=price,
        start=START,
        end=START + hours * HOUR,
        cores=cores,
        load=0.5,
        valid_for=600 * SECOND,
        source="log",
    )


def agreement(bought, asked, reservation_id):
    names = {"agreement_id": "agreement-1", "user": "alice@localhost", "bank": "bank@localhost"}
    times = {"issued_at": bought.start - HOUR, "valid_until": bought.start}
    return agreement_of(bought, asked, reservation_id=reservation_id, **names, **times)


class Script:
    """One auction's events, as the control channel gives them."""

    submitted: ClassVar = Submitted("request-1")
    record = RoundRecord(
        1,
        ((1, 70),),
        (offer("thunder1", 30), offer("ricc2", 33)),
        (Bid(1, "thunder1@localhost", 30), Bid(1, "ricc2@localhost", 33)),
        (
            ResourceRefusal("curie2@localhost", Refusal(1, RefusalCode.PRICE, "85 credits/core-hour")),
            ResourceRefusal("curie1@localhost", Refusal(1, RefusalCode.PRICE, "80 credits/core-hour", "too cheap")),
            ResourceRefusal("atlas1@localhost", Refusal(1, RefusalCode.CORES_TAKEN, "2026-12-02T00:00:00Z")),
        ),
        250_000,
    )
    opened = RoundOpened("request-1", 1, ((1, 70),), 5)
    closed = RoundClosed("request-1", record, ((1, record.bids[0]),))
    advanced = UnitAdvanced("request-1", 1, "thunder1@localhost", "agreed", "thunder1-7")
    asked = ApprovalAsked("request-1", (record.offers[0],), (True,), (960_000,), START)
    unknown: ClassVar = Refused(MarketRefusalCode.UNKNOWN_REQUEST, "there is no request request-1")

    @classmethod
    def ended(cls, status=RequestStatus.COMMITTED, reason=""):
        bought = status is RequestStatus.COMMITTED
        ids = ("agreement-1", "thunder1-7", "transfer-1") if bought else ()
        unit = BoughtUnit(1, cls.record.offers[0], cls.record.offers[0].cores, *ids)
        units = (unit,) if bought or status is RequestStatus.QUOTED else ()
        outcome = RequestOutcome("request-1", status, reason, (cls.record,), units, START, 1_500_000)
        return RequestEnded(outcome, {"agreement-1": "/tmp/agreement-1.xml"} if bought else {})


@pytest.fixture
def script():
    return Script


class FakeAgent:
    """Answers each connection with the next list of events; a list that ends early is an agent that dies."""

    def __init__(self, path: Path, lives: list[list[object]]) -> None:
        self.heard: list[object] = []
        self._socket = socket.socket(socket.AF_UNIX)
        with socket_address(path) as address:
            self._socket.bind(address)
        self._socket.listen()
        self._lives = lives
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for events in self._lives:
            self._take(events)
        self._socket.close()

    def _take(self, events: list[object]) -> None:
        connection, _ = self._socket.accept()
        with contextlib.suppress(OSError), connection, connection.makefile("rwb") as file:
            assert decode_request(file.readline()) == Hello(VERSION)
            file.write(encode_event(Welcome(VERSION, "alice@localhost")))
            file.flush()
            self.heard.append(decode_request(file.readline()))
            for event in events:
                if callable(event):
                    event()
                    continue
                file.write(encode_event(event))
                file.flush()
                if isinstance(event, ApprovalAsked):
                    self._take([Done()])


UP = SwarmStatus("up", "2026-12-01T10:00:00Z", 1, "swarm.toml", ServerStatus("embedded", "127.0.0.1", 5222, 2), ())


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """Starts a fake agent; gives the market that leads to it."""
    state = StateFolder(tmp_path / "state")
    state.prepare()
    monkeypatch.setattr(access, "status", lambda _: UP)
    monkeypatch.setattr(access, "RECONNECT_PAUSE_S", 0.001)
    market = Market(RunningMarket(state, "alice", "localhost"))
    return lambda *lives: (FakeAgent(state.socket("alice"), list(lives)), market)


@pytest.fixture
def log(tmp_path):
    """Three jobs of 8, 8 and 64 units, 100 s each, a second apart; the second asked for 60 s."""
    path = tmp_path / "small.swf"
    rows = [(1, 0, 8, 100), (2, 1, 8, 60), (3, 2, 64, 100)]
    lines = [f"{n} {t} 0 100 {size} -1 -1 {size} {asked} -1 1 5 1 1 1 1 -1 -1" for n, t, size, asked in rows]
    path.write_text("; MaxProcs: 512\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
