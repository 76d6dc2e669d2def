"""KOALA as a whole: what every history keeps, and what the paper says of approaches, polls, claims and changes."""

import random
from pathlib import Path

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.errors import ConfigurationError, InvariantViolated
from simulation.koala import runner as runner_module
from simulation.koala.clusters import Cluster, LocalUsers
from simulation.koala.jobs import Component, Fate, KoalaJob
from simulation.koala.policy import Replicas
from simulation.koala.runner import TRANSITIONS, Change, Latencies, Stimulus
from simulation.koala.scheduler import APPROACHES, PLACEMENT_POLICIES, SIZE_POLICIES, Koala, KoalaOptions
from simulation.koala.workloads import RECIPES, make_jobs
from simulation.machine_files import load_machine, load_multicluster
from simulation.malleable.malleability import AmdahlLaw, Malleability, Sizes
from tests.unit.koala.invariants import check

S = 1_000_000
OWN_POLICIES = Path(__file__).parents[3] / "examples" / "studies" / "size_policies.py"
IDEAL = AmdahlLaw(0, 1)


def job(number: int, at_s: int, work_s: int, sizes: Sizes, **further) -> KoalaJob:
    """A job of so many processor-seconds with ideal speed-up that begins with its minimum."""
    parts = further.pop("components", (Component(sizes.minimum),))
    least = sum(part.processors for part in parts)
    how = Malleability(sizes, IDEAL, further.pop("suspension", 0))
    return KoalaJob(number, at_s * S, "test", work_s * S // least, least, how, parts, **further)


def run(*jobs: KoalaJob, clusters=None, approach="PWA", sizes="FPSMA", poll_s=1, **further):
    latencies = further.pop("latencies", Latencies())
    local = further.pop("local_users", ())
    crashes = further.pop("crashes", ())
    replicas = further.pop("replicas", None)
    options = KoalaOptions(approach, sizes, poll_interval=poll_s * S, latencies=latencies, **further)
    koala = Koala(clusters or [Cluster("a", 10)], jobs, options, replicas=replicas, local_users=local, crashes=crashes)
    koala.watch = lambda kind, subject: check(koala)
    return koala, koala.run()


def history(outcome, number: int) -> list[tuple[float, int]]:
    record = next(one for one in outcome.records if one.job.number == number)
    return [(time / S, size) for time, size in record.sizes]


def test_a_lone_job_grows_at_the_next_poll_to_its_maximum() -> None:
    """100 processor-seconds: one second on 2, then 8 of them at once: 1 + 98 / 8."""
    _, outcome = run(job(1, 0, 100, Sizes(2, 2, 8)))
    assert history(outcome, 1) == [(0, 2), (0, 8)]
    _, outcome = run(job(1, 1, 100, Sizes(2, 2, 8)), poll_s=10)
    assert history(outcome, 1) == [(1, 2), (10, 8)]
    assert outcome.records[0].ended == round((10 + 82 / 8) * S)


def test_pra_lets_nobody_in_while_a_running_job_can_grow() -> None:
    """Job 3 waits until job 1, which takes all that job 2 leaves, ends; under PWA it is let in by shrinking."""
    jobs = (
        job(1, 0, 200, Sizes(2, 2, 10)),
        job(2, 0, 16, Sizes(8, 8, 8)),
        job(3, 1, 10, Sizes(5, 5, 5)),
    )
    _, pra = run(*jobs, approach="PRA")
    assert history(pra, 1) == [(0, 2), (2, 10)]
    # 200 = 2 x 2 + 10 x 19.6: it ends at 21.6 s, which the poll at 22 s sees
    assert pra.records[2].started == 22 * S
    _, pwa = run(*jobs, approach="PWA")
    assert pwa.records[2].started == 2 * S
    _, later = run(*jobs[::2], approach="PWA")
    assert history(later, 1)[:3] == [(0, 2), (0, 10), (1, 5)]
    assert later.records[1].started == 1 * S


def test_pwa_does_not_shrink_where_that_would_not_be_enough() -> None:
    """A minimum of 4 leaves 6 of 10: a job of 7 waits, and the running one keeps growing."""
    _, outcome = run(job(1, 0, 100, Sizes(4, 4, 10)), job(2, 1, 7, Sizes(7, 7, 7)))
    assert history(outcome, 1) == [(0, 4), (0, 10)]
    assert outcome.records[1].started >= outcome.records[0].ended
    assert all(sent.processors > 0 for sent in outcome.sent)


def test_later_jobs_may_pass_and_tries_are_counted() -> None:
    """The queue is first fit without reservation; past the threshold a submission fails."""
    jobs = (job(1, 0, 80, Sizes(8, 8, 8)), job(2, 1, 9, Sizes(9, 9, 9)), job(3, 2, 4, Sizes(2, 2, 2)))
    _, outcome = run(*jobs)
    assert [record.started // S for record in outcome.records] == [0, 10, 2]
    _, outcome = run(*jobs, tries_max=3)
    assert outcome.records[1].fate is Fate.SUBMISSION_FAILED
    assert outcome.records[1].tries == 4


def test_ft_takes_powers_of_two_and_may_give_back_more_than_it_is_asked_for() -> None:
    """10 idle: from 2 to 8, not 10; asked for 1 of 8 it gives 4."""
    ft = Sizes(2, 2, 32, powers_of_two=True)
    _, outcome = run(job(1, 0, 100, ft), job(2, 1, 3, Sizes(3, 3, 3)))
    assert history(outcome, 1)[:3] == [(0, 2), (0, 8), (1, 4)]
    assert [(sent.processors, sent.accepted) for sent in outcome.sent[:2]] == [(8, 6), (-1, 4)]


def test_the_threshold_is_for_local_users() -> None:
    """Of 10 processors 4 are kept: a job of 7 can never come."""
    with pytest.raises(ConfigurationError, match="job 1 needs 7 processors"):
        run(job(1, 0, 7, Sizes(7, 7, 7)), clusters=[Cluster("a", 10, threshold=4)])


def test_load_behind_the_schedulers_back_is_seen_at_the_next_poll_only() -> None:
    """Local users take 9 of 10 at 1 s; at 2 s KOALA still believes in 10, claims, and has to let its job wait."""
    cluster = Cluster("a", 10)
    users = LocalUsers(cluster, [(1 * S, 20 * S, 9)])
    _, outcome = run(job(1, 2, 10, Sizes(5, 5, 5)), clusters=[cluster], local_users=[users], poll_s=30)
    assert outcome.records[0].tries == 1
    assert outcome.records[0].started == 30 * S


def test_files_are_brought_before_a_job_starts_and_processors_are_claimed_late() -> None:
    """60 s of transfer: a cluster that cannot reserve is claimed 10 s before, so a short job fits in between."""
    replicas = Replicas({"f": frozenset({"b"})}, {"f": 600}, {("b", "a"): 10.0})
    jobs = (job(1, 0, 8, Sizes(8, 8, 8), components=(Component(8, ("f",)),)), job(2, 0, 80, Sizes(8, 8, 8)))
    clusters = [Cluster("a", 10), Cluster("b", 4)]
    _, outcome = run(*jobs, clusters=clusters, placement="CF", replicas=replicas)
    assert [record.started // S for record in outcome.records] == [60, 0]
    clusters = [Cluster("a", 10, reserves=True), Cluster("b", 4)]
    _, outcome = run(*jobs, clusters=clusters, placement="CF", replicas=replicas)
    assert [record.started // S for record in outcome.records] == [60, 61]


def test_stealing_shrinks_for_all_who_wait_and_gives_out_what_is_released_as_it_comes() -> None:
    """Two jobs hold all 10. A job of 4 and one of 2 come while it takes 2 s and 5 s to give up their work.

    Average: the 4 first, once all 4 are released; the 2 are asked for after that. Stealing: all 6 are asked for at
    once, 3 of each; the job that gives up first leaves 3, which are enough for the job of 2 only, so it starts on what
    was asked for the first one.
    """
    quick, slow = 1 * S, 4 * S
    jobs = (
        job(1, 0, 1000, Sizes(2, 2, 5), suspension=quick),
        job(2, 0, 1000, Sizes(2, 2, 5), suspension=slow),
        job(3, 10, 40, Sizes(4, 4, 4)),
        job(4, 10, 20, Sizes(2, 2, 2)),
    )
    latencies = Latencies(stub=0, release=1 * S)
    _, stealing = run(*jobs, sizes=f"{OWN_POLICIES}:Stealing", latencies=latencies)
    first = [(sent.job, sent.processors) for sent in stealing.sent if sent.processors < 0][:2]
    assert sorted(first) == [(1, -3), (2, -3)]
    assert [record.started / S for record in stealing.records] == [0, 0, 15, 12]
    _, average = run(*jobs, sizes=f"{OWN_POLICIES}:Average", latencies=latencies)
    first = [(sent.job, sent.processors) for sent in average.sent if sent.processors < 0][:2]
    assert sorted(first) == [(1, -2), (2, -2)]
    assert average.records[2].started == 15 * S
    assert average.records[3].started > 15 * S


@pytest.mark.parametrize(
    "policy",
    [
        *SIZE_POLICIES.names(),
        *(f"{OWN_POLICIES}:{name}" for name in ("Equipartition", "Folding", "Preferred", "Stealing")),
    ],
    ids=lambda policy: policy.rpartition(":")[2],
)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(24), deadline=None)
def test_any_history(policy: str, seed: int) -> None:
    """Crashes in mid-change, latencies, local users, thresholds: nothing is lost, nobody is forgotten."""
    draw = random.Random(seed)
    clusters = [Cluster(name, draw.randint(8, 24), threshold=draw.choice((0, 3))) for name in "abc"]
    users = [
        LocalUsers(
            cluster, sorted((draw.randint(0, 300) * S, draw.randint(1, 90) * S, draw.randint(1, 12)) for _ in "12")
        )
        for cluster in clusters
    ]
    jobs = []
    for number in range(1, 14):
        least = draw.choice((1, 2, 2, 4))
        sizes = draw.choice(
            (
                Sizes(least, least, least),
                Sizes(least, least, 20),
                Sizes(least, least, 16, powers_of_two=True),
            )
        )
        parts = (Component(least),) if least == 1 or draw.random() < 0.7 else (Component(least // 2),) * 2
        suspension = draw.choice((0, 7 * S))
        jobs.append(
            job(number, draw.randint(0, 200), draw.randint(1, 400), sizes, components=parts, suspension=suspension)
        )
    jobs.sort(key=lambda one: one.submit_time)
    koala, outcome = run(
        *jobs,
        clusters=clusters,
        approach=draw.choice(APPROACHES.names()),
        sizes=policy,
        placement=draw.choice(("WF", "CM", "FCM", "CF")),
        poll_s=draw.choice((1, 10)),
        latencies=Latencies(draw.choice((0, 4 * S)), draw.choice((0, 2 * S))),
        local_users=users,
        crashes=[(draw.randint(0, 300) * S, draw.randint(1, 13)) for _ in range(5)],
        fills=draw.random() < 0.3,
    )
    assert all(record.fate is not None for record in outcome.records)
    assert all(not cluster.held for cluster in koala.clusters.values())
    assert all(not koala.manager.shrinking(cluster) for cluster in koala.clusters)
    for record in outcome.records:
        if record.fate is Fate.COMPLETED:
            least = record.job.malleability.sizes.minimum
            assert least <= record.mean_size <= record.largest_size


def test_the_checks_bite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that forgets the stubs it holds when a job grows."""
    monkeypatch.setattr(runner_module.Runner, "would_take", lambda self, offered: offered)
    with pytest.raises(InvariantViolated):
        run(job(1, 0, 100, Sizes(2, 2, 8)))


def test_every_step_that_the_table_lacks_is_refused() -> None:
    for state in {before for before, _ in TRANSITIONS} | set(TRANSITIONS.values()):
        for stimulus in Stimulus:
            change = Change(1, "a", state=state)
            if (state, stimulus) in TRANSITIONS:
                change.step(stimulus)
                assert change.state is TRANSITIONS[state, stimulus]
            else:
                with pytest.raises(InvariantViolated, match="job 1"):
                    change.step(stimulus)


def test_the_papers_workloads() -> None:
    """Section 6.3: 300 jobs, two applications alike, 2 minutes or 30 seconds apart, half rigid in the mixed ones."""
    for name, gap, rigid in (("Wm", 120, 0), ("Wmr", 120, 150), ("W'm", 30, 0), ("W'mr", 30, 150)):
        jobs = make_jobs(RECIPES[name], 7)
        assert len(jobs) == 300
        assert jobs[-1].submit_time == 299 * gap * S
        assert abs(sum(not one.malleable for one in jobs) - rigid) < 30
        assert abs(sum(one.application == "FT" for one in jobs) - 150) < 30
        assert {one.malleability.sizes.maximum for one in jobs} <= {2, 32, 46}
    same = [[one.application for one in make_jobs(RECIPES[name], 7)] for name in ("Wm", "Wmr")]
    assert same[0] == same[1]


def test_das3_is_the_papers_table_1() -> None:
    """85, 41, 68, 46 and 32 nodes: 272; one pool for the schedulers of one machine."""
    description = load_multicluster("das3")
    assert [(one.name, one.nodes) for one in description.cluster] == [
        ("vu", 85),
        ("uva", 41),
        ("delft", 68),
        ("multimedian", 46),
        ("leiden", 32),
    ]
    assert load_machine("das3").capacity == 272


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = "x"\nkind = "multicluster"\ncluster = []\n', "no cluster; give at least one"),
        (
            'name = "x"\nkind = "multicluster"\n' + 2 * '[[cluster]]\nname = "a"\nnodes = 2\n',
            "two clusters have the name 'a'",
        ),
        (
            'name = "x"\nkind = "multicluster"\n[[cluster]]\nname = "a"\nnodes = 2\nthreshold = 3\n',
            "must be at most the cluster's 2 nodes, got 3",
        ),
        ('name = "x"\nkind = "flat"\nprocessors = 4\n', "expected 'multicluster'"),
    ],
)
def test_a_file_that_is_no_multicluster(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        load_multicluster(path)


def test_options_that_do_not_exist_are_told() -> None:
    with pytest.raises(ConfigurationError, match="unknown size policy 'fpmsa'; did you mean 'fpsma'"):
        run(job(1, 0, 1, Sizes(2, 2, 2)), sizes="FPMSA")
    assert set(PLACEMENT_POLICIES.names()) == {"wf", "cf", "cm", "fcm"}
    assert set(APPROACHES.names()) == {"pra", "pwa"}
