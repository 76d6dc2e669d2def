"""What the Blue Gene/L study says of its slim curves, from curves drawn by hand."""

from __future__ import annotations

import pytest

from simulation.experiments.bluegene import _slim_gaps
from simulation.experiments.bluegene_runs import LOGS, SLIM_CASES


def test_gaps_of_all_slim_curves_and_of_the_two_machines_are_told_apart() -> None:
    """Meshes, half and all tori on Blue Gene/L, all tori on the plain torus, at two loads; later by a tenth each."""
    curves = {0.5: (0.50, 0.50, 0.50, 0.49), 1.0: (0.87, 0.82, 0.77, 0.71)}
    rows = [
        {"log": log, "machine": machine, "fat_probability": 0.0, "torus_probability": torus, "load": load,
         "utilisation": shares[index], "utilisation_while_arriving": shares[index] / 10}
        for log in LOGS
        for load, shares in curves.items()
        for index, (machine, torus) in enumerate(SLIM_CASES)
    ]  # fmt: skip
    told = {one.what: (one.ours, one.agrees) for one in _slim_gaps(rows)}
    assert told["SDSC: largest gap between slim curves"] == (pytest.approx(16.0), False)
    assert told["SDSC: largest gap between machines, slim tori"] == (pytest.approx(6.0), False)
    assert told["SDSC: largest gap between machines, slim tori, until the last submission"] == (
        pytest.approx(0.6),
        True,
    )
    assert len(told) == 4 * len(LOGS)
