"""Scores of bounds on waits by hand, and both predictors on logs beside figures that others reached."""

from pathlib import Path

import numpy as np
import pytest

from ramp.declarations import load_file
from ramp.queue_bound.predictor import PREDICTORS
from ramp.queue_bound.queue_plan import plan_starts
from simulation.workload.generators.lublin import DAY_S, synthetic_log
from simulation.workload.logs import find_log, known_log
from simulation.workload.swf import read_swf

BOUNDS = load_file(Path(__file__).parents[3] / "examples" / "studies" / "queue_bound.py")
EASY, RECORDED = BOUNDS.EASY, BOUNDS.RECORDED
S = 1_000_000
SDSC = "SDSC-SP2-1998-4.2-cln"


def test_scores() -> None:
    wait, bound = np.array([0, 10, 20, 30]) * S, np.array([0, 20, 10, 30]) * S
    assert BOUNDS.coverage(wait, bound) == 0.75
    # 0, 10 s too long at 0.05, 10 s too short at 0.95, 0: (0.5 + 9.5) / 4
    assert BOUNDS.quantile_loss(wait, bound, 0.95) == pytest.approx(2.5)
    assert BOUNDS.scale_for_coverage(wait, bound, 0.75) == 1
    assert BOUNDS.scale_for_coverage(wait, bound, 1.0) == 2
    came, chance = np.array([True, True, False, False]), np.array([1.0, 0.5, 0.5, 0.0])
    assert BOUNDS.brier(came, chance) == pytest.approx(0.125)
    assert BOUNDS.calibration_error(came, chance) == 0  # one of the two with a chance of one half came
    assert BOUNDS.calibration_error(came, np.array([0.75, 0.75, 0.75, 0.75])) == pytest.approx(0.25)


def test_what_a_predictor_sees_is_what_has_happened() -> None:
    """Three jobs of four processors: 0-10 for a, b waits 8, c comes as b starts and waits for its planned end."""
    arrays = [[4, 4, 4], [20 * S, 10 * S, 5 * S], [0, 2 * S, 10 * S], [0, 10 * S, 15 * S], [10 * S, 15 * S, 16 * S]]
    history = BOUNDS.QueueHistory(["", "", ""], *(np.array(each) for each in arrays), 4)  # type: ignore[arg-type, misc]
    # b is planned behind the 20 s that a asked for; as c comes, a has ended and b has its place from then on
    planned = BOUNDS.planned_waits(history, plan_starts)
    assert planned.tolist() == [0, 18 * S, 10 * S]
    said = BOUNDS.predict(history, planned, PREDICTORS.find("planned").new({"enough": 1}), [S])
    assert said.bound.tolist() == [0, -1, -1]  # nothing is known of errors before b starts, after c has come
    assert said.chance[0, 0] == 1


@pytest.mark.slow
def test_an_easy_replay_never_lets_wait_whom_the_plan_starts_at_once() -> None:
    log = synthetic_log(32, 2 * DAY_S, 7, load=1.1)
    history = BOUNDS.history_of(log, 32, EASY)
    assert history is not None
    planned = BOUNDS.planned_waits(history, plan_starts)
    assert (planned > 0).sum() > 20  # enough of them have to wait
    assert ((planned == 0) == (history.wait == 0)).all()


@pytest.mark.slow
@pytest.mark.logs
@pytest.mark.skipif(find_log(SDSC) is None, reason=f"needs the log {SDSC} (RAMP_LOGS)")
def test_bmbp_on_recorded_waits_covers_what_others_found() -> None:
    """Figures of a plain implementation that shares nothing with ours: .972, by queue .974, by size .967, both .965."""
    log = read_swf(find_log(SDSC) or "")
    history = BOUNDS.history_of(log, known_log(SDSC).cores, RECORDED)
    assert history is not None
    for groups, share in {"one": 0.972, "queue": 0.974, "size": 0.967, "queue-size": 0.965}.items():
        said = BOUNDS.predict(history, None, PREDICTORS.find("bmbp").new({"groups": groups}))
        known = said.bound >= 0
        assert BOUNDS.coverage(history.wait[known], said.bound[known]) == pytest.approx(share, abs=0.004), groups


@pytest.mark.slow
@pytest.mark.logs
@pytest.mark.skipif(find_log(SDSC) is None, reason=f"needs the log {SDSC} (RAMP_LOGS)")
def test_planned_on_an_easy_queue_reaches_the_goals() -> None:
    """An independent reference: coverage of the waiting .959, median bound 52 672 s, loss .41 of the best bmbp's."""
    tables = BOUNDS.run_setting(BOUNDS.Setting(SDSC, EASY, None, 1))
    ours = next(row for row in tables["bounds"] if row["predictor"] == "planned")
    assert ours["coverage_waiting"] == pytest.approx(0.959, abs=0.002)
    assert ours["median_bound_s"] == pytest.approx(52_672, rel=0.02)
    compared = {each.what.partition(": ")[2]: each for each in BOUNDS.goals(SDSC, tables)}
    assert compared["loss over the best bmbp's"].ours == pytest.approx(0.41, abs=0.02)
    assert [what for what, each in compared.items() if each.verdict != "agrees"] == []
