"""`ramp web demo` and `ramp watch` over real markets: what they show, and that nothing is left at their end."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import ramp
from ramp.servers.process import free_port
from tests.e2e.web.conftest import RAMP
from tests.integration.market_cli.tiny_market import Terminal
from tests.tiny_market import tiny_market
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.e2e


def begin(place):
    """A demonstration that keeps its state under a folder; the process, and the port of its pages."""
    config = place / "tiny.toml"
    config.write_text(tiny_market({"alice": 1_000_000, "bob": 1_000_000}, cores=512))
    port = free_port()
    return subprocess.Popen(
        [*RAMP, "web", "demo", "--config", str(config), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    ), port


def running(place):
    """Command lines of all processes that know the folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if str(place) in words:
            found.append(words)
    return found


def test_a_demonstration_comes_up_moves_and_leaves_nothing(tmp_path):
    process, port = begin(tmp_path)
    with process:
        line = process.stdout.readline()
        assert line.startswith(f"alice: http://127.0.0.1:{port}/login?token=")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=LIMIT_S)[1]
    assert (process.returncode, "internal error" in said, "The market is up: 2 resources" in said) == (0, False, True)
    assert running(tmp_path) == []
    assert [each.name for each in tmp_path.iterdir()] == ["tiny.toml"]


@pytest.mark.full
def test_a_market_does_not_outlive_a_demonstration_that_is_killed(tmp_path):
    process, _ = begin(tmp_path)
    with process:
        until(lambda: list(tmp_path.glob("ramp-web-demo-*/state/run/web-address")), "the pages are served")
        process.kill()
        process.communicate(timeout=LIMIT_S)
    until(lambda: running(tmp_path) == [], "the market has ended")


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
