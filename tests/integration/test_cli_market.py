"""The command line against a real, tiny market: three steady machines on the embedded XMPP server."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pytest

from ramp.cli.main import main

CONFIG = """
[market]
domain = "localhost"

[[users]]
name = "alice"
deposit = 1000000

[[users]]
name = "bob"
deposit = 10

[machines.small]
cores = 512
cores_per_node = 8
operating_system = "LINUX"
architecture = "x86_64"
plugin = "steady"
options = { load = 0.25 }

[[resources]]
name = "alpha"
machine = "small"
start_price = 40
minimum_price = 20

[[resources]]
name = "beta"
machine = "small"
start_price = 60
minimum_price = 30

[[resources]]
name = "gamma"
machine = "small"
start_price = 90
minimum_price = 80
"""
NAMES = {"alpha", "beta", "gamma"}
RAMP = (sys.executable, "-m", "ramp.cli.main")
ROUND_FIELDS = {"round", "asked", "offers", "refusals", "duration_s"}
UNIT_FIELDS = {"unit", "resource", "cpu_hour_cost", "cost", "reservation_id", "start", "end", "cores"}


@pytest.fixture(scope="session")
def swarm():
    """A market that runs for all tests here: its state folder. Short, for the sockets in it."""
    with tempfile.TemporaryDirectory(prefix="ramp-cli-") as folder:
        config = Path(folder) / "tiny.toml"
        config.write_text(CONFIG)
        state = Path(folder) / "state"
        try:
            assert main(["up", str(config), "--detach", "--state-dir", str(state)]) == 0
            yield state
        finally:
            main(["down", "--state-dir", str(state)])


@pytest.fixture
def ramp(swarm, capsys, monkeypatch):
    """Runs a verb in this market: exit code, standard output (parsed with --json), standard error."""
    monkeypatch.setenv("RAMP_STATE", str(swarm))

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, json.loads(said.out) if "--json" in arguments and said.out else said.out, said.err

    return run


@pytest.fixture
def request_file(tmp_path, capsys):
    """Writes a request for one unit of 1 h that begins in ten minutes or later."""

    def write(cores=8, price=70, name="job.xml", **more):
        path = tmp_path / name
        options = {"start": "+10min", "end": "+12h", "walltime": "1h", **more}
        given = [text for key, value in options.items() for text in (f"--{key.replace('_', '-')}", value)]
        assert main(["rfq", "new", "--cores", str(cores), "--price", str(price), *given, "-o", str(path)]) == 0
        capsys.readouterr()
        return path

    return write


def balance(ramp, *options):
    return ramp("balance", "--json", *options)[1]["balance"]


def test_submit_buys_pays_and_prints_one_object(ramp, request_file):
    before = balance(ramp)
    code, bought, _ = ramp("submit", request_file(8), "--json", "--rounds", "2")
    assert code == 0
    assert bought["status"] == "committed"
    assert bought["reason"] == ""
    assert len(bought["rounds"]) == 2
    assert all(entry.keys() >= ROUND_FIELDS for entry in bought["rounds"])
    assert bought["rounds"][0]["asked"] == {"1": 70}
    assert {offer["resource"] for offer in bought["rounds"][0]["offers"]} <= NAMES
    refused = [(entry["resource"], entry["unit"], entry["reason"]) for entry in bought["rounds"][0]["refusals"]]
    assert refused == [("gamma", 1, "price_below_minimum")]  # its minimum is 80
    (unit,) = bought["units"]
    assert unit.keys() >= UNIT_FIELDS
    assert unit["cost"] == unit["cpu_hour_cost"] * 8  # for an hour
    assert balance(ramp) == before - unit["cost"]
    (file,) = bought["agreements"]
    assert Path(file).is_file()
    assert bought["duration_s"] > 0


def test_several_files_are_one_request_with_the_units_in_their_order(ramp, request_file):
    first, second = request_file(16, name="first.xml"), request_file(8, name="second.xml")
    code, bought, _ = ramp("submit", second, first, "--json")
    assert code == 0
    assert [(unit["unit"], unit["cores"]) for unit in bought["units"]] == [(1, 8), (2, 16)]
    assert len(bought["agreements"]) == 2
    assert ramp("submit", first, first)[0] == 2


def test_too_cheap_a_request_is_not_bought_and_says_what_would_pass(ramp, request_file):
    before = balance(ramp)
    path = request_file(8, price=5)
    code, ended, _ = ramp("submit", path, "--json")
    assert (code, ended["status"], ended["agreements"]) == (1, "no_offers", [])
    nearest = {entry["resource"]: entry["nearest"] for entry in ended["rounds"][0]["refusals"]}
    assert nearest.keys() == NAMES
    assert nearest["alpha"].startswith("20 ")  # its minimum price
    code, text, _ = ramp("submit", path)
    assert code == 1
    assert "alpha: 20 credits/core-hour" in text
    assert balance(ramp) == before


def test_the_best_offer_is_bought_only_when_told_so(ramp, request_file):
    code, bought, _ = ramp("submit", request_file(8, price=5), "--approve", "best-offer", "--json")
    assert (code, bought["status"]) == (0, "committed")
    (unit,) = bought["units"]
    assert (unit["meets_request"], unit["cpu_hour_cost"] >= 20) == (False, True)


def test_a_user_without_money_is_refused_by_the_bank(ramp, request_file):
    code, ended, _ = ramp("submit", request_file(8), "--user", "bob", "--json")
    assert (code, ended["status"]) == (1, "failed")
    assert "bob" in ended["reason"]
    assert balance(ramp, "--user", "bob") == 10
    assert ramp("reservations", "--user", "bob", "--json")[1] == []


def test_a_quote_buys_nothing(ramp, request_file):
    before, had = balance(ramp), len(ramp("reservations", "--json")[1])
    code, quoted, _ = ramp("quote", request_file(8), "--json")
    assert (code, quoted["status"], quoted["agreements"], quoted["cost"]) == (0, "quoted", [], 0)
    assert quoted["units"][0]["reservation_id"] == ""
    assert quoted["units"][0]["cost"] > 0
    assert (balance(ramp), len(ramp("reservations", "--json")[1])) == (before, had)
    assert ramp("quote", request_file(8, price=5), "--json")[0] == 1


def test_asking_needs_a_terminal(ramp, request_file):
    code, text, said = ramp("submit", request_file(), "--approve", "ask")
    assert (code, text) == (2, "")
    assert "needs a terminal" in said


def test_what_was_bought_is_shown_under_each_of_its_ids_and_can_be_cancelled(ramp, request_file):
    bought = ramp("submit", request_file(8), "--json")[1]
    (unit,) = bought["units"]
    agreement_id, reservation_id, request_id = unit["agreement_id"], unit["reservation_id"], bought["request_id"]
    listed = {entry["agreement_id"]: entry for entry in ramp("reservations", "--json")[1]}[agreement_id]
    assert (listed["state"], listed["reservation_id"], listed["cost"]) == ("active", reservation_id, unit["cost"])
    for any_id in (agreement_id, reservation_id, agreement_id[:20]):
        assert ramp("show", any_id, "--json")[1]["agreement_id"] == agreement_id
    assert ramp("show", request_id, "--json")[1] == ramp("status", request_id, "--json")[1] == bought
    assert f"--reservation={reservation_id} " in ramp("show", request_id, "--as", "sbatch")[1]
    paid = balance(ramp)
    code, (cancelled,), _ = ramp("cancel", reservation_id, "--reason", "no longer needed", "--json")
    assert (code, cancelled["cancelled"], cancelled["refund"]) == (0, True, unit["cost"])
    assert balance(ramp) == paid + unit["cost"]
    assert agreement_id not in {entry["agreement_id"] for entry in ramp("reservations", "--json")[1]}
    history = {entry["agreement_id"]: entry["state"] for entry in ramp("reservations", "--all", "--json")[1]}
    assert history[agreement_id] == "cancelled"
    code, _, said = ramp("cancel", agreement_id)
    assert code == 1
    assert "not cancelled" in said


def test_status_lists_every_request_with_its_end(ramp, request_file):
    bought, cheap = (ramp("submit", request_file(8, price=price), "--json")[1] for price in (70, 5))
    listed = {entry["request_id"]: entry for entry in ramp("status", "--json")[1]}
    assert listed[bought["request_id"]]["status"] == "committed"
    assert listed[bought["request_id"]]["cost"] == bought["cost"] > 0
    assert (listed[cheap["request_id"]]["status"], listed[cheap["request_id"]]["cost"]) == ("no_offers", 0)
    assert cheap["request_id"] in ramp("status")[1]


def test_the_statement_adds_up(ramp, request_file):
    bought = ramp("submit", request_file(8), "--json")[1]
    statement = ramp("statement", "--json")[1]
    assert sum(line["amount"] for line in statement["lines"]) == pytest.approx(statement["balance"])
    assert statement["lines"][0]["kind"] == "deposit"
    last = {line["agreement_id"]: line for line in statement["lines"]}[bought["units"][0]["agreement_id"]]
    assert last["amount"] == -bought["cost"]
    assert ramp("statement", "--since", "+1h", "--json")[1]["lines"] == []
    assert ramp("statement", "--since", "2026-02-02", "--until", "2026-01-01")[0] == 2


def test_an_agreement_is_verified_offline(ramp, request_file, tmp_path, swarm):
    (file,) = ramp("submit", request_file(8), "--json")[1]["agreements"]
    code, report, _ = ramp("verify", file, "--json")
    assert (code, report["holds"]) == (0, True)
    assert report["signatures"][0]["signer"] == "alice@localhost"
    assert ramp("verify", file, "--ca", swarm / "keys" / "ca.pem")[0] == 0
    forged = tmp_path / "forged.xml"
    forged.write_text(Path(file).read_text().replace('cores="8"', 'cores="80"'))
    code, report, _ = ramp("verify", forged, "--json")
    assert (code, report["holds"]) == (1, False)
    assert report["failure"]
    assert ramp("verify", forged, "--ca", forged)[0] == 2
    assert ramp("verify", tmp_path / "none.xml")[0] == 2


def test_qstat_shows_the_machine_with_its_reservations(ramp, request_file):
    unit = ramp("submit", request_file(8), "--json")[1]["units"][0]
    code, snapshot, _ = ramp("qstat", unit["resource"], "--horizon", "2h", "--json")
    assert code == 0
    assert unit["reservation_id"] in {entry["reservation_id"] for entry in snapshot["reservations"]}
    assert (snapshot["cores"], snapshot["source"]) == (512, "synthetic")
    code, text, _ = ramp("qstat", unit["resource"])
    assert unit["reservation_id"] in text
    assert "synthetic workload" in text
    assert "projected load over 1 d" in text


def test_a_machine_that_nobody_has_is_named_at_once(ramp):
    code, text, said = ramp("qstat", "alfa")
    assert (code, text) == (2, "")
    assert "did you mean 'alpha'?" in said


def test_resources_are_those_of_the_directory(ramp):
    assert {entry["resource"] for entry in ramp("resources", "--json")[1]} == NAMES
    loaded = ramp("resources", "--load", "--json")[1]
    assert {(entry["cores"], entry["load"] >= 0.25, entry["source"]) for entry in loaded} == {(512, True, "synthetic")}


def test_ps_shows_every_agent(ramp, swarm):
    code, shown, _ = ramp("ps", "--json")
    assert (code, shown["running"]) == (0, True)
    assert {agent["name"] for agent in shown["agents"]} == NAMES | {"alice", "bob", "bank", "directory"}
    assert {agent["state"] for agent in shown["agents"]} == {"ready"}
    assert "gamma" in ramp("ps")[1]
    assert ramp("config", "show", "--json")[1]["path"].endswith("tiny.toml")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("balance", "--user", "carol"), "no user is called 'carol'; there are alice, bob"),
        (("show", "nothing"), "there is no request, agreement or reservation 'nothing'"),
        (("cancel", "nothing"), "there is no request, agreement or reservation 'nothing'"),
        (("status", "nothing"), "there is no request 'nothing'"),
        (("show", "nothing", "--as", "sbatch", "--json"), "does not go with --json"),
        (("up", "--detach"), "already up"),
    ],
)
def test_bad_input(ramp, arguments, told):
    code, text, said = ramp(*arguments)
    assert (code, text) == (2, "")
    assert told in said


@pytest.mark.parametrize("content", ["", "no xml", "<RequestForQuotation/>", "<!DOCTYPE x><x/>"])
def test_what_is_no_request_is_refused_before_anybody_is_asked(ramp, tmp_path, content):
    path = tmp_path / "bad.xml"
    path.write_text(content)
    code, text, said = ramp("submit", path)
    assert (code, text) == (2, "")
    assert str(path) in said


@pytest.mark.slow
def test_the_demo_shows_everything_and_the_next_launch_carries_on_from_it(capsys):
    with tempfile.TemporaryDirectory(prefix="ramp-cli-") as folder:
        config, state = Path(folder) / "tiny.toml", Path(folder) / "state"
        config.write_text(CONFIG)
        assert main(["demo", "--config", str(config), "--state-dir", str(state), "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["status"] == "committed"
        assert shown["verified"] == [True, True]
        assert {machine["resource"] for machine in shown["machines"]} == NAMES
        assert {machine["source"] for machine in shown["machines"]} == {"synthetic"}
        balances = shown["balances"]
        assert balances["before"] - balances["after"] == shown["cost"] > 0
        assert main(["ps", "--state-dir", str(state)]) == 1  # nothing is left running
        capsys.readouterr()

        terminal = Terminal("up", config, state=state)
        terminal.until("Ctrl-C stops it")
        assert main(["balance", "--state-dir", str(state), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["balance"] == balances["after"]
        assert main(["reservations", "--state-dir", str(state), "--json"]) == 0
        kept = {entry["reservation_id"] for entry in json.loads(capsys.readouterr().out)}
        assert kept == {unit["reservation_id"] for unit in shown["units"]}
        terminal.type("\x03")
        assert terminal.end() == 0
        assert main(["ps", "--state-dir", str(state)]) == 1


def test_a_demo_leaves_a_market_alone_that_has_its_state_folder(ramp, swarm):
    code, text, said = ramp("demo", "--config", swarm.parent / "tiny.toml", "--state-dir", swarm)
    assert (code, text) == (2, "")
    assert "already up" in said
    assert ramp("ps")[0] == 0


def test_a_demo_that_cannot_start_leaves_nothing_running(tmp_path, capsys):
    config = tmp_path / "bad.toml"
    config.write_text(CONFIG.replace('plugin = "steady"', 'plugin = "unsteady"'))
    assert main(["demo", "--config", str(config)]) == 2
    assert "did you mean 'steady'?" in capsys.readouterr().err


def _own_terminal():
    """Make the pseudo terminal the process's own, so that a typed Ctrl-C becomes its signal."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """Runs a verb on a pseudo terminal; what it draws is read until a text has come."""

    def __init__(self, *arguments, state):
        self.screen = ""
        environment = {**os.environ, "RAMP_STATE": str(state), "TERM": "xterm-256color", "COLUMNS": "120"}
        environment.pop("NO_COLOR", None)
        self._master, slave = pty.openpty()
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
        assert text in self.screen

    def type(self, text):
        os.write(self._master, text.encode())

    def end(self):
        self.until_closed()
        os.close(self._master)
        return self.process.wait(30)

    def until_closed(self):
        while True:
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                return
            if not data:
                return
            self.screen += data.decode(errors="replace")


def test_a_terminal_sees_a_live_table_and_is_asked(swarm, request_file):
    terminal = Terminal("submit", request_file(8), "--approve", "ask", state=swarm)
    terminal.until("[y/N]")
    assert "Bidding" in terminal.screen
    assert "\x1b[" in terminal.screen
    terminal.type("y\n")
    assert terminal.end() == 0
    assert "committed" in terminal.screen
    assert "settled" in terminal.screen


def test_no_at_the_terminal_buys_nothing(swarm, ramp, request_file):
    before = balance(ramp)
    terminal = Terminal("submit", request_file(8), "--approve", "ask", state=swarm)
    terminal.until("[y/N]")
    terminal.type("\n")
    assert terminal.end() == 1
    assert "declined" in terminal.screen
    assert balance(ramp) == before


def test_a_pipe_sees_plain_lines(swarm, request_file):
    environment = {**os.environ, "RAMP_STATE": str(swarm)}
    done = subprocess.run(
        [*RAMP, "submit", request_file(8)], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("request request-")
    assert lines[1].startswith("round 1, unit 1: asked 70 credits/core-hour, ")


def test_ctrl_c_withdraws_a_request_that_is_going_on(swarm, ramp, request_file):
    pids = {agent["name"]: agent["pid"] for agent in ramp("ps", "--json")[1]["agents"]}
    os.kill(pids["alpha"], signal.SIGSTOP)  # the round waits for the machines' process
    try:
        terminal = Terminal("submit", request_file(8), "--round-time", "60", state=swarm)
        terminal.until("waiting for 3 resources")
        terminal.type("\x03")
        assert terminal.end() == 1
    finally:
        os.kill(pids["alpha"], signal.SIGCONT)
    assert "withdrew" in terminal.screen


def test_a_user_agent_that_is_killed_is_waited_for(swarm, ramp, request_file):
    pids = {agent["name"]: agent["pid"] for agent in ramp("ps", "--json")[1]["agents"]}
    os.kill(pids["alpha"], signal.SIGSTOP)
    try:
        terminal = Terminal("submit", request_file(8), "--round-time", "60", state=swarm)
        terminal.until("waiting for 3 resources")
        os.kill(pids["alice"], signal.SIGKILL)
        assert terminal.end() == 1
    finally:
        os.kill(pids["alpha"], signal.SIGCONT)
    assert "waiting until it is back" in terminal.screen
    assert "failed" in terminal.screen
    wait_ready(ramp, "alice")


def wait_ready(ramp, name):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        agents = {agent["name"]: agent["state"] for agent in ramp("ps", "--json")[1]["agents"]}
        if agents[name] == "ready" and ramp("balance")[0] == 0:
            return
    raise AssertionError(f"{name} did not come back")
