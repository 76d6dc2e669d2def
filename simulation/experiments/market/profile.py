"""What the time of many simultaneous users goes into: by process over XMPP, by function in the simulator."""

from __future__ import annotations

import cProfile
import pstats
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from simulation.experiments.result import Column, Columns
from simulation.experiments.trials.plan import MarketPlan, MarketResult, Mode
from simulation.experiments.trials.simulated import run_simulated

PROFILE_COLUMNS: Final[Columns] = {
    "process": Column("", "of the market; in virtual time the station that does its work"),
    "cpu_s": Column("s", "CPU time while requests were running; in virtual time service time"),
    "share_percent": Column("%", "of all processes"),
    "memory_mb": Column("MiB", "resident memory; 0 in virtual time"),
    "function": Column("", "name of the function"),
    "place": Column("", "its file and line"),
    "calls": Column("", "how often it was called"),
    "own_ms": Column("ms", "CPU time of the function itself"),
    "with_callees_ms": Column("ms", "the same with what it calls"),
    "own_percent": Column("%", "of all CPU time"),
    "area": Column("", "what functions are for"),
    "percent": Column("%", "of all CPU time"),
}

TOP_FUNCTIONS: Final = 25
ALONE_PERCENT: Final = 40
"""Share from which one of the five processes is called the bottleneck."""

_BUILT_IN: Final = "~"
"""What the profiler gives as the file of functions written in C."""

_AREAS: Final = {
    "signatures": (
        "signxml",
        "cryptography",
        "rfql/sign",
        "rfql/veri",
        "rfql/notary",
        "rfql/certif",
        "rfql/agreements",
    ),
    "XML": ("ramp/rfql", "lxml", "xml/"),
    "machines (quotes, reservations)": ("simulation/workload", "simulation/resource"),
    "the protocol": ("ramp/protocol", "ramp/model", "ramp/runtime", "ramp/ledger"),
    "the simulator itself": ("simulation/",),
}
"""What files are for, by parts of their paths; the first that fits counts."""

_ROOT: Final = Path(__file__).resolve().parents[3]


def process_rows(results: Sequence[MarketResult]) -> list[dict[str, Any]]:
    """Return the CPU time by process and number of users, means over the repetitions.

    In these markets all users asked at once.
    """
    rows = []
    for users in sorted({result.plan.users for result in results}):
        chosen = [result for result in results if result.plan.users == users]
        for name in [each.name for each in chosen[0].processes]:
            uses = [each for result in chosen for each in result.processes if each.name == name]
            cpu_s = fmean(each.cpu_s for each in uses)
            whole = fmean(sum(each.cpu_s for each in result.processes) for result in chosen) or 1.0
            rows.append(
                {
                    "users": users,
                    "process": name,
                    "cpu_s": round(cpu_s, 3),
                    "share_percent": round(100 * cpu_s / whole, 1),
                    "cpu_ms_per_auction": round(1000 * cpu_s / users, 2),
                    "memory_mb": round(fmean(each.memory_mb for each in uses), 1),
                }
            )
    return rows


@dataclass(frozen=True, slots=True)
class Profile:
    """CPU time of a market in virtual time, by function and by what the functions are for."""

    functions: list[dict[str, Any]]
    areas: list[dict[str, Any]]


def profile_of(plan: MarketPlan) -> Profile:
    """Where the CPU time goes when the plan is run in virtual time under a profiler.

    The simulator runs the same parties, hosts, prices, machines, XML and signatures as the agents; XMPP is missing.
    """
    run_simulated(replace(plan, submissions=plan.submissions[:1]), as_text=True)  # fills caches outside the profile
    profiler = cProfile.Profile()
    run_simulated(plan, as_text=True, profiler=profiler)
    statistics = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    whole = sum(entry[2] for entry in statistics.values()) or 1.0
    ranked = sorted(statistics.items(), key=lambda item: -item[1][2])[:TOP_FUNCTIONS]
    functions = [
        {
            "function": name,
            "place": _place(file, line),
            "calls": entry[1],
            "own_ms": round(1000 * entry[2], 2),
            "with_callees_ms": round(1000 * entry[3], 2),
            "own_percent": round(100 * entry[2] / whole, 1),
        }
        for (file, line, name), entry in ranked
    ]
    spent: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in statistics.items():
        if file == _BUILT_IN:  # counts for the caller
            for (caller, _, _), times in callers.items():
                spent[_area(caller)] += times[2]
        else:
            spent[_area(file)] += own
    areas = [{"area": area, "percent": round(100 * time / whole, 1)} for area, time in spent.most_common()]
    return Profile(functions, areas)


def _area(file: str) -> str:
    """What the code of a file is for."""
    for area, parts in _AREAS.items():
        if any(part in file for part in parts):
            return area
    return "the rest"


def _place(file: str, line: int) -> str:
    """File and line without what is only true on this machine."""
    path = Path(file)
    if path.is_relative_to(_ROOT):
        return f"{path.relative_to(_ROOT)}:{line}"
    return f"{path.name}:{line}" if line else "built in"


def bottleneck(mode: Mode, uses: Sequence[Mapping[str, Any]], profile: Profile) -> list[str]:
    """The profile in words."""
    areas = ", ".join(f"{row['area']} {row['percent']:g} %" for row in profile.areas)
    in_functions = f"XMPP apart, CPU time goes into: {areas}."
    most = sorted(
        (row for row in uses if row["users"] == max(row["users"] for row in uses)), key=lambda row: -row["cpu_s"]
    )
    total = sum(row["cpu_s"] for row in most)
    shares = ", ".join(f"{row['process']} {row['share_percent']:g} %" for row in most)
    first = most[0]
    what = "service time" if mode is Mode.SIMULATED else "CPU time"
    verdict = (
        f"The bottleneck is {first['process']}."
        if first["share_percent"] > ALONE_PERCENT
        else f"No process stands out; {first['process']} comes first, and all share the machine's cores."
    )
    return [f"With {first['users']} users the market takes {total:.2f} s of {what}: {shares}. {verdict}", in_functions]
