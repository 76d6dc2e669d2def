"""EASY backfilling on Blue Gene/L by its definition, without shortcuts: slow and obvious.

Serves the property tests: every start and place must agree.
"""

from collections.abc import Iterable

from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import Placement
from simulation.schedulers.interface import Job, Site


class PlainEasy:
    """The definition, word for word: at every decision the whole queue is walked, and the promise is made anew."""

    name = "plain-easy"

    def __init__(self) -> None:
        self._queue: list[Job] = []

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def released(self) -> None:
        pass

    def waiting(self) -> Iterable[Job]:
        return iter(self._queue)

    def decide(self, site: Site) -> int | None:
        machine, now = site.machine, site.now
        assert isinstance(machine, BlueGene)
        promise: tuple[int, int, Placement] | None = None
        for job in list(self._queue):
            union = machine.out_of_service()
            for run in site.running.values():
                union |= machine.mask_of(run.placement)
            end = now + job.planned_length
            if promise is not None and promise[0] < end and now < promise[1]:
                union |= machine.mask_of(promise[2])
            place = machine.place_within(union, job.request)
            if place is not None:
                self._queue.remove(job)
                site.start(job, place)
            elif job is self._queue[0]:
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
