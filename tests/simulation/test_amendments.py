"""Slots that shrink in markets under faults: crashes, losses, late machines, cancellations and liars meanwhile."""

from __future__ import annotations

import pytest

from simulation.market.swarm import run_seed


@pytest.mark.parametrize("seed", range(12))
def test_amendments_under_faults(seed: int) -> None:
    report = run_seed(seed, resized=True)
    assert report.violation is None, f"seed {seed}: {report.checker}: {report.violation}"
