"""The experiments with malleable jobs: capacities, what decides verdicts, and the files of the small versions."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from simulation.experiments.comparison import Verdict
from simulation.experiments.discovery import find_experiment
from simulation.experiments.koala import logs_runs, logs_study
from simulation.experiments.koala.logs_runs import OURS, LogSetting, Span
from simulation.experiments.koala.runs import Setting, clusters_of, run_setting
from simulation.experiments.koala.statements import comparisons, outcome_two


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
    result = run_setting(Setting("W'mr", "EGS", 3))
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
    """And not where EGS is like the others: verdicts can fall both ways."""
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


@pytest.mark.slow
def test_malleable_logs_run_where_the_logs_are_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs_runs, "find_log", lambda _: None)
    logs_runs.jobs_of.cache_clear()
    summary = logs_study.run(tmp_path, quick=True, seed=1, processes=1, on_progress=None)
    assert "synthetic in place of CTC, SDSC" in str(summary)


@pytest.mark.slow
def test_malleable_logs_tell_where_ours_is_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy that is better than all others by the intervals is said to be so, and one that is not is named."""

    def made(setting: LogSetting) -> dict:
        hours = {"EASY": 10.0, OURS: 5.0 if setting.log == "CTC" else 8.0}.get(setting.strategy, 6.0)
        row = dict.fromkeys(("wait_h", "rigid_wait_h", "malleable_wait_h", "longest_wait_h", "makespan_h"), hours)
        named = {
            "log": setting.log,
            "first": setting.span.first,
            "jobs": 1,
            "strategy": setting.strategy,
            "share": setting.share,
        }
        more = {"seed": setting.seed, "speed_up_known": setting.known, "utilisation": 0.5, "changes": 3}
        return {**named, **more, **row, "share": setting.share, "turnaround_h": hours + 0.01 * setting.seed}

    monkeypatch.setattr(logs_study, "run_log_setting", made)
    summary = logs_study.run(tmp_path, quick=True, seed=1, processes=1, on_progress=None)
    exactly, _, spans = summary["notes"]
    assert "in 2 of 4 cases" in exactly
    assert "not in SDSC at 20%, SDSC at 100%" in exactly
    assert spans == "Of 2 spans ours has the lowest mean turnaround in 1 at 20%, 1 at 100%"
    assert [row["verdict"].split()[0] for row in summary["comparison"]] == ["agrees", "DIFFERS", "agrees"] * 2
    assert {"gains.csv", "gains.png", "runs.csv"} <= {one.name for one in tmp_path.iterdir()}
    assert len(find_experiment("malleable-logs").tell(summary)) > 10


def test_spans_of_a_log_count_as_one_by_their_jobs_and_times() -> None:
    """By hand: 10 jobs of 1 h and 30 of 5 h are 40 of 4 h; 2 h at 50 % and 6 h at 90 % are 8 h at 80 %."""

    def row(first: int, jobs: int, hours: float, makespan: float, utilisation: float) -> dict:
        named = {"log": "CTC", "first": first, "strategy": "minimum", "share": 0.2, "seed": 1, "speed_up_known": True}
        waits = {"rigid_wait_h": "", "longest_wait_h": hours, "wait_h": hours / 2, "turnaround_h": hours}
        return {**named, **waits, "jobs": jobs, "makespan_h": makespan, "utilisation": utilisation}

    rigid = [row(0, 10, 8.0, 4.0, 0.4), row(10, 30, 8.0, 4.0, 0.6)]
    (line,) = logs_study._gains([row(0, 10, 1.0, 2.0, 0.5), row(10, 30, 5.0, 6.0, 0.9)], rigid)
    assert [line[f"{name}_percent"] for name in logs_study.MEASURES] == [-50.0, -50.0, 0.0, 60.0]


@pytest.mark.slow
def test_which_jobs_are_malleable_grows_with_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a log a synthetic one stands in; more malleable jobs, less wait than under rigid EASY."""
    monkeypatch.setattr(logs_runs, "find_log", lambda name: None)
    logs_runs.jobs_of.cache_clear()
    waits = [
        logs_runs.run_log_setting(LogSetting("SDSC", Span(0, 400), strategy, share, 1))["wait_h"]
        for strategy, share in (("EASY", 0.0), ("minimum", 0.5), ("minimum", 1.0))
    ]
    logs_runs.jobs_of.cache_clear()
    assert waits[0] > waits[1] > waits[2]
