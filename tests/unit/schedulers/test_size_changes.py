"""Jobs that change their size while they run: when they end, what is told of them, what is measured."""

import numpy as np
import pytest

from ramp.errors import MachineError
from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import JobRequest
from simulation.machines.view import view_of_trace
from simulation.malleable.malleability import AmdahlLaw, Malleability, Sizes
from simulation.queueing.job_table import JobTable
from simulation.queueing.queue_simulation import EndedJob, EndReason, Overrun
from simulation.queueing.run_history import PlacementRecorder, bars_without_places
from simulation.queueing.trace import job_line, schedule_as_swf
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.ordered import OrderedQueue, OrderOptions
from simulation.workload.metrics import occupancy, summarise, utilisation_while_arriving
from simulation.workload.swf import FIELD_NAMES, SwfLog
from tests.queue_runs import ended_jobs

IDEAL = AmdahlLaw(0, 1)
SECOND = 1_000_000


def malleable(law=IDEAL, suspension: int = 0) -> Malleability:
    return Malleability(Sizes(1, 2, 16), law, suspension)


class Scripted(OrderedQueue):
    """FCFS that also gives jobs sizes at stated times."""

    def __init__(self, *script: tuple[int, int, int]) -> None:
        super().__init__(OrderOptions())
        self.script = list(script)
        self.answers: list = []

    def decide(self, site: Site) -> int | None:
        while self.script and self.script[0][0] <= site.now:
            _, number, size = self.script.pop(0)
            self.answers.append(site.resize(JobRequest(number, size)))
        super().decide(site)
        return self.script[0][0] if self.script else None


def run(scheduler, *jobs: Job, overrun: Overrun = Overrun.CUT) -> list[EndedJob]:
    return ended_jobs(FlatMachine(16), scheduler, jobs, overrun=overrun)


def job(number: int, run_time: int, size: int, how: Malleability | None, requested: int | None = None) -> Job:
    return Job(number, 0, run_time, run_time if requested is None else requested, JobRequest(number, size), how)


def test_half_the_work_at_twice_the_speed() -> None:
    """100 ticks on 2: 50 of them, then the rest on 4 takes 25; then on 1 for as long as is left."""
    ended = run(Scripted((50, 1, 4), (60, 1, 1)), job(1, 100, 2, malleable()))
    (one,) = ended
    assert [(each.begin, each.end, each.placement.size) for each in one.segments] == [
        (0, 50, 2),
        (50, 60, 4),
        (60, 120, 1),  # 15 ticks on 4 were left: 60 on 1
    ]
    assert (one.end_time, one.reason) == (120, EndReason.COMPLETED)


def test_a_law_with_a_serial_part() -> None:
    """T(1) = 20 + 80, T(4) = 20 + 20: half of the work done at 50 on 1, the other half takes 20 on 4."""
    assert run(Scripted((50, 1, 4)), job(1, 100, 1, malleable(AmdahlLaw(20, 80))))[0].end_time == 70


def test_a_change_costs_its_pause_and_a_second_one_within_it_adds_its_own() -> None:
    """Nothing is computed meanwhile: 100 on 2, at 50 to 4 (9), at 52 back to 2 (9)."""
    how = malleable(suspension=9)
    assert run(Scripted((50, 1, 4)), job(1, 100, 2, how))[0].end_time == 50 + 9 + 25
    assert run(Scripted((50, 1, 4), (52, 1, 2)), job(1, 100, 2, how))[0].end_time == 50 + 9 + 9 + 50


def test_the_request_shrinks_and_grows_with_the_job() -> None:
    """60 of 100 asked for: on twice as many from 20 on, 40 of the request are 20, and then it is cut."""
    (one,) = run(Scripted((20, 1, 4)), job(1, 100, 2, malleable(), requested=60))
    assert (one.end_time, one.reason) == (40, EndReason.REQUESTED_TIME_OVER)
    (one,) = run(Scripted((20, 1, 4)), job(1, 100, 2, malleable(), requested=60), overrun=Overrun.KEEP)
    assert (one.end_time, one.reason) == (60, EndReason.COMPLETED)


def test_what_one_gives_up_another_gets_at_once() -> None:
    ended = run(Scripted((10, 1, 8)), job(1, 100, 16, malleable()), job(2, 10, 8, None))
    assert {one.job.job_number: one.start_time for one in ended} == {1: 0, 2: 10}


def test_no_room_changes_nothing() -> None:
    scheduler = Scripted((10, 1, 9))
    ended = run(scheduler, job(1, 100, 8, malleable()), job(2, 100, 8, None))
    assert scheduler.answers == [None]
    assert [one.end_time for one in ended] == [100, 100]
    assert all(not one.earlier for one in ended)


@pytest.mark.parametrize(("how", "size", "words"), [(None, 4, "is rigid"), (malleable(), 17, "may have 1 to 16")])
def test_a_size_that_a_job_may_not_have_is_the_schedulers_fault(how, size: int, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        run(Scripted((10, 1, size)), job(1, 100, 2, how))


def test_who_does_not_run_cannot_change() -> None:
    with pytest.raises(MachineError, match="job 7, which is not running"):
        run(Scripted((0, 7, 2)), job(1, 100, 2, malleable()))


def resized_log() -> tuple:
    """Two jobs of which the first doubles at 50 s; beside it a rigid one on 4 for 40 s."""
    table = JobTable(
        np.array([1, 2]),
        np.array([0, 0]),
        np.array([100, 40]) * SECOND,
        np.array([100, 40]) * SECOND,
        np.array([2, 4]),
        np.array([0, 1]),
    )
    told: list[EndedJob] = []
    options = SchedulerOptions(Scripted((50 * SECOND, 1, 4)))
    result = run_log(FlatMachine(16), table, options, malleability=[malleable(), None], on_end=told.append)
    return result, told


def test_metrics_count_what_was_held() -> None:
    """2 x 50 + 4 x 25 of the first, 4 x 40 of the second, over 16 x 75."""
    result, _ = resized_log()
    summary = summarise(result.schedule)
    assert summary.utilisation == pytest.approx((100 + 100 + 160) / (16 * 75))
    assert occupancy(result.schedule) == pytest.approx(summary.utilisation)
    assert result.schedule.held.tolist() == [3, 4]  # 200 / 75, rounded
    assert utilisation_while_arriving(result.schedule) == 0.0
    segments = result.schedule.segments()
    rows = zip(segments.job.tolist(), (segments.begin // SECOND).tolist(), segments.held.tolist(), strict=True)
    assert list(rows) == [(0, 0, 2), (0, 50, 4), (1, 0, 4)]


def test_a_workload_log_says_the_mean_and_that_it_is_one() -> None:
    """The format has one size a job."""
    result, _ = resized_log()
    columns = np.full((len(FIELD_NAMES), 2), -1, np.int64)
    written = schedule_as_swf(SwfLog(columns, ()), result, "here")
    assert written.columns[FIELD_NAMES.index("allocated_processors")].tolist() == [3, 4]
    assert written.columns[FIELD_NAMES.index("run_time")].tolist() == [75, 40]
    assert any("the sizes of 1 jobs changed" in comment for comment in written.comments)


def test_pictures_show_every_segment() -> None:
    result, _ = resized_log()
    bars = bars_without_places(result)
    widths = sorted(zip(bars.job_number.tolist(), bars.begin.tolist(), (bars.high - bars.low).tolist(), strict=True))
    held: dict[tuple[int, int], int] = {}
    for number, begin, width in widths:
        held[number, begin // SECOND] = held.get((number, begin // SECOND), 0) + width
    assert held == {(1, 0): 2, (1, 50): 4, (2, 0): 4}


def test_traces_and_the_map_follow_a_job_that_grows() -> None:
    """Eight midplanes until 50 s, sixteen of which the eight are part until it ends at 75 s."""
    machine, how = load_machine("torus3d"), Malleability(Sizes(4, 8, 32), IDEAL)
    grows = Job(1, 0, 100 * SECOND, 100 * SECOND, JobRequest(1, 8, (2, 2, 2)), how)
    ended = ended_jobs(machine, Scripted((50 * SECOND, 1, 16)), [grows])
    line = job_line(ended[0], machine)
    assert [each["end_time"] for each in line["segments"]] == [50, 75]
    sizes = []
    for second in (0, 49.5, 50, 74):
        view = view_of_trace(machine, [(1, line)], second, "trace")
        sizes.append(view.jobs[0].units.bit_count())
    assert sizes == [8, 8, 16, 16]
    assert view_of_trace(machine, [(1, line)], 75, "trace").jobs == ()
    recorder = PlacementRecorder()
    recorder(ended[0])
    bars = recorder.bars()
    area = int(((bars.high - bars.low) * (bars.end - bars.begin)).sum())
    assert area == (8 * 50 + 16 * 25) * SECOND
    assert machine.free == machine.capacity
