"""Check an offer against a unit of a request, for the buyer and for later checks of an agreement.

The site of a resource is the domain of its name, which its certificate and its XMPP server both confirm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ramp.model.instant import iso
from ramp.model.money import credits_text
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.probable_start import start_shortcoming
from ramp.model.request import RequestUnit
from ramp.model.sizes.moldable import cost_cap, size_problem


def shortcoming(unit: RequestUnit, offer: Offer) -> str:
    """Say why an offer does not meet a unit (whose price is the limit); empty if it does."""
    return next(shortcomings(unit, offer), "")


def shortcomings(unit: RequestUnit, offer: Offer) -> Iterator[str]:
    """Yield all reasons why an offer does not meet a unit, whose price is the limit."""
    length = offer.end - offer.start
    if problem := cost_problem(unit, offer, offer.cost):
        yield problem
    if unit.moldable is None and offer.cores < unit.cores.total:
        yield f"too few cores: got {offer.cores}, expected at least {unit.cores.total}"
    if offer.start_probability is not None and (problem := start_shortcoming(unit, offer)):
        yield problem
    if unit.sites is not None and (problem := site_shortcoming(unit, offer)):
        yield problem
    if unit.not_before is not None and offer.start < unit.not_before:
        yield f"it starts at {iso(offer.start)}, before {iso(unit.not_before)}"
    if offer.end > unit.deadline:
        yield f"it ends at {iso(offer.end)}, after {iso(unit.deadline)}"
    if unit.moldable is not None and (problem := size_problem(unit, offer.cores, length)):
        yield problem
    if unit.moldable is None and unit.wall_time is not None and length < unit.wall_time:
        yield "it is shorter than the wall time"
    if length <= 0:
        yield "it ends before it starts"


def cost_problem(unit: RequestUnit, offer: Offer, cost: int) -> str:
    """Say why a cost of an offer's slot is above the unit's maximum; empty if it is not."""
    cap = cost_cap(unit, offer.end - offer.start)
    if cost <= cap:
        return ""
    got, most = credits_text(cost), credits_text(cap)
    limit = f"{unit.cores.total} cores asked at {unit.cpu_hour_cost} credits/core-hour"
    return f"cost too high: got {got} credits for {offer.cores} cores, expected at most {most} ({limit})"


def site_of(agent: str) -> str:
    """Return the site of an agent such as `south1@south.example`: its name's domain in lower case; may be empty."""
    return agent.partition("@")[2].lower()


def is_at(resource: str, sites: Iterable[str]) -> bool:
    """Whether a resource is one of the named ones or at one of the sites."""
    return not {resource.lower(), site_of(resource)}.isdisjoint(sites)


def site_shortcoming(unit: RequestUnit, offer: Offer) -> str:
    """Say why an offer's resource is at no site of the unit; empty if it is."""
    if unit.sites is None or is_at(offer.resource, unit.sites):
        return ""
    return f"{offer.resource} is not at {_listed(unit.sites)}"


def site_refusal(unit: RequestUnit, resource: str) -> Refusal | None:
    """Refuse a unit that wants other sites than a resource's, naming the site that would pass; else None."""
    if unit.sites is None or is_at(resource, unit.sites):
        return None
    return Refusal(
        unit.number, RefusalCode.OTHER_SITE, site_of(resource), f"the request allows only {_listed(unit.sites)}"
    )


def _listed(sites: tuple[str, ...]) -> str:
    return " or ".join(sites)
