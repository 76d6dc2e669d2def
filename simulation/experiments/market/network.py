"""Figure 13: the users' experiment again with the resources spread over a network of hosts.

The paper ran Table 2's first fifteen resources on fifteen hosts: ten in one laboratory in London, five at other sites
in Europe, and found no significant effect but a greater variance. It tells no latencies; those here are typical of
such paths. In virtual time messages also travel over links with latency, jitter and loss, which TCP hides as delay.
Over XMPP there are two hosts, network namespaces with federated servers, the other sites' resources on the second
(`trials.hosts`). The link between them has latency, jitter and loss by tc netem where the kernel offers it, else by a
relay in front of each server; the summary's `line` says which. Where the machine permits no namespaces, the experiment
says why and measures one host only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ramp.model.instant import MILLISECOND, Duration
from ramp.runtime.configuration.servers import PROSODY
from ramp.runtime.configuration.values import ResourceConfig
from simulation.experiments.comparison import Comparison
from simulation.experiments.market.experiment_frame import Study, market_experiment
from simulation.experiments.market.plots.users import draw_network
from simulation.experiments.market.users import RESPONSE_COLUMNS, comparisons_of, plans_of, response_table, tell_table
from simulation.experiments.result import write_rows
from simulation.experiments.trials.plan import (
    Links,
    MarketPlan,
    Mode,
    table2_resources,
)

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

SPREAD: Final = "fifteen hosts"
"""The paper's deployment."""

SPREAD_OVER_XMPP: Final = "two hosts"
"""The same over XMPP, where the laboratory is one host and the other sites are another."""

PICTURE: Final = "figure13.png"


def run(study: Study) -> dict[str, Any]:
    """Run the experiment; returns its summary."""
    repetitions = study.repetitions(REPETITIONS)
    resources = table2_resources()[:RESOURCES]
    users = QUICK_USERS if study.quick else USERS[study.mode]
    skipped, line = _line_of(study.mode)
    deployments = {
        name: _spread(study.mode, plans_of(study.seed, repetitions, users, resources, links), skipped)
        for name, links in deployments_of(resources).items()
        if links is None or not skipped
    }
    everything = [plan for plans in deployments.values() for plan in plans]
    results = study.run(everything)
    each = len(everything) // len(deployments)
    tables: dict[str, list[dict[str, Any]]] = {}
    series = []
    for number, deployment in enumerate(deployments):
        name = SPREAD_OVER_XMPP if deployment == SPREAD and study.mode is Mode.XMPP else deployment
        tables[name] = response_table(results[number * each : (number + 1) * each])
        source = study.out / f"figure13-{name.replace(' ', '-')}.csv"
        write_rows(source, tables[name])
        series.append((source, name))
    draw_network(series, study.out / PICTURE, study.mode, study.footnote(everything), quick=study.quick)
    return study.summary(
        everything,
        parameters={
            "repetitions": repetitions,
            "latency_ms": {name: latency / MILLISECOND for name, latency in SITES.items()},
            "laboratory_latency_ms": LABORATORY_LATENCY / MILLISECOND,
            "jitter_mean_ms": JITTER / MILLISECOND,
            "line": line,
            "skipped": skipped,
            "bad_network": f"{BAD_FACTOR} times latency and jitter, {100 * BAD_LOSS:g} % of packets lost",
        },
        comparisons=_comparisons(tables, study.mode),
        findings={"tables": tables},
        columns=RESPONSE_COLUMNS,
    )


def _line_of(mode: Mode) -> tuple[str, str]:
    """Why there can be no hosts over XMPP, and what makes the link slow."""
    if mode is Mode.SIMULATED:
        return "", "the simulator's model of links"
    from simulation.experiments.trials.namespaces import reason_against, reason_against_netem

    no_hosts = reason_against()
    if no_hosts:
        return no_hosts, "none"
    no_netem = reason_against_netem()
    return "", f"a relay in front of each server, for the kernel has no netem ({no_netem})" if no_netem else "tc netem"


def _spread(mode: Mode, plans: Sequence[MarketPlan], skipped: str) -> list[MarketPlan]:
    """The plans for a network.

    In virtual time every Resource Agent has a process of its own, as on a host of its own. Over XMPP one host has the
    same kind of server as two have, where there are two.
    """
    if mode is Mode.XMPP:
        return [plan if skipped else replace(plan, server=PROSODY) for plan in plans]
    return [replace(plan, resources_per_process=1) for plan in plans]


def deployments_of(resources: Sequence[ResourceConfig]) -> dict[str, Links | None]:
    """Return the networks compared, by name.

    Each seller has a host of its own: the first in the laboratory, the others at the sites.
    """
    hosts = [f"laboratory-{number}" for number in range(1, LABORATORY_HOSTS + 1)] + list(SITES)
    host_of = {each.name: host for each, host in zip(resources, hosts, strict=True)}
    latency = {host: SITES.get(host, LABORATORY_LATENCY) for host in hosts}
    return {
        "one host": None,
        SPREAD: Links(host_of, latency, JITTER),
        "bad network": Links(
            host_of, {host: BAD_FACTOR * each for host, each in latency.items()}, BAD_FACTOR * JITTER, BAD_LOSS
        ),
    }


def _comparisons(tables: Mapping[str, Sequence[Mapping[str, Any]]], mode: Mode) -> list[Comparison]:
    one = tables["one host"]
    spread = tables.get(SPREAD) or tables.get(SPREAD_OVER_XMPP)
    if spread is None:
        return comparisons_of(one, mode, PICTURE)
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


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [f"link: {summary['parameters']['line']}"]
    if summary["parameters"]["skipped"]:
        lines.append(f"no other hosts: {summary['parameters']['skipped']}")
    for name, table in summary["tables"].items():
        lines += [f"Simultaneous users, {RESOURCES} resources, {name}, {summary['parameters']['mode']}:"]
        lines += [*tell_table({"table": table}), ""]
    return lines


EXPERIMENTS: Final = (
    market_experiment(
        "network",
        "1 to 30 users with the resources on a network of hosts (RAMP, figure 13)",
        run,
        _tell,
    ),
)
