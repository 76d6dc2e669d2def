"""SIGTERM to `ramp submit` is a withdrawal, as Ctrl-C is."""

import json
import signal
from pathlib import Path

import pytest

from ramp.cli.verbs import submit
from ramp.cli.views.auction_view import AuctionView
from ramp.control.events import Done, RequestsListed, RequestStanding
from ramp.control.requests import Watch
from ramp.protocol.events import AuctionOptions, RequestWithdrawn
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RoundClosed, RoundOpened
from tests.unit.cli.conftest import command_with_json

REQUEST = next((Path(__file__).parents[3] / "schemas" / "examples" / "valid").glob("rfq*.xml"))


def auction(market):
    with command_with_json():
        return submit._auction(
            [REQUEST], 1, AuctionOptions().round_time, "cheapest", "", None, (), None, market.access.state
        )


class Terminated(AuctionView):
    """Gets a signal in the middle of the first round."""

    def show(self, event):
        if isinstance(event, RoundOpened):
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
    fake, market = agent([script.submitted, script.opened], [Done()], [ended])
    monkeypatch.setattr(submit, "open_market", lambda *_: market)
    monkeypatch.setattr(submit, "new_view", lambda *_: Terminated())
    exit_code = auction(market)
    assert exit_code == 1
    submission, withdrawal, watch = fake.heard
    assert withdrawal == RequestWithdrawn(submission.request_id)
    assert watch == Watch(submission.request_id)
    assert json.loads(capsys.readouterr().out)["status"] == "rejected"
    assert signal.getsignal(signal.SIGTERM) is own_handler


class Impatient(AuctionView):
    """Interrupted in the first round, and again while its end is waited for."""

    def show(self, event):
        if isinstance(event, RoundOpened | RoundClosed):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("stage", "status", "told"),
    [
        (
            "reserving",
            None,
            "request-1 is still running (reserving: the bank is asked) and may still be bought; see its",
        ),
        ("committed", RequestStatus.COMMITTED, "request-1 has been bought and paid; `ramp show request-1`"),
        ("rejected", RequestStatus.REJECTED, "request-1 has ended: rejected, nothing was bought"),
    ],
)
def test_a_second_ctrl_c_says_what_is_pending(agent, script, monkeypatch, capsys, stage, status, told):
    outcome = None if status is None else script.ended(status).outcome
    standing = RequestStanding("request-1", stage, "" if status else "the bank is asked", 1, 0, outcome)
    _, market = agent([script.submitted, script.opened], [Done()], [script.closed], [RequestsListed((standing,))])
    monkeypatch.setattr(submit, "open_market", lambda *_: market)
    monkeypatch.setattr(submit, "new_view", lambda *_: Impatient())
    monkeypatch.setattr("ramp.client.access.RandomIds", lambda: FixedIds())
    with pytest.raises(KeyboardInterrupt):
        auction(market)
    said = capsys.readouterr()
    assert said.out == ""
    assert f"ramp: no longer waiting: {told}" in said.err


class TerminatedForLong(Terminated):
    """The bank's database is down: the withdrawn request does not end within the limit."""

    def show(self, event):
        super().show(event)
        if isinstance(event, RoundClosed):
            signal.raise_signal(signal.SIGALRM)


def test_sigterm_waits_for_a_limited_time_only(agent, script, monkeypatch, capsys, own_handler):
    """With PostgreSQL down `ramp submit` outlived SIGTERM by two minutes."""
    standing = RequestStanding("request-1", "reserving", "the bank is asked", 1, 0)
    _, market = agent([script.submitted, script.opened], [Done()], [script.closed], [RequestsListed((standing,))])
    limits = []
    monkeypatch.setattr(signal, "setitimer", lambda which, seconds: limits.append((which, seconds)))
    monkeypatch.setattr(submit, "open_market", lambda *_: market)
    monkeypatch.setattr(submit, "new_view", lambda *_: TerminatedForLong())
    monkeypatch.setattr("ramp.client.access.RandomIds", lambda: FixedIds())
    with pytest.raises(KeyboardInterrupt):
        auction(market)
    assert limits[0] == (signal.ITIMER_REAL, submit.TERMINATED_LIMIT_S)
    assert limits[-1] == (signal.ITIMER_REAL, 0.0)
    assert "request-1 is still running (reserving: the bank is asked)" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is own_handler


class FixedIds:
    """Every request is the script's."""

    def new(self, kind):
        return f"{kind}-1"
