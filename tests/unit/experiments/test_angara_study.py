"""The Angara study: its tables, its files, and the fact sheet's numbers under the sheet's options."""

import csv
import json
from pathlib import Path
from statistics import fmean

import pytest
import scipy  # its parts load when they are used

from simulation.experiments.angara import study as angara
from simulation.experiments.angara.runs import METHODS, SYSTEMS, Setting, System, Variant, run_setting
from simulation.experiments.angara.study import gain, mean_table
from simulation.experiments.discovery import find_experiment
from simulation.experiments.result import confidence_interval

SHEET = {
    # utilisation % at w = 1, 16, 128 of an independent implementation, mean of 4 other seeds (fact sheet, section 5)
    ((4, 4, 2), "find-systems"): (51.2, 60.3, 64.5),
    ((4, 4, 2), "base-ring"): (45.9, 57.1, 63.7),
    ((3, 3, 2, 2), "find-systems"): (44.9, 55.8, 62.3),
    ((3, 3, 2, 2), "base-ring"): (44.1, 55.0, 62.3),
    ((6, 4, 4), "find-systems"): (46.8, 52.3, 60.5),
    ((6, 4, 4), "base-ring"): (33.6, 42.3, 59.4),
    ((4, 4, 3, 3), "find-systems-mss"): (39.6, 46.7, 62.1),
    ((4, 4, 3, 3), "base-ring"): (33.1, 41.1, 61.1),
}


def row(method: str, seed: int, utilisation: float, wait: float, system: str = "a") -> dict:
    return {
        "system": system, "method": method, "window": 1, "load": 0.65, "seed": seed,
        "utilisation": utilisation, "relative_wait": wait,
    }  # fmt: skip


@pytest.mark.parametrize("values", [[1.0, 2.0], [3.0, 5.0, 4.0, 9.0], [float(i * i) for i in range(20)]])
def test_intervals_are_students(values: list[float]) -> None:
    found = confidence_interval(values)
    low, high = scipy.stats.t.interval(0.95, len(values) - 1, fmean(values), scipy.stats.sem(values))
    assert found.mean == pytest.approx((low + high) / 2)
    assert found.half_width == pytest.approx((high - low) / 2, rel=1e-3)
    assert confidence_interval(values[:1]).half_width == 0


def test_gains_are_paired_by_seed() -> None:
    rows = [row("new", 1, 0.55, 80.0), row("old", 1, 0.50, 100.0), row("new", 2, 0.44, 30.0), row("old", 2, 0.40, 40.0)]
    found = gain(rows, "new", "old")
    assert found["utilisation_points"] == pytest.approx(4.5)
    assert found["utilisation_relative_percent"] == pytest.approx(10)
    assert found["utilisation_relative_percent_ci"] == pytest.approx(0, abs=1e-6)
    assert found["wait_of_means_percent"] == pytest.approx((-20 - 25) / 2)


def test_waits_are_compared_over_everything_and_window_by_window() -> None:
    rows = [
        row("new", 1, 0.5, 60.0), row("old", 1, 0.5, 70.0),
        row("new", 1, 0.5, 30.0, "b"), row("old", 1, 0.5, 30.0, "b"),
        row("new", 1, 0.5, 5.0) | {"window": 2}, row("old", 1, 0.5, 10.0) | {"window": 2},
    ]  # fmt: skip
    found = gain(rows, "new", "old")
    assert found["wait_of_means_percent"] == pytest.approx(100 * (95 / 110 - 1), abs=1e-3)
    assert found["wait_mean_over_windows_percent"] == pytest.approx(-30)


def test_averages_are_over_systems_and_intervals_over_seeds() -> None:
    rows = [
        row("one", seed, value + shift, 1.0, system)
        for seed, shift in ((1, 0.0), (2, 0.1))
        for system, value in (("a", 0.2), ("b", 0.4))
    ]
    (entry,) = mean_table(rows, ["utilisation"], "method", "window")
    assert entry["mean"] == pytest.approx(35)
    assert entry["standard_deviation"] == pytest.approx(10 / 2**0.5, abs=1e-3)


@pytest.mark.slow
def test_a_run_counts_requested_and_allocated_nodes_apart() -> None:
    system = System((4, 3, 3))
    plain = run_setting(Setting(system, Variant("plain", "find-systems"), 8, 0.3, 1))
    assert plain["refused"] == 0
    assert plain["allocated"] > plain["utilisation"] > 0.2
    assert plain == run_setting(Setting(system, Variant("plain", "find-systems"), 8, 0.3, 1))


def test_systems_are_those_of_the_study() -> None:
    assert [system.nodes for system in SYSTEMS] == [32, 32, 36, 36, 64, 64, 96, 96, 144, 144, 32, 32]
    assert sum(system.desmos for system in SYSTEMS) == 2
    assert find_experiment("angara").name == "angara"


@pytest.mark.slow
def test_the_study_leaves_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(angara, "QUICK_SYSTEMS", (SYSTEMS[11],))
    monkeypatch.setattr(angara, "QUICK_WINDOWS", (1, 32))
    experiment = find_experiment("angara")
    done: list[tuple[int, int]] = []
    summary = experiment.run(tmp_path, quick=True, seed=3, processes=1, on_progress=lambda *how: done.append(how))
    assert done[-1][0] == done[-1][1] > 0
    assert json.loads((tmp_path / "summary.json").read_text(encoding="utf-8")) == summary
    assert all((tmp_path / name).is_file() for name in summary["files"])
    assert {f"figure{number}.{kind}" for number in (3, 4, 5, 6) for kind in ("csv", "png")} <= set(summary["files"])
    with (tmp_path / "figure5.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["method"] for row in rows} == {method.label for method in METHODS}
    assert all(0 < float(row["mean"]) < 100 for row in rows)
    text = "\n".join(experiment.tell(summary))
    assert "load 0.65" in text
    assert "-36.6" in text
    assert summary["parameters"]["seeds"] == [3, 4]


@pytest.mark.slow
@pytest.mark.parametrize(("extents", "allocator"), SHEET)
def test_utilisation_agrees_with_an_independent_implementation(extents: tuple[int, ...], allocator: str) -> None:
    """Both are means of 4 seeds: they may differ by what two such means differ by, 4 standard errors here."""
    for window, expected in zip((1, 16, 128), SHEET[extents, allocator], strict=True):
        variant = Variant(allocator, allocator)
        values = [
            100 * run_setting(Setting(System(extents), variant, window, 0.65, seed))["utilisation"]
            for seed in range(1, 9)
        ]
        found = confidence_interval(values)
        error = found.deviation * (1 / 8 + 1 / 4) ** 0.5
        assert abs(found.mean - expected) < 4 * error, f"{extents} {allocator} w={window}: {found} against {expected}"
