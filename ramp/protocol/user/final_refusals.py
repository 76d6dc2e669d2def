"""Refusals that hold for a whole auction: a resource is not called again for units that it refused for good.

The original system calls every resource in every round. A machine that is too small stays too small, and asking prices
only fall, so such calls cost both sides a message and the round a wait. Final refusals appear in every later round as
if repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


class FinalRefusals:
    """The final refusals of one auction."""

    def __init__(self) -> None:
        self._for_good: dict[str, dict[int, Refusal]] = {}
        self._at_price: dict[str, dict[int, Refusal]] = {}

    def foresee(self, units: Sequence[RequestUnit], resources: Iterable[str], unfit: Mapping[str, StaticTerms]) -> None:
        """Add the final refusals that are known without asking.

        Args:
            units: of the request.
            resources: names of all sellers.
            unfit: the static terms of those that can serve no unit, as the directory says.
        """
        sited = any(unit.sites is not None for unit in units)
        for name in resources if sited else unfit:
            terms = unfit.get(name)
            for unit in units:
                refusal = site_refusal(unit, name) or (None if terms is None else static_refusal(unit, terms))
                self.add(name, () if refusal is None else (refusal,))

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
