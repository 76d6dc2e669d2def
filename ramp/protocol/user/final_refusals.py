"""Which refusals stand for a whole auction: whoever has made one is not called again for what it will not sell.

The original system calls every resource in every round. A machine that is too small is so in every round, and the price
asked only falls; a call whose answer is known costs both sides a message and the round the wait for it. What a resource
has refused for good is shown with every later round's refusals, as if it had been said again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ramp.model.machine_terms.static_terms import static_refusal
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.shortcoming import site_refusal
from ramp.model.slot import StaticTerms
from ramp.protocol.outcome import ResourceRefusal

FOR_GOOD: Final = frozenset(
    {
        RefusalCode.MACHINE_TOO_SMALL,
        RefusalCode.WINDOW_PASSED,
        RefusalCode.OPERATING_SYSTEM,
        RefusalCode.OS_VERSION,
        RefusalCode.ARCHITECTURE,
        RefusalCode.CPU_SPEED,
        RefusalCode.BANDWIDTH,
        RefusalCode.MEMORY,
        RefusalCode.DISK,
        RefusalCode.NODE_CORES,
        RefusalCode.TORUS,
        RefusalCode.DRAINING,
        RefusalCode.NO_ACCOUNT,
        RefusalCode.START_PROBABILITY,
        RefusalCode.OTHER_SITE,
    }
)
"""What neither a lower price asked nor a few seconds change; cores that are taken may come free."""


def known_refusals(units: Iterable[RequestUnit], resource: str, terms: StaticTerms | None) -> list[Refusal]:
    """What a resource would refuse for good, without asking it: for its site's sake, or its machine's.

    Args:
        units: of the request.
        resource: its name.
        terms: that it has stated to the directory, where the directory says that it could serve none of them.
    """
    found = (site_refusal(unit, resource) or (None if terms is None else static_refusal(unit, terms)) for unit in units)
    return [refusal for refusal in found if refusal is not None]


class FinalRefusals:
    """What the resources of one auction have refused for good."""

    def __init__(self) -> None:
        self._for_good: dict[str, dict[int, Refusal]] = {}
        self._at_price: dict[str, dict[int, Refusal]] = {}

    def add(self, resource: str, refusals: Iterable[Refusal]) -> None:
        """Take what a resource has refused."""
        for refusal in refusals:
            if refusal.code in FOR_GOOD:
                self._for_good.setdefault(resource, {})[refusal.unit] = refusal
            elif refusal.code is RefusalCode.PRICE:
                self._at_price.setdefault(resource, {})[refusal.unit] = refusal

    def callable(self, resources: Sequence[str], units: Iterable[int], *, best_offers: bool) -> tuple[str, ...]:
        """The resources that may still bid for some of the units, in their order.

        Args:
            resources: names of all that sell.
            units: numbers of the units asked for.
            best_offers: whether the price asked need not be met, so that who refused for its sake may bid.
        """
        asked = frozenset(units)
        return tuple(each for each in resources if not asked <= self._refused(each, best_offers=best_offers).keys())

    def of(self, resource: str, units: Iterable[int], *, best_offers: bool) -> list[ResourceRefusal]:
        """What a resource that is not called has refused of the units asked for."""
        refused = self._refused(resource, best_offers=best_offers)
        return [ResourceRefusal(resource, refused[number]) for number in units if number in refused]

    def hopeless(self, resources: Iterable[str], units: Iterable[int]) -> list[int]:
        """The units that every resource has refused for good, so that no price will buy them."""
        everybody = [self._for_good.get(each, {}).keys() for each in resources]
        return [number for number in units if all(number in refused for refused in everybody)]

    def _refused(self, resource: str, *, best_offers: bool) -> dict[int, Refusal]:
        for_good = self._for_good.get(resource, {})
        return for_good if best_offers else {**self._at_price.get(resource, {}), **for_good}
