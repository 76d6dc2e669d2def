"""What Slurm prints, as it is read: recorded from 22.05.8 (`slurm_22_05/`), or quoted from others' test data."""

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
    assert listed.nodes[0] == Node("alpha1", 8, True, "allocated", "", 1000)


@pytest.mark.parametrize(
    ("states", "usable", "waited_for"),
    # sinfo(1), "NODE STATE CODES": * does not answer, ~ sleeps, # wakes up, $ is maintained, @ and ^ start anew; what
    # remains silent "will be placed in the DOWN state"; UNKNOWN just after a start
    [
        ("idle idle~ mixed# allocated- planned", True, False),
        ("idle* mixed* allocated* unknown unknown*", False, True),
        ("drained drained* down down* down~ idle@ fail maint", False, False),
    ],
)
def test_states_of_nodes(states: str, usable: bool, waited_for: bool) -> None:
    for state in states.split():
        (node,) = partition.parse_nodes(f"n1|{state}|2|4|2|16|64000|(null)|(null)|a | reason").nodes
        assert (node.usable, node.waited_for, node.cores, node.reason) == (usable, waited_for, 8, "a | reason"), state


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
    details = queue.parse_details(_recorded("jobs.txt"))
    return queue.running_jobs(jobs, listed.nodes, details, 1, {}), queue.waiting_jobs(jobs, "debug", 1)


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


def test_without_lists_a_job_counts_with_as_much_of_each_node_as_it_may_have() -> None:
    listed = partition.parse_nodes(_recorded("sinfo.txt"))
    jobs = queue.parse_queue(_recorded("squeue.txt"))
    parts = {job.job_id: job.parts for job in queue.running_jobs(jobs, listed.nodes, {}, 1, {})}
    assert parts["35"] == (("alpha1", 8), ("alpha2", 8), ("alpha3", 8))
    assert parts["36"] == (("alpha16", 4),)


def test_waiting_jobs_with_their_plans() -> None:
    _, waiting = _queue()
    submitted = _at("21T23:11:53")
    wide = tuple(f"alpha{number}" for number in (*range(1, 13), 14, 15))
    begin, pair = _at("21T23:31:53"), ("alpha9", "alpha10")
    assert waiting == (
        WaitingJob("38", "root", submitted, 4, HOUR, _at("22T00:11:53"), (), True),
        WaitingJob("42", "root", submitted, 12, 20 * MINUTE, begin, pair, False, "ramp_firm2"),
        WaitingJob("43", "root", _at("21T23:13:04"), 112, 30 * MINUTE, _at("22T00:11:53"), wide, False),
        WaitingJob("39", "root", submitted, 4, HOUR, None, (), True),
    )
    assert queue.waiting_jobs(queue.parse_queue(_recorded("squeue.txt")), "other", 1) == ()


def _detailed(*lists: str, name: str = "wrap", cpus: int = 3, threads: int = 1) -> object:
    """Cores of a job on n1 and n2, of 8 cores each, from its line as 22.05.8 prints it."""
    shown = "".join(f"  Nodes={nodes} CPU_IDs={numbers} Mem=0 GRES= " for nodes, numbers in map(str.split, lists))
    text = f"JobId=7 JobName={name} UserId=u(1) CoreSpec=* JOB_GRES=(null) {shown}MinCPUsNode=1 Command=(null)\n"
    line = f"7|RUNNING|u|debug|10:00|2026-11-21T23:11:53|N/A|N/A|{cpus}|2|n[1-2]|(null)|1|(null)|None"
    nodes = [Node("n1", 8), Node("n2", 8)]
    (found,) = queue.running_jobs(queue.parse_queue(line), nodes, queue.parse_details(text), threads, {})
    return found.parts


def test_cores_of_nodes_are_read_from_lists_of_their_cpus() -> None:
    assert _detailed("n1 0-1", "n2 7") == (("n1", 2), ("n2", 1))
    assert _detailed("n[1-2] 0-1,4-5", cpus=8, threads=2) == (("n1", 2), ("n2", 2))
    assert _detailed("n[1-2] 0-3", cpus=4, threads=2) == (("n1", 2), ("n2", 2)), (
        "jobs without hyperthreads have whole cores"
    )


def test_elements_of_arrays_are_called_as_in_the_queue() -> None:
    text = "JobId=31 ArrayJobId=30 ArrayTaskId=3 JobName=a  Nodes=n1 CPU_IDs=0 Mem=0 GRES= \nJobId=32 JobName=b\n"
    assert queue.parse_details(text) == {"30_3": [("n1", "0")], "32": []}


@pytest.mark.parametrize(
    "name",
    ["x Nodes=n3 CPU_IDs=0-7 Mem=0 GRES= ", "x Nodes=n1 CPU_IDs=0-7 Mem=0 GRES= "],
)
def test_a_name_that_looks_like_a_list_of_cpus_changes_nothing(name: str) -> None:
    assert _detailed("n1 0-1", "n2 7", name=name) == (("n1", 2), ("n2", 1))


@pytest.mark.parametrize(
    "name",
    [
        "x Nodes=n[ CPU_IDs=0 Mem=0",
        "x Nodes=n[1-999999] CPU_IDs=0 Mem=0",
        "x Nodes=n1 CPU_IDs=-,- Mem=0",
        "x\nJobId=7 ",
    ],
)
def test_of_a_job_in_doubt_as_much_of_each_node_counts_as_it_may_have(name: str) -> None:
    assert _detailed("n1 0-1", "n2 7", name=name) == (("n1", 2), ("n2", 2))


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


def test_a_word_that_is_no_job_is_not_cancelled() -> None:
    run = lambda argv, stdin="", time_limit_s=None: Completed(argv, 0, "-u root\n", "")  # noqa: E731
    with pytest.raises(BatchSystemError):
        ask(reservations.jobs_question("x"), run)
    with pytest.raises(CommandFailed):
        ask(reservations.jobs_question("x"), lambda argv, stdin="", time_limit_s=None: Completed(argv, 1, "", "no"))
