"""`ramp watch` over a real market: a picture at a terminal of its own, objects in a pipe, and an end by Ctrl-C."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import threading

import pytest

from ramp.cli.main import main
from tests.e2e.waiting import LIMIT_S, until
from tests.e2e.web.conftest import RAMP

pytestmark = pytest.mark.e2e


class Terminal:
    """`ramp watch` at a pseudo-terminal of 120 columns and 30 lines; `drawn` is all that it wrote."""

    def __init__(self, state):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [*RAMP, "watch", "--state-dir", str(state)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment | {"TERM": "xterm-256color"},
        )
        os.close(slave)
        self.drawn = bytearray()
        self._reader = threading.Thread(target=self._read, args=(master,))
        self._reader.start()

    def _read(self, master):
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            self.drawn += data
        os.close(master)

    def wait_for(self, *texts):
        def drawn():
            assert self.process.poll() is None, self.drawn.decode(errors="replace")
            return all(text.encode() in self.drawn for text in texts)

        until(drawn, lambda: self.drawn.decode(errors="replace")[-4000:])

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        return code


def test_an_auction_is_seen_at_a_terminal_and_in_a_pipe(market, tmp_path):
    command = [*RAMP, "watch", "--json", "--only", "auctions", "--only", "agents", "--state-dir", str(market)]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    piped = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    told = []
    reader = threading.Thread(target=lambda: [told.append(json.loads(line)) for line in piped.stdout])
    reader.start()
    terminal = Terminal(market)
    try:
        terminal.wait_for("RAMP market", "Machines", "gamma", "25 %", "no auction yet")
        job = tmp_path / "job.xml"
        window = ("--start", "+10min", "--walltime", "1h", "--price", "70", "-o", str(job))
        assert main(["rfq", "new", "--cores", "8", *window]) == 0
        quote = ["quote", str(job), "--state-dir", str(market)]
        # each user's auctions are heard from the moment on at which its agent has been reached
        until(lambda: main(quote) == 0 and told and told[-1]["kind"] == "auctions", lambda: str(told))
        assert main(["submit", str(job), "--state-dir", str(market)]) == 0
        terminal.wait_for("committed", "sale")
        until(lambda: told[-1].get("status") == "committed", lambda: str(told))
        ended = told[-1]
        assert (ended["event"], ended["who"]) == ("ended", "alice")
        rounds = [each for each in told if each["event"] == "round_closed"]
        assert sum(each["request_id"] == ended["request_id"] for each in rounds) == ended["rounds"] > 0
        assert told[0]["event"] == "up"
        assert {each["kind"] for each in told} == {"auctions", "agents"}
        assert terminal.interrupt() == 0
        piped.send_signal(signal.SIGINT)
        assert piped.wait(LIMIT_S) == 0
    finally:
        for process in (piped, terminal.process):
            process.kill()
            process.wait()
        reader.join(LIMIT_S)
        piped.stdout.close()
