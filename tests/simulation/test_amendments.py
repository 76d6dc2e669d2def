"""Slots that shrink in markets under faults: crashes, losses, late machines, cancellations and liars meanwhile."""

from __future__ import annotations

import pytest

from simulation.market.drawing.resizes import draw_changes
from tests.swarm.markets import run


@pytest.mark.parametrize("seed", range(8))
def test_amendments_under_faults(seed: int) -> None:
    report = run(seed, resized=True)
    assert report.violation is None, f"seed {seed}: {report.checker}: {report.violation}"


def test_some_seeds_draw_them_and_the_others_go_as_ever() -> None:
    drawn = [seed for seed in range(200) if draw_changes(seed, resized=None) is not None]
    assert 40 < len(drawn) < 100
    without = next(seed for seed in range(200) if seed not in drawn)
    assert run(without) == run(without, resized=False)
