"""What the markets of the swarm have shown: one a seed, and many together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class SeedReport:
    """Results of one seed.

    Attributes:
        seed: the seed.
        violation: the broken invariant, or None.
        checker: which checker found it.
        outcomes: how the requests ended, by status.
        messages: messages sent.
        lost: of them lost.
        crashes: crashes of parties.
        late_answers: answers of machines and price strategies that came later than the question.
        in_doubt: questions whose result a resource learned to be unknown.
        unheard: late answers to a resource that had crashed meanwhile.
    """

    seed: int
    violation: str | None = None
    checker: str = ""
    outcomes: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    lost: int = 0
    crashes: int = 0
    late_answers: int = 0
    in_doubt: int = 0
    unheard: int = 0


@dataclass(frozen=True, slots=True)
class SwarmSummary:
    """Totals over many seeds."""

    seeds: int
    violations: Sequence[SeedReport]
    outcomes: dict[str, int]
    messages: int
    lost: int
    crashes: int
    late_answers: int
    in_doubt: int
    unheard: int


def summarise(reports: Sequence[SeedReport]) -> SwarmSummary:
    """Add reports up."""
    outcomes: Counter[str] = Counter()
    for report in reports:
        outcomes.update(report.outcomes)
    return SwarmSummary(
        len(reports),
        [report for report in reports if report.violation is not None],
        dict(outcomes),
        sum(report.messages for report in reports),
        sum(report.lost for report in reports),
        sum(report.crashes for report in reports),
        sum(report.late_answers for report in reports),
        sum(report.in_doubt for report in reports),
        sum(report.unheard for report in reports),
    )
