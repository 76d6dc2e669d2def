"""Maximum costs of units, and the run times and sizes of moldable ones.

A unit's price is the maximum cost of a core-hour that it asks for (paper section 5.2). So a slot never costs more than
the cores and the time asked at that price, even if the machine charges more cores than were asked for. Offers compare
by their cost.

A moldable unit leaves its size to the seller. Its `cores` are a reference size, for which its wall time and its price
are stated. With other cores its speed-up law gives the run time. Moldable as in D. G. Feitelson and L. Rudolph, "Toward
convergence in job schedulers for parallel supercomputers", JSSPP 1996.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ramp.errors import WorkloadError
from ramp.model import money
from ramp.model.instant import HOUR, SECOND, Duration, iso
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.sizes.speed_up import law_of
from ramp.model.slot import Slot

CANDIDATES_MAX: Final = 8
"""Maximum number of sizes that a seller tries, within the time for one call."""


def least_cores(unit: RequestUnit) -> int:
    """Return the minimum number of cores of a slot."""
    return unit.cores.total if unit.moldable is None else unit.moldable.least


def run_time_with(unit: RequestUnit, cores: int) -> Duration | None:
    """Return the run time with a number of cores, in microseconds, or None for the whole window.

    For a moldable unit it is in whole seconds, rounded up; cores beyond its greatest size shorten nothing.

    Args:
        unit: the run.
        cores: at least `least_cores`.
    """
    if unit.moldable is None or unit.wall_time is None:
        return unit.wall_time
    used = max(1, min(cores, unit.moldable.most))
    if used == unit.cores.total:
        return unit.wall_time
    law = law_of(unit.moldable.law)
    exact = unit.wall_time * law.run_time(used) / law.run_time(unit.cores.total)
    return -(-exact // SECOND) * SECOND


def of_size(unit: RequestUnit, cores: int) -> RequestUnit:
    """Return a moldable unit with a fixed size, as a machine is asked for it.

    Its price is the greatest whole number of credits per core hour at which the slot stays within the unit's maximum
    cost.
    """
    if unit.moldable is None:
        return unit
    fixed = replace(unit, cores=TotalCores(cores), wall_time=run_time_with(unit, cores), moldable=None)
    return replace(fixed, cpu_hour_cost=price_with(unit, cores, fixed.wall_time or 0))


def as_offered(unit: RequestUnit, offer: Offer) -> RequestUnit:
    """Return the unit as the machine was asked for it: of the offer's size, without choice."""
    return unit if unit.moldable is None else of_size(unit, min(offer.cores, unit.moldable.most))


def candidates(unit: RequestUnit) -> tuple[RequestUnit, ...]:
    """Return the unit at the sizes that a seller tries, ascending; a unit that is not moldable has one.

    These are the least size and its doublings, the reference size and the greatest; if there are more than
    `CANDIDATES_MAX`, the smallest doublings are dropped.
    """
    terms = unit.moldable
    if terms is None:
        return (unit,)
    doubled = []
    size = terms.least
    while size < terms.most:
        doubled.append(size)
        size *= 2
    kept = {unit.cores.total, terms.least, terms.most}
    for size in reversed(doubled):
        if len(kept) < CANDIDATES_MAX:
            kept.add(size)
    return tuple(of_size(unit, size) for size in sorted(kept))


def cost_cap(unit: RequestUnit, length: Duration) -> int:
    """Return the maximum cost of a slot at the unit's price, in minor units.

    The price is per core-hour asked, whatever the slot's cores and its time beyond the wall time.
    A unit without wall time asks for the whole length.

    Args:
        unit: the unit.
        length: of the slot, microseconds.
    """
    return money.cost(unit.cpu_hour_cost, unit.cores.total, length if unit.wall_time is None else unit.wall_time)


def price_with(unit: RequestUnit, cores: int, length: Duration, price: int | None = None) -> int:
    """Return the greatest whole price of a slot, credits per core-hour charged, within the unit's maximum cost.

    It is 0 if the slot is too dear at any price.

    Args:
        unit: the unit.
        cores: charged for the slot.
        length: of the slot, microseconds.
        price: in place of the unit's.
    """
    asked = unit.cpu_hour_cost if price is None else price
    charged = 2 * money.MINOR_UNITS_PER_CREDIT * cores * length
    if charged <= 0:
        return asked
    cap = money.cost(asked, unit.cores.total, length if unit.wall_time is None else unit.wall_time)
    return ((2 * cap + 1) * HOUR - 1) // charged  # costs are rounded half up


def price_for(unit: RequestUnit, slot: Slot | Offer, price: int) -> int:
    """Return the least whole price of the unit, credits per core-hour asked, that allows a slot's cost.

    All offers for a unit compare by this measure.

    Args:
        unit: the unit.
        slot: for the unit.
        price: of the slot, credits per core-hour charged.
    """
    length = slot.end - slot.start
    asked = 2 * money.MINOR_UNITS_PER_CREDIT * unit.cores.total * (length if unit.wall_time is None else unit.wall_time)
    if asked <= 0:
        return price
    return max(0, -((1 - 2 * money.cost(price, slot.cores, length)) * HOUR // asked))


def size_problem(unit: RequestUnit, cores: int, length: Duration) -> str:
    """Say why cores and length of a slot contradict a moldable unit's law; else empty."""
    if unit.moldable is None:
        return ""
    if cores < unit.moldable.least:
        return f"too few cores: got {cores}, expected at least {unit.moldable.least}"
    needed = run_time_with(unit, cores)
    if needed is not None and length < needed:
        law = unit.moldable.law
        return f"{length / SECOND:g} s with {cores} cores; by the law {law} the run takes {needed // SECOND} s"
    return ""


def moldable_problems(unit: RequestUnit) -> tuple[str, ...]:
    """List the problems of a unit's range of sizes, one sentence each."""
    terms = unit.moldable
    if terms is None:
        return ()
    found = []
    if not isinstance(unit.cores, TotalCores):
        found.append("a range of cores needs TotalCores (the reference size), not Nodes")
    elif not 1 <= terms.least <= unit.cores.total <= terms.most:
        found.append(
            f"invalid range of cores: got {terms.least} to {terms.most} with a reference size of {unit.cores.total}, "
            "expected 1 <= least <= reference size <= most"
        )
    if unit.wall_time is None:
        found.append("a range of cores needs WallTime (at the reference size)")
    if unit.torus is not None and unit.torus.geometry:
        found.append("a range of cores and a Geometry exclude each other; leave one out")
    if unit.start_probability is not None:
        found.append("a range of cores and a StartProbability exclude each other; leave one out")
    try:
        law = law_of(terms.law)
    except WorkloadError as error:
        found.append(error.reason)
        return tuple(found)
    if not found and unit.wall_time is not None and unit.not_before is not None:
        shortest = unit.wall_time * law.run_time(terms.most) / law.run_time(unit.cores.total)
        if unit.not_before + shortest > unit.deadline:
            window = f"between {iso(unit.not_before)} and {iso(unit.deadline)}"
            found.append(f"the run does not fit {window} at any size; choose a later end")
    return tuple(found)
