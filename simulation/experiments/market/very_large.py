"""From which size an immediate request fails: quotations for more and more cores, now and in twelve hours.

Part of the experiment `workloads`; the quotations follow the purchases of Table 3 and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ramp.model.instant import HOUR, MINUTE, Duration
from ramp.protocol.events import AuctionOptions
from simulation.experiments.trials.plan import STAND_IN, MarketResult, Submission, UnitWish, workload_of

SIZES: Final = (20_480, 40_960, 61_440, 81_920, 102_400, 122_880, 143_360, 163_840)
"""Cores; the first is that of the paper's exp11, the last is the largest machine of all."""

LEADS: Final = (5 * MINUTE, 12 * HOUR)
PRICE: Final = 80
"""That of exp11, in credits per core hour."""

_LABEL: Final = "large-"


def quotations(position: int, spacing: Duration) -> tuple[Submission, ...]:
    """The quotations, one after another."""
    asked = [(cores, lead) for cores in SIZES for lead in LEADS]
    return tuple(
        Submission(
            f"{_LABEL}{cores}-{lead // MINUTE}",
            "user1",
            (position + number) * spacing,
            (UnitWish(PRICE, cores, lead),),
            AuctionOptions(rounds=1, quote_only=True),
        )
        for number, (cores, lead) in enumerate(asked)
    )


def without_quotations(result: MarketResult) -> MarketResult:
    """The result of the purchases alone."""
    kept = (each for each in result.auctions if not each.submission.label.startswith(_LABEL))
    return replace(result, auctions=tuple(kept))


def very_large_rows(repetition: int, result: MarketResult) -> list[dict[str, Any]]:
    """One row a quotation."""
    workloads = {each.name: workload_of(each) for each in result.plan.resources}
    rows = []
    for auction in result.auctions:
        if auction.submission.label.startswith(_LABEL):
            wish = auction.submission.wishes[0]
            able = sorted(auction.able())
            real = [name for name in able if workloads[name] != STAND_IN]
            rows.append(
                {
                    "repetition": repetition,
                    "cores": wish.cores,
                    "start_in_min": wish.lead // MINUTE,
                    "sold": auction.sold,
                    "sold_by_real_log": bool(real),
                    "able": " ".join(able),
                    "able_real_log": " ".join(real),
                }
            )
    return rows


def very_large_table(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """In how many repetitions a request of each size would be served."""
    table = []
    for cores in SIZES:
        entry: dict[str, Any] = {"cores": cores}
        for lead in LEADS:
            minutes = lead // MINUTE
            chosen = [row for row in rows if (row["cores"], row["start_in_min"]) == (cores, minutes)]
            entry[f"served_in_{minutes}_min"] = sum(row["sold"] for row in chosen)
            entry[f"by_real_logs_in_{minutes}_min"] = sum(row["sold_by_real_log"] for row in chosen)
        table.append(entry)
    return table


def very_large_lines(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table for people."""
    lines = ["very large requests: repetitions in which they would be served (of these by machines with real logs)"]
    lines += [
        f"{row['cores']:8} cores   in 5 min: {row['served_in_5_min']} ({row['by_real_logs_in_5_min']})   "
        f"in 12 h: {row['served_in_720_min']} ({row['by_real_logs_in_720_min']})"
        for row in table
    ]
    return lines
