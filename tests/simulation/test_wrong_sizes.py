"""Sellers that offer sizes, times and costs which no unit allows: honest buyers refuse them with a code."""

from collections import Counter
from typing import Any

import pytest

from ramp.model.offer import RefusalCode
from ramp.protocol.effects import Report
from ramp.protocol.progress import RoundClosed
from simulation.market.observing import Observer
from tests.swarm import liars
from tests.swarm.markets import run

SEEDS = (15, 17, 128)
"""Markets in which sizes are drawn and a seller lies about them."""


class Refused(Observer):
    """Counts the refusals of all rounds by code, and takes note of nothing else."""

    def __init__(self) -> None:
        self.codes: Counter[RefusalCode] = Counter()

    def carried_out(self, name: str, effect: Any, now: int) -> None:
        if isinstance(effect, Report) and isinstance(effect.progress, RoundClosed):
            self.codes.update(each.refusal.code for each in effect.progress.record.refusals)


@pytest.fixture(scope="module")
def codes() -> Counter[RefusalCode]:
    refused = Refused()
    for seed in SEEDS:
        report = run(seed, observer=refused)
        assert report.violation is None
    return refused.codes


def test_what_no_size_allows_is_refused_with_a_code(codes: Counter[RefusalCode]) -> None:
    """Too few cores and too short a time are against the law, too high a cost is no price."""
    assert codes[RefusalCode.SIZE_AGAINST_LAW] > 0
    assert codes[RefusalCode.BAD_PRICE] > 0


@pytest.mark.slow
def test_without_such_sellers_nobody_is_refused_so(monkeypatch: Any) -> None:
    """The same markets, in which the habit changes nothing: so honest offers are never taken for these."""
    monkeypatch.setattr(liars, "missized", lambda offer, unit, random: offer)
    refused = Refused()
    for seed in SEEDS:
        run(seed, observer=refused)
    assert refused.codes[RefusalCode.SIZE_AGAINST_LAW] == refused.codes[RefusalCode.BAD_PRICE] == 0
