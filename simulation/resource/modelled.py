"""The plug-in `modelled`: a torus machine that lives, sold by the place that stays free for the whole job.

The machine is Blue Gene/L, a 3D torus or an Angara torus; its own users' jobs come from a log or a generator and run
through a scheduler and an allocator, around what the market has reserved (`simulation.resource.live_machine` says who
gives way to whom). A quote is the earliest window of the request's in which a box of midplanes or nodes, and the cables
that join it, stay free of running jobs (until their requested times), of waiting jobs (as planned) and of reservations;
the slot names that very place, and hold, confirm and release are about it. What is sold may change its size where it
is: to a box within its own, or to one with whole planes more, with the cables that join it; nothing moves.

Options (the plug-in's table in the machine's configuration):

- `machine`: name or file of the machine; required. `allocator` overrules the file's.
- `log`: name or path of a workload log, or `synthetic` (default): a workload generated month by month without end.
- `load`: offered load of the machine's own users; default 0.7 for a synthetic one, what the log says for a log.
- `size_divisor`: processors of the log that make one midplane or node (default 1).
- `fat`, `torus`: shares of jobs with a fat shape, and of tori, on machines with cables (default 0).
- `scheduler` (default easy); `overrun`: cut (default) or keep.
- `base_time_s`: machine time when the clock begins; the machine's users have been at work since 0.
- `speed`: how many times faster than the wall clock the machine's clock runs; 1 (default) or more.
- `load_of`: cores (default), or cores-and-links: the price follows the larger of the shares taken of the machine's
  cores and of its cables in the dimensions in which the job needs any.

After a restart the machine lives through its whole history again, reservations at the moments at which they were made,
and reaches the same state; a month takes about two seconds. One process fronts a machine at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramp.errors import ConfigurationError, PluginError, WorkloadError
from ramp.model.instant import Duration, Instant, iso
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.options import read_options, takes
from ramp.plugins.interface import PluginSettings
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.grid import Grid, units_of
from simulation.machines.interface import Connection, JobRequest, Placement, has_cables
from simulation.machines.reallocation import places_of_a_box, sizes_of_planes
from simulation.planning.placers import ALWAYS
from simulation.planning.space_time import SpaceTime
from simulation.resource.background import open_background
from simulation.resource.booked_machine import BookedMachine
from simulation.resource.free_boxes import free_boxes
from simulation.resource.live_machine import LiveMachine, Outlook
from simulation.resource.live_map import map_of
from simulation.resource.machine_clock import MachineClock
from simulation.resource.modelled_options import NAME, LoadOf, ModelledOptions
from simulation.resource.placement_text import asked_connection, describe_placement, read_token, write_token
from simulation.resource.reservation_book import Change
from simulation.resource.torus_request import TorusRequests, connection_of, unit_kind
from simulation.workload.profile import CoreProfile


class ModelledMachine(BookedMachine):
    """A live torus machine; see the module.

    Args:
        settings: the machine and the plug-in's options.

    Raises:
        ConfigurationError: an option or the machine's file is wrong.
        PluginError: the durable state cannot be read, or was made with other options.
    """

    def __init__(self, settings: PluginSettings) -> None:
        options = read_options(settings.options, ModelledOptions, within=settings.resource)
        machine = options.new_machine(settings.resource)
        clock = MachineClock(settings.started_at, options.base_time, options.speed)
        self._numbers: dict[str, int] = {}
        self._expiries: dict[str, Instant] = {}
        try:
            scheduler = options.new_scheduler(settings.resource)
            background = open_background(options.workload(settings), machine)
            self.live = LiveMachine(machine, background.submissions, scheduler=scheduler, overrun=options.overrun)
        except WorkloadError as error:
            raise ConfigurationError(str(error), key=f"{settings.resource}.log") from error
        self.machine = machine
        self._options = options
        self._kind = unit_kind(machine, settings.cores, settings.resource)
        self._requests = TorusRequests(machine, self._kind)
        self._boxes = free_boxes(machine.extents, wrap=machine.traits.wraps)
        self._profile: tuple[Outlook, CoreProfile] | None = None
        self._cables: tuple[Outlook, tuple[CoreProfile, ...]] | None = None
        self.live.advance(options.base_time)
        # the book tells of earlier reservations while it is opened, which needs both
        self.clock, self.resource = clock, settings.resource
        super().__init__(
            plugin=NAME,
            source=background.source,
            resource=settings.resource,
            cores=settings.cores,
            clock=clock,
            state_dir=settings.state_dir,
            on_change=self._changed,
        )
        self._warm_up()

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """Return the earliest slot with a place for its whole time; see `ResourcePlugin.quote`."""
        self.advance(now)
        translated = self._requests.translate(unit) if unit.cores.total <= self.capacity else None
        return translated if isinstance(translated, Refusal) else super().quote(unit, now)

    def profile(self, now: Instant, until: int) -> CoreProfile:
        """Return the cores taken by running, planned and reserved jobs; see `BookedMachine.profile`."""
        self.advance(now)
        outlook = self.live.outlook()
        if self._profile is None or self._profile[0] is not outlook:
            times, units = outlook.space_time.levels()
            self._profile = (outlook, CoreProfile(self.capacity, times, units * self._kind.cores))
        return self._profile[1]

    def jobs(self, now: Instant) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the running jobs with their expected ends, waiting ones as planned; see `BookedMachine.jobs`."""
        self.advance(now)
        live = self.live
        running = [
            self._job(each.job.job_number, each.placement.size, each.job.submit_time, each.start_time, end)
            for each in live.queue.running.values()
            for end in (each.expected_end(live.now),)
        ]
        outlook = live.outlook()
        queued = [
            self._job(job.job_number, job.request.size, job.submit_time, begin, begin + job.planned_length)
            for job, begin in zip(outlook.jobs, outlook.begins.tolist(), strict=True)
            if begin >= 0
        ]
        return running, queued

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        """Return the machine as `ramp qstat` shows it, with a `map` for `ramp smap`; see `ResourcePlugin.snapshot`."""
        if self.clock.log_time(now) < self.live.now:  # the clock was set back: what was lived stays lived
            now = self.clock.instant(self.live.now)
        shown = super().snapshot(now, horizon)
        shown["map"] = map_of(self._options.machine, self.live, self._book.live(now), self._numbers, self._kind.cores)
        return shown

    def _warm_up(self) -> None:
        """Plan and search once before anybody waits for it: the first time on a computer, both are compiled first."""
        self.live.outlook().space_time.earliest(JobRequest(-1, 1), 1, self.live.now)

    def _job(self, number: int, units: int, submitted: int, start: int, end: int) -> dict[str, Any]:
        return self.job_shown(number, units * self._kind.cores, submitted, start, end, self.live.users.get(number))

    def _earliest_slot(
        self, unit: RequestUnit, duration: Duration, earliest: Instant, latest: Instant | None, now: Instant
    ) -> Slot | None:
        request = self._requests.translate(unit)
        assert isinstance(request, JobRequest), "quote asks only for what fits"
        length = self.clock.log_duration(duration)
        last = ALWAYS if latest is None else self.clock.log_time(latest)
        space_time = self.live.outlook().space_time
        found = space_time.earliest(request, length, self.clock.log_time(earliest), last)
        if found is None:
            return None
        begin, placement = found
        start = max(earliest, self.clock.instant(begin))
        if latest is not None and start > latest:
            return None
        taken = space_time.taken_over(begin, begin + length)
        units, cables = taken[: self._unit_words], taken[self._unit_words :]
        return Slot(
            start,
            start + duration,
            placement.size * self._kind.cores,
            self._load_for(placement, start, start + duration, now),
            describe_placement(self.machine, placement),
            write_token(placement, connection_of(unit, self.machine)),
            self._boxes.fragmentation(units_of(units), placement.nodes),
            self._links_taken(placement, cables),
        )

    @property
    def _unit_words(self) -> int:
        return -(-Grid(self.machine.extents).size // 64)

    def _links_taken(self, placement: Placement, cables: NDArray[np.uint64]) -> float:
        wanted = placement.link_count if placement.links else 0
        if not wanted or not has_cables(self.machine):
            return 0.0
        free = sum(_cables_a_dimension(self.machine)) - units_of(cables).bit_count()
        return min(1.0, wanted / max(free, 1))

    def _load_for(self, placement: Placement, start: Instant, end: Instant, now: Instant) -> float:
        """Share of the machine taken over [start, end): of its cores, and of its cables if the options say so."""
        load = self._load(start, end, now)
        with_links = self._options.load_of is LoadOf.CORES_AND_LINKS
        if not with_links or not has_cables(self.machine) or not placement.link_count:
            return load
        outlook = self.live.outlook()
        if self._cables is None or self._cables[0] is not outlook:
            self._cables = (outlook, _cable_profiles(self.machine, outlook.space_time))
        first, last = self.clock.log_time(start), self.clock.log_time(end)
        needed = [profile for profile, labels in zip(self._cables[1], placement.links, strict=True) if labels]
        taken = sum(profile.mean_over(first, max(last, first + 1)) for profile in needed)
        return max(load, taken / sum(profile.capacity for profile in needed))

    def _taken(self, slot: Slot, now: Instant) -> str:
        self.advance(now)
        start = max(slot.start, now)
        if start >= slot.end:
            return f"the slot ended at {iso(slot.end)}"
        placement = self._place_of(slot)
        if slot.cores != placement.size * self._kind.cores:
            where = describe_placement(self.machine, placement)
            raise PluginError(NAME, f"a slot of {slot.cores} cores on {where} of {self.resource} was never quoted")
        begin, end = self._window(slot)
        why = self.live.why_taken(placement, max(begin, self.live.now), end)
        return f"{describe_placement(self.machine, placement)} is no longer free: {why}" if why else ""

    def _resized(
        self, reservation: Reservation, earlier: Sequence[Slot], cores: int, until: Instant, now: Instant
    ) -> Slot | str:
        self.advance(now)
        slot, kind = reservation.slot, self._kind
        units, rest = divmod(cores, kind.cores)
        place, asked = self._place_of(slot), asked_connection(slot.token)
        begin, end = self._window(replace(slot, start=max(slot.start, now), end=until))
        why = ""
        for each in () if rest else self._places(place, earlier, units, asked):
            why = self.live.why_taken(each, max(begin, self.live.now), end, self._numbers.get(reservation.key))
            if not why and each == place:
                return replace(slot, end=until)
            if not why:
                where = describe_placement(self.machine, each)
                return replace(slot, cores=cores, end=until, placement=where, token=write_token(each, asked))
        where = describe_placement(self.machine, place)
        if why:
            return f"cannot resize {where} to {cores} cores until {iso(until)}: {why}"
        sizes = sizes_of_planes(place.shape, self.machine.extents)
        sizes = [size for size in sizes if any(places_of_a_box(self.machine, place, size, asked))]
        shown = ", ".join(str(size * kind.cores) for size in sizes) or "but no size fits"
        return f"cannot resize {where} to {cores} cores: expected cores of whole planes of {kind.name}, {shown}"

    def _places(self, place: Placement, earlier: Sequence[Slot], units: int, asked: Connection) -> Iterator[Placement]:
        """Return boxes of that many units without a move: as it once was, else as the allocator prefers."""
        if units == place.size:
            yield place
            return
        for before in map(self._place_of, reversed(earlier)):
            if before.size == units and before.nodes & place.nodes in (before.nodes, place.nodes):
                yield before
        yield from places_of_a_box(self.machine, place, units, asked)

    def _window(self, slot: Slot) -> tuple[int, int]:
        """Return the machine time that a slot takes."""
        begin = self.clock.log_time(slot.start)
        return begin, max(self.clock.log_time(slot.end), begin + 1)

    def _place_of(self, slot: Slot) -> Placement:
        try:
            return read_token(slot.token, self.machine)
        except ValueError as error:
            raise PluginError(NAME, f"a slot that was never quoted on {self.resource}: {error}") from error

    def advance(self, now: Instant) -> None:
        """Let the machine live up to an instant; holds run out on the way."""
        while self._expiries:
            key = min(self._expiries, key=lambda each: (self._expiries[each], each))
            if self._expiries[key] > now:
                break
            self.live.advance(self.clock.log_time(self._expiries.pop(key)))
            self.live.cancel(self._numbers.pop(key))
        self.live.advance(self.clock.log_time(now))

    def _changed(self, change: Change) -> None:
        self.advance(change.at)
        reservation = change.reservation
        if reservation is None:
            self._expiries.pop(change.key, None)
            if change.key in self._numbers:
                self.live.cancel(self._numbers.pop(change.key))
        elif reservation.firm:
            self._expiries.pop(change.key, None)
            self._exchange(change.key, reservation.slot)
        else:
            self._reserve(change.key, reservation.slot, reservation.held_until)

    def _exchange(self, key: str, slot: Slot) -> None:
        """Let a firm reservation be where its slot is now, and as long as that."""
        number = self._numbers.get(key)
        standing = None if number is None else self.live.reservations().get(number)
        if number is None or standing is None:
            return
        place, (begin, end) = replace(self._place_of(slot), job_id=0), self._window(slot)
        if (standing.placement, standing.end_time) == (place, end):
            return
        if end <= self.live.now:
            self.live.cancel(self._numbers.pop(key))
        else:
            self._numbers[key] = self.live.exchange(number, place, max(begin, self.live.now), end)

    def _reserve(self, key: str, slot: Slot, held_until: Instant | None) -> None:
        placement = self._place_of(slot)
        begin, end = self._window(slot)
        begin = max(begin, self.live.now)
        if begin >= end:
            return
        if why := self.live.why_taken(placement, begin, end):
            raise PluginError(
                NAME,
                f"{self.resource}: the reservation of {describe_placement(self.machine, placement)} from "
                f"{iso(slot.start)} cannot be restored ({why}): the machine's options have changed; restore them "
                f"or use a new state folder",
            )
        self._numbers[key] = self.live.reserve(replace(placement, job_id=0), begin, end)
        if held_until is not None:
            self._expiries[key] = held_until


def _cables_a_dimension(machine: BlueGene) -> list[int]:
    grid = machine.grid
    tables = machine.layout.tables
    return [len(table.wiring.cables) * grid.line_count(dimension) for dimension, table in enumerate(tables)]


def _cable_profiles(machine: BlueGene, space_time: SpaceTime) -> tuple[CoreProfile, ...]:
    times, _ = space_time.levels()
    offsets = machine.catalogue.line_offsets
    return tuple(
        CoreProfile(cables, times, space_time.bits_over_time(first, last))
        for cables, first, last in zip(_cables_a_dimension(machine), offsets[:-1], offsets[1:], strict=True)
    )


@takes(ModelledOptions)
def open_plugin(settings: PluginSettings) -> ModelledMachine:
    """Open a `ModelledMachine`: the entry point `modelled` of the group `ramp.resource_plugins`."""
    return ModelledMachine(settings)
