"""A paper's number or sentence beside ours, with a verdict on every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

COMPARISON_COLUMNS: Final = ("what", "paper", "ours", "unit", "agrees_if", "verdict", "why", "picture")
"""Of `comparison.csv`, also where a study has no paper beside it."""


class Verdict(StrEnum):
    """What a row ends with."""

    AGREES = "agrees"
    DIFFERS = "DIFFERS"
    NO_NUMBER = "no number"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number or sentence of a paper beside ours.

    Attributes:
        what: the statement.
        paper: the paper's value, or what it says in words.
        ours: our value.
        unit: of both.
        tolerance: difference up to which they agree, in the same unit.
        at_most: our value agrees when it is not above this.
        at_least: our value agrees when it is not below this.
        effect: size of the effect that the row is about, in the same unit; a tolerance is below it, so that no effect
            at all never agrees. None = the paper's number itself.
        why: one line for the reader: why ours differs, or why there is nothing to judge.
        picture: file of the picture that shows the row; empty = none does.
    """

    what: str
    paper: float | str
    ours: float
    unit: str
    tolerance: float | None = None
    at_most: float | None = None
    at_least: float | None = None
    effect: float | None = None
    why: str = ""
    picture: str = ""

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            assert not isinstance(self.paper, str), f"{self.what}: a tolerance needs a number of the paper"
            effect = abs(self.paper) if self.effect is None else self.effect
            assert self.tolerance < effect, f"{self.what}: a tolerance of {self.tolerance} is no smaller than {effect}"
        assert self.why or self.verdict is Verdict.AGREES, f"{self.what}: nobody says why"

    @property
    def verdict(self) -> Verdict:
        """Whether ours is what the paper says; no number where the row has nothing that could decide it."""
        if self.tolerance is None and self.at_most is None and self.at_least is None:
            return Verdict.NO_NUMBER
        holds = (
            (self.at_most is None or self.ours <= self.at_most)
            and (self.at_least is None or self.ours >= self.at_least)
            and (self.tolerance is None or abs(self.ours - float(self.paper)) <= self.tolerance)
        )
        return Verdict.AGREES if holds else Verdict.DIFFERS

    @property
    def agrees_if(self) -> str:
        """What decides the verdict, in words."""
        parts = []
        if self.tolerance is not None:
            parts.append(f"within {self.tolerance:g}")
        if self.at_least is not None:
            parts.append(f"at least {self.at_least:g}")
        if self.at_most is not None:
            parts.append(f"at most {self.at_most:g}")
        return ", ".join(parts)

    def as_dict(self, marks: Sequence[str] = (), instead: str = "") -> dict[str, Any]:
        """For `summary.json` and `comparison.csv`.

        Args:
            marks: what a verdict must be read with, such as `quick`; stands behind agreement and difference.
            instead: why a run like this one may differ from the paper, where `why`, which is said of whole runs on real
                logs, would not be true of it; empty where it is.
        """
        verdict = str(self.verdict)
        if marks and self.verdict is not Verdict.NO_NUMBER:
            verdict += f" ({', '.join(marks)})"
        return {
            "what": self.what,
            "paper": self.paper,
            "ours": round(self.ours, 4),
            "unit": self.unit,
            "agrees_if": self.agrees_if,
            "verdict": verdict,
            "why": self._told_why(instead),
            "picture": self.picture,
        }

    def _told_why(self, instead: str) -> str:
        if self.verdict is Verdict.AGREES:
            return ""
        return instead if instead and self.verdict is Verdict.DIFFERS else self.why


def count_verdicts(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """How many rows end with each verdict."""
    found = Counter(str(one.verdict) for one in comparisons)
    return {str(verdict): found[verdict] for verdict in Verdict}


def tell_comparison(summary: Mapping[str, Any]) -> list[str]:
    """The comparison as lines of text; below rows that do not agree, why."""
    rows = summary["comparison"]
    if not rows:
        return ["no paper states a number of this"]
    width = max(len(row["what"]) for row in rows)
    paper_width = max(len(str(row["paper"])) for row in rows)
    unit_width = max(len(row["unit"]) for row in rows)
    lines = [f"{'':{width}}  {'paper':>{paper_width}}  {'ours':>9}"]
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        told = f"{row['what']:{width}}  {row['paper']!s:>{paper_width}}  {row['ours']:9.2f} {row['unit']:{unit_width}}"
        lines.append(f"{told}  {row['verdict']}")
        if row["why"] and (following is None or following["why"] != row["why"]):
            lines.append(f"    why: {row['why']}")
    return lines
