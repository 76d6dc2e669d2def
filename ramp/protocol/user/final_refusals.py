"""Refusals that hold for a whole auction: a resource is not called again for units that it refused for good.

The original system calls every resource in every round. A machine that is too small stays too small, and asking prices
only fall, so such calls cost both sides a message and the round a wait. Final refusals appear in every later round as
if repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ramp.model.machine_terms import TERMS, static_refusal
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.shortcoming import site_refusal
from ramp.model.slot import StaticTerms
from ramp.protocol.outcome import ResourceRefusal

FOR_GOOD: Final = frozenset(
    {
        RefusalCode.MACHINE_TOO_SMALL,
        RefusalCode.WINDOW_PASSED,
        *(term.code for term in TERMS),
        RefusalCode.APPLICATION,
        RefusalCode.NODE_CORES,
        RefusalCode.TORUS,
        RefusalCode.DRAINING,
        RefusalCode.NO_ACCOUNT,
        RefusalCode.START_PROBABILITY,
        RefusalCode.OTHER_SITE,
    }
)
"""Refusals that neither a lower asking price nor a few seconds change; taken cores may become free."""


def known_refusals(units: Iterable[RequestUnit], resource: str, terms: StaticTerms | None) -> list[Refusal]:
    """Return the final refusals of a resource that are known without asking it.

    Args:
        units: of the request.
        resource: its name.
        terms: its static terms, if the directory says that it can serve no unit; else None.
    """
    found = (site_refusal(unit, resource) or (None if terms is None else static_refusal(unit, terms)) for unit in units)
    return [refusal for refusal in found if refusal is not None]


class FinalRefusals:
    """The final refusals of one auction."""

    def __init__(self) -> None:
        self._for_good: dict[str, dict[int, Refusal]] = {}
        self._at_price: dict[str, dict[int, Refusal]] = {}

    def add(self, resource: str, refusals: Iterable[Refusal]) -> None:
        for refusal in refusals:
            if refusal.code in FOR_GOOD:
                self._for_good.setdefault(resource, {})[refusal.unit] = refusal
            elif refusal.code is RefusalCode.PRICE:
                self._at_price.setdefault(resource, {})[refusal.unit] = refusal

    def callable(self, resources: Iterable[str], units: Iterable[int], *, best_offers: bool) -> tuple[str, ...]:
        """Return the resources that may still bid for some of the units, in their order.

        Args:
            resources: names of all sellers.
            units: numbers of the units called for.
            best_offers: whether resources that refused the price may bid again.
        """
        asked, nothing = frozenset(units), dict[int, Refusal]()
        for_good, at_price = self._for_good, {} if best_offers else self._at_price
        return tuple(
            each
            for each in resources
            if not asked <= for_good.get(each, nothing).keys() | at_price.get(each, nothing).keys()
        )

    def of(self, resource: str, units: Iterable[int], *, best_offers: bool) -> list[ResourceRefusal]:
        """Return the refusals of a resource that is not called."""
        refused = self._refused(resource, best_offers=best_offers)
        return [ResourceRefusal(resource, refused[number]) for number in units if number in refused]

    def hopeless(self, resources: Iterable[str], units: Iterable[int]) -> list[int]:
        """Return the units that every resource has refused for good."""
        everybody = [self._for_good.get(each, {}).keys() for each in resources]
        return [number for number in units if all(number in refused for refused in everybody)]

    def _refused(self, resource: str, *, best_offers: bool) -> dict[int, Refusal]:
        for_good = self._for_good.get(resource, {})
        return for_good if best_offers else {**self._at_price.get(resource, {}), **for_good}
