"""Following a request: through deaths of the User Agent, approval, and Ctrl-C."""

import signal

import pytest

from ramp.cli.auction_view import QuietView
from ramp.cli.follow import Followed
from ramp.errors import ConfigurationError, TransportError


class Heard(QuietView):
    """Remembers what was shown."""

    def __init__(self):
        self.events = []

    def show(self, event):
        self.events.append(event["event"])


def test_the_last_event_is_returned_and_every_event_is_shown(agent, script):
    fake, market = agent([script.submitted, script.opened, script.closed, script.ended()])
    view = Heard()
    event = Followed(market, "<rfq/>", {"rounds": 2}, view).run()
    assert event["outcome"]["status"] == "committed"
    assert view.events == ["submitted", "round_opened", "round_closed", "request_ended"]
    (request,) = fake.heard
    assert (request["verb"], request["document"], request["options"]) == ("submit", "<rfq/>", {"rounds": 2})


def test_an_agent_that_dies_is_asked_again_what_became_of_the_request(agent, script):
    fake, market = agent([script.submitted, script.opened], [script.ended()])
    assert Followed(market, "<rfq/>", {}, QuietView()).run()["event"] == "request_ended"
    submission, watch = fake.heard
    assert watch == {"verb": "watch", "request_id": submission["request_id"]}


def test_a_request_that_died_unwritten_is_submitted_again_under_the_same_id(agent, script):
    fake, market = agent([], [script.error], [script.submitted, script.ended()])
    assert Followed(market, "<rfq/>", {}, QuietView()).run()["event"] == "request_ended"
    first, watch, second = fake.heard
    assert (first["verb"], watch["verb"], second["verb"]) == ("submit", "watch", "submit")
    assert first == second


def test_an_error_at_submission_is_the_callers(agent):
    _, market = agent([{"event": "error", "exit_code": 2, "reason": "line 3: senseless"}])
    with pytest.raises(ConfigurationError, match="line 3: senseless"):
        Followed(market, "<rfq/>", {}, QuietView()).run()


def test_a_market_that_has_ended_ends_the_wait(agent, script, monkeypatch):
    from ramp.cli import connection

    def gone():
        market.state.socket("alice").unlink()
        monkeypatch.setattr(connection, "status", lambda _: None)

    _, market = agent([script.submitted, gone])
    with pytest.raises(TransportError, match="the market has ended"):
        Followed(market, "<rfq/>", {}, QuietView()).run()


@pytest.mark.parametrize("answer", [True, False])
def test_offers_are_put_to_the_owner(agent, script, answer):
    shown = []

    def approve(offers, meets):
        shown.append((offers[0]["resource"], meets))
        return answer

    fake, market = agent([script.submitted, script.asked, script.ended()])
    Followed(market, "<rfq/>", {}, QuietView(), approve).run()
    assert shown == [("thunder1@localhost", [True])]
    assert fake.heard[1] == {"approved": answer}


def test_nobody_at_the_terminal_means_no(agent, script):
    fake, market = agent([script.submitted, script.asked, script.ended()])
    Followed(market, "<rfq/>", {}, QuietView()).run()
    assert fake.heard[1] == {"approved": False}


def test_ctrl_c_withdraws_and_waits_for_the_end(agent, script):
    class Interrupting(QuietView):
        def show(self, event):
            if event["event"] == "round_opened":
                signal.raise_signal(signal.SIGINT)

    fake, market = agent([script.submitted, script.opened], [{"event": "done"}], [script.ended("rejected")])
    event = Followed(market, "<rfq/>", {}, Interrupting()).run()
    assert event["outcome"]["status"] == "rejected"
    submission, withdrawal, watch = fake.heard
    assert withdrawal == {"verb": "withdraw", "request_id": submission["request_id"]}
    assert watch["verb"] == "watch"


def test_a_second_ctrl_c_stops_waiting(agent, script):
    class Impatient(QuietView):
        def show(self, event):
            if event["event"] in ("round_opened", "round_closed"):
                signal.raise_signal(signal.SIGINT)

    _, market = agent([script.submitted, script.opened], [{"event": "done"}], [script.closed, script.ended()])
    with pytest.raises(KeyboardInterrupt):
        Followed(market, "<rfq/>", {}, Impatient()).run()
