"""Which tests a mutant is tried with, in what order, and whether one notices it; without mutmut, as it is tested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def left_to_run(
    tests: Iterable[str],
    text_of: Callable[[str], str],
    passed: Collection[str],
    killers: Sequence[str],
    seconds: Mapping[str, float],
) -> list[str]:
    """The tests that have not been passed by the mutant yet: those likely to notice it first, then the quickest.

    Args:
        tests: ids of the tests that reach the changed function.
        text_of: the name of a test's file as it is written; see `quick_runs`.
        passed: names of files whose tests have not noticed this mutant.
        killers: ids of tests that have noticed mutants like it, the most successful first.
        seconds: what each test takes.
    """
    first = {test: number for number, test in enumerate(killers)}
    new = [test for test in tests if text_of(test) not in passed]
    return sorted(new, key=lambda test: (first.get(test, len(first)), seconds.get(test, 0.0), test))


def first_to_fail(items: Sequence[Item], fails: Callable[[Item, Item | None], bool]) -> Item | None:
    """The first test that fails, or None where all pass: what no test is left to notice survives.

    Args:
        items: the tests, in their order.
        fails: runs one, and is told which comes next.
    """
    following: list[Item | None] = [*items[1:], None]
    return next((item for item, after in zip(items, following, strict=False) if fails(item, after)), None)
