"""The experiment with malleable jobs on tori: what it says of its rows, and one of its runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.experiments.discovery import find_experiment
from simulation.experiments.koala import tori_study
from simulation.experiments.koala.tori_runs import ToriSetting, run_tori_setting


@pytest.mark.slow
def test_what_malleability_takes_of_the_waits_is_told_with_places_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waits are compared seed by seed with those of rigid jobs: halved on the flat machine, as ever on the torus."""

    def made(setting: ToriSetting) -> dict[str, Any]:
        wait = 10.0 * setting.seed * (0.5 if setting.flat and setting.share else 1)
        named = {"machine": setting.machine, "case": setting.case, "places": "no" if setting.flat else "yes"}
        more = {"share": setting.share, "load": 1.0, "seed": setting.seed, "suspension_s": setting.suspension_s}
        measures = dict.fromkeys(tori_study.MEASURES, 1.0)
        return {**named, **more, **measures, "wait_h": wait, "changed_jobs": 1, "jobs": 2, "refused": 0}

    monkeypatch.setattr(tori_study, "run_tori_setting", made)
    summary = tori_study.run(tmp_path, quick=True, seed=1, processes=1, on_progress=None)
    for note in summary["notes"]:
        assert "+0 ±0 %, +0 ±0 %, +0 ±0 % where places count, -50 ±0 %, -50 ±0 %, -50 ±0 % on a flat" in note
    assert {"means.csv", "runs.csv", "tori.png"} <= {one.name for one in tmp_path.iterdir()}
    assert len(find_experiment("malleable-tori").tell(summary)) > 40


@pytest.mark.slow
@pytest.mark.logs
@pytest.mark.parametrize("machine", ["bgl", "angara-4x4x4"])
def test_the_same_jobs_run_with_places_and_without(machine: str) -> None:
    """Nothing is refused anywhere, rigid jobs never change, and malleable ones do."""
    case = "any box" if machine.startswith("angara") else "slim meshes"
    setting = ToriSetting(machine, case, False, 1.0, 0.6, 150, 1)
    for flat in (False, True):
        malleable, rigid = (run_tori_setting(replace(setting, flat=flat, share=share)) for share in (1.0, 0.0))
        assert malleable["jobs"] == rigid["jobs"] == 150
        assert malleable["refused"] == rigid["refused"] == 0
        assert malleable["changed_jobs"] > 0 == rigid["changed_jobs"]
