"""A buyer who leaves the size to the seller gets its whole run.

The speed-up law is worked out here once more: G. M. Amdahl, AFIPS 1967, and tables of measured times.
"""

from __future__ import annotations

from fractions import Fraction

from ramp.model.agreement import Agreement
from ramp.protocol.records import AgreementReceived, FundsAsked, Record
from simulation.market.market_view import Checker, MarketView


class SizeOwed(Checker):
    """Looks at what honest buyers are about to pay, and at what honest sellers have accepted."""

    name = "size_owed"

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        """A party is bound."""
        if isinstance(record, FundsAsked) and name in view.honest_users:
            for agreement in record.agreements:
                self._check(agreement)
        elif isinstance(record, AgreementReceived) and name in view.honest_resources:
            assert isinstance(record.agreement.body, Agreement)
            self._check(record.agreement.body)

    def _check(self, agreement: Agreement) -> None:
        offer, unit = agreement.offer, agreement.request
        terms = unit.moldable
        if terms is None or unit.wall_time is None or agreement.best_offer:
            return
        if offer.cores < terms.least:
            raise self._violated(f"{agreement.agreement_id} has {offer.cores} of {terms.least} cores")
        used, reference = min(offer.cores, terms.most), unit.cores.total
        needed = unit.wall_time * _relative_time(terms.law, used) / _relative_time(terms.law, reference)
        if offer.end - offer.start < needed:
            lasts = offer.end - offer.start
            raise self._violated(f"{agreement.agreement_id} lasts {lasts} us; {used} cores need {float(needed):.0f} us")


def _relative_time(law: str, cores: int) -> Fraction:
    """Return the run time with these cores, in the law's own unit; of tables at their points and beyond the last."""
    name, _, rest = law.partition(":")
    if name == "amdahl":
        serial = Fraction(rest)
        return serial + (1 - serial) / cores
    points = [(int(few), Fraction(time)) for few, time in (point.split("=") for point in rest.split(","))]
    upper = next((each for each in points if each[0] >= cores), points[-1])
    lower = next((each for each in reversed(points) if each[0] <= cores), None)
    if lower is None:
        return upper[1] * upper[0] / cores
    if upper[0] <= lower[0]:
        return upper[1]
    return lower[1] + (upper[1] - lower[1]) * (cores - lower[0]) / (upper[0] - lower[0])
