"""The command `ramp swarm`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from simulation.cli.swarm import swarm


def test_a_sound_market_ends_with_0() -> None:
    result = CliRunner().invoke(swarm, ["--seeds", "5", "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert "no invariant broken" in result.output


@pytest.mark.slow
def test_worker_processes_give_the_same_totals() -> None:
    one = CliRunner().invoke(swarm, ["--seeds", "8", "--jobs", "1", "--json"])
    two = CliRunner().invoke(swarm, ["--seeds", "8", "--jobs", "2", "--json"])
    assert json.loads(one.output) == json.loads(two.output)
    assert json.loads(one.output)["ok"] is True


def test_a_planted_bug_is_caught_and_can_be_replayed() -> None:
    result = CliRunner().invoke(swarm, ["--seeds", "5", "--jobs", "1", "--plant", "double_debit"])
    assert result.exit_code == 0, result.output
    command = next(line for line in result.output.splitlines() if "again: ramp swarm" in line)
    replayed = CliRunner().invoke(swarm, command.split("ramp swarm ")[1].split())
    assert replayed.exit_code == 0
    assert "CONFIRM agreement-" in replayed.output
    assert "planted bug double_debit: caught in 1 markets" in replayed.output


def test_a_bug_that_is_not_caught_ends_with_1() -> None:
    result = CliRunner().invoke(swarm, ["--seeds", "1", "--first", "3", "--jobs", "1", "--plant", "no_retransmission"])
    assert result.exit_code == 1, result.output
    assert "NOT caught" in result.output


def test_an_unknown_bug_is_bad_input() -> None:
    assert CliRunner().invoke(swarm, ["--plant", "none"]).exit_code == 2
