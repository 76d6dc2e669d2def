"""Jobs a second through the simulator, against a plain loop that walks its lists."""

import random
from bisect import insort
from time import perf_counter

import numpy as np

from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.queueing.job_table import JobTable, ShapedJobs, shaped_jobs
from simulation.queueing.queue_simulation import Overrun, QueueSimulation
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.schedulers.interface import Job, Scheduler
from simulation.schedulers.policies.conservative import ConservativeBackfill
from tests.reference.conservative_loop import PlainConservative

PROCESSORS = 338
JOBS = 77_000
NAIVE_JOBS = 8_000
TORUS_JOBS = 8_000
BURST_JOBS = 100
SECOND = 1_000_000


def run() -> list[tuple[str, float, str]]:
    """Measure every scheduler on one synthetic log with about the size and load of CTC's."""
    jobs = _synthetic(JOBS)
    few = jobs.select(slice(0, NAIVE_JOBS))
    rows: list[tuple[str, float, str]] = []
    for name in ("fcfs", "first-fit", "window-first-fit", "easy", "conservative"):
        options = SchedulerOptions(name)
        run_log(FlatMachine(PROCESSORS), few, options)  # compiles
        began = perf_counter()
        run_log(FlatMachine(PROCESSORS), jobs, options)
        rows.append((f"flat machine, {name}", len(jobs) / (perf_counter() - began), "jobs/s"))
    began = perf_counter()
    schedule = run_log(FlatMachine(PROCESSORS), few, SchedulerOptions("easy")).schedule
    ours = perf_counter() - began
    began = perf_counter()
    naive = _naive_easy(few)
    plain = perf_counter() - began
    assert naive == schedule.start_time.tolist(), "the plain loop decides differently"
    rows.append(("flat machine, easy, plain Python loop", len(few) / plain, "jobs/s"))
    rows.append(("flat machine, easy, against the plain loop", plain / ours, "times"))
    machine = load_machine("bgl")
    torus_jobs = jobs.select(slice(0, TORUS_JOBS)).with_size(np.maximum(jobs.size[:TORUS_JOBS] // 4, 1))
    shaped = shaped_jobs(torus_jobs, machine, fat_probability=1, torus_probability=1, seed=1).with_load(128, 1.0)
    for name in ("first-fit", "easy"):
        options = SchedulerOptions(name, overrun=Overrun.KEEP)
        began = perf_counter()
        run_log(machine.copy(), shaped.jobs, options, requests=shaped.requests)
        rows.append((f"Blue Gene/L, fat tori at full load, {name}", TORUS_JOBS / (perf_counter() - began), "jobs/s"))
    return [*rows, *_conservative_rows(shaped)]


def _conservative_rows(shaped: ShapedJobs) -> list[tuple[str, float, str]]:
    """Many jobs at once, each planned around all before it, against the definition without shortcuts."""
    _burst(ConservativeBackfill(), shaped, 5)  # compiles
    ours, starts = _burst(ConservativeBackfill(), shaped, BURST_JOBS)
    plain, starts_by_definition = _burst(PlainConservative(), shaped, BURST_JOBS)
    assert starts == starts_by_definition, "the definition starts jobs at other times"
    return [
        (f"Blue Gene/L, {BURST_JOBS} fat tori at once, conservative", BURST_JOBS / ours, "jobs/s"),
        ("the same against the definition without shortcuts", plain / ours, "times"),
    ]


def _burst(scheduler: Scheduler, shaped: ShapedJobs, count: int) -> tuple[float, dict[int, int]]:
    """Submit the first jobs at one time; seconds that it takes, and the starts."""
    starts: dict[int, int] = {}
    simulation = QueueSimulation(
        load_machine("bgl"), scheduler, on_end=lambda one: starts.__setitem__(one.job.job_number, one.start_time)
    )
    lengths = zip(shaped.jobs.run_time.tolist(), shaped.jobs.requested_time.tolist(), strict=True)
    for request, (run_time, requested) in list(zip(shaped.requests, lengths, strict=True))[:count]:
        simulation.submit(Job(request.job_id, 0, run_time, requested, request))
    began = perf_counter()
    simulation.run()
    return perf_counter() - began, starts


def _synthetic(count: int) -> JobTable:
    """Jobs that keep the machine at four fifths of its capacity."""
    rng = random.Random(1)
    size = [min(1 << rng.randrange(0, 8), PROCESSORS) if rng.random() < 0.6 else 1 for _ in range(count)]
    run_time = [int(rng.lognormvariate(7.5, 1.8)) + 1 for _ in range(count)]
    requested = [int(run * rng.uniform(1, 5)) + 1 for run in run_time]
    work = sum(width * length for width, length in zip(size, run_time, strict=True))
    span = work / (0.8 * PROCESSORS)
    submit = sorted(int(rng.random() * span) for _ in range(count))
    columns = [np.array(column, dtype=np.int64) for column in (submit, run_time, requested)]
    scaled = [column * SECOND for column in columns]
    return JobTable(np.arange(1, count + 1), *scaled, np.array(size, dtype=np.int64), np.arange(count))


def _naive_easy(jobs: JobTable) -> list[int]:
    """EASY as a plain program: sorted lists, every decision from scratch."""
    columns = (jobs.submit_time, jobs.run_time, jobs.requested_time, jobs.size)
    submit, run_time, requested, size = (column.tolist() for column in columns)
    start = [0] * len(submit)
    queue: list[int] = []
    running: list[tuple[int, int, int]] = []  # real end, expected end, size
    arrived = 0
    while arrived < len(submit) or queue:
        times = ([submit[arrived]] if arrived < len(submit) else []) + ([running[0][0]] if running else [])
        now = min(times)
        while running and running[0][0] <= now:
            running.pop(0)
        while arrived < len(submit) and submit[arrived] <= now:
            queue.append(arrived)
            arrived += 1
        shadow = extra = -1
        for job in list(queue):
            free = PROCESSORS - sum(entry[2] for entry in running)
            if shadow < 0 and job == queue[0] and size[job] > free:
                available = free
                for _, expected, width in sorted(running, key=lambda entry: entry[1]):
                    if available >= size[job] and expected > shadow >= 0:
                        break
                    available += width
                    if shadow < 0 and available >= size[job]:
                        shadow = expected
                extra = available - size[job]
                continue
            beyond = shadow >= 0 and now + requested[job] > shadow
            if size[job] > free or (beyond and size[job] > extra):
                continue
            extra -= size[job] if beyond else 0
            start[job] = now
            queue.remove(job)
            insort(running, (now + run_time[job], now + requested[job], size[job]))
    return start
