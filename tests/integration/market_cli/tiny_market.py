"""A tiny market, and what its tests share: its configuration, a terminal, questions to it."""

import fcntl
import os
import pty
import subprocess
import sys
import termios
from decimal import Decimal

from tests.tiny_market import TWO_SELLERS, tiny_market
from tests.waiting import LIMIT_S, until

PATIENT = """
[timing]
lease_s = 600
discovery_limit_s = 300
query_limit_s = 300
vote_limit_s = 120
confirm_limit_s = 300
hold_time_s = 600
agreement_validity_s = 600
"""
"""Nothing runs out here: on a busy computer a verb alone takes longer to start than a silent seller stays listed."""

CONFIG = tiny_market({"alice": 1_000_000, "bob": 10}, prices=TWO_SELLERS | {"gamma": (90, 80)}, cores=512) + PATIENT
NAMES = {"alpha", "beta", "gamma"}
RAMP = (sys.executable, "-m", "ramp.cli.main")


def balance(ramp, *options):
    return Decimal(ramp("balance", "--json", *options)[1]["balance"])


def wait_ready(ramp, name):
    def ready():
        agents = {agent["name"]: agent["state"] for agent in ramp("ps", "--json")[1]["agents"]}
        return agents[name] == "ready" and ramp("balance")[0] == 0

    until(ready, f"{name} comes back")


def _own_terminal():
    """Make the pseudo terminal the process's own, so that a typed Ctrl-C becomes its signal."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """Runs a verb on a pseudo terminal of 120 columns and 30 lines; what it draws is read until a text has come."""

    def __init__(self, *arguments, state):
        self.screen = ""
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        environment |= {"RAMP_STATE": str(state), "TERM": "xterm-256color"}
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (30, 120))
        command = [*RAMP, *(str(argument) for argument in arguments)]
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, preexec_fn=_own_terminal
        )
        os.close(slave)

    def until(self, text):
        while text not in self.screen:
            try:
                self.screen += os.read(self._master, 65_536).decode(errors="replace")
            except OSError:  # Linux says so when the other side has been closed
                break
        assert text in self.screen, f"{text!r} never came; there was: {self.screen[-3000:]}"

    def type(self, text):
        os.write(self._master, text.encode())

    def end(self):
        self.until_closed()
        os.close(self._master)
        return self.process.wait(LIMIT_S)

    def until_closed(self):
        while True:
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                return
            if not data:
                return
            self.screen += data.decode(errors="replace")
