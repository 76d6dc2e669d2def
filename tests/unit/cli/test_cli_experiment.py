"""`ramp experiment`: what is listed, what is refused before a study begins, what tells its progress."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ramp.errors import ConfigurationError
from simulation.cli.experiment import experiment, progress_lines
from simulation.experiments.result import write_summary


def test_experiments_are_found_by_their_files() -> None:
    """The list is what the modules of simulation.experiments declare."""
    result = CliRunner().invoke(experiment, ["list", "--json"], catch_exceptions=False)
    names = [entry["name"] for entry in json.loads(result.stdout)]
    assert {"bluegene", "bluegene-noncontiguous", "bluegene-failed-links"} <= set(names)
    with pytest.raises(ConfigurationError, match="bluegene-failed-links"):
        CliRunner().invoke(experiment, ["run", "nonsense", "--out", "unused"], catch_exceptions=False)


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys):
    now = [0.0]
    advance = progress_lines("users", lambda: now[0])
    for second in range(31):
        now[0] = float(second)
        advance(second, 90)
    told = capsys.readouterr()
    assert told.err.splitlines() == ["users: 10 of 90", "users: 20 of 90", "users: 30 of 90"]
    assert told.out == ""


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What is said of options with which no study may begin."""

    def begin(*_: Any, **__: Any) -> dict[str, Any]:
        raise AssertionError("the study has begun")

    monkeypatch.setattr("simulation.cli.experiment._run_with_progress", begin)

    def run(*options: str) -> str:
        arguments = ["run", "rounds", "--out", str(tmp_path), *options]
        with pytest.raises(ConfigurationError) as caught:
            CliRunner().invoke(experiment, arguments, catch_exceptions=False)
        return str(caught.value)

    return run


def test_both_modes_at_once_are_refused(refused: Callable[..., str]) -> None:
    assert "--simulated and --xmpp exclude each other" in refused("--xmpp", "--simulated")


@pytest.mark.parametrize("name", ["summary.json", "rounds.csv", "rounds.png"])
def test_a_folder_in_the_way_of_a_result_is_refused(name: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    (tmp_path / name).mkdir()
    said = refused()
    assert str(tmp_path / name) in said
    assert "in the way" in said


def test_a_comparison_without_a_paper_has_its_header(tmp_path: Path) -> None:
    write_summary(tmp_path, experiment="new", seed=1, quick=True, parameters={}, comparisons=[], findings={})
    assert (tmp_path / "comparison.csv").read_text() == "what,paper,ours,unit,tolerance,agrees\n"
