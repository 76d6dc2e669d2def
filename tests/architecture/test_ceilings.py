"""No part of the code base grows unnoticed, and no ceiling is left above what was reached (CONTRIBUTING.md)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import measures

SLACK = 0.01
"""A ceiling is lowered once a hundredth of it is free."""

MEASURED = measures.measures()
CEILINGS = measures.ceilings()
LOWER = "lower the ceilings: python tests/architecture/measures.py"


@pytest.mark.parametrize("part", MEASURED)
def test_nothing_is_above_its_ceiling(part: str) -> None:
    above = {name: (count, CEILINGS[part].get(name)) for name, count in MEASURED[part].items()}
    assert {name: pair for name, pair in above.items() if pair[1] is None or pair[0] > pair[1]} == {}


@pytest.mark.parametrize("part", MEASURED)
def test_no_ceiling_is_above_what_was_reached(part: str) -> None:
    assert CEILINGS[part].keys() <= MEASURED[part].keys(), LOWER
    loose = {name: count for name, count in MEASURED[part].items() if CEILINGS[part][name] * (1 - SLACK) > count + 3}
    assert loose == {}, LOWER


def test_a_quote_enters_no_more_files_and_makes_no_more_calls() -> None:
    found, ceiling = measures.traced_quote(), CEILINGS["traced quote"]
    assert found["files"] <= ceiling["files"]
    assert found["calls"] <= ceiling["calls"] * (1 + SLACK)  # dictionaries of another order take other paths
