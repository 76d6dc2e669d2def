"""Conservative backfilling on Blue Gene/L by its definition, without shortcuts: slow and obvious.

Serves the property tests (every start and place must agree) and the benchmark.
"""

from collections.abc import Iterable

from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import Placement
from simulation.schedulers.interface import Job, Site


class PlainConservative:
    """The definition, word for word: at every end each job in turn takes the earliest start, if that is earlier."""

    name = "plain-conservative"

    def __init__(self) -> None:
        self._queue: dict[int, Job] = {}
        self._promises: dict[int, tuple[int, Placement]] = {}
        self._compress = False

    def submit(self, job: Job) -> None:
        self._queue[job.job_number] = job

    def released(self) -> None:
        self._compress = True

    def waiting(self) -> Iterable[Job]:
        return iter(self._queue.values())

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
