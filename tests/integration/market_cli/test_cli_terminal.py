"""`ramp demo`, and a purchase at a terminal and in a pipe: what is drawn, asked and interrupted."""

import json
import os
import signal
import subprocess
from decimal import Decimal

import pytest

from ramp.cli.main import main
from tests.integration.market_cli.tiny_market import CONFIG, NAMES, RAMP, Terminal, balance, wait_ready

pytestmark = pytest.mark.slow  # a market of five processes


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


@pytest.fixture
def waiting(swarm, ramp, request_file):
    """A submission whose round waits for the machines' process, which stands still; and all processes by agent."""
    pids = {agent["name"]: agent["pid"] for agent in ramp("ps", "--json")[1]["agents"]}
    os.kill(pids["alpha"], signal.SIGSTOP)
    try:
        terminal = Terminal("submit", request_file(8), "--round-time", "60", state=swarm)
        terminal.until("waiting for 3 resources")
        yield terminal, pids
    finally:
        os.kill(pids["alpha"], signal.SIGCONT)


def test_ctrl_c_withdraws_a_request_that_is_going_on(waiting):
    terminal, _ = waiting
    terminal.type("\x03")
    assert terminal.end() == 1
    assert "withdrew" in terminal.screen


def test_a_reader_that_goes_away_does_not_change_how_it_ends(swarm, ramp, request_file):
    before = balance(ramp)
    shell = f"{' '.join(RAMP)} submit {request_file(8)} 2>/dev/null | head -n 1; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "RAMP_STATE": str(swarm)}
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0
    assert done.stdout.startswith("request request-")
    assert done.stdout.count("\n") == 1
    assert balance(ramp) < before


def test_a_user_agent_that_is_killed_is_waited_for(waiting, ramp):
    terminal, pids = waiting
    os.kill(pids["alice"], signal.SIGKILL)
    assert terminal.end() == 1
    assert "waiting for its restart" in terminal.screen
    assert "failed" in terminal.screen
    wait_ready(ramp, "alice")


def test_the_demo_shows_everything_and_the_next_launch_carries_on_from_it(tmp_path, capsys):
    config, state = tmp_path / "tiny.toml", tmp_path / "state"
    config.write_text(CONFIG)
    assert main(["demo", "--config", str(config), "--state-dir", str(state), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["status"] == "committed"
    assert shown["verified"] == [True, True]
    assert {machine["resource"] for machine in shown["machines"]} == NAMES
    assert {machine["source"] for machine in shown["machines"]} == {"synthetic"}
    balances = shown["balances"]
    assert Decimal(balances["before"]) - Decimal(balances["after"]) == Decimal(shown["cost"]) > 0
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
    code, text, said = ramp("demo", "--config", swarm.parent / "market.toml", "--state-dir", swarm)
    assert (code, text) == (2, "")
    assert "already running with this state folder" in said
    assert ramp("ps")[0] == 0


def test_a_demo_that_cannot_start_leaves_nothing_running(tmp_path, capsys):
    config = tmp_path / "bad.toml"
    config.write_text(CONFIG.replace('plugin = "steady"', 'plugin = "unsteady"'))
    assert main(["demo", "--config", str(config)]) == 2
    assert "did you mean 'steady'?" in capsys.readouterr().err
