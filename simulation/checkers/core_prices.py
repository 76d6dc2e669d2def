"""What each single core of a bought slot was paid for, interval by interval: a plain count, apart from RAMP's rules.

RAMP keeps a slot as a few spans of parts (`ramp.model.sizes.amended`). This keeps a price for every core of every
interval between two instants at which anything changes, so that what goes back can be added up core by core.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import Instant

Interval = tuple[Instant, Instant]
"""From when to when."""


def given_back(agreement: Agreement, changes: Sequence[ContractChange], last: ContractChange) -> tuple[Fraction, int]:
    """What the last of a slot's changes gives back, and how much of the slot.

    Args:
        agreement: what was bought.
        changes: those posted before it, in their order.
        last: which leaves less than there was.

    Returns:
        Minor units as an exact fraction, and core microseconds.
    """
    offer = agreement.offer
    instants = {offer.start, offer.end}
    for change in (*changes, last):
        instants |= {max(change.effective_at, offer.start), max(change.until, offer.start)}
    prices: dict[Interval, list[Fraction]] = {
        interval: [Fraction(agreement.cost, offer.cores * (offer.end - offer.start))] * offer.cores
        if interval[1] <= offer.end
        else []
        for interval in pairwise(sorted(instants))
    }
    counts_from = offer.start
    for change in changes:
        counts_from = max(counts_from, change.effective_at)
        _change(prices, change, counts_from)
    counts_from = max(counts_from, last.effective_at)
    worth, core_time = Fraction(0), 0
    for (begin, end), cores in prices.items():
        gone = cores if begin >= last.until else cores[last.cores :]
        if begin >= counts_from:
            worth += sum(gone, Fraction(0)) * (end - begin)
            core_time += len(gone) * (end - begin)
    return worth, core_time


def _change(prices: dict[Interval, list[Fraction]], change: ContractChange, counts_from: Instant) -> None:
    """Take what goes from the end of each interval's cores, and put what comes behind them at its own price."""
    added = sum(
        (change.cores - len(cores)) * (end - begin)
        for (begin, end), cores in prices.items()
        if counts_from <= begin < change.until
    )
    price = Fraction(change.charge, added) if change.charge else Fraction(0)
    for (begin, _), cores in prices.items():
        left = change.cores if begin < change.until else 0
        cores[left:] = [price] * (left - len(cores))
