"""Figure 13: the users' experiment again with the resources spread over a network of hosts.

The paper ran Table 2's first fifteen resources on fifteen hosts: ten in one laboratory in London, five at other sites
in Europe, and found no significant effect but a greater variance. It tells no latencies; those here are typical of
such paths. In virtual time messages also travel over links with latency, jitter and loss, which TCP hides as delay.
Over XMPP all resources are on one host; `examples/studies/two_hosts.py` has two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ramp.model.instant import MILLISECOND, Duration
from ramp.runtime.configuration.values import ResourceConfig
from simulation.experiments.comparison import Comparison
from simulation.experiments.figures import Curves, Figure
from simulation.experiments.market.frame import market_study, mode_of, repetitions_of
from simulation.experiments.market.users import (
    RESPONSE_COLUMNS,
    RESPONSES,
    SHOWN,
    comparisons_of,
    plans_of,
    response_table,
    responses_note,
)
from simulation.experiments.result import Column, grouped
from simulation.experiments.study import Found, Run, Shown, Tables
from simulation.experiments.trials.plan import Links, MarketPlan, Mode, table2_resources
from simulation.plots.style import BLUE, GREEN, SERIES, VERMILION

RESOURCES: Final = 15
USERS: Final = {Mode.SIMULATED: tuple(range(1, 31)), Mode.XMPP: (1, 5, 10, 20, 30)}
QUICK_USERS: Final = (1, 10, 30)
REPETITIONS: Final = 3

INSIGNIFICANT_PERCENT: Final = 20.0
"""Per cent up to which the network's share counts as not significant."""

LABORATORY_HOSTS: Final = 10
SITES: Final[Mapping[str, Duration]] = {
    "cineca": 17 * MILLISECOND,
    "cyfronet-1": 20 * MILLISECOND,
    "cyfronet-2": 20 * MILLISECOND,
    "psnc": 16 * MILLISECOND,
    "sheffield": 4 * MILLISECOND,
}
"""One-way latency to the laboratory, taken as half of a typical round trip between such sites."""

LABORATORY_LATENCY: Final[Duration] = 150
JITTER: Final[Duration] = 1 * MILLISECOND
BAD_FACTOR: Final = 5
BAD_LOSS: Final = 0.01
"""The bad network: factor on latency and jitter, and share of packets lost."""

ONE_HOST: Final = "one host"
SPREAD: Final = "fifteen hosts"
"""The paper's deployment."""

PICTURE: Final = "figure13.png"


def cases(run: Run) -> Mapping[str, Sequence[MarketPlan]]:
    """The markets of each deployment; over XMPP only those on one host.

    In virtual time every Resource Agent has a process of its own, as on a host of its own.
    """
    mode = mode_of(run)
    resources = table2_resources()[:RESOURCES]
    users, repetitions = run.either(USERS[mode], QUICK_USERS), repetitions_of(run, REPETITIONS)
    if mode is Mode.XMPP:
        return {ONE_HOST: plans_of(run.seed, repetitions, users, resources)}
    return {
        name: [
            replace(plan, resources_per_process=1) for plan in plans_of(run.seed, repetitions, users, resources, links)
        ]
        for name, links in deployments_of(resources).items()
    }


def deployments_of(resources: Sequence[ResourceConfig]) -> dict[str, Links | None]:
    """Return the networks compared, by name.

    Each seller has a host of its own: the first in the laboratory, the others at the sites.
    """
    hosts = [f"laboratory-{number}" for number in range(1, LABORATORY_HOSTS + 1)] + list(SITES)
    host_of = {each.name: host for each, host in zip(resources, hosts, strict=True)}
    latency = {host: SITES.get(host, LABORATORY_LATENCY) for host in hosts}
    return {
        ONE_HOST: None,
        SPREAD: Links(host_of, latency, JITTER),
        "bad network": Links(
            host_of, {host: BAD_FACTOR * each for host, each in latency.items()}, BAD_FACTOR * JITTER, BAD_LOSS
        ),
    }


def _tables(found: Found) -> Tables:
    tables: dict[str, Any] = {
        f"figure13-{name.replace(' ', '-')}": lambda found, name=name: response_table(found.answers[name])
        for name in found.cases
    }
    every = [{"deployment": name, **row} for name in found.cases for row in response_table(found.answers[name])]
    return {**tables, "figure13": lambda _: every}


def _comparisons(found: Found) -> Sequence[Comparison]:
    tables = {name: rows for (name,), rows in grouped(found["figure13"], "deployment").items()}
    one, mode = tables[ONE_HOST], mode_of(found.run)
    if len(tables) == 1:
        return comparisons_of(one, mode, PICTURE)
    spread = list(tables.values())[1]
    result = []
    why = "messages travel for milliseconds each way, and on one host a round takes not much longer than that"
    for index in (0, -1):
        users = one[index]["users"]
        who = "1 user" if users == 1 else f"{users} users"
        for column, words in (("response_s", "response time"), ("round_s", "round duration")):
            added = 100 * (spread[index][column] / one[index][column] - 1)
            result.append(
                Comparison(
                    f"{who}: {words} added by the network", "no significant impact", added, "%",
                    at_most=INSIGNIFICANT_PERCENT, why=why, picture=PICTURE,
                )
            )  # fmt: skip
    wider = spread[-1]["response_s_sd"] / (one[-1]["response_s_sd"] or 1.0)
    result.append(
        Comparison(
            "standard deviation of responses over that on one host", "greater", wider, "times", at_least=1.05,
            why="with many users waiting for each other scatters answers more than the links do", picture=PICTURE,
        )
    )  # fmt: skip
    return result + comparisons_of(spread, mode, PICTURE)


def _style(line: tuple[Any, ...], number: int) -> Mapping[str, Any]:
    return {
        "color": (BLUE, VERMILION, GREEN, *SERIES[3:])[number],
        "linestyle": ("-", "--", "-.", ":")[number],
        "marker": "os^v"[number],
        "label": line[0],
    }


EXPERIMENTS: Final = (
    market_study(
        name="network",
        about="1 to 30 users with the resources on a network of hosts (RAMP, figure 13)",
        cases=cases,
        tables=_tables,
        columns={**RESPONSE_COLUMNS, "deployment": Column("", "where the resources are")},
        figures={
            PICTURE: Figure(
                title="Figure 13 of Zasada and Coveney: simultaneous users, resources on a network of hosts",
                size=(11, 5),
                draw=Curves(table="figure13", lines=("deployment",), style=_style, **RESPONSES),
                note=responses_note,
            )
        },
        comparisons=_comparisons,
        shown=(Shown("figure13", f"deployment {SHOWN}"),),
        parameters=lambda found: {
            "repetitions": repetitions_of(found.run, REPETITIONS),
            "latency_ms": {name: latency / MILLISECOND for name, latency in SITES.items()},
            "laboratory_latency_ms": LABORATORY_LATENCY / MILLISECOND,
            "jitter_mean_ms": JITTER / MILLISECOND,
            "line": "the simulator's model of links" if mode_of(found.run) is Mode.SIMULATED else "none",
            "skipped": "" if mode_of(found.run) is Mode.SIMULATED else "two hosts: examples/studies/two_hosts.py",
            "bad_network": f"{BAD_FACTOR} times latency and jitter, {100 * BAD_LOSS:g} % of packets lost",
        },
    ),
)
