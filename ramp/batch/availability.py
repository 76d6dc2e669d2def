"""Free cores over time: which cores of which node are taken when, by whom, and where a request fits first.

Running jobs, planned jobs, reservations of others, and the market's own holds take cores. A core whose memory a job has
is taken too. Together they give one table of free cores, with a row per node and a column per stretch of time between
two changes. Unusable nodes have no free cores. Jobs that wait without a plan take no particular cores;
`Availability.load` counts them as filling the free cores from now on, so that a long queue makes early slots dear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.batch.for_sale import ForSale
from ramp.batch.system import NO_LIMITS, Limits, Node, Parts, SystemSnapshot
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.request import Nodes, RequestUnit, TotalCores

NEVER: Final[Instant] = 2**62
"""End of a job or reservation without a limit."""


@dataclass(frozen=True, slots=True)
class Taking:
    """Cores of each node that are taken from `start` until before `end`; unknown nodes are ignored."""

    start: Instant
    end: Instant
    parts: Parts
    market: bool = False


def takings_of(snapshot: SystemSnapshot, own_names: frozenset[str], *, spare_planned: bool) -> list[Taking]:
    """Return the cores that the system's own jobs and reservations take.

    Args:
        snapshot: of the system.
        own_names: names of the market's reservations; neither they nor jobs in any reservation are counted, because the
            market's book and the reservations already count their cores.
        spare_planned: whether jobs that the system plans to start keep their places.
    """
    parts_of = {each.name: dict(each.parts) for each in snapshot.reservations}
    reserved = parts_of.keys() | own_names
    found = [
        Taking(each.start, NEVER if each.end is None else each.end, each.parts)
        for each in snapshot.reservations
        if each.name not in own_names
    ]
    for job in snapshot.running:
        taken = job.taken
        if job.reservation in reserved:  # it has more than the reservation only in memory
            has = parts_of.get(job.reservation, {})
            taken = tuple((name, count - has.get(name, count)) for name, count in taken if count > has.get(name, count))
        # Slurm refuses a reservation that begins in the very second in which a job's limit ends. A job may outlive its
        # limit by the grace that the site gives; it is still there, so it takes its cores now.
        end = NEVER if job.end is None else max(job.end, snapshot.taken_at) + SECOND
        if taken:
            found.append(Taking(min(job.start, snapshot.taken_at), end, taken))
    if spare_planned:
        cores = {node.name: node.cores for node in snapshot.nodes}
        for waiting in snapshot.waiting:
            if waiting.planned_start is None or waiting.held or waiting.reservation in reserved:
                continue
            begin = max(waiting.planned_start, snapshot.taken_at)
            end = NEVER if waiting.time_limit is None else begin + waiting.time_limit
            found.append(Taking(begin, end, _planned_parts(waiting.cores, waiting.planned_nodes, cores)))
    return found


def _planned_parts(wanted: int, nodes: Sequence[str], cores: dict[str, int]) -> Parts:
    """Divide a planned job's cores evenly among its nodes, because systems do not say how many each gets."""
    known = [name for name in nodes if name in cores]
    each = -(-wanted // len(known)) if known else 0
    return tuple((name, min(each, cores[name])) for name in known)


class Availability:
    """Free cores of every node over time.

    Args:
        nodes: all nodes.
        takings: cores that are taken.
        begin: start of the table; earlier takings are left out.
        for_sale: the site's limits on sales.
        backlog: core microseconds of jobs that wait without a plan.
        limits: the system's limits on a job.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        takings: Sequence[Taking],
        begin: Instant,
        for_sale: ForSale,
        backlog: int = 0,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self._most_nodes = len(nodes) if limits.nodes is None else limits.nodes
        self._nodes = tuple(nodes)
        self._begin = begin
        self._for_sale = for_sale
        self.cores = sum(node.cores for node in nodes)
        index = {node.name: number for number, node in enumerate(nodes)}
        live = [each for each in takings if each.end > begin]
        edges = {begin, *(max(each.start, begin) for each in live), *(each.end for each in live)}
        self._times = np.array(sorted(edges), dtype=np.int64)
        at = {int(time): column for column, time in enumerate(self._times)}
        change = np.zeros((len(nodes), len(edges)), dtype=np.int64)
        market = np.zeros(len(edges), dtype=np.int64)
        for each in live:
            first, last = at[max(each.start, begin)], at[each.end]
            for name, count in each.parts:
                if name in index:
                    change[index[name], first] += count
                    change[index[name], last] -= count
                    market[first] += count * each.market
                    market[last] -= count * each.market
        most = NEVER if limits.cores_per_node is None else limits.cores_per_node
        usable = [min(node.cores, most) if node.usable and not limits.closed else 0 for node in nodes]
        capacity = np.array(usable, dtype=np.int64)
        self._free = np.maximum(capacity[:, None] - np.cumsum(change, axis=1), 0)
        self._market = np.cumsum(market)
        self._full_until = self._filled(backlog)

    def first_fit(
        self,
        cores: TotalCores | Nodes,
        duration: Duration,
        earliest: Instant,
        latest: Instant,
        *,
        now: Instant,
        choose: Callable[[Mapping[str, int]], Parts] | None = None,
    ) -> tuple[Instant, Parts] | None:
        """Return start and cores of the earliest slot that begins in [earliest, latest]; None if no slot fits.

        Only `earliest` and the instants at which a taking ends or an hour of sale begins are tried: nothing gets better
        between two of them. A request for cores takes the emptiest nodes, to keep its tasks close together, and ends on
        the fullest node that has the rest. A request for nodes takes the fullest that have enough. `choose`, if given,
        picks the nodes from the free cores instead.
        """
        sellable = self._for_sale.cores(self.cores) - cores.total
        if sellable < 0 or duration > self._for_sale.longest:
            return None
        earliest = _whole_second(max(earliest, self._for_sale.earliest(now)))
        limit = min(latest + duration, self._for_sale.latest_end(now))
        for opened, closed in self._for_sale.openings(earliest, max(earliest, limit)):
            last = min(closed - duration, latest)
            begin = _whole_second(max(earliest, opened))
            if begin > last:
                continue
            inside = self._times[(self._times > begin) & (self._times <= last)]
            for edge in (begin, *map(int, inside)):
                start = _whole_second(edge)
                if start > last:
                    break
                free, market = self._over(start, start + duration)
                if market <= sellable:
                    parts = self._choose(cores, free) if choose is None else choose(self._named(free))
                    if parts and market + sum(count for _, count in parts) <= sellable + cores.total:
                        return start, parts
        return None

    def whole_nodes(self, unit: RequestUnit, free: Mapping[str, int]) -> Parts:
        """Return free whole nodes with the GPUs of a request for nodes; empty if there are too few."""
        assert isinstance(unit.cores, Nodes)
        least, count = unit.cores.cores_per_node, unit.cores.count
        able = [node for node in self._nodes if node.cores == free[node.name] >= least and node.has_gpus(unit)]
        return tuple((node.name, node.cores) for node in able[:count]) if len(able) >= count else ()

    def _named(self, free: NDArray[np.int64]) -> dict[str, int]:
        return {node.name: int(count) for node, count in zip(self._nodes, free, strict=True)}

    def lacking(self, parts: Parts, start: Instant, end: Instant) -> str:
        """Say why cores of nodes are not free over a time, ignoring notice and hours; empty if they are."""
        free, market = self._over(max(start, self._begin), end)
        index = {node.name: number for number, node in enumerate(self._nodes)}
        for name, count in parts:
            if name not in index:
                return f"no node {name}"
            if free[index[name]] < count:
                return f"{name} has {free[index[name]]} of {count} cores left"
        wanted = sum(count for _, count in parts)
        if market + wanted > self._for_sale.cores(self.cores):
            return f"{wanted} cores more would be over the market's share"
        return ""

    def more(self, cores: int, start: Instant, end: Instant) -> Parts:
        """Return additional free cores over all of a time, ignoring notice and hours; empty if too few are free."""
        free, market = self._over(max(start, self._begin), end)
        found = self._choose(TotalCores(cores), free)
        return found if market + cores <= self._for_sale.cores(self.cores) else ()

    def like(self, parts: Parts, start: Instant, end: Instant) -> Parts:
        """Return replacements for nodes that a slot has lost, of the same shape; empty if there are too few.

        Nodes that are still free stay. The fullest nodes with enough cores, and with the same GPUs, replace the others,
        the largest need first.
        """
        free, _ = self._over(max(start, self._begin), end)
        index = {node.name: number for number, node in enumerate(self._nodes)}
        chosen = {index[name]: count for name, count in parts if name in index and free[index[name]] >= count}
        gpus = {node.name: node.gpus for node in self._nodes}
        missing = sorted(((count, name) for name, count in parts if index.get(name) not in chosen), reverse=True)
        for count, name in missing:
            able = [
                int(each)
                for each in np.flatnonzero(free >= count)
                if int(each) not in chosen and self._nodes[each].gpus == gpus.get(name, self._nodes[each].gpus)
            ]
            if not able:
                return ()
            chosen[min(able, key=lambda each: (free[each], each))] = count
        found = tuple((self._nodes[number].name, chosen[number]) for number in sorted(chosen))
        return () if self.lacking(found, start, end) else found

    def load(self, start: Instant, end: Instant) -> float:
        """Return the mean share of all cores taken over [start, end), 0 to 1, including the queue's backlog."""
        if not self.cores or end <= start:
            return 1.0
        bounds = np.clip(np.append(self._times, NEVER), start, end)
        weights = np.diff(bounds)
        weights[0] += bounds[0] - start
        free = self._free.sum(axis=0)
        # the backlog fills these cores
        filled = np.clip(np.minimum(np.append(self._times[1:], NEVER), self._full_until), start, end)
        open_weights = np.maximum(weights - np.maximum(filled - bounds[:-1], 0), 0)
        return 1.0 - min(1.0, float((free * open_weights).sum()) / (self.cores * (end - start)))

    def _over(self, start: Instant, end: Instant) -> tuple[NDArray[np.int64], int]:
        """Return the cores of each node that are free all the time, and the market's greatest use at any time."""
        first = max(int(np.searchsorted(self._times, start, side="right")) - 1, 0)
        last = max(int(np.searchsorted(self._times, end, side="left")), first + 1)
        return self._free[:, first:last].min(axis=1), int(self._market[first:last].max())

    def _choose(self, cores: TotalCores | Nodes, free: NDArray[np.int64]) -> Parts:
        """Return nodes and cores for a request, in the nodes' order; empty if it does not fit."""
        chosen: dict[int, int] = {}
        if isinstance(cores, Nodes):
            able = np.flatnonzero(free >= cores.cores_per_node)
            if len(able) < cores.count:
                return ()
            order = able[np.argsort(free[able], kind="stable")]
            chosen = {int(number): cores.cores_per_node for number in order[: cores.count]}
        else:
            left = cores.total
            if int(free.sum()) < left:
                return ()
            order = np.argsort(-free, kind="stable")
            for number in map(int, order):
                if left <= free[number]:
                    enough = np.flatnonzero(free >= left)
                    enough = enough[[int(each) not in chosen for each in enough]]
                    chosen[int(enough[np.argmin(free[enough])])] = left
                    break
                chosen[number] = int(free[number])
                left -= chosen[number]
        if len(chosen) > self._most_nodes:
            return ()
        return tuple((self._nodes[number].name, chosen[number]) for number in sorted(chosen))

    def _filled(self, backlog: int) -> Instant:
        if backlog <= 0:
            return self._begin
        left = backlog
        for column, time in enumerate(map(int, self._times)):
            free = int(self._free[:, column].sum())
            end = int(self._times[column + 1]) if column + 1 < len(self._times) else NEVER
            if free and left <= free * (end - time):
                return time + left // free
            left -= free * (end - time)
        return NEVER


def _whole_second(instant: Instant) -> Instant:
    """Round up to a whole second: batch systems know no finer time."""
    return -(-instant // SECOND) * SECOND
