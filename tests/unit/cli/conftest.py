"""A User Agent's control channel played from a script, and events as it gives them."""

import contextlib
import json
import socket
import tempfile
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from ramp.cli import connection
from ramp.cli.connection import Market
from ramp.model.instant import HOUR, SECOND, from_iso
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.protocol.outcome import BoughtUnit, RequestOutcome, RequestStatus, ResourceRefusal, RoundRecord
from ramp.protocol.progress import ApprovalAsked, RequestEnded, RoundClosed, RoundOpened, UnitAdvanced
from ramp.runtime.record_json import to_plain
from ramp.runtime.state_folder import StateFolder

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


def plain(name, progress, **more):
    return {"event": name, **to_plain(progress), **more}


class Script:
    """One auction's events, as the control channel gives them."""

    submitted: ClassVar = {"event": "submitted", "request_id": "request-1", "warnings": []}
    record = RoundRecord(
        1,
        ((1, 70),),
        (offer("thunder1", 30), offer("ricc2", 33)),
        (
            ResourceRefusal("curie1@localhost", Refusal(1, RefusalCode.PRICE, "80 credits/core-hour", "too cheap")),
            ResourceRefusal("curie2@localhost", Refusal(1, RefusalCode.PRICE, "85 credits/core-hour")),
            ResourceRefusal("atlas1@localhost", Refusal(1, RefusalCode.CORES_TAKEN, "2026-12-02T00:00:00Z")),
        ),
        250_000,
    )
    opened = plain("round_opened", RoundOpened("request-1", 1, ((1, 70),), 5))
    closed = plain("round_closed", RoundClosed("request-1", record, ((1, record.offers[0]),)))
    advanced = plain("unit_advanced", UnitAdvanced("request-1", 1, "thunder1@localhost", "agreed", "thunder1-7"))
    asked = plain("approval_asked", ApprovalAsked("request-1", (record.offers[0],), (True,)))
    error: ClassVar = {"event": "error", "exit_code": 2, "reason": "there is no request request-1"}

    @classmethod
    def ended(cls, status=RequestStatus.COMMITTED, reason=""):
        bought = status is RequestStatus.COMMITTED
        unit = BoughtUnit(1, cls.record.offers[0], *(("agreement-1", "thunder1-7", "transfer-1") if bought else ()))
        units = (unit,) if bought or status is RequestStatus.QUOTED else ()
        outcome = RequestOutcome("request-1", status, reason, (cls.record,), units, START, 1_500_000)
        return plain(
            "request_ended",
            RequestEnded(outcome),
            agreements={"agreement-1": "/tmp/agreement-1.xml"} if bought else {},
        )


@pytest.fixture
def script():
    return Script


class FakeAgent:
    """Answers each connection with the next list of events; a list that ends early is an agent that dies."""

    def __init__(self, path: Path, lives: list[list[object]]) -> None:
        self.heard: list[dict] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._lives = lives
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for events in self._lives:
            connection_, _ = self._socket.accept()
            with contextlib.suppress(OSError), connection_, connection_.makefile("rwb") as file:
                self.heard.append(json.loads(file.readline()))
                for event in events:
                    if callable(event):
                        event()
                        continue
                    file.write(json.dumps(event).encode() + b"\n")
                    file.flush()
                    if event["event"] == "approval_asked":
                        self.heard.append(json.loads(file.readline()))
        self._socket.close()


@pytest.fixture
def agent(monkeypatch):
    """Starts a fake agent; gives the market that leads to it."""
    with tempfile.TemporaryDirectory(prefix="rc") as folder:
        state = StateFolder(Path(folder))
        state.prepare()
        monkeypatch.setattr(connection, "status", lambda _: {"pid": 1})
        monkeypatch.setattr(connection, "RECONNECT_PAUSE_S", 0.001)
        market = Market(state, "alice", "localhost", ("alice",))

        def start(*lives):
            return FakeAgent(state.socket("alice"), list(lives)), market

        yield start
