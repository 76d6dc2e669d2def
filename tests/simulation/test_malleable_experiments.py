"""The experiments with malleable jobs: capacities, what decides verdicts, and the files of the small versions."""

import csv
from pathlib import Path

import pytest

from simulation.experiments.comparison import Verdict
from simulation.experiments.discovery import find_experiment
from simulation.experiments.koala.runs import Setting, clusters_of, run_setting
from simulation.experiments.koala.study import comparisons, outcome_two


@pytest.mark.parametrize(("capacity", "of_cpus"), [(100, False), (120, False), (272, False), (100, True)])
def test_clusters_are_used_in_proportion(capacity: int, of_cpus: bool) -> None:
    """So many nodes in all, each cluster within one of its share; the rest is threshold."""
    clusters = clusters_of(capacity, of_cpus=of_cpus)
    each = 2 if of_cpus else 1
    assert sum(one.room for one in clusters) == each * capacity
    assert sum(one.processors for one in clusters) == each * 272
    assert all(abs(one.room - one.processors * capacity / 272) < each for one in clusters)


def test_a_run_says_what_the_papers_panels_show() -> None:
    """Executions are no longer than responses, averages no larger than maxima, sizes of rigid jobs 2."""
    result = run_setting(Setting("W'mr", "EGS", 3, drawn=True))
    panels = result.per_job
    assert [len(values) for values in panels.values()] == [300] * 4
    assert all(a <= b + 1e-9 for a, b in zip(panels["a"], panels["b"], strict=True))
    assert all(c <= d + 1e-9 for c, d in zip(panels["c"], panels["d"], strict=True))
    assert sum(value == 2 for value in panels["b"]) >= 120
    assert max(used for _, used in result.used) <= 100
    assert result.row["operations"] == len(result.messages)


def rows(wait: float, used: float) -> list[dict]:
    """Three seeds of every combination, alike but for EGS with W'm."""
    return [
        {
            "workload": workload,
            "policy": policy,
            "mean_wait_s": (wait if (policy, workload) == ("EGS", "W'm") else 1.0) + 0.01 * seed,
            "mean_used": {"EGSW'm": used, "none": 40.0}.get(policy + workload * (policy != "none"), 80.0) + 0.01 * seed,
            "mean_execution_s": 200.0 if policy != "none" else 400.0,
            "mean_response_s": 200.0 + (wait if (policy, workload) == ("EGS", "W'm") else 1.0),
            "most_used": 100,
            "operations": 400,
            "grown": 300,
        }
        for workload in ("Wm", "Wmr", "W'm", "W'mr")
        for policy in ("FPSMA", "EGS", "none")
        for seed in range(3)
    ]


def test_the_papers_outcome_is_found_where_it_is() -> None:
    mine, other = rows(100, 95), rows(1, 80)
    assert outcome_two(mine)["only_egs_waits"]
    assert outcome_two(mine)["egs_uses_most"]
    assert not outcome_two(other)["egs_waits_most"]
    assert not outcome_two(rows(1.5, 80))["only_egs_waits"]
    agreeing = [one.verdict for one in comparisons(mine, mine)]
    assert set(agreeing) == {Verdict.AGREES}
    differing = [one.what for one in comparisons(other, other) if one.verdict is Verdict.DIFFERS]
    assert len(differing) == 3
    assert all("EGS" in what for what in differing)


@pytest.mark.slow
def test_the_quick_study_leaves_its_files(tmp_path: Path) -> None:
    """One file a panel, pictures, and columns that somebody explains."""
    experiment = find_experiment("malleable")
    summary = experiment.run(tmp_path, quick=True, seed=1, processes=1, on_progress=None)
    assert len(experiment.tell(summary)) > 20
    panels = {f"figure{number}{letter}.csv" for number in (7, 8) for letter in "abcdef"}
    pictures = {"figure6.png", "figure7.png", "figure8.png", "readings.png"}
    names = {one.name for one in tmp_path.iterdir()}
    assert {"figure6.csv", "readings.csv", "summary.json", *panels, *pictures} <= names
    with (tmp_path / "figure7b.csv").open(encoding="utf-8", newline="") as stream:
        mixed = [row for row in csv.DictReader(stream) if row["combination"] == "FPSMA/Wmr"]
    assert sum(float(row["value"]) == 2 for row in mixed) >= 40
