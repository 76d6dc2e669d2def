"""`simulation.koala`: a log's jobs on the clusters of a file, judged by what the trace says and by brute force."""

import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import simulation
from ramp.cli.main import cli
from ramp.errors import ConfigurationError, WorkloadError
from simulation.koala.jobs import Component
from simulation.koala.policy import Replicas, policy_of
from simulation.koala.scheduler import APPROACHES, PLACEMENT_POLICIES, SIZE_POLICIES
from simulation.machines.hostlist import expand
from simulation.machines.kinds.multicluster import ClusterDescription, MulticlusterDescription
from simulation.workload.swf import SwfLog
from tests import queue_runs

NODES = {"a": 9, "b": 6, "c-1": 4}


def lines_of(run: Any) -> list[dict[str, Any]]:
    """The trace without its first line, which names the machine."""
    header, *lines = run.trace
    assert header["trace"] == 1
    return lines


def log_of(*jobs: tuple[int, int, int]) -> SwfLog:
    """A log of (submission, run time, processors), in seconds."""
    return queue_runs.log_of(("submit_time", "run_time", "requested_processors"), *jobs)


def machine_of(**kept: Any) -> MulticlusterDescription:
    return MulticlusterDescription("three", tuple(ClusterDescription(name, n, **kept) for name, n in NODES.items()))


def some_jobs(seed: int, largest: int, shortest: int = 0) -> list[tuple[int, int, int]]:
    draw = random.Random(seed)
    return sorted((draw.randint(0, 90), draw.randint(shortest, 60), draw.randint(1, largest)) for _ in range(20))


def segments(line: dict[str, Any]) -> list[dict[str, Any]]:
    return line.get("segments", [line])


@pytest.mark.parametrize("approach", APPROACHES.names())
@pytest.mark.parametrize("placement", PLACEMENT_POLICIES.names())
@given(
    seed=st.integers(0, 10**6),
    sizes=st.sampled_from(SIZE_POLICIES.names()),
    threshold=st.integers(0, 2),
    components=st.integers(1, 3),
    share=st.sampled_from((None, 0.5, 1.0)),
    cost=st.sampled_from((0, 5)),
)
@settings(max_examples=examples(40), deadline=None)
def test_no_node_has_two_jobs_and_jobs_have_all_of_theirs_or_none(
    approach: str, placement: str, seed: int, sizes: str, threshold: int, components: int, share: Any, cost: int
) -> None:
    """From the trace alone: nodes, thresholds, and rigid jobs that hold exactly what they asked for, all the time."""
    jobs = some_jobs(seed, 16)
    run = simulation.koala(
        log_of(*jobs), machine=machine_of(), approach=approach, sizes=sizes, placement=placement, threshold=threshold,
        components=components, malleable_share=share, resize_cost_s=cost * (share is not None), poll_s=7, seed=seed,
    )  # fmt: skip
    lines = lines_of(run)
    assert len(lines) + run.metrics.refused == len(jobs)
    moments = {each["start_time"] for line in lines for each in segments(line)}
    for now in moments:
        busy: list[str] = []
        for line in lines:
            for each in segments(line):
                if each["start_time"] <= now < each["end_time"]:
                    busy += expand(each["hosts"])
        assert len(busy) == len(set(busy))
        for name, nodes in NODES.items():
            assert sum(node.rpartition("-")[0] == name for node in busy) <= nodes - threshold
    malleable = {line["job_number"] for line in lines if len(segments(line)) > 1} if share else set()
    for line in lines:
        submit, run_time, size = jobs[line["job_number"] - 1]
        assert line["start_time"] >= submit
        assert all(len(set(expand(each["hosts"]))) == sum(each["clusters"].values()) for each in segments(line))
        if share is None:
            assert line["end_time"] - line["start_time"] == run_time
            assert sum(line["clusters"].values()) == size
        elif line["job_number"] in malleable:
            assert all(-(-size // 4) <= sum(each["clusters"].values()) <= 4 * size for each in segments(line))
            assert placement == "fcm" or {len(each["clusters"]) for each in segments(line)} == {1}


@pytest.mark.parametrize("placement", PLACEMENT_POLICIES.names())
@given(seed=st.integers(0, 10**6), components=st.integers(1, 3), poll=st.sampled_from((1, 7)))
@settings(max_examples=examples(40), deadline=None)
def test_rigid_jobs_start_when_a_scan_of_every_second_starts_them(
    placement: str, seed: int, components: int, poll: int
) -> None:
    """Brute force: second by second ends, submissions, polls; the queue is scanned from its head to its tail."""
    jobs = some_jobs(seed, 12, 1)
    place = policy_of(PLACEMENT_POLICIES, placement).place
    parts: dict[int, list[Component]] = {}
    for number, (_, _, size) in enumerate(jobs, 1):
        for count in range(min(components, size), size + 1):
            split = [Component(size // count + (index < size % count)) for index in range(count)]
            if number not in parts and place(split, NODES, Replicas()) is not None:
                parts[number] = split
    idle, ends, started, queue = dict(NODES), [], {}, []
    for now in range(5000):
        for ended in [each for each in ends if each[0] == now]:
            ends.remove(ended)
            for one in ended[1]:
                idle[one.cluster] += one.processors
        coming = [number for number, job in enumerate(jobs, 1) if job[0] == now and number in parts]
        for number in [*coming, *(list(queue) if now % poll == 0 else [])]:
            placed = place(parts[number], idle, Replicas())
            if placed is None:
                queue += [number] if number not in queue else []
                continue
            queue = [each for each in queue if each != number]
            started[number] = now
            ends.append((now + jobs[number - 1][1], placed))
            for one in placed:
                idle[one.cluster] -= one.processors
    run = simulation.koala(log_of(*jobs), machine=machine_of(), placement=placement, components=components, poll_s=poll)
    assert {line["job_number"]: line["start_time"] for line in lines_of(run)} == started


def test_a_job_larger_than_a_cluster_waits_for_all_of_its_parts() -> None:
    """14 of 19 nodes: 7 + 7 fit nowhere, 5 + 5 + 4 do; they need c-1, which is busy until 30."""
    run = simulation.koala(log_of((0, 30, 4), (1, 30, 4), (2, 30, 4), (3, 10, 14)), machine=machine_of(), poll_s=1)
    *_, last = run.trace
    assert (last["start_time"], sum(last["clusters"].values())) == (31, 14)
    assert run.measures["co_allocated_jobs"] == 1
    with pytest.raises(WorkloadError, match="none of the 1 jobs fits"):
        simulation.koala(log_of((0, 1, 20)), machine=machine_of())


def test_the_file_says_what_local_users_have(tmp_path: Path) -> None:
    """Half of each cluster is theirs for ever; a log of theirs fills `a` from 5 s to 25 s."""
    run = simulation.koala(log_of((0, 9, 4), (0, 9, 6)), machine=machine_of(local_share=0.5), poll_s=1)
    # 5, 3 and 2 are left: 4 in `a`; 3 + 3 fit no sooner than it ends
    assert [(line["start_time"], line["clusters"]) for line in lines_of(run)] == [
        (0, {"a": 4}),
        (9, {"a": 3, "b": 3}),
    ]
    path = tmp_path / "local.swf"
    path.write_text("1 5 0 20 9 -1 -1 9 -1 -1 1 1 1 1 -1 -1 -1 -1\n")
    only = MulticlusterDescription("one", (ClusterDescription("a", 9, local_log=str(path)),))
    run = simulation.koala(log_of((6, 10, 3)), machine=only, poll_s=5)
    assert [line["start_time"] for line in lines_of(run)] == [25]
    # KOALA believes in 6 idle nodes of `b`: what it has claimed of `a` for the first job is the second one's at once
    two = (ClusterDescription("a", 9), ClusterDescription("b", 6, local_log=str(path.with_name("other.swf"))))
    path.with_name("other.swf").write_text(path.read_text().replace(" 9 ", " 6 "))
    log = log_of((6, 10, 12), (7, 5, 9))
    run = simulation.koala(log, machine=MulticlusterDescription("two", two), components=2, poll_s=30)
    found = {line["job_number"]: (line["start_time"], line["clusters"]) for line in lines_of(run)}
    assert found == {1: (30, {"a": 6, "b": 6}), 2: (7, {"a": 9})}


def test_the_papers_workloads_by_their_names() -> None:
    """300 jobs of section 6.3: FT holds powers of two up to 32, GADGET-2 up to 46, rigid jobs 2."""
    for name in ("wm", "WMR", "wpm", "W'mr"):
        run = simulation.koala(name, machine="das3", approach="pra" if name in {"wm", "WMR"} else "pwa", sizes="egs")
        applications = dict(zip(run.log.job_number.tolist(), run.log.executable_number.tolist(), strict=True))
        held = [
            (applications[line["job_number"]], each["shape"][0]) for line in lines_of(run) for each in segments(line)
        ]
        assert {size for application, size in held if application == 2} <= {2, 4, 8, 16, 32}
        assert max(size for application, size in held if application == 1) == 46
        assert len(run.jobs) == 300
        assert "four numbers" in run.malleable.speed_up
        assert (run.malleable.jobs == 300) == (name in {"wm", "wpm"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--scheduler easy", "--scheduler: does not go with --approach: KOALA is the scheduler"),
        ("--reservation 1:2:3", "KOALA has no advance reservations"),
        ("--failures 30d:4h", "clusters do not fail"),
        ("--overrun keep", "KOALA uses no requested times"),
        ("--malleable-share 0.5", "the workload Wm fixes it"),
        ("--sizes egz", "did you mean 'egs'"),
        ("--threshold 33", "must be 0 to the 32 nodes of cluster leiden, got 33"),
        ("--placement nowhere.py:Mine", "no such file: nowhere.py"),
    ],
)
def test_what_does_not_go_together_is_refused(words: str, said: str) -> None:
    begin = ["simulate", "--machine", "das3", "--log", "wm", "--approach", "pra"]
    done = CliRunner().invoke(cli, [*begin, *words.split()])
    assert isinstance(done.exception, ConfigurationError)
    assert said in f"{done.output}{done.exception}"


def test_options_of_koala_need_an_approach() -> None:
    for words, said in (("--scheduler easy --fill", "--fill: needs --approach"), ("", "give it, or --approach")):
        done = CliRunner().invoke(cli, ["simulate", "--machine", "das3", "--log", "synthetic", *words.split()])
        assert said in f"{done.output}{done.exception}"


def test_a_policy_of_ones_own_is_used_by_its_place() -> None:
    """The example of the page: of the clusters with room, each component gets the one with the fewest idle nodes."""
    place = f"{Path(__file__).parents[3] / 'examples' / 'own_placement.py'}"
    jobs = log_of((0, 9, 3), (0, 9, 1), (1, 9, 7), (2, 9, 6))
    run = simulation.koala(jobs, machine=machine_of(), placement=f"{place}:BestFit")
    found = {line["job_number"]: line["clusters"] for line in lines_of(run)}
    assert found == {1: {"c-1": 3}, 2: {"c-1": 1}, 3: {"a": 7}, 4: {"b": 6}}
    with pytest.raises(ConfigurationError, match="got BestFit, expected a class derived from SizePolicy"):
        simulation.koala(jobs, machine=machine_of(), sizes=f"{place}:BestFit")
