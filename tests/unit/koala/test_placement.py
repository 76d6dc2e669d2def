"""Placement policies against their definitions, by enumeration of all assignments on small systems."""

from itertools import product

from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.koala.jobs import Component
from simulation.koala.policy import Replicas, policy_of
from simulation.koala.scheduler import PLACEMENT_POLICIES

CLUSTERS = ("a", "b", "c", "d")
idle_processors = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(
    lambda free: dict(zip(CLUSTERS, free, strict=False))
)
components = st.lists(st.integers(1, 8), min_size=1, max_size=4).map(lambda sizes: [Component(size) for size in sizes])
NOWHERE = Replicas()


def fitting(parts: list[Component], idle: dict[str, int]) -> list[tuple[str, ...]]:
    """All ways to put each component whole into a cluster."""
    ways = []
    for way in product(idle, repeat=len(parts)):
        taken = dict.fromkeys(idle, 0)
        for part, cluster in zip(parts, way, strict=True):
            taken[cluster] += part.processors
        if all(taken[cluster] <= idle[cluster] for cluster in idle):
            ways.append(way)
    return ways


@given(parts=components, idle=idle_processors)
@settings(max_examples=examples(200), deadline=None)
def test_worst_fit_takes_the_emptiest_cluster_for_each(parts: list[Component], idle: dict[str, int]) -> None:
    """None is better at any step; where it fails, the emptiest is too full."""
    placed = policy_of(PLACEMENT_POLICIES, "WF").place(parts, idle, NOWHERE)
    left = dict(idle)
    for index, part in enumerate(parts):
        if placed is None and max(left.values()) < part.processors:
            return
        chosen = placed[index].cluster if placed is not None else max(left, key=left.__getitem__)
        assert left[chosen] == max(left.values())
        left[chosen] -= part.processors
    assert placed is not None
    assert min(left.values()) >= 0
    assert [one.processors for one in placed] == [part.processors for part in parts]


@given(parts=components, idle=idle_processors)
@settings(max_examples=examples(200), deadline=None)
def test_cluster_minimization_takes_the_fewest_clusters(parts: list[Component], idle: dict[str, int]) -> None:
    placed = policy_of(PLACEMENT_POLICIES, "CM").place(parts, idle, NOWHERE)
    ways = fitting(parts, idle)
    assert (placed is None) == (not ways)
    if placed is not None:
        way = tuple(one.cluster for one in placed)
        assert way in ways
        assert len(set(way)) == min(len(set(each)) for each in ways)
        assert [one.processors for one in placed] == [part.processors for part in parts]


@given(parts=components, idle=idle_processors)
@settings(max_examples=examples(200), deadline=None)
def test_the_flexible_one_splits_the_job_over_the_fewest_clusters(parts: list[Component], idle: dict[str, int]) -> None:
    """Single processors may go anywhere; so it is placed whenever there are enough in all."""
    placed = policy_of(PLACEMENT_POLICIES, "FCM").place(parts, idle, NOWHERE)
    wanted = sum(part.processors for part in parts)
    assert (placed is None) == (sum(idle.values()) < wanted)
    if placed is None:
        return
    subsets = [
        [free for free, taken in zip(idle.values(), chosen, strict=True) if taken]
        for chosen in product((False, True), repeat=len(idle))
    ]
    assert len(placed) == min(len(subset) for subset in subsets if sum(subset) >= wanted)
    assert sum(one.processors for one in placed) == wanted
    assert all(0 < one.processors <= idle[one.cluster] for one in placed)
    assert len({one.cluster for one in placed}) == len(placed)


FILES = ("f", "g")
replicas = st.builds(
    Replicas,
    sites=st.fixed_dictionaries({name: st.frozensets(st.sampled_from(CLUSTERS), min_size=1) for name in FILES}),
    bytes_of=st.fixed_dictionaries({name: st.integers(1, 1000) for name in FILES}),
    bandwidth=st.dictionaries(
        st.tuples(st.sampled_from(CLUSTERS), st.sampled_from(CLUSTERS)), st.sampled_from((1.0, 10.0, 100.0))
    ),
)


@given(size=st.integers(1, 8), files=st.sets(st.sampled_from(FILES)), idle=idle_processors, where=replicas)
@settings(max_examples=examples(300), deadline=None)
def test_close_to_files(size: int, files: set[str], idle: dict[str, int], where: Replicas) -> None:
    """Clusters that hold the files first, then by the time to bring them; the time is computed here again."""

    def seconds(cluster: str) -> float | None:
        total = 0.0
        for name in files:
            if cluster not in where.sites[name]:
                links = [where.bandwidth[s, cluster] for s in where.sites[name] if (s, cluster) in where.bandwidth]
                if not links:
                    return None
                total += where.bytes_of[name] / max(links)
        return total

    placed = policy_of(PLACEMENT_POLICIES, "CF").place([Component(size, tuple(sorted(files)))], idle, where)
    able = {name: s for name, free in idle.items() if free >= size and (s := seconds(name)) is not None}
    assert (placed is None) == (not able)
    if placed is not None:
        (one,) = placed
        assert one.cluster in able
        assert abs(able[one.cluster] - min(able.values())) < 1e-9
        holders = [name for name in able if able[name] == 0]
        assert not holders or one.cluster in holders
