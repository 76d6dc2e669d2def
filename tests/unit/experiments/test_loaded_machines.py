"""When a machine of Table 2 is loaded, beside a count second by second."""

from pathlib import Path

import numpy as np
import pytest

from ramp.declarations import load_file
from ramp.model.instant import SECOND
from simulation.workload.generators.lublin import synthetic_log
from simulation.workload.replay import ReplayLog

loaded_machines = load_file(Path(__file__).parents[3] / "examples" / "studies" / "loaded_machines.py")
PRODUCTION, loaded_hour = loaded_machines.PRODUCTION, loaded_machines.loaded_hour
CORES, AGE = 16, 3


@pytest.fixture(autouse=True)
def ages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_machines, "OLDEST_HOURS", AGE)


@pytest.mark.parametrize("seed", range(4))
def test_the_hour_is_the_first_after_which_the_machine_is_half_full(seed: int) -> None:
    replay = ReplayLog.build(synthetic_log(CORES, 86_400, seed, load=0.7), CORES)
    taken = np.zeros(int(replay.ended.max()) // SECOND + 1)
    for start, end, cores in zip(replay.started // SECOND, replay.ended // SECOND, replay.cores, strict=True):
        taken[start:end] += cores
    hours = len(taken) // 3600 - AGE + 1
    use = [taken[3600 * hour : 3600 * (hour + AGE)].mean() / CORES for hour in range(hours)]
    enough = [hour for hour in range(2, hours) if use[hour] >= PRODUCTION]
    assert enough
    assert loaded_hour(replay, 2) == enough[0]
    apart = [hour for hour in enough if abs(hour - enough[0]) >= AGE]
    assert loaded_hour(replay, 2, [enough[0]]) == apart[0]
    never = ReplayLog.build(synthetic_log(CORES, 86_400, seed, load=0.7), 8 * CORES)
    assert loaded_hour(never, 0) == int(np.argmax(use))
