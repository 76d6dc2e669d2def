"""What experiments leave behind."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from simulation.experiments.discovery import all_experiments, find_experiment
from simulation.experiments.result import Comparison, run_all, tell_comparison, write_rows, write_summary


def test_comparisons_agree_within_their_tolerance_only() -> None:
    """A tolerance, an upper limit, or no verdict."""
    assert Comparison("a", 50.0, 53.9, "%", 4.0).agrees is True
    assert Comparison("a", 50.0, 54.1, "%", 4.0).agrees is False
    assert Comparison("a", "small", 3.0, "points", at_most=4.0).agrees is True
    assert Comparison("a", "small", 5.0, "points", at_most=4.0).agrees is False
    assert Comparison("a", "up to 40", 50.0, "%").agrees is None


def test_summary_holds_paper_and_ours_side_by_side(tmp_path: Path) -> None:
    """And seed, parameters, findings and the list of all files."""
    write_rows(tmp_path / "rows.csv", [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}])
    assert (tmp_path / "rows.csv").read_text() == "x,y\n1,a\n2,b\n"
    summary = write_summary(
        tmp_path,
        experiment="demo",
        seed=7,
        quick=True,
        parameters={"load": 1.0},
        comparisons=[Comparison("utilisation", 50.0, 49.6, "%", 4.0)],
        findings={"extra": [1]},
    )
    stored = json.loads((tmp_path / "summary.json").read_text())
    assert stored == summary
    assert (stored["seed"], stored["quick"], stored["extra"]) == (7, True, [1])
    assert stored["comparison"][0]["paper"] == 50.0
    assert stored["comparison"][0]["ours"] == 49.6
    assert stored["files"] == ["comparison.csv", "rows.csv", "summary.json"]
    assert "agrees" in tell_comparison(summary)[1]


@pytest.mark.parametrize("processes", [1, 2])
def test_answers_come_in_the_order_of_the_tasks(processes: int) -> None:
    """Whatever the number of processes; progress counts up to the number of tasks."""
    seen: list[tuple[int, int]] = []
    answers = run_all(
        math.factorial, [5, 1, 4], processes=processes, on_progress=lambda done, total: seen.append((done, total))
    )
    assert answers == [120, 1, 24]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_every_experiment_says_what_it_is_about() -> None:
    """Names are unique and found."""
    for name, experiment in all_experiments().items():
        assert experiment.name == name
        assert experiment.about
        assert find_experiment(name) == experiment
