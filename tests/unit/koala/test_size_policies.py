"""FPSMA and EGS as the paper's text and mended pseudo-code have them, and the references by their definitions."""

import itertools
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.declarations import load_file
from simulation.koala.policy import RunningMalleable, policy_of
from simulation.koala.scheduler import SIZE_POLICIES
from simulation.malleable.malleability import Sizes

ANY = Sizes(2, 8, 46)
EXAMPLES = load_file(Path(__file__).parents[3] / "examples" / "studies" / "size_policies.py")
POLICIES = {name: policy_of(SIZE_POLICIES, name) for name in SIZE_POLICIES.names()}
POLICIES |= {name: policy() for name, policy in EXAMPLES.OWN.items()}


def jobs(*sizes: int, limits: Sizes = ANY) -> list[RunningMalleable]:
    return [RunningMalleable(number, 10 * number, size, limits) for number, size in enumerate(sizes, 1)]


def carry(asking, accepted) -> list[tuple[int, int]]:
    told = []
    try:
        message = next(asking)
        while True:
            told.append((message.job, message.processors))
            message = asking.send(accepted(message))
    except StopIteration:
        return told


def all_of_it(message) -> int:
    return abs(message.processors)


def test_fpsma_offers_all_that_is_left_from_the_earliest_started_on() -> None:
    """Section 5.3.1: offer, get what is accepted, subtract, stop at nothing."""
    taken = {1: 3, 2: 0, 3: 7, 4: 9}
    told = carry(policy_of(SIZE_POLICIES, "FPSMA").grow(jobs(2, 2, 2, 2), 10), lambda message: taken[message.job])
    assert told == [(1, 10), (2, 7), (3, 7)]


def test_fpsma_asks_from_the_latest_started_on_and_stops_when_it_has_more_than_enough() -> None:
    """FT gives 8 when asked for 5 (16 to 8): the printed `== 0` would go on below 0."""
    told = carry(policy_of(SIZE_POLICIES, "FPSMA").shrink(jobs(16, 16, 16), 5), lambda message: 8)
    assert told == [(3, -5)]
    assert carry(policy_of(SIZE_POLICIES, "FPSMA").shrink(jobs(3, 3, 3), 2), lambda message: 1) == [(3, -2), (2, -1)]


def test_egs_gives_equal_shares_and_the_bonus_to_the_least_recently_started() -> None:
    """11 over 4: 2 each, and one more for the first three; whatever is accepted."""
    told = carry(policy_of(SIZE_POLICIES, "EGS").grow(jobs(2, 2, 2, 2), 11), lambda message: 0)
    assert told == [(1, 3), (2, 3), (3, 3), (4, 2)]
    assert carry(policy_of(SIZE_POLICIES, "EGS").grow(jobs(2, 2, 2), 2), all_of_it) == [(1, 1), (2, 1)]


def test_egs_takes_equal_shares_and_the_malus_from_the_most_recently_started() -> None:
    """7 over 3: the share is 2, not 7, and the malus is the latest one's: both printed otherwise."""
    assert carry(policy_of(SIZE_POLICIES, "EGS").shrink(jobs(9, 9, 9), 7), all_of_it) == [(3, -3), (2, -2), (1, -2)]


@pytest.mark.parametrize("name", POLICIES)
@given(
    sizes=st.lists(st.integers(2, 46), max_size=6),
    value=st.integers(1, 40),
    answers=st.lists(st.integers(0, 46), min_size=20, max_size=20),
)
@settings(max_examples=40, deadline=None)
def test_no_policy_gives_out_more_than_there_is(name: str, sizes: list[int], value: int, answers: list[int]) -> None:
    """Offers that are outstanding together never exceed the value; nobody but running jobs is spoken to."""
    running = jobs(*sizes)
    given_out = 0

    def answer(message) -> int:
        nonlocal given_out
        assert 1 <= message.job <= len(running)
        assert message.processors
        if message.processors < 0:
            assert POLICIES[name].rebalances
            return 0
        accepted = min(message.processors, answers[message.job])
        given_out += accepted
        assert given_out <= value
        return accepted

    carry(POLICIES[name].grow(running, value), answer)


@given(sizes=st.lists(st.integers(2, 46), min_size=1, max_size=6), spare=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_equipartition_is_as_equal_as_can_be(sizes: list[int], spare: int) -> None:
    """All is given out that can be, and any two jobs that have room differ by at most one."""
    running = jobs(*sizes)
    total = sum(sizes) + spare
    targets = list(EXAMPLES.equal_sizes(running, total).values())
    assert sum(targets) == min(total, 46 * len(sizes))
    assert max(targets) - min(targets) <= 1


def test_equipartition_mixes_growing_and_shrinking() -> None:
    """The paper names this as what tells it from EGS: a job of 2 beside one of 40, nothing idle."""
    assert carry(POLICIES["equipartition"].grow(jobs(40, 2), 0), all_of_it) == [(1, -19)]
    assert carry(POLICIES["equipartition"].grow(jobs(21, 2), 19), all_of_it) == [(2, 19)]


def test_folding_doubles_the_smallest_and_halves_the_largest() -> None:
    """Sizes stay powers of two times what they were."""
    assert carry(POLICIES["folding"].grow(jobs(8, 2, 4), 7), all_of_it) == [(2, 2), (3, 4)]
    assert carry(POLICIES["folding"].shrink(jobs(8, 2, 16), 9), all_of_it) == [(3, -8), (1, -4)]


def test_the_strategies_of_2026() -> None:
    """Who has fewest above its minimum; up to the preferred size first; who has the least of its range."""
    narrow = RunningMalleable(9, 5, 4, Sizes(3, 4, 5))
    wide = RunningMalleable(8, 6, 6, Sizes(2, 20, 30))
    assert carry(POLICIES["minimum"].grow([narrow, wide], 3), all_of_it) == [(9, 1), (8, 2)]
    assert carry(POLICIES["average"].grow([narrow, wide], 3), all_of_it) == [(8, 3)]
    assert carry(POLICIES["preferred"].grow([narrow, wide], 15), all_of_it) == [(8, 14), (9, 1)]
    assert carry(POLICIES["average"].shrink([narrow, wide], 3), all_of_it) == [(9, -1), (8, -2)]


LIMITS = (Sizes(1, 1, 3), Sizes(1, 2, 5), Sizes(2, 2, 4))


def share_of(size: int, limits: Sizes) -> Fraction:
    return Fraction(size - limits.minimum, limits.maximum - limits.minimum)


@pytest.mark.parametrize("name", ["average", "stealing"])
@pytest.mark.parametrize("limits", list(itertools.combinations_with_replacement(LIMITS, 3)), ids=str)
def test_levelling_goes_by_who_has_least_and_most(name: str, limits: tuple[Sizes, ...]) -> None:
    """All starts, some values: each processor goes to who has the least of its range then, and comes from who has most.

    Of all ways to give out or take as many the result has to be among those that this leaves; where jobs have equal
    shares there are several.
    """
    everything = list(itertools.product(*(range(each.minimum, each.maximum + 1) for each in limits)))
    for start in everything:
        running = [
            RunningMalleable(number, number, size, each)
            for number, (size, each) in enumerate(zip(start, limits, strict=True))
        ]
        for value in (1, 2, 5):
            more = min(value, sum(each.maximum for each in limits) - sum(start))
            ways = {
                way for way in everything if sum(way) == sum(start) + more and given_to_the_least(start, way, limits)
            }
            assert after(start, carry(POLICIES[name].grow(running, value), all_of_it)) in ways
            fewer = min(value, sum(start) - sum(each.minimum for each in limits))
            ways = {
                way for way in everything if sum(way) == sum(start) - fewer and taken_from_the_most(start, way, limits)
            }
            assert after(start, carry(POLICIES[name].shrink(running, value), all_of_it)) in ways


def given_to_the_least(start: tuple[int, ...], way: tuple[int, ...], limits: tuple[Sizes, ...]) -> bool:
    """Whether each job that took had, before its last processor came, no more of its range than who can still take."""
    jobs = list(zip(start, way, limits, strict=True))
    took = [share_of(size - 1, each) for before, size, each in jobs if size > before]
    able = [share_of(size, each) for _, size, each in jobs if size < each.maximum]
    return all(before <= size for before, size, _ in jobs) and (not took or not able or max(took) <= min(able))


def taken_from_the_most(start: tuple[int, ...], way: tuple[int, ...], limits: tuple[Sizes, ...]) -> bool:
    """Whether each job that gave had, before its last processor went, no less of its range than who can still give."""
    jobs = list(zip(start, way, limits, strict=True))
    gave = [share_of(size + 1, each) for before, size, each in jobs if size < before]
    able = [share_of(size, each) for _, size, each in jobs if size > each.minimum]
    return all(before >= size for before, size, _ in jobs) and (not gave or not able or min(gave) >= max(able))


def test_who_has_more_of_its_range_is_not_served_while_another_has_less() -> None:
    """What the checks above refuse, and what they let pass, in pairs."""
    limits = (Sizes(1, 1, 3), Sizes(1, 2, 5))
    assert not taken_from_the_most((3, 2), (3, 1), limits)
    assert taken_from_the_most((3, 2), (2, 2), limits)
    assert not given_to_the_least((1, 4), (1, 5), limits)
    assert given_to_the_least((1, 4), (2, 4), limits)


def after(start: tuple[int, ...], told: list[tuple[int, int]]) -> tuple[int, ...]:
    """Sizes when every message has been accepted; nobody is told twice."""
    changes = dict(told)
    assert len(changes) == len(told)
    return tuple(size + changes.get(number, 0) for number, size in enumerate(start))
