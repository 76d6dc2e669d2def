"""The event simulation: order within an instant, reservations, overruns, live use."""

import pytest

from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import Connection, JobRequest
from simulation.queueing.queue_simulation import EndedJob, EndReason, Overrun, QueueSimulation
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import Job

pytestmark = pytest.mark.loops


def job(number: int, submit: int, run: int, size: int, requested: int | None = None) -> Job:
    return Job(number, submit, run, run if requested is None else requested, JobRequest(number, size))


def simulate(
    *jobs: Job, scheduler: str = "fcfs", processors: int = 10, overrun: Overrun = Overrun.CUT
) -> tuple[QueueSimulation, list[EndedJob]]:
    ended: list[EndedJob] = []
    machine = FlatMachine(processors)
    simulation = QueueSimulation(machine, make_scheduler(scheduler), overrun=overrun, on_end=ended.append)
    for one in jobs:
        simulation.submit(one)
    return simulation, ended


def starts(ended: list[EndedJob]) -> dict[int, int]:
    return {one.job.job_number: one.start_time for one in ended}


def test_what_ends_gives_way_to_what_comes_in_the_same_instant() -> None:
    simulation, ended = simulate(job(1, 0, 100, 10), job(2, 100, 5, 10))
    simulation.run()
    assert starts(ended) == {1: 0, 2: 100}


def test_a_job_larger_than_the_machine_is_refused_and_holds_nobody_up() -> None:
    """It never enters the queue, and the compiled loops never see it."""
    simulation, ended = simulate(job(1, 0, 10, 11), job(2, 1, 10, 10))
    simulation.run()
    assert [one.job_number for one in simulation.refused] == [1]
    assert starts(ended) == {2: 1}
    # nor is it a reason to decide: at 4 the first job's request has grown to 8, when a job of 3 would be over
    jobs = job(1, 0, 10, 1, requested=1), job(2, 0, 1, 2), job(3, 1, 3, 1), job(4, 4, 1, 3)
    simulation, ended = simulate(*jobs, scheduler="easy", processors=2, overrun=Overrun.KEEP)
    simulation.run()
    assert starts(ended) == {1: 0, 2: 10, 3: 11}


@pytest.mark.parametrize(
    ("overrun", "end", "reason"),
    [(Overrun.CUT, 60, EndReason.REQUESTED_TIME_OVER), (Overrun.KEEP, 100, EndReason.COMPLETED)],
)
def test_a_job_that_outruns_its_request_is_cut_or_kept(overrun: Overrun, end: int, reason: EndReason) -> None:
    simulation, ended = simulate(job(1, 0, 100, 4, requested=60), overrun=overrun)
    simulation.run()
    assert (ended[0].end_time, ended[0].reason) == (end, reason)


def test_no_job_starts_that_would_run_into_a_reservation() -> None:
    """6 of 10 processors are reserved from 100 to 200: 5 processors are free for a job of 60, not for one of 150."""
    simulation, ended = simulate(job(1, 0, 150, 5), job(2, 10, 60, 5), scheduler="first-fit")
    reservation = simulation.reserve(JobRequest(-1, 6), 100, 100)
    assert reservation is not None
    simulation.run()
    assert starts(ended) == {2: 10, 1: 200}


def test_a_reservation_is_refused_where_running_jobs_or_other_reservations_are() -> None:
    """Running jobs count until the end of their request, not until their real end."""
    simulation, _ = simulate(job(1, 0, 20, 7, requested=50))
    simulation.advance(0)
    assert simulation.reserve(JobRequest(-1, 4), 49, 10) is None
    assert simulation.reserve(JobRequest(-1, 4), 50, 10) is not None
    assert simulation.reserve(JobRequest(-1, 7), 55, 10) is None
    assert simulation.reserve(JobRequest(-1, 6), 55, 10) is not None


@pytest.mark.parametrize("shape", [(9, 4, 4), None])
def test_a_reservation_larger_than_the_machine_is_not_granted(shape: tuple[int, ...] | None) -> None:
    for machine in (load_machine("bgl"), FlatMachine(128)):
        simulation = QueueSimulation(machine, make_scheduler("easy"))
        assert simulation.reserve(JobRequest(-1, 144, shape), 0, 100) is None


def test_a_cancelled_reservation_makes_room_at_once() -> None:
    simulation, ended = simulate(job(1, 0, 150, 5), scheduler="easy")
    reservation = simulation.reserve(JobRequest(-1, 6), 100, 100)
    assert reservation is not None
    simulation.advance(30)
    assert [one.job_number for one in simulation.waiting] == [1]
    assert simulation.cancel_reservation(reservation.number)
    assert not simulation.cancel_reservation(reservation.number)
    simulation.run()
    assert starts(ended) == {1: 30}


def test_a_begun_reservation_can_be_given_back() -> None:
    simulation, ended = simulate(job(1, 20, 5, 10))
    reservation = simulation.reserve(JobRequest(-1, 10), 10, 90)
    assert reservation is not None
    simulation.advance(40)
    assert simulation.machine.free == 0
    simulation.cancel_reservation(reservation.number)
    assert simulation.machine.free == 10
    simulation.run()
    assert starts(ended) == {1: 40}


def test_a_kept_job_gives_way_when_a_reservation_needs_its_processors() -> None:
    """The job runs on after its request, and is ended at the reservation's begin; one that is not in the way stays."""
    simulation, ended = simulate(job(1, 0, 500, 3, requested=20), job(2, 1, 500, 3, requested=20), overrun=Overrun.KEEP)
    reservation = simulation.reserve(JobRequest(-1, 6), 100, 50)
    assert reservation is not None
    simulation.run()
    assert {one.job.job_number: (one.end_time, one.reason) for one in ended} == {
        2: (100, EndReason.RESERVATION_BEGAN),
        1: (500, EndReason.COMPLETED),
    }


def test_a_reservation_takes_over_what_another_leaves_in_the_same_instant() -> None:
    """Both hold the whole machine, one after the other; a job waits for the end of the second one."""
    for machine in (FlatMachine(128), load_machine("bgl")):
        ended: list[EndedJob] = []
        simulation = QueueSimulation(machine, make_scheduler("fcfs"), on_end=ended.append)
        for begin in (100, 200):
            assert simulation.reserve(JobRequest(-1, 128), begin, 100) is not None
        simulation.submit(job(1, 150, 10, 1))
        simulation.run()
        assert starts(ended) == {1: 300}


def test_a_reservation_on_a_torus_fixes_midplanes_and_cables() -> None:
    """Half of the machine is reserved as a torus: a torus job beside it runs, a whole-machine job waits for the end."""
    ended: list[EndedJob] = []
    simulation = QueueSimulation(load_machine("bgl"), make_scheduler("conservative"), on_end=ended.append)
    torus = Connection.TORUS
    reservation = simulation.reserve(JobRequest(-1, 64, (4, 4, 4), connection=torus), 50, 100)
    assert reservation is not None
    for number, shape in ((1, (8, 4, 4)), (2, (4, 4, 4))):
        size = shape[0] * shape[1] * shape[2]
        simulation.submit(Job(number, 0, 80, 80, JobRequest(number, size, shape, connection=torus)))
    simulation.run()
    assert starts(ended) == {2: 0, 1: 150}
    assert not ended[0].placement.nodes & reservation.placement.nodes


def test_advance_stops_the_clock_where_it_is_told() -> None:
    simulation, ended = simulate(job(1, 5, 10, 1))
    simulation.advance(14)
    assert (simulation.now, len(ended), list(simulation.running)) == (14, 0, [1])
    simulation.advance(15)
    assert (simulation.now, len(ended), simulation.step()) == (15, 1, False)


def test_reservations_in_the_past_or_of_no_length_are_refused() -> None:
    """These are mistakes of the caller, not a lack of room."""
    simulation, _ = simulate()
    simulation.advance(100)
    for begin, length in ((99, 10), (100, 0)):
        with pytest.raises(ValueError, match="a reservation must begin now or later"):
            simulation.reserve(JobRequest(-1, 1), begin, length)
