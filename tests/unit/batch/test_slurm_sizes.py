"""What Slurm is told so that a reservation can be changed later, and is: a guard first, in the form that is checked."""

from collections.abc import Callable

import pytest

from ramp.batch.commands import Completed
from ramp.batch.slurm.reservations import guard_name
from ramp.batch.slurm.system import PING, SlurmSystem
from ramp.batch.system import Parts, SystemReservation, WantedReservation
from ramp.errors import BatchSystemError, SystemRefused, command_error
from ramp.model.instant import HOUR, Instant

NAME = "ramp_s.offer-1"
GUARD, SECOND_GUARD = guard_name(NAME, 1), guard_name(NAME, 2)
SINFO = "".join(f"n{number}|idle|1|8|1|8|1000|(null)|(null)|none\n" for number in range(1, 7))

Said = Callable[[str], Completed | None]


def _whole(*numbers: int) -> Parts:
    return tuple((f"n{number}", 8) for number in numbers)


def _system(said: Said = lambda words: None, listed: str = "") -> tuple[SlurmSystem, list[str]]:
    """A cluster of six nodes; what it was told to change, without `scontrol`."""
    told: list[str] = []

    def run(argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        words = " ".join(argv[1:])
        if argv[0] == "sinfo":
            return Completed(argv, 0, SINFO, "")
        if "show" in argv:
            return Completed(argv, 0, listed or "No reservations in the system\n", "")
        if argv == PING:
            return Completed(argv, 0, "Slurmctld(primary) at node is UP\n", "")
        told.append(words)
        return said(words) or Completed(argv, 0, "", "")

    system = SlurmSystem(run, "debug", "market", wait=lambda _: None)
    system.reservations()
    return system, told


def _there(parts: Parts, end: Instant | None = 11 * HOUR, cores_in_all: int | None = None) -> SystemReservation:
    return SystemReservation(NAME, NAME, 10 * HOUR, end, parts, ("market",), cores_in_all=cores_in_all)


def _wanted(parts: Parts, end: Instant = 11 * HOUR, start: Instant = 10 * HOUR) -> WantedReservation:
    return WantedReservation(NAME, start, end, parts)


def _made(name: str, hours: tuple[int, int], nodes: str, counts: str) -> str:
    times = f"StartTime=uts{hours[0] * 3600} EndTime=uts{hours[1] * 3600}"
    counted = f"CoreCnt={counts} " if counts else ""
    name = f"create reservation ReservationName={name} PartitionName=debug"
    return f"{name} {times} Nodes={nodes} {counted}Users=market"


def _gone(name: str) -> str:
    return f"delete ReservationName={name}"


def _fails(part: str, said: str) -> Said:
    return lambda words: Completed((), 1, "", said) if part in words else None


def _guard_there(cores: int) -> str:
    return (
        f"ReservationName={GUARD} StartTime=1970-01-01T10:00:00 EndTime=1970-01-01T11:00:00 Duration=01:00:00 "
        f"Nodes=n[1-2] NodeCnt=2 CoreCnt={cores} Features=(null) PartitionName=debug Flags=SPEC_NODES "
        f"TRES=cpu={cores} Users=market Groups=(null) State=INACTIVE BurstBuffer=(null)\n"
    )


def test_whole_nodes_are_reserved_whole_under_a_guard_that_is_checked() -> None:
    system, told = _system(listed=_guard_there(16))
    system.make(_wanted(_whole(1, 2)))
    guard = _made(GUARD, (10, 11), "n1,n2", "8,8")
    assert told == [guard, _made(NAME, (10, 11), "n1,n2", ""), _gone(GUARD)]


def test_where_slurm_reads_no_list_of_cores_each_node_has_a_guard() -> None:
    """Recent versions make 8 cores on two nodes of `CoreCnt=8,8`, with exit code 0."""
    system, told = _system(listed=_guard_there(8))
    system.make(_wanted(_whole(1, 2)))
    each = [_made(GUARD, (10, 11), "n1", "8"), _made(SECOND_GUARD, (10, 11), "n2", "8")]
    made = [*each, _made(NAME, (10, 11), "n1,n2", ""), _gone(GUARD), _gone(SECOND_GUARD)]
    assert told == [_made(GUARD, (10, 11), "n1,n2", "8,8"), _gone(GUARD), *made]
    told.clear()
    system.make(_wanted(_whole(1, 2)))
    assert told == made, "it is asked once"


def test_parts_of_nodes_are_reserved_as_ever() -> None:
    system, told = _system()
    system.make(_wanted((("n1", 8), ("n2", 3))))
    assert told == [_made(NAME, (10, 11), "n1,n2", "8,3")]


def test_where_the_guard_is_refused_nothing_is_made() -> None:
    system, told = _system(_fails("create", "Error creating the reservation: Requested nodes are busy"))
    with pytest.raises(SystemRefused) as refused:
        system.make(_wanted(_whole(1, 2)))
    assert refused.value.busy
    assert told == [_made(GUARD, (10, 11), "n1,n2", "8,8"), _gone(GUARD)]


def test_a_wrapper_that_knows_no_whole_nodes_makes_what_it_knows() -> None:
    def older(words: str) -> Completed | None:
        return None if "CoreCnt=" in words or "delete" in words else Completed((), 2, "", "wanted are ReservationName=")

    system, told = _system(older, _guard_there(16))
    system.make(_wanted(_whole(1, 2)))
    assert told[-2:] == [_gone(GUARD), _made(NAME, (10, 11), "n1,n2", "8,8")]


def test_a_guard_that_an_earlier_crash_has_left_is_no_obstacle() -> None:
    left = [Completed((), 1, "", "Error creating the reservation: Duplicate reservation name")]
    system, told = _system(lambda words: left.pop() if left and GUARD in words else None)
    system.make(_wanted(_whole(1)))
    guard = _made(GUARD, (10, 11), "n1", "8")
    assert told == [guard, _gone(GUARD), guard, _made(NAME, (10, 11), "n1", ""), _gone(GUARD)]


def test_of_a_whole_reservation_of_which_nobody_knows_no_second_is_made() -> None:
    def hangs(words: str) -> Completed | None:
        if "CoreCnt=" not in words and "create" in words:
            raise command_error(("scontrol",), "it took more than 15 s")
        return None

    system, told = _system(hangs)
    with pytest.raises(BatchSystemError):
        system.make(_wanted(_whole(1)))
    assert told[-1] == _gone(GUARD)
    assert sum("create" in words for words in told) == 2


@pytest.mark.parametrize(
    ("there", "wanted", "told"),
    [
        (_there(_whole(1, 2)), _wanted(_whole(2)), [f"update ReservationName={NAME} EndTime=uts39600 Nodes=n2"]),
        (_there(_whole(1, 2)), _wanted(_whole(1, 2)), []),
        (_there((("n1", 3),), 12 * HOUR), _wanted((("n1", 3),)), [f"update ReservationName={NAME} EndTime=uts39600"]),
        (
            _there(_whole(1)),
            _wanted(_whole(1, 2)),
            [
                _made(GUARD, (10, 11), "n2", "8"),
                f"update ReservationName={NAME} EndTime=uts39600 Nodes=n1,n2",
                _gone(GUARD),
            ],
        ),
        (
            _there(_whole(1, 2)),
            _wanted(_whole(2, 3), 12 * HOUR),
            [
                _made(GUARD, (10, 12), "n3", "8"),
                _made(SECOND_GUARD, (11, 12), "n2", "8"),
                f"update ReservationName={NAME} EndTime=uts43200 Nodes=n2,n3",
                *(_gone(GUARD), _gone(SECOND_GUARD)),
            ],
        ),
        (
            _there((("n1", 3),)),
            _wanted((("n1", 3),), 12 * HOUR),
            [_made(GUARD, (11, 12), "n1", "3"), f"update ReservationName={NAME} EndTime=uts43200", _gone(GUARD)],
        ),
        (
            _there(_whole(1, 2), cores_in_all=11),
            _wanted((("n1", 8), ("n2", 3)), 10 * HOUR + HOUR // 2),
            [f"update ReservationName={NAME} EndTime=uts37800"],
        ),
    ],
    ids=["smaller", "same", "shorter", "larger", "longer with other nodes", "longer in part", "shorter when just made"],
)
def test_what_is_told_for_a_change(there: SystemReservation, wanted: WantedReservation, told: list[str]) -> None:
    system, found = _system()
    assert system.change(there, wanted)
    assert found == (told or [f"update ReservationName={NAME} EndTime=uts39600"])


@pytest.mark.parametrize(
    ("there", "parts"),
    [
        (_there((("n1", 8), ("n2", 3))), _whole(1)),
        (_there(_whole(1, 2)), (("n1", 8), ("n2", 3))),
        (_there(_whole(1, 2), cores_in_all=11), _whole(1)),
    ],
)
def test_what_slurm_never_changes_it_is_not_told_to(there: SystemReservation, parts: Parts) -> None:
    system, told = _system()
    assert not system.change(there, _wanted(parts))
    assert told == []


def test_what_slurm_says_that_it_cannot_change_is_not_changed_and_its_guard_goes() -> None:
    system, told = _system(
        _fails("update", "Error updating the reservation: Core-based reservation can not be updated")
    )
    assert not system.change(_there(_whole(1)), _wanted(_whole(1, 2)))
    assert told[-1] == _gone(GUARD)


def test_where_others_have_cores_of_the_same_nodes_no_part_of_a_node_is_kept_longer() -> None:
    """Slurm says which cores are whose, and of two reservations that get the same ones one could not run."""
    listed = (
        "ReservationName=theirs StartTime=1970-01-01T11:30:00 EndTime=1970-01-01T13:00:00 Duration=01:30:00 Nodes=n1 "
        "NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=debug Flags=SPEC_NODES   NodeName=n1 CoreIDs=0-3 TRES=cpu=4 "
        "Users=root State=INACTIVE\n"
    )
    system, told = _system(listed=listed)
    assert not system.change(_there((("n1", 3),)), _wanted((("n1", 3),), 12 * HOUR))
    assert system.change(_there((("n2", 3),)), _wanted((("n2", 3),), 12 * HOUR))
    assert system.change(_there((("n1", 3),)), _wanted((("n1", 3),), 11 * HOUR + HOUR // 2))
    assert sum("create" in words for words in told) == 2


def test_growth_that_is_not_free_changes_nothing() -> None:
    system, told = _system(_fails(GUARD, "Error creating the reservation: Requested nodes are busy"))
    with pytest.raises(SystemRefused) as refused:
        system.change(_there(_whole(1)), _wanted(_whole(1, 2)))
    assert refused.value.busy
    assert not any("update" in words for words in told)


def test_a_job_is_narrowed_and_one_that_is_not_is_named() -> None:
    system, told = _system()
    system.narrow_job("7", 2)
    assert told == ["update JobId=7 NumNodes=2"]
    said = "Job update not available right now, the DB index is being set, try again in a bit for job 7"
    again, _ = _system(_fails("JobId", said))
    with pytest.raises(SystemRefused, match="job 7 cannot be narrowed to 1 nodes: Job update not available"):
        again.narrow_job("7", 1)
