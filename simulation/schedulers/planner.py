"""Build a plan (`simulation.planning.plan`) from a site's jobs and reservations."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.machines.interface import Placement
from simulation.planning.plan import Plan
from simulation.schedulers.interface import Site


def placements_conflict(one: Placement, other: Placement) -> bool:
    """Return whether two placements share a unit or a cable; always False for units without identity.

    Two placements share a cable where they hold the same label in a dimension and cross a common line of it, that is
    where their coordinates meet in all other dimensions.
    """
    if one.nodes & other.nodes:
        return True
    return _cables_conflict(one, other)


def _cables_conflict(one: Placement, other: Placement) -> bool:
    if not one.links or not other.links:
        return False
    meets = [not set(a).isdisjoint(b) for a, b in zip(one.members, other.members, strict=True)]
    for dimension, (labels, other_labels) in enumerate(zip(one.links, other.links, strict=True)):
        shared = labels and other_labels and not set(labels).isdisjoint(other_labels)
        if shared and all(meet for index, meet in enumerate(meets) if index != dimension):
            return True
    return False


def expected_ends(site: Site) -> dict[int, int]:
    """Return the expected end of each running job, in microseconds after now.

    A job that has outrun its request is expected to end when the next reservation begins, if not before: a reservation
    has precedence over it.
    """
    now = site.now
    ends = {number: job.expected_end(now) for number, job in site.running.items()}
    precedence = min((one.begin_time for one in site.reservations if one.begin_time > now), default=None)
    if precedence is not None:
        for number, job in site.running.items():
            if job.planned_end <= now:
                ends[number] = min(ends[number], precedence)
    return ends


def plan_of(site: Site, promises: Sequence[tuple[int, int, int, Placement]] = ()) -> Plan:
    """Plan the running jobs, reservations and promises of a site from now on.

    Args:
        site: the site.
        promises: key, begin, end and placement of each promise; they overlap nothing.
    """
    ends = expected_ends(site)
    running = [(number, site.now, ends[number], job.placement) for number, job in site.running.items()]
    reserved = [(each.number, each.begin_time, each.end_time, each.placement) for each in site.reservations]
    return Plan(site.machine, site.now, [*running, *reserved, *promises])
