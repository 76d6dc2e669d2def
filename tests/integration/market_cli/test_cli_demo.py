"""`ramp demo`, and the launch that carries on from it."""

import json
from decimal import Decimal

import pytest

from ramp.cli.main import main
from tests.integration.market_cli.tiny_market import CONFIG, NAMES, Terminal

pytestmark = pytest.mark.slow  # a market of five processes


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
