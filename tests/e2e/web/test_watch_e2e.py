"""`ramp watch` over a real market: a picture at a terminal of its own, objects in a pipe, and an end by Ctrl-C."""

import json
import os
import signal
import subprocess
import threading

import pytest

import ramp
from tests.e2e.waiting import LIMIT_S, until
from tests.e2e.web.conftest import RAMP
from tests.integration.market_cli.tiny_market import Terminal

pytestmark = pytest.mark.e2e

WANTED = ramp.request(cores=8, wall_time="1h", start="+10min", price=70)


def test_an_auction_is_seen_at_a_terminal_and_in_a_pipe(market):
    command = [*RAMP, "watch", "--json", "--only", "auctions", "--only", "agents", "--state-dir", str(market)]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    piped = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    told = []
    reader = threading.Thread(target=lambda: [told.append(json.loads(line)) for line in piped.stdout])
    reader.start()
    terminal = Terminal("watch", state=market)
    try:
        for text in ("RAMP market", "Machines", "gamma", "25 %", "no auction yet"):
            terminal.until(text)
        with ramp.connect(market, user="alice") as alice:
            # each user's auctions are heard from the moment on at which its agent has been reached
            until(lambda: alice.quote(WANTED) and told and told[-1]["kind"] == "auctions", lambda: str(told))
            assert alice.submit(WANTED).committed
        terminal.until("committed")
        terminal.until("sale")
        until(lambda: told[-1].get("status") == "committed", lambda: str(told))
        ended = told[-1]
        assert (ended["event"], ended["who"]) == ("ended", "alice")
        rounds = [each for each in told if each["event"] == "round_closed"]
        assert sum(each["request_id"] == ended["request_id"] for each in rounds) == ended["rounds"] > 0
        assert told[0]["event"] == "up"
        assert {each["kind"] for each in told} == {"auctions", "agents"}
        terminal.type("\x03")
        assert terminal.end() == 0
        piped.send_signal(signal.SIGINT)
        assert piped.wait(LIMIT_S) == 0
    finally:
        for process in (piped, terminal.process):
            process.kill()
            process.wait()
        reader.join(LIMIT_S)
        piped.stdout.close()
