"""What Slurm prints, as it is read: recorded from 22.05.8 (`slurm_22_05/`), or quoted from others' test data."""

import json
from pathlib import Path

import pytest

from ramp.batch.commands import Completed, ask
from ramp.batch.slurm import partition, queue, reservations
from ramp.batch.slurm.system import PING, SlurmSystem
from ramp.batch.slurm.times import duration_of, instant_of, told
from ramp.batch.system import Node, RunningJob, SystemReservation, WaitingJob, WantedReservation
from ramp.errors import BatchSystemError, CommandFailed, SystemRefused
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, from_iso

RECORDED = Path(__file__).parent / "slurm_22_05"
ALPHA = {f"alpha{number}": 8 for number in range(1, 17)}


def _at(text: str) -> int:
    return from_iso(f"2026-11-{text}Z")


def _recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


def test_nodes_and_which_of_them_can_be_used() -> None:
    listed = partition.parse_nodes(_recorded("sinfo.txt"))
    assert [node.name for node in listed.nodes] == list(ALPHA)
    assert {node.cores for node in listed.nodes} == {8}
    assert [(node.name, node.state, node.reason) for node in listed.nodes if not node.usable] == [
        ("alpha13", "down", "test"),
        ("alpha16", "draining", "soon"),
    ]
    assert listed.threads == 1


@pytest.mark.parametrize(
    ("state", "usable"),
    # sinfo(1), "NODE STATE CODES": * does not answer, ~ sleeps, # wakes up, $ is maintained, @ and ^ start anew
    [
        *[("idle", True), ("idle~", True), ("mixed#", True), ("allocated-", True), ("planned", True)],
        *[("idle*", False), ("drained", False), ("down~", False), ("idle@", False), ("fail", False), ("maint", False)],
    ],
)
def test_states_of_nodes(state: str, usable: bool) -> None:
    (node,) = partition.parse_nodes(f"n1|{state}|2|4|2|16|64000|(null)|(null)|a | reason").nodes
    assert (node.usable, node.cores, node.reason) == (usable, 8, "a | reason")


@pytest.mark.parametrize(
    ("state", "waited_for"),
    # sinfo(1), "NODE STATE CODES": what remains silent "will be placed in the DOWN state"; UNKNOWN just after a start
    [
        *[("idle*", True), ("mixed*", True), ("allocated*", True), ("unknown", True), ("unknown*", True)],
        *[("idle", False), ("down*", False), ("down", False), ("drained*", False), ("idle@", False)],
    ],
)
def test_slurm_itself_waits_for_nodes_that_are_silent(state: str, waited_for: bool) -> None:
    (node,) = partition.parse_nodes(f"n1|{state}|2|4|2|16|64000|(null)|(null)|none").nodes
    assert node.waited_for == waited_for
    assert not (node.usable and waited_for)


@pytest.mark.parametrize(
    "text",
    [
        *["n1|idle", "n1|idle|1|8|1|x|1|(null)|(null)|none", "n1|??|1|8|1|8|1|(null)|(null)|none"],
        "n1|idle|1|8|1|8|1|(null)|(null)|a\n" * 2,
    ],
)
def test_what_is_no_list_of_nodes_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        partition.parse_nodes(text)


def _queue() -> tuple[tuple[RunningJob, ...], tuple[WaitingJob, ...]]:
    listed = partition.parse_nodes(_recorded("sinfo.txt"))
    jobs = queue.parse_queue(_recorded("squeue.txt"))
    assert queue.cores_unclear(jobs, ALPHA, 1)
    allocations = queue.parse_allocations(_recorded("squeue.json"))
    return queue.running_jobs(jobs, listed.nodes, allocations, 1, {}), queue.waiting_jobs(jobs, "debug", 1)


def test_running_jobs_with_the_cores_of_each_node() -> None:
    running, _ = _queue()
    begun, submitted = _at("21T23:11:53"), _at("21T23:11:53")
    assert running == (
        RunningJob(
            "35", "root", begun, _at("21T23:21:53"), (("alpha1", 8), ("alpha2", 8), ("alpha3", 4)), "", submitted
        ),
        RunningJob("36", "root", _at("21T23:13:06"), None, (("alpha16", 4),), "", submitted),
        RunningJob("40", "root", begun, _at("22T00:11:53"), (("alpha11", 4),), "", submitted),
        RunningJob("41", "root", begun, _at("21T23:31:53"), (("alpha9", 8), ("alpha10", 4)), "ramp_firm2", submitted),
    )


def test_what_agents_have_launched_is_known_by_its_name() -> None:
    """A name may be anything, with bars in it too."""
    parse = reservations.launched_question("ramp_big1.o").parse
    assert parse("12|ramp_job-1\n13|sleep\n14_3|ramp_a|b\n15|x|ramp_\n\n16|RAMP_1\n") == {"12", "14_3"}
    assert parse("") == frozenset()


def test_without_json_a_job_counts_with_as_much_of_each_node_as_it_may_have() -> None:
    listed = partition.parse_nodes(_recorded("sinfo.txt"))
    jobs = queue.parse_queue(_recorded("squeue.txt"))
    parts = {job.job_id: job.parts for job in queue.running_jobs(jobs, listed.nodes, {}, 1, {})}
    assert parts["35"] == (("alpha1", 8), ("alpha2", 8), ("alpha3", 8))
    assert parts["36"] == (("alpha16", 4),)


def test_waiting_jobs_with_their_plans() -> None:
    _, waiting = _queue()
    submitted = _at("21T23:11:53")
    wide = tuple(f"alpha{number}" for number in (*range(1, 13), 14, 15))
    assert waiting == (
        WaitingJob("38", "root", submitted, 4, HOUR, _at("22T00:11:53"), (), True),
        WaitingJob(
            *("42", "root", submitted, 12, 20 * MINUTE, _at("21T23:31:53"), ("alpha9", "alpha10"), False, "ramp_firm2")
        ),
        WaitingJob("43", "root", _at("21T23:13:04"), 112, 30 * MINUTE, _at("22T00:11:53"), wide, False),
        WaitingJob("39", "root", submitted, 4, HOUR, None, (), True),
    )
    assert queue.waiting_jobs(queue.parse_queue(_recorded("squeue.txt")), "other", 1) == ()


def test_cores_of_nodes_as_23_11_tells_them() -> None:
    # github.com/spiffe/slurm-spire-syncer, internal/slurm/testdata/slurm_23_11.json, commit 5c18500: jobs 1001, 1003
    of_1001 = [
        {"sockets": {"0": {"cores": {"0": "allocated_and_in_use"}}}, "nodename": name, "cpus_used": 2}
        for name in ("node01", "node02")
    ]
    jobs = [
        {"job_id": 1001, "job_resources": {"nodes": "node[01-02]", "allocated_cores": 4, "allocated_nodes": of_1001}},
        {"job_id": 1003, "job_resources": {"nodes": "node[04-05]", "allocated_cores": 2, "allocated_nodes": []}},
        {"job_id": 1004, "job_resources": {}},
    ]
    # github.com/lingweicai/easyhpc, bridge/internal/slurm: job 560 of a cluster with OpenHPC, where no cores are named
    of_560 = [{"nodename": name, "cpus_used": 2, "memory_used": 0} for name in ("c31", "c32")]
    jobs.append({"job_id": 560, "job_resources": {"nodes": "c[31-32]", "allocated_nodes": of_560}})
    found = queue.parse_allocations(json.dumps({"errors": [], "jobs": jobs}), threads=2)
    assert found == {"1001": (("node01", 1), ("node02", 1)), "560": (("c31", 1), ("c32", 1))}


def test_cores_of_nodes_as_24_11_tells_them() -> None:
    # github.com/spiffe/slurm-spire-syncer, internal/slurm/testdata/mixed.json, commit 5c18500: jobs 1001, 1004, 1005
    allocation = [{"name": f"gpu{number}", "index": number - 1, "cpus": {"count": 4}} for number in (1, 2, 3)]
    jobs = [
        {"job_id": 1001, "job_resources": {"cpus": 8, "nodes": {"count": 2, "list": "node[01-02]", "whole": False}}},
        {"job_id": 1004, "job_resources": {"nodes": {"count": 3, "list": "gpu[1-3]", "allocation": allocation}}},
        {"job_id": 1005},
    ]
    found = queue.parse_allocations(json.dumps({"errors": [], "warnings": [], "jobs": jobs}), threads=1)
    assert found == {"1004": (("gpu1", 4), ("gpu2", 4), ("gpu3", 4))}


def test_elements_of_arrays_are_called_as_in_the_text() -> None:
    resources = {"allocated_nodes": [{"nodename": "n1", "cpus_used": 3}]}
    number = {"set": True, "infinite": False, "number": 7}
    none = {"set": False, "infinite": False, "number": 0}
    jobs = [
        {"job_id": 31, "array_job_id": 30, "array_task_id": 3, "job_resources": resources},
        {"job_id": 32, "array_job_id": 0, "array_task_id": None, "job_resources": resources},
        {"job_id": 33, "array_job_id": number, "array_task_id": number, "job_resources": resources},
        {"job_id": 34, "array_job_id": none, "array_task_id": none, "job_resources": resources},
    ]
    assert set(queue.parse_allocations(json.dumps({"jobs": jobs}))) == {"30_3", "32", "7_7", "34"}


def test_errors_inside_json_are_errors_though_the_exit_code_is_0() -> None:
    text = _recorded("failures.txt")
    said = text[text.index("{\n") : text.index("}rc=0") + 1].replace('"nodes"', '"jobs"')
    with pytest.raises(ValueError, match="Unspecified error"):
        queue.parse_allocations(said)


@pytest.mark.parametrize("line", ["1|RUNNING", "1|RUNNING|u|p|10:00|yesterday|NONE|N/A|1|1|n1|(null)|1|(null)|None"])
def test_what_is_no_queue_is_told(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        queue.parse_queue(line)


def test_reservations_as_they_are_listed() -> None:
    found = reservations.parse_reservations(_recorded("reservations.txt"), ALPHA)
    assert found == (
        SystemReservation(
            *("ramp_hold1", "ramp_hold1", _at("22T01:11:53"), _at("22T02:11:53"), (("alpha1", 8), ("alpha2", 4))),
            ("market",),
        ),
        SystemReservation(
            *("ramp_firm2", "ramp_firm2", _at("21T23:11:53"), _at("21T23:41:53"), (("alpha9", 8), ("alpha10", 8))),
            ("buyer1", "root"),
            active=True,
        ),
        SystemReservation(
            *("ramp_firm3", "ramp_firm3", _at("21T23:13:04"), _at("21T23:43:04"), (("alpha4", 8),)),
            ("buyer1",),
            active=True,
        ),
    )
    assert reservations.parse_reservations("No reservations in the system\n", ALPHA) == ()


def test_a_reservation_of_odd_names_endless_and_without_cores_of_each_node() -> None:
    # names and the endless one are those of the recorded session; the cores in all stand alone for the first seconds
    text = (
        "ReservationName=a=b StartTime=2026-11-21T23:56:09 EndTime=Unknown Duration=28931-06:32:06 Nodes=alpha[7-8] "
        "NodeCnt=2 CoreCnt=13 Features=(null) PartitionName=debug Flags= TRES=cpu=13 Users=(null) Groups=(null) "
        "Accounts=acct1 Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
    )
    (found,) = reservations.parse_reservations(text, ALPHA)
    assert (found.name, found.end, found.users) == ("a=b", None, ())
    assert (found.parts, found.cores_in_all) == ((("alpha7", 8), ("alpha8", 8)), 13)
    with pytest.raises(ValueError, match="invalid reservation line"):
        reservations.parse_reservations("slurm_load_reservations error: Unable to contact slurm controller", ALPHA)


def test_a_reservation_is_made_in_the_one_form_that_is_checked_against_everything() -> None:
    wanted = WantedReservation("ramp_s.k", 1_795_302_713 * SECOND, 1_795_302_808 * SECOND, (("a1", 8), ("a2", 3)))
    assert reservations.make_question(wanted, "market", "debug") == (
        *("create", "reservation", "ReservationName=ramp_s.k", "PartitionName=debug"),
        *("StartTime=uts1795302713", "EndTime=uts1795302808", "Nodes=a1,a2", "CoreCnt=8,3", "Users=market"),
    )


def test_times() -> None:
    assert instant_of("2026-11-21T23:11:53") == _at("21T23:11:53")
    assert [instant_of(text) for text in ("N/A", "NONE", "Unknown")] == [None] * 3
    assert duration_of("1-02:03:04") == DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND
    assert [duration_of(text) for text in ("10:00", "1:00:00")] == [10 * MINUTE, HOUR]
    assert duration_of("UNLIMITED") is None
    assert told(5 * SECOND + 999_999) == "uts5"
    for read in (instant_of, duration_of):
        with pytest.raises(ValueError, match=r"."):
            read("tomorrow")


WANTED = WantedReservation("ramp_s.k", HOUR, 2 * HOUR, (("a1", 8),))


def _system(*answers: Completed) -> tuple[SlurmSystem, list[tuple[str, ...]]]:
    said, asked = list(answers), []

    def run(argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        asked.append(argv)
        return said.pop(0) if said else Completed(argv, 0, "", "")

    return SlurmSystem(run, "debug", "market", wait=lambda _: None), asked


@pytest.mark.parametrize(
    ("said", "sure", "busy"),
    [
        # as 22.05.8 says them (exit code 1, standard error)
        ("Error creating the reservation: Requested nodes are busy", True, True),
        ("Error creating the reservation: Requested reservation overlaps with another reservation", True, True),
        ("Error creating the reservation: Invalid node name specified", True, True),
        ("Error creating the reservation: Invalid user id", True, False),
        ("Error creating the reservation: Invalid time specified", True, False),
        ("Error creating the reservation: Unexpected message received", False, False),
        ("Error creating the reservation: Duplicate reservation name", False, False),
        ("scontrol: error: something new", False, False),
    ],
)
def test_what_is_a_sure_no_and_what_leaves_doubt(said: str, sure: bool, busy: bool) -> None:
    system, _ = _system(Completed((), 1, "", said))
    with pytest.raises(BatchSystemError) as failed:
        system.make(WANTED)
    assert isinstance(failed.value, SystemRefused) is sure
    assert not busy or (isinstance(failed.value, SystemRefused) and failed.value.busy)


def test_jobs_are_cancelled_until_the_reservation_can_be_deleted() -> None:
    in_use = Completed((), 1, "", "delete_reservation reservation=ramp_s.k: Requested reservation is in use")
    done = Completed((), 0, "", "")
    system, asked = _system(Completed((), 0, "7\n8\n7\n", ""), done, in_use, Completed((), 0, "8\n", ""), done, done)
    system.remove(SystemReservation("ramp_s.k", "ramp_s.k", 0, 1, ()))
    assert [argv[0:2] for argv in asked] == [
        *[("squeue", "-h"), ("scancel", "--quiet"), ("scontrol", "delete")],
        *[("squeue", "-h"), ("scancel", "--quiet"), ("scontrol", "delete")],
    ]
    assert asked[1] == ("scancel", "--quiet", "7", "8")


def test_a_reservation_that_is_gone_is_no_error() -> None:
    gone = Completed((), 1, "", "delete_reservation reservation=ramp_s.k: Requested reservation is invalid")
    system, _ = _system(Completed((), 0, "", ""), gone)
    system.remove(SystemReservation("ramp_s.k", "ramp_s.k", 0, 1, ()))


def test_no_nodes_are_never_an_empty_machine() -> None:
    system, _ = _system(Completed((), 0, "", ""))
    with pytest.raises(BatchSystemError, match="no nodes of partition 'debug'"):
        system.snapshot(0)


def test_a_dead_controller_is_named_at_once_and_a_backup_answers_for_it() -> None:
    dead = "Slurmctld(primary) at node is DOWN\n" + "*" * 41 + "\n"
    system, asked = _system(Completed(PING, 1, dead, ""))
    with pytest.raises(CommandFailed, match=r"Slurmctld\(primary\) at node is DOWN"):
        system.snapshot(0)
    assert asked == [PING], "no other question, which would wait for 9 s"
    system, asked = _system(Completed(PING, 1, dead, ""))
    with pytest.raises(CommandFailed):
        system.reservations()
    backed = Completed(PING, 0, dead + "Slurmctld(backup) at other is UP\n", "")
    with pytest.raises(BatchSystemError, match="no nodes"):
        _system(backed)[0].snapshot(0)


def test_a_version_without_json_is_asked_for_it_once() -> None:
    line = "7|RUNNING|u|debug|10:00|2026-11-21T23:11:53|N/A|N/A|3|2|a[1-2]|(null)|1|(null)|None\n"
    nodes_said = "".join(f"a{number}|idle|1|8|1|8|1000|(null)|(null)|none\n" for number in (1, 2))
    texts = {"sinfo": nodes_said, "scontrol": "No reservations in the system\n"}
    asked: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        asked.append(argv)
        if "--json" in argv:
            return Completed(argv, 1, "", "squeue: unrecognized option '--json'")
        if argv[:2] == ("scontrol", "show"):
            return Completed(argv, 0, "SelectTypeParameters    = CR_CORE\n", "")
        if "partition" in argv:
            return Completed(argv, 0, "PartitionName=debug MaxTime=UNLIMITED State=UP\n", "")
        return Completed(argv, 0, texts.get(argv[0], line), "")

    system = SlurmSystem(run, "debug", "market")
    for _ in range(2):
        assert system.snapshot(0).running[0].parts == (("a1", 2), ("a2", 2))
    assert sum("--json" in argv for argv in asked) == 1


def test_a_word_that_is_no_job_is_not_cancelled() -> None:
    run = lambda argv, stdin="", time_limit_s=None: Completed(argv, 0, "-u root\n", "")  # noqa: E731
    with pytest.raises(BatchSystemError):
        ask(reservations.jobs_question("x"), run)
    with pytest.raises(CommandFailed):
        ask(reservations.jobs_question("x"), lambda argv, stdin="", time_limit_s=None: Completed(argv, 1, "", "no"))


def test_node_of_the_recording_is_whole() -> None:
    assert partition.parse_nodes(_recorded("sinfo.txt")).nodes[0] == Node("alpha1", 8, True, "allocated", "", 1000)
