"""Backfilling on Blue Gene/L by its definitions, without shortcuts: slow and obvious.

Serves the property tests (every start and place must agree) and the benchmark.
"""

from collections.abc import Iterable

from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import Placement
from simulation.schedulers.interface import Job, Site


class _Plain:
    """A queue in order of arrival, of which nothing is remembered."""

    def __init__(self) -> None:
        self._queue: dict[int, Job] = {}

    def submit(self, job: Job) -> None:
        self._queue[job.job_number] = job

    def released(self) -> None:
        pass

    def waiting(self) -> Iterable[Job]:
        return iter(self._queue.values())


class PlainConservative(_Plain):
    """The definition, word for word: at every end each job in turn takes the earliest start, if that is earlier."""

    def __init__(self) -> None:
        super().__init__()
        self._promises: dict[int, tuple[int, Placement]] = {}
        self._compress = False

    def released(self) -> None:
        self._compress = True

    def decide(self, site: Site) -> int | None:
        machine, now = site.machine, site.now
        assert isinstance(machine, BlueGene)
        for number, job in self._queue.items():
            old = self._promises.get(number)
            if old is not None and not self._compress:
                continue
            taken = [(now, run.expected_end(now), run.placement) for run in site.running.values()]
            taken += [
                (begin, begin + self._queue[other].planned_length, placement)
                for other, (begin, placement) in self._promises.items()
                if other != number
            ]
            for begin in sorted({now} | {end for _, end, _ in taken if end > now}):
                union = machine.out_of_service()
                for first, last, placement in taken:
                    if first < begin + job.planned_length and begin < last:
                        union |= machine.mask_of(placement)
                place = machine.place_within(union, job.request)
                if place is not None and (old is None or begin < old[0]):
                    self._promises[number] = (begin, place)
                if place is not None:
                    break
        self._compress = False
        for number in [number for number, (begin, _) in self._promises.items() if begin <= now]:
            site.start(self._queue.pop(number), self._promises.pop(number)[1])
        return min((begin for begin, _ in self._promises.values()), default=None)


class PlainEasy(_Plain):
    """The definition, word for word: at every decision the whole queue is walked, and the promise is made anew."""

    def decide(self, site: Site) -> int | None:
        machine, now = site.machine, site.now
        assert isinstance(machine, BlueGene)
        promise: tuple[int, int, Placement] | None = None
        for job in list(self._queue.values()):
            union = machine.out_of_service()
            for run in site.running.values():
                union |= machine.mask_of(run.placement)
            end = now + job.planned_length
            if promise is not None and promise[0] < end and now < promise[1]:
                union |= machine.mask_of(promise[2])
            place = machine.place_within(union, job.request)
            if place is not None:
                del self._queue[job.job_number]
                site.start(job, place)
            elif job is next(iter(self._queue.values())):
                promise = self._promise(site, machine, job)
        return None

    def _promise(self, site: Site, machine: BlueGene, job: Job) -> tuple[int, int, Placement] | None:
        """Begin, end and place of the first window, among those that begin as something is expected to end."""
        ends = [(run.expected_end(site.now), run.placement) for run in site.running.values()]
        for begin in sorted({end for end, _ in ends}):
            union = machine.out_of_service()
            for end, placement in ends:
                if end > begin:
                    union |= machine.mask_of(placement)
            place = machine.place_within(union, job.request)
            if place is not None:
                return begin, begin + job.planned_length, place
        return None
