"""What the Blue Gene/L study says of its curves, judged on curves drawn by hand."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ramp.declarations import load_file
from simulation.experiments.bluegene.runs import EASY, FIRST_FIT, LOGS, MULTI_TOROIDAL, PLAIN, SLIM_CASES
from simulation.experiments.bluegene.statements import statements
from simulation.experiments.bluegene.study import MAIN_JOBS, reading_table, readings, settings_of
from simulation.queueing.job_table import JobTable

EXAMPLE = load_file(Path(__file__).parents[3] / "examples" / "studies" / "granularity.py")


def figure7(slim: dict[float, tuple[float, ...]], fat: tuple[float, float, float], plain: float) -> list[dict]:
    """Rows of both logs: four slim curves by load; fat with no, half, all tori, and all tori on the plain machine."""
    rows = []
    for log, (load, shares) in product(LOGS, slim.items()):
        values = dict(zip([(0.0, *case) for case in SLIM_CASES], shares, strict=True))
        values |= {(1.0, MULTI_TOROIDAL, torus): share for torus, share in zip((0.0, 0.5, 1.0), fat, strict=True)}
        values |= {(1.0, PLAIN, 1.0): plain, (1.0, PLAIN, 0.0): fat[0], (0.0, PLAIN, 0.0): shares[0]}
        rows += [
            {"log": log, "machine": machine, "fat_probability": wide, "torus_probability": torus, "load": load,
             "utilisation": share}
            for (wide, machine, torus), share in values.items()
        ]  # fmt: skip
    return rows


def figure8(slim: float, mixed: float, fat: float) -> list[dict]:
    return [
        {"log": log, "fat_probability": wide, "load": load, "utilisation": share * load}
        for log in LOGS
        for load in (0.5, 1.0)
        for wide, share in ((0.0, slim), (0.5, mixed), (1.0, fat))
    ]


def judged(rows7: list[dict], rows8: list[dict]) -> dict[str, tuple[float, str]]:
    return {one.what: (pytest.approx(one.ours), str(one.verdict)) for one in statements(rows7, rows8)}


APART = {0.5: (0.50, 0.50, 0.50, 0.49), 1.0: (0.87, 0.82, 0.77, 0.71)}
TOGETHER = {0.5: (0.50, 0.50, 0.50, 0.49), 1.0: (0.85, 0.84, 0.84, 0.83)}


def test_what_is_as_the_study_says_agrees() -> None:
    told = judged(figure7(TOGETHER, (0.76, 0.60, 0.48), 0.31), figure8(0.88, 0.65, 0.48))
    assert told["SDSC: slim jobs, four curves apart at most"] == (2.0, "agrees")
    assert told["SDSC: utilisation, fat tori at full load, bgl"] == (48.0, "agrees")
    assert told["CTC: fat jobs, utilisation lost by half as many tori more, at least"] == (12.0, "agrees")
    assert told["loss from slim to fat at equal sizes, in points (as read)"] == (40.0, "agrees")
    assert told["the same, relative to slim (the other reading)"] == (100 * 40 / 88, "DIFFERS")
    assert told["slim, half of them fat, fat: least step at full load"] == (17.0, "agrees")


def test_what_is_not_differs() -> None:
    """31 % on the plain machine is 5 from either log's value; 16 points are not together, and no loss is no 40."""
    told = judged(figure7(APART, (0.76, 0.75, 0.48), 0.31), figure8(0.70, 0.70, 0.65))
    assert told["SDSC: slim jobs, four curves apart at most"] == (16.0, "DIFFERS")
    assert told["SDSC: slim jobs, machines, all tori, apart at most"] == (6.0, "DIFFERS")
    assert told["SDSC: utilisation, fat tori at full load, torus3d"] == (31.0, "DIFFERS")
    assert told["CTC: utilisation, fat tori at full load, torus3d"] == (31.0, "DIFFERS")
    assert told["SDSC: fat jobs, utilisation lost by half as many tori more, at least"] == (1.0, "DIFFERS")
    assert told["fat jobs on Blue Gene/L at full load, SDSC below CTC, mean of three curves"] == (0.0, "DIFFERS")
    assert told["loss from slim to fat at equal sizes, in points (as read)"] == (5.0, "DIFFERS")
    assert told["slim, half of them fat, fat: least step at full load"] == (0.0, "DIFFERS")


def test_the_main_reading_comes_first_and_first_fit_beside_it() -> None:
    main, beside = readings(MAIN_JOBS, whole_logs=False)
    assert (main.scheduler, main.jobs_read) == (EASY, "first 10000 jobs")
    assert (beside.scheduler, beside.jobs_read) == (FIRST_FIT, "first 10000 jobs")
    more = [(one.scheduler, one.jobs_read) for one in readings(MAIN_JOBS, whole_logs=True)]
    assert more[2:4] == [(EASY, "whole log"), (FIRST_FIT, "whole log")]
    assert (EASY, "jobs 20000 to 30000") in more


def test_a_reading_says_what_differs() -> None:
    """Of each log: fat tori on both machines, four slim curves, both shapes; by makespan and while jobs arrive."""
    reading = readings(MAIN_JOBS, whole_logs=False)[0]
    settings = settings_of(reading, seed=1)
    assert len(settings) == 8 * len(LOGS)
    assert {setting.scheduler for setting in settings} == {EASY}
    shares = {
        "CTC": (0.48, 0.26, 0.76, 0.76, 0.75, 0.74, 0.88, 0.48),
        "SDSC": (0.49, 0.30, 0.84, 0.84, 0.8, 0.8, 0.6, 0.49),
    }
    rows = [{"utilisation": share, "utilisation_while_arriving": share / 2} for log in LOGS for share in shares[log]]
    ctc, sdsc, ctc_arriving, _ = reading_table(reading, rows)
    assert (ctc["fat_percent"], ctc["fat_plain_percent"], ctc["verdict"], ctc["why"]) == (48.0, 26.0, "agrees", "")
    assert (ctc["slim_curves_apart_points"], ctc["slim_machines_apart_points"]) == (2.0, 1.0)
    assert (ctc["loss_points"], ctc["loss_percent"]) == (40.0, pytest.approx(45.45))
    assert sdsc["verdict"] == "DIFFERS"
    assert sdsc["why"] == "fat, 3D torus, slim curves, loss"
    assert (ctc_arriving["counted"], ctc_arriving["fat_percent"]) == ("until the last submission", 24.0)


def test_a_job_holds_whole_units() -> None:
    """512 jobs of 128 nodes, all at once: 512 units of 128 nodes run them in one turn, 128 midplanes in four."""
    numbers, second = np.arange(1, 513), 1_000_000
    long = np.full(512, 1_000_000 * second)
    jobs = JobTable(numbers, numbers * second, long, long, np.ones(512, np.int64), numbers - 1)
    found = {unit: EXAMPLE.Granularity(unit, 1e4, None).measure(jobs) for unit in EXAMPLE.UNITS}
    asked = {unit: row["asked_percent"] for unit, row in found.items()}
    assert asked == pytest.approx({64: 100, 128: 100, 256: 50, 512: 25}, abs=0.1)
    assert all(row["held_percent"] == pytest.approx(100, abs=0.1) for row in found.values())
