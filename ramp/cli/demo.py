"""`ramp demo`: a whole market at work, from launch to stop."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ramp.cli.account import ask_account
from ramp.cli.connection import Market, open_market
from ramp.cli.follow import Followed
from ramp.cli.launch import launch_detached, up_text
from ramp.cli.machines import ask_machines, known, load_object
from ramp.cli.moments import whole_seconds_up
from ramp.cli.options import example, json_option
from ramp.cli.outcome_report import outcome_object, print_outcome
from ramp.cli.output import amount_json, amount_text, print_json, print_rows, say, waiting
from ramp.cli.shipped import DEFAULT_SWARM, find_config
from ramp.cli.submit import new_view
from ramp.model.instant import HOUR, MINUTE, Instant
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.runtime.state_folder import StateFolder

if TYPE_CHECKING:
    from ramp.rfql.verification import FileReport
    from ramp.runtime.config import SwarmConfig

ROUNDS: Final = 4
PRICE: Final = 70
"""Most to pay, credits per core-hour: what the dearer half of Table 2's machines starts at."""


MACHINES_LIMIT_S: Final = 3.0
"""How long all machines together may take to describe themselves, in seconds."""

SOURCES: Final = {
    "log": "its workload log",
    "synthetic": "a synthetic workload (no log here)",
    "live": "the machine itself",
}
TORUS_SOURCES: Final = {
    "log": "a live torus, jobs of a workload log",
    "synthetic": "a live torus, synthetic jobs",
    "live": "the machine itself",
}


def demo_request(now: Instant) -> RequestForQuotation:
    """Two units to be bought together or not at all: 64 cores for 1 h in 5 minutes, 256 cores for 2 h in an hour.

    Each has some hours of slack, so that a machine whose queue is full at first can still offer.

    Args:
        now: the present.
    """
    return RequestForQuotation(
        (
            RequestUnit(
                number=1,
                cpu_hour_cost=PRICE,
                cores=TotalCores(64),
                not_before=whole_seconds_up(now + 5 * MINUTE),
                deadline=whole_seconds_up(now + 6 * HOUR),
                wall_time=HOUR,
            ),
            RequestUnit(
                number=2,
                cpu_hour_cost=PRICE,
                cores=TotalCores(256),
                not_before=whole_seconds_up(now + HOUR),
                deadline=whole_seconds_up(now + 12 * HOUR),
                wall_time=2 * HOUR,
            ),
        )
    )


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a demonstration has brought to light."""

    machines: list[dict[str, Any]]
    before: dict[str, Any]
    after: dict[str, Any]
    event: dict[str, Any]
    reports: list[FileReport]
    late_sources: list[str]


@click.command(epilog=example("ramp demo"))
@click.option("--config", "name", default=DEFAULT_SWARM, show_default=True, metavar="CONFIG",
              help="The market: a TOML file, or the name of one that comes with RAMP.")  # fmt: skip
@click.option("--state-dir", "path", type=click.Path(file_okay=False, path_type=Path),
              help="Keep the state there (default: a temporary folder, of which the agreements stay).")  # fmt: skip
@json_option
@click.pass_context
def demo(ctx: click.Context, name: str, path: Path | None, as_json: bool) -> None:
    """Launch a market, buy a two-unit request, show every round, the agreements and the balances, and stop.

    Takes some seconds and leaves nothing running. --json prints the object of `ramp submit` with `machines`,
    `balances`, `verified` and `total_s` besides.
    """
    from ramp.runtime.config_file import load_config

    begin = time.monotonic()
    config = load_config(find_config(name))
    state = StateFolder((path or Path(tempfile.mkdtemp(prefix="ramp-demo-"))).absolute())
    with _running(config, state, as_json):
        market = open_market(state, None)
        shown = _show(market, config, as_json)
        bought = shown.event["outcome"]["status"] == "committed"
        if as_json:
            result = _object(market, shown)
        else:
            _tell(market, shown)
    total = time.monotonic() - begin
    if bought and path is None:
        _keep_agreements(state)
    if as_json:
        print_json({**result, "total_s": round(total, 3)})
    else:
        kept = "agreements stay" if bought and path is None else "state stays"
        click.echo(f"Everything is stopped after {total:.1f} s; the {kept} in {state.path}")
    ctx.exit(0 if bought else 1)


@contextmanager
def _running(config: SwarmConfig, state: StateFolder, as_json: bool) -> Iterator[None]:
    """A market for as long as the block runs; stopped also by Ctrl-C."""
    from ramp.agents import supervise

    status = launch_detached(config, state)
    try:
        if not as_json:
            click.echo(up_text(status))
        yield
    except BaseException:
        say(f"ramp: the market's state and logs stay in {state.path}")
        raise
    finally:
        with waiting("stopping the market"):
            supervise.stop(state)


def _show(market: Market, config: SwarmConfig, as_json: bool) -> _Shown:
    from ramp.rfql.request_for_quotation import write_request
    from ramp.rfql.verification import verify_file
    from ramp.runtime.clock import SystemClock
    from ramp.runtime.keys import KeyStore

    with waiting("asking every machine"):
        snapshots = ask_machines(market, [resource.name for resource in config.resources], MACHINES_LIMIT_S)
    machines = [
        {
            "resource": resource.name,
            **load_object(snapshots.get(resource.name)),
            "start_price": resource.prices.start_price,
            "minimum_price": resource.prices.minimum_price,
            "torus": resource.terms.torus,
        }
        for resource in config.resources
    ]
    if not as_json:
        _tell_machines(machines)
    before = ask_account(market)
    clock = SystemClock()
    if not as_json:
        click.echo(
            f"{market.user} asks for two units, both or none: 64 cores for 1 h and 256 cores for 2 h, "
            f"for at most {PRICE} credits/core-hour; {ROUNDS} rounds"
        )
    options = {"rounds": ROUNDS, "round_time_s": 15.0, "prefer": "cheapest", "approve": "auto"}
    with new_view(market.short, as_json) as view:
        event = Followed(market, write_request(demo_request(clock.now())), options, view).run()
    late = _sources_from_offers(machines, event["outcome"], market)
    keys = KeyStore(market.state.keys)
    reports = [
        verify_file(file, keys.ca_certificates(), clock.now(), pins=keys.certificate_on_file, revoked=keys.is_revoked)
        for file in event["agreements"].values()
        if file is not None
    ]
    return _Shown(machines, before, ask_account(market), event, reports, late)


def _tell_machines(machines: Sequence[dict[str, Any]]) -> None:
    columns = ("Resource", "Cores", "Busy", "Running", "Queued", "Start price", "Minimum price", "Queue driven by")
    print_rows(
        columns,
        [
            (
                machine["resource"],
                known(machine["cores"]),
                known(None if machine["load"] is None else f"{machine['load']:.1%}"),
                known(machine["running"]),
                known(machine["queued"]),
                machine["start_price"],
                machine["minimum_price"],
                _driven_by(machine) if machine["source"] is not None else "(did not answer in time)",
            )
            for machine in machines
        ],
        right=columns[1:7],
        title="Machines (running and queued jobs; prices in credits/core-hour)",
    )


def _sources_from_offers(machines: Sequence[dict[str, Any]], outcome: Mapping[str, Any], market: Market) -> list[str]:
    """Fill in, from its offers, what drives a machine that did not answer in time; returns which ones."""
    offered = {
        market.short(offer["resource"]): offer["source"] for record in outcome["rounds"] for offer in record["offers"]
    }
    late = [machine for machine in machines if machine["source"] is None and machine["resource"] in offered]
    for machine in late:
        machine["source"] = offered[machine["resource"]]
    return [f"{machine['resource']}'s queue is driven by {_driven_by(machine)}, its offer says" for machine in late]


def _driven_by(machine: Mapping[str, Any]) -> str:
    """What its queue comes from, in words."""
    words = TORUS_SOURCES if machine["torus"] else SOURCES
    return words.get(machine["source"], str(machine["source"]))


def _tell(market: Market, shown: _Shown) -> None:
    for sentence in shown.late_sources:
        click.echo(sentence)
    print_outcome(shown.event["outcome"], shown.event["agreements"], market.short)
    for report in shown.reports:
        verdict = f"holds, {len(report.passed)} checks passed" if report.holds else f"does NOT hold: {report.failure}"
        click.echo(f"Verified offline: {Path(report.path).name} {verdict}")
    before, after = shown.before["balance"], shown.after["balance"]
    click.echo(
        f"Balance of {shown.before['account']} (signed queries to the bank): {amount_text(before)} before, "
        f"{amount_text(after)} after, {amount_text(before - after)} paid"
    )


def _object(market: Market, shown: _Shown) -> dict[str, Any]:
    return {
        **outcome_object(shown.event["outcome"], shown.event["agreements"], market.short),
        "machines": shown.machines,
        "balances": {
            "account": shown.before["account"],
            "before": amount_json(shown.before["balance"]),
            "after": amount_json(shown.after["balance"]),
        },
        "verified": [report.holds for report in shown.reports],
    }


def _keep_agreements(state: StateFolder) -> None:
    """Throw a temporary state folder away but for the agreements and the authority that they are verified with."""
    for entry in state.path.iterdir():
        if entry.name not in ("agreements", "keys"):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for entry in state.keys.iterdir():
        if entry.name != "ca.pem":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
