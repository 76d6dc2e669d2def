"""SIGTERM to `ramp submit` is a withdrawal, as Ctrl-C is."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from ramp.cli import submit
from ramp.cli.auction_view import QuietView
from ramp.protocol.outcome import RequestStatus

REQUEST = next((Path(__file__).parents[3] / "schemas" / "examples" / "valid").glob("rfq*.xml"))


class Terminated(QuietView):
    """Gets a signal in the middle of the first round."""

    def show(self, event):
        if event["event"] == "round_opened":
            signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def own_handler():
    """A handler that must be back afterwards, and that nothing may reach meanwhile."""

    def unwanted(number, frame):
        raise AssertionError("the signal was not taken as a withdrawal")

    before = signal.signal(signal.SIGTERM, unwanted)
    yield unwanted
    signal.signal(signal.SIGTERM, before)


def test_sigterm_withdraws_and_waits_for_the_end(agent, script, monkeypatch, capsys, own_handler):
    ended = script.ended(RequestStatus.REJECTED, "the user withdrew the request")
    fake, market = agent([script.submitted, script.opened], [{"event": "done"}], [ended])
    monkeypatch.setattr(submit, "open_market", lambda *_: market)
    monkeypatch.setattr(submit, "new_view", lambda *_: Terminated())
    exit_code = submit._auction([REQUEST], {"rounds": 1}, None, market.state, True)
    assert exit_code == 1
    submission, withdrawal, watch = fake.heard
    assert withdrawal == {"verb": "withdraw", "request_id": submission["request_id"]}
    assert watch["verb"] == "watch"
    assert json.loads(capsys.readouterr().out)["status"] == "rejected"
    assert signal.getsignal(signal.SIGTERM) is own_handler
