"""The command `ramp swarm`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ramp.ledger import order_rules
from simulation.cli.swarm import swarm
from tests.swarm.__main__ import main as liars_swarm
from tests.tiny_market import tiny_market


def test_a_sound_market_ends_with_0() -> None:
    result = CliRunner().invoke(swarm, ["--seeds", "5", "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert "no invariant broken" in result.output


def test_a_market_of_ones_own_is_checked_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(tiny_market({"ada": 100_000}, cores=256))
    result = CliRunner().invoke(swarm, ["--config", str(path), "--seeds", "6", "--jobs", "1", "--json"])
    report = json.loads(result.output)
    assert report["ok"] is True, report
    assert report["outcomes"]["committed"] > 0
    replayed = CliRunner().invoke(swarm, ["--config", str(path), "--replay", "0"])
    assert {
        name for line in replayed.output.splitlines() for name in ("ada", "alpha", "beta", "res0") if name in line
    } == {"ada", "alpha", "beta"}


@pytest.mark.slow
def test_worker_processes_give_the_same_totals() -> None:
    one = CliRunner().invoke(swarm, ["--seeds", "8", "--jobs", "1", "--json"])
    two = CliRunner().invoke(swarm, ["--seeds", "8", "--jobs", "2", "--json"])
    assert json.loads(one.output) == json.loads(two.output)
    assert json.loads(one.output)["ok"] is True


def test_a_broken_invariant_ends_with_1_and_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_rules, "_transfers", lambda order: [])
    result = CliRunner().invoke(swarm, ["--seeds", "5", "--jobs", "1"])
    assert result.exit_code == 1, result.output
    assert "BROKEN in" in result.output
    command = next(line for line in result.output.splitlines() if "again: ramp swarm" in line)
    replayed = CliRunner().invoke(swarm, command.split("ramp swarm ")[1].split())
    assert replayed.exit_code == 1
    assert "REQUEST PaymentOrder order-" in replayed.output
    assert "BROKEN in 1 markets" in replayed.output


def test_the_developers_swarm_catches_a_planted_bug_and_replays_it() -> None:
    result = CliRunner().invoke(liars_swarm, ["--seeds", "5", "--workers", "1", "--plant", "double_debit"])
    assert result.exit_code == 1, result.output
    command = next(line for line in result.output.splitlines() if "again: python -m tests.swarm" in line)
    replayed = CliRunner().invoke(liars_swarm, command.split("tests.swarm ")[1].split())
    assert replayed.exit_code == 1
    assert "CONFIRM agreement-" in replayed.output
