"""Backfilling on flat machines against references written from the definitions, second by second.

The references keep a list of running jobs and count processors in every single second of the future. They share no code
with the schedulers: no heap, no profile, no plan.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.instant import SECOND
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import JobRequest
from simulation.queueing.job_table import JobTable
from simulation.queueing.queue_simulation import Overrun
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.schedulers.declaration import SCHEDULERS, make_scheduler
from simulation.schedulers.interface import Job
from simulation.schedulers.policies.window_first_fit import WindowCounts, WindowOptions
from tests.queue_runs import ended_jobs, starts_of

pytestmark = pytest.mark.loops


@dataclass(frozen=True)
class Case:
    capacity: int
    submit: tuple[int, ...]
    run: tuple[int, ...]
    requested: tuple[int, ...]
    size: tuple[int, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    capacity = draw(st.integers(1, 6))
    count = draw(st.integers(1, 9))

    def numbers(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    return Case(capacity, tuple(sorted(numbers(0, 25))), numbers(0, 12), numbers(1, 14), numbers(1, capacity))


def lengths(case: Case, overrun: Overrun) -> list[int]:
    """How long each job really holds its processors."""
    if overrun is Overrun.KEEP:
        return list(case.run)
    return [min(run, requested) for run, requested in zip(case.run, case.requested, strict=True)]


def expected_end(case: Case, start: int, job: int, now: int) -> int:
    length = case.requested[job]
    while start + length <= now:
        length *= 2
    return start + length


def free_in(case: Case, busy: list[tuple[int, int, int]], second: int) -> int:
    """Processors free in one second, given (begin, end, size) of all that holds or is promised processors."""
    return case.capacity - sum(size for begin, end, size in busy if begin <= second < end)


def earliest_start(case: Case, busy: list[tuple[int, int, int]], now: int, job: int) -> int:
    start = now
    while any(free_in(case, busy, second) < case.size[job] for second in range(start, start + case.requested[job])):
        start += 1
    return start


def run_reference(case: Case, overrun: Overrun, rule: str) -> list[int]:
    """Start times by walking through all seconds; `rule` is "easy" or "conservative".

    A scheduler is asked when jobs come or end and when a promised start comes.
    """
    count = len(case.submit)
    held = lengths(case, overrun)
    start: dict[int, int] = {}
    promised: dict[int, int] = {}
    assumed: dict[int, int] = {}
    now = 0
    ended: set[int] = set()
    while len(start) < count:
        progress = True
        while progress:  # a job of length 0 ends at once and gives way within the same second
            newly_ended = {job for job in start if job not in ended and start[job] + held[job] <= now}
            if not newly_ended and now not in case.submit and now not in promised.values():
                break  # nothing happens in this second, so nobody is asked
            ended |= newly_ended
            waiting = [job for job in range(count) if case.submit[job] <= now and job not in start]
            running = [job for job in start if job not in ended]
            busy = [(start[job], expected_end(case, start[job], job, now), case.size[job]) for job in running]
            if rule == "easy":
                begun = easy_starts(case, busy, waiting, now)
            else:
                overran = any(assumed.get(job, now + 1) <= now for job in running)
                begun = conservative_starts(case, busy, waiting, now, promised, bool(newly_ended), overran)
            for job in begun:
                start[job] = now
            for job in [job for job in start if job not in ended]:
                assumed[job] = expected_end(case, start[job], job, now)
            if not waiting:
                assumed.clear()
            progress = any(held[job] == 0 for job in begun)
        now += 1
    return [start[job] for job in range(count)]


def easy_starts(case: Case, busy: list[tuple[int, int, int]], waiting: list[int], now: int) -> list[int]:
    begun = []
    queue = list(waiting)
    while queue and free_in(case, busy, now) >= case.size[queue[0]]:
        job = queue.pop(0)
        busy.append((now, now + case.requested[job], case.size[job]))
        begun.append(job)
    if queue:
        head = queue.pop(0)
        shadow = earliest_start(case, busy, now, head)
        busy.append((shadow, shadow + case.requested[head], case.size[head]))
        for job in queue:
            if earliest_start(case, busy, now, job) == now:
                busy.append((now, now + case.requested[job], case.size[job]))
                begun.append(job)
    return begun


def conservative_starts(
    case: Case,
    busy: list[tuple[int, int, int]],
    waiting: list[int],
    now: int,
    promised: dict[int, int],
    released: bool,
    overran: bool,
) -> list[int]:
    if overran:
        promised.clear()
    for job in waiting:
        if job in promised and not released:
            continue
        promised.pop(job, None)
        others = [(begin, begin + case.requested[other], case.size[other]) for other, begin in promised.items()]
        promised[job] = earliest_start(case, busy + others, now, job)
    begun = [job for job in waiting if promised[job] == now]
    for job in begun:
        del promised[job]
    return begun


def table_of(case: Case) -> JobTable:
    columns = [np.array(column, dtype=np.int64) * SECOND for column in (case.submit, case.run, case.requested)]
    count = len(case.submit)
    return JobTable(np.arange(1, count + 1), *columns, np.array(case.size, dtype=np.int64), np.arange(count))


def by_events(case: Case, options: SchedulerOptions) -> list[int]:
    """Start times in microseconds by the event simulation and the general scheduler."""
    second = SECOND
    columns = zip(case.submit, case.run, case.requested, case.size, strict=True)
    jobs = [
        Job(number, submit * second, run * second, requested * second, JobRequest(number, size))
        for number, (submit, run, requested, size) in enumerate(columns, start=1)
    ]
    scheduler = make_scheduler(options.name, options.options)
    starts = starts_of(ended_jobs(FlatMachine(case.capacity), scheduler, jobs, overrun=options.overrun))
    return [starts[number] for number in sorted(starts)]


@pytest.mark.parametrize("overrun", list(Overrun))
@pytest.mark.parametrize("rule", ["easy", "conservative"])
@settings(max_examples=examples(50))
@given(case=cases())
def test_backfilling_follows_its_definition(case: Case, rule: str, overrun: Overrun) -> None:
    expected = [second * SECOND for second in run_reference(case, overrun, rule)]
    options = SchedulerOptions(rule, overrun=overrun)
    assert by_events(case, options) == expected
    assert run_log(FlatMachine(case.capacity), table_of(case), options).schedule.start_time.tolist() == expected


@pytest.mark.parametrize("counts", list(WindowCounts))
@pytest.mark.parametrize("name", [one.name for one in SCHEDULERS.listed() if one.declaration.compiled])
@settings(max_examples=examples(50))
@given(case=cases(), window=st.integers(1, 5), overrun=st.sampled_from(list(Overrun)))
def test_compiled_loops_agree_with_the_event_simulation(
    case: Case, name: str, window: int, counts: WindowCounts, overrun: Overrun
) -> None:
    its_options = {"window": window, "window_counts": counts} if SCHEDULERS.find(name).options is WindowOptions else {}
    options = SchedulerOptions(name, its_options, overrun)
    compiled = run_log(FlatMachine(case.capacity), table_of(case), options).schedule.start_time.tolist()
    assert compiled == by_events(case, options)
