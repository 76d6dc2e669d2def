"""A paper's numbers beside ours: every row has a verdict, and no tolerance hides the effect that it judges."""

import pytest

from simulation.experiments.comparison import Comparison, Verdict, count_verdicts, tell_comparison


@pytest.mark.parametrize(
    ("comparison", "verdict", "agrees_if"),
    [
        (Comparison("a", 50.0, 53.9, "%", 4.0, why="w"), "agrees", "within 4"),
        (Comparison("a", 50.0, 54.1, "%", 4.0, why="w"), "DIFFERS", "within 4"),
        (Comparison("a", "small", 3.0, "points", at_most=3.0, why="w"), "agrees", "at most 3"),
        (Comparison("a", "small", 3.1, "points", at_most=3.0, why="w"), "DIFFERS", "at most 3"),
        (Comparison("a", "grows", 0.0, "points", at_least=0.0, why="w"), "agrees", "at least 0"),
        (Comparison("a", "grows", -0.1, "points", at_least=0.0, why="w"), "DIFFERS", "at least 0"),
        (Comparison("a", "linear", 1.0, "", why="w"), "no number", ""),
        (Comparison("a", 151.26, 0.2, "s", why="w"), "no number", ""),
    ],
)
def test_a_row_agrees_differs_or_has_no_number(comparison: Comparison, verdict: str, agrees_if: str) -> None:
    assert comparison.verdict == verdict
    row = comparison.as_dict()
    assert (row["verdict"], row["agrees_if"]) == (verdict, agrees_if)
    assert (row["why"] == "") == (verdict == "agrees")  # why is said where it does not agree


def test_a_tolerance_is_smaller_than_the_effect_it_judges() -> None:
    """Half a per cent within half a per cent would agree with no effect; 50 % within 24 with the other machine."""
    with pytest.raises(AssertionError, match=r"no smaller than 0\.5"):
        Comparison("phi", 0.5, 0.0, "%", 0.5, why="w")
    with pytest.raises(AssertionError, match="no smaller than 24"):
        Comparison("fat tori", 50.0, 26.0, "%", 24.0, effect=24.0, why="w")
    assert Comparison("phi", 0.5, 0.0, "%", 0.25, why="w").verdict is Verdict.DIFFERS


def test_who_does_not_agree_says_why() -> None:
    with pytest.raises(AssertionError, match="nobody says why"):
        Comparison("a", 50.0, 54.1, "%", 4.0)
    assert Comparison("a", 50.0, 50.0, "%", 4.0).verdict is Verdict.AGREES


def test_verdicts_say_what_they_must_be_read_with() -> None:
    marks = ["6 of 20 stand-ins", "quick"]
    differs = Comparison("a", 50.0, 54.1, "%", 4.0, why="w").as_dict(marks)
    assert differs["verdict"] == "DIFFERS (6 of 20 stand-ins, quick)"
    assert Comparison("a", "linear", 1.0, "", why="w").as_dict(marks)["verdict"] == "no number"


def test_a_reason_of_whole_runs_is_not_told_of_others() -> None:
    row = Comparison("a", 50.0, 54.1, "%", 4.0, why="whole runs fall")
    assert row.as_dict(["quick"], "this is the quick version")["why"] == "this is the quick version"
    assert row.as_dict(["quick"])["why"] == "whole runs fall"
    assert Comparison("a", 50.0, 50.0, "%", 4.0).as_dict(["quick"], "quick")["why"] == ""
    assert Comparison("a", "linear", 1.0, "", why="fixed times").as_dict(["quick"], "quick")["why"] == "fixed times"


def test_the_lines_end_with_verdicts_and_tell_a_reason_once() -> None:
    rows = [
        Comparison("one", 5, 9.0, "", 1, why="the logs are missing"),
        Comparison("two", 5, 8.0, "", 1, why="the logs are missing"),
        Comparison("three", 5, 5.0, "", 1, why="unused"),
    ]
    assert count_verdicts(rows) == {"agrees": 1, "DIFFERS": 2, "no number": 0}
    lines = tell_comparison({"comparison": [row.as_dict() for row in rows]})
    assert [line.split()[-1] for line in (lines[1], lines[2], lines[4])] == ["DIFFERS", "DIFFERS", "agrees"]
    assert lines[3] == "    why: the logs are missing"
    assert len(lines) == 5
