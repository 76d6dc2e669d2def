"""A mutant tried again and again: with new tests only, and what no new test is left to notice survives."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.mutation.trying import first_to_fail, left_to_run


@dataclass
class Trials:
    """One mutant that is tried whenever the tests may have changed.

    Attributes:
        texts: the files of tests as they are written, by name.
        noticing: tests that fail with the mutant.
        passed: files that have not noticed it.
        ran: what was run the last time.
    """

    texts: dict[str, str]
    noticing: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    ran: list[tuple[str, str | None]] = field(default_factory=list)

    def tried(self, *tests: str) -> str:
        """The test that notices it; empty where it survives."""
        self.ran = []
        chosen = left_to_run(tests, self._text_of, self.passed, killers=(), seconds={})
        failed = first_to_fail(chosen, self._fails)
        if failed is None:
            self.passed |= {self._text_of(test) for test in tests}
        return failed or ""

    def _text_of(self, test: str) -> str:
        return self.texts[test.partition("::")[0]]

    def _fails(self, test: str, following: str | None) -> bool:
        self.ran.append((test, following))
        return test in self.noticing


@pytest.fixture
def trials() -> Trials:
    return Trials({"a": "first text", "b": "other text"})


def test_what_has_survived_all_tests_survives_the_next_time_too(trials: Trials) -> None:
    assert trials.tried("a::one", "a::two", "b::one") == ""
    assert trials.ran == [("a::one", "a::two"), ("a::two", "b::one"), ("b::one", None)]
    assert trials.tried("a::one", "a::two", "b::one") == ""
    assert trials.ran == []


def test_what_no_test_reaches_survives(trials: Trials) -> None:
    assert trials.tried() == ""


def test_only_tests_that_are_new_or_have_changed_are_run(trials: Trials) -> None:
    trials.tried("a::one", "b::one")
    trials.texts["b"] = "a new text"
    trials.noticing = {"b::one"}
    assert trials.tried("a::one", "b::one") == "b::one"
    assert trials.ran == [("b::one", None)]
    assert trials.tried("a::one", "b::one") == "b::one"  # caught is not passed


def test_nothing_is_run_after_the_first_that_notices(trials: Trials) -> None:
    trials.noticing = {"a::two", "b::one"}
    assert trials.tried("a::one", "a::two", "b::one") == "a::two"
    assert trials.ran == [("a::one", "a::two"), ("a::two", "b::one")]


def test_likely_tests_come_first_then_the_quickest_and_the_order_never_changes() -> None:
    seconds = {"slow": 3.0, "quick": 1.0, "killer": 9.0, "likely": 2.0}
    tests = ["slow", "same b", "likely", "same a", "killer", "quick"]
    expected = ["likely", "killer", "same a", "same b", "quick", "slow"]
    for order in (tests, tests[::-1]):
        assert left_to_run(order, str, (), ("likely", "killer"), seconds) == expected
