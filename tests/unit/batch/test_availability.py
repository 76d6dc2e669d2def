"""Hours and shares for sale, and the earliest fit and load, against brute force over every second and node."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.batch.availability import NEVER, Availability, Taking, takings_of
from ramp.batch.for_sale import ForSale
from ramp.batch.system import Node, RunningJob, SystemReservation, SystemSnapshot, WaitingJob
from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, HOUR, SECOND, from_iso, iso
from ramp.model.request import Nodes, TotalCores
from tests.example_counts import examples

NODES = (Node("a", 4), Node("b", 2), Node("c", 4, usable=False), Node("d", 3))
SECONDS = 14
T = 1_000 * SECOND

_TAKINGS = st.lists(
    st.builds(
        lambda start, length, node, cores, market: Taking(
            T + start * SECOND, T + (start + length) * SECOND, ((node, cores),), market
        ),
        st.integers(-3, SECONDS),
        st.integers(1, SECONDS),
        st.sampled_from("abcd"),
        st.integers(1, 4),
        st.booleans(),
    ),
    max_size=8,
)
_WANTED = st.one_of(st.builds(TotalCores, st.integers(1, 9)), st.builds(Nodes, st.integers(1, 3), st.integers(1, 4)))


def _free(takings: list[Taking], node: Node, second: int) -> int:
    at = T + second * SECOND
    taken = sum(
        count for each in takings if each.start <= at < each.end for name, count in each.parts if name == node.name
    )
    return max((node.cores if node.usable else 0) - taken, 0)


def _fits(takings: list[Taking], wanted: TotalCores | Nodes, start: int, length: int, sellable: int) -> bool:
    least = {node.name: min(_free(takings, node, s) for s in range(start, start + length)) for node in NODES}
    for second in range(start, start + length):
        at = T + second * SECOND
        sold = sum(count for each in takings if each.market and each.start <= at < each.end for _, count in each.parts)
        if sold + wanted.total > sellable:
            return False
    if isinstance(wanted, Nodes):
        return sum(free >= wanted.cores_per_node for free in least.values()) >= wanted.count
    return sum(least.values()) >= wanted.total


@settings(max_examples=examples(400))
@given(_TAKINGS, _WANTED, st.integers(1, 6), st.integers(0, 5), st.sampled_from([1.0, 0.5]))
def test_the_first_fit_is_the_first_second_at_which_it_fits(
    takings: list[Taking], wanted: TotalCores | Nodes, length: int, first: int, share: float
) -> None:
    for_sale = ForSale(share=share)
    table = Availability(NODES, takings, T, for_sale)
    sellable = int(13 * share)
    latest = SECONDS
    right = next((s for s in range(first, latest + 1) if _fits(takings, wanted, s, length, sellable)), None)
    found = table.first_fit(wanted, length * SECOND, T + first * SECOND, T + latest * SECOND, now=T)
    assert (None if found is None else (found[0] - T) // SECOND) == right
    if found is not None:
        assert right is not None
        start, parts = found
        assert sum(count for _, count in parts) == wanted.total
        for name, count in parts:
            node = next(each for each in NODES if each.name == name)
            assert all(_free(takings, node, s) >= count for s in range(right, right + length))
        assert table.lacking(parts, start, start + length * SECOND) == ""


@settings(max_examples=examples(100))
@given(_TAKINGS, st.integers(0, 5), st.integers(1, 9))
def test_the_load_is_the_mean_over_all_seconds(takings: list[Taking], first: int, length: int) -> None:
    table = Availability(NODES, takings, T, ForSale())
    free = sum(_free(takings, node, s) for node in NODES for s in range(first, first + length))
    right = 1 - free / (13 * length)
    assert abs(table.load(T + first * SECOND, T + (first + length) * SECOND) - right) < 1e-9


def test_a_queue_without_a_plan_fills_what_is_free_from_now_on() -> None:
    nodes = (Node("a", 4),)
    backlog = 2 * 10 * SECOND * 4 // 2  # ten seconds of the four cores
    table = Availability(nodes, [], T, ForSale(), backlog)
    assert table.load(T, T + 10 * SECOND) == 1.0
    assert table.load(T + 5 * SECOND, T + 15 * SECOND) == 0.5
    assert table.load(T + 10 * SECOND, T + 20 * SECOND) == 0.0


def test_notice_horizon_length_and_hours_are_kept() -> None:
    nodes = (Node("a", 4),)
    monday = 1_795_392_000 * SECOND  # 2026-11-23T00:00:00Z
    for_sale = ForSale(shortest_notice_s=600, horizon_h=48, longest_slot_h=3, hours=("Mon-Fri 18:00-20:00",))
    table = Availability(nodes, [], monday, for_sale)

    def fit(duration: int, earliest: int) -> int | None:
        found = table.first_fit(TotalCores(1), duration, monday + earliest, monday + 90 * HOUR, now=monday)
        return None if found is None else (found[0] - monday) // SECOND

    assert fit(HOUR, 0) == 18 * 3600
    assert fit(HOUR, 19 * HOUR) == 19 * 3600
    assert fit(2 * HOUR, 19 * HOUR) == 42 * 3600
    assert fit(3 * HOUR, 0) is None, "longer than the hours of any day"
    assert fit(HOUR, 44 * HOUR) is None, "beyond the horizon"
    anytime = Availability(nodes, [], monday, ForSale(shortest_notice_s=600, longest_slot_h=3))
    found = anytime.first_fit(TotalCores(1), HOUR, monday, monday + HOUR, now=monday)
    assert found[0] == monday + 600 * SECOND
    assert anytime.first_fit(TotalCores(1), 4 * HOUR, monday, monday + 9 * HOUR, now=monday) is None


def test_what_systems_do_is_taken_once() -> None:
    jobs = (
        RunningJob("1", "u", T - SECOND, T + 5 * SECOND, (("a", 2),)),
        RunningJob("2", "u", T - SECOND, None, (("b", 1),)),
        RunningJob("3", "u", T - 9 * SECOND, T - SECOND, (("d", 1),)),  # over its limit, and still there
        RunningJob("4", "u", T - SECOND, T + 5 * SECOND, (("a", 2),), reservation="theirs"),
        RunningJob("5", "u", T - SECOND, T + 5 * SECOND, (("a", 2),), reservation="ramp_x.1"),
    )
    waiting = (
        WaitingJob("6", "u", None, 3, 4 * SECOND, T + 2 * SECOND, ("a", "b")),
        WaitingJob("7", "u", None, 3, None, T + 2 * SECOND, ("d",), held=True),
        WaitingJob("8", "u", None, 3, None),
    )
    theirs = SystemReservation("theirs", "theirs", T, T + 9 * SECOND, (("a", 4),))
    ours = SystemReservation("ramp_x.1", "ramp_x.1", T, T + 9 * SECOND, (("b", 2),))
    picture = SystemSnapshot(T, NODES, jobs, waiting, (theirs, ours))
    found = takings_of(picture, frozenset({"ramp_x.1"}), spare_planned=True)
    assert found == [
        Taking(T, T + 9 * SECOND, (("a", 4),)),
        Taking(T - SECOND, T + 6 * SECOND, (("a", 2),)),  # Slurm reserves nothing in the second of a job's end
        Taking(T - SECOND, NEVER, (("b", 1),)),
        Taking(T - 9 * SECOND, T + SECOND, (("d", 1),)),
        Taking(T + 2 * SECOND, T + 6 * SECOND, (("a", 2), ("b", 2))),
    ]
    assert takings_of(picture, frozenset({"ramp_x.1"}), spare_planned=False) == found[:-1]


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.data(),
)
@settings(max_examples=examples(300))
def test_other_cores_of_the_same_shape_are_found_where_there_are_any(
    taken: list[int], counts: list[int], data: st.DataObject
) -> None:
    counts = counts[: len(taken)]
    names = [f"n{number}" for number in range(len(taken))]
    had = data.draw(st.permutations(names))[: len(counts)]
    parts = tuple(zip(had, counts, strict=True))
    nodes = [Node(name, 4) for name in names]
    takings = [Taking(T, T + HOUR, ((name, count),)) for name, count in zip(names, taken, strict=True) if count]
    found = Availability(nodes, takings, T, ForSale()).like(parts, T, T + HOUR)
    free = {name: 4 - count for name, count in zip(names, taken, strict=True)}
    kept = {name: count for name, count in parts if free[name] >= count}
    missing = [count for name, count in parts if name not in kept]
    others = [name for name in names if name not in kept]
    possible = any(
        all(free[name] >= count for name, count in zip(order, missing, strict=False))
        for order in itertools.permutations(others, len(missing))
    )
    assert bool(found) == possible
    if found:
        assert sorted(count for _, count in found) == sorted(counts)
        assert all(free[name] >= count for name, count in found)
        assert kept.items() <= dict(found).items()


def _openings(hours: tuple[str, ...], begin: str, days: int) -> list[str]:
    at = from_iso(begin)
    return [
        f"{iso(first)[5:16]} {iso(last)[5:16]}" for first, last in ForSale(hours=hours).openings(at, at + days * DAY)
    ]


def test_nights_of_working_days() -> None:
    # 2026-11-20 is a Friday
    assert _openings(("Mon-Fri 22:00-06:00",), "2026-11-20T23:00:00Z", 4) == [
        "11-20T23:00 11-21T06:00",
        "11-23T22:00 11-24T06:00",
        "11-24T22:00 11-24T23:00",
    ]


def test_windows_that_touch_are_one_and_weeks_wrap() -> None:
    assert _openings(("Sat-Mon 00:00-24:00",), "2026-11-20T00:00:00Z", 7) == ["11-21T00:00 11-24T00:00"]
    assert _openings(("Sun 20:00-04:00",), "2026-11-23T00:00:00Z", 1) == ["11-23T00:00 11-23T04:00"]


def test_without_hours_all_are() -> None:
    assert ForSale().openings(5, 5 + HOUR) == [(5, 5 + HOUR)]


@pytest.mark.parametrize("text", ["", "Mon", "Mon 25:00-26:00", "Mon 10:00-24:30", "Mo 10:00-11:00", "Mon 10:00-11:60"])
def test_what_are_no_hours_is_told(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"hours\[0\]: got '.*', expected .*'Mon-Fri 18:00-24:00'"):
        ForSale(hours=(text,))


def test_a_share_of_cores() -> None:
    assert [ForSale(share=share).cores(128) for share in (0, 0.3, 0.5, 1)] == [0, 38, 64, 128]
    assert ForSale(share=0.29).cores(100) == 29
