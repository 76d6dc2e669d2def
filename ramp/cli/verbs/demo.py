"""`ramp demo`: a whole market at work, from launch to stop."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ramp.cli.connection import ask, open_market
from ramp.cli.options import example, folder_type, json_option
from ramp.cli.verbs.launch import launch_in_background, up_text
from ramp.cli.verbs.machines import asked, machine_object, source_text
from ramp.cli.verbs.submit import follow, new_view
from ramp.cli.views.fields import NUMBER, Field, Fields
from ramp.cli.views.output import amount_text, print_line, printed_as_json, say, waiting, wants_json
from ramp.cli.views.reports import outcome_object, print_outcome
from ramp.client import dialogues
from ramp.client.market import Market
from ramp.client.request import request, resolved
from ramp.client.results import Account, Resource
from ramp.client.swarm import stop
from ramp.model.money import credits_decimal
from ramp.protocol.events import AuctionOptions
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RequestEnded
from ramp.runtime.state_folder import StateFolder
from ramp.shipped_files import DEFAULT_SWARM, find_config

if TYPE_CHECKING:
    from ramp.rfql.signing.verification import FileReport
    from ramp.runtime.configuration.values import SwarmConfig

ROUNDS: Final = 4
PRICE: Final = 70
"""Price limit in credits per core-hour: the start price of the dearer half of Table 2's machines."""


MACHINES_LIMIT_S: Final = 3.0
"""How long all machines together may take to describe themselves, in seconds."""


@click.command(epilog=example("ramp demo"))
@click.option("--config", "name", default=DEFAULT_SWARM, show_default=True, metavar="CONFIG",
              help="The market: a TOML file, or the name of one that comes with RAMP.")  # fmt: skip
@click.option("--state-dir", "path", type=folder_type,
              help="Folder of the state (default: a temporary folder; only the agreements are kept).")  # fmt: skip
@json_option
def demo(name: str, path: Path | None) -> int:
    """Launch a market, buy two units, show every round, the agreements and the balances, and stop.

    This takes a few seconds and leaves nothing running. --json prints the object of `ramp submit` with `machines`,
    `balances`, `verified` and `total_s`.
    """
    from ramp.runtime.configuration.file import load_config

    begin = time.monotonic()
    config = load_config(find_config(name))
    state = StateFolder((path or Path(tempfile.mkdtemp(prefix="ramp-demo-"))).absolute())
    with _running(config, state):
        bought, shown = _show(open_market(state, None), config, state)
    total = time.monotonic() - begin
    if bought and path is None:
        _keep_agreements(state)
    if not printed_as_json({**shown, "total_s": round(total, 3)}):
        kept = "agreements stay" if bought and path is None else "state stays"
        click.echo(f"Everything is stopped after {total:.1f} s; the {kept} in {state.path}")
    return 0 if bought else 1


@contextmanager
def _running(config: SwarmConfig, state: StateFolder) -> Iterator[None]:
    """Run a market for the block; Ctrl-C stops it too."""
    found = launch_in_background(config, state)
    try:
        if not wants_json():
            print_line(up_text(found))
        yield
    except BaseException:
        say(f"ramp: the market's state and logs stay in {state.path}")
        raise
    finally:
        with waiting("stopping the market"):
            stop(state)


def _show(market: Market, config: SwarmConfig, state: StateFolder) -> tuple[bool, dict[str, object]]:
    """Buy and show everything; return whether it was bought, and the object for `--json`."""
    from ramp.rfql.signing.verification import verify_file
    from ramp.runtime.clock import SystemClock
    from ramp.runtime.keys.store import KeyStore, trust_of

    with waiting("asking every machine"):
        listed = [Resource(resource.name, resource.name) for resource in config.resources]
        machines = market.machines(listed, MACHINES_LIMIT_S)
    fields = _fields(config)
    before = ask(market, dialogues.account(), "asking the bank")
    clock = SystemClock()
    if not wants_json():
        fields.print_table(machines, title="Machines (running and queued jobs; prices in credits/core-hour)")
        click.echo(
            f"{market.user} asks for two units, both or none: 64 cores for 1 h and 256 cores for 2 h, "
            f"for at most {PRICE} credits/core-hour; {ROUNDS} rounds"
        )
    units = (
        request(price=PRICE, cores=64, wall_time="1h", start="+5min", end="+6h"),
        request(price=PRICE, cores=256, wall_time="2h", start="+1h", end="+12h"),
    )
    view = new_view(market.short)
    ended = follow(market, resolved(units, clock.now()), AuctionOptions(rounds=ROUNDS), view)
    trust = trust_of(KeyStore(state.keys))
    reports = [verify_file(file, trust, clock.now()) for file in ended.files.values() if file is not None]
    after = ask(market, dialogues.account(), "asking the bank")
    if not wants_json():
        _tell(market, ended, reports, before, after)
    return ended.outcome.status is RequestStatus.COMMITTED, {
        **outcome_object(ended.outcome, ended.files, market.short),
        "machines": [machine_object(each.machine) | fields.plain(each) for each in machines],
        "balances": {
            "account": before.name,
            "before": credits_decimal(before.balance),
            "after": credits_decimal(after.balance),
        },
        "verified": [report.holds for report in reports],
    }


def _fields(config: SwarmConfig) -> Fields[Resource]:
    return Fields(
        Field("resource", "Resource", lambda each: each.name),
        Field("", "Cores", asked(lambda state: state.cores), NUMBER),
        Field("", "Busy", asked(lambda state: f"{state.load:.1%}"), NUMBER),
        Field("", "Running", asked(lambda state: state.running_total), NUMBER),
        Field("", "Queued", asked(lambda state: state.queued_total), NUMBER),
        Field("start_price", "Start price", lambda each: config.resource(each.name).prices.start_price, NUMBER),
        Field("minimum_price", "Minimum price", lambda each: config.resource(each.name).prices.minimum_price, NUMBER),
        Field("source", "", lambda each: each.machine and each.machine.source),
        Field("", "Queue", lambda each: "no answer in time" if each.machine is None else source_text(each.machine)),
        Field("torus", "", lambda each: config.resource(each.name).terms.torus),
    )


def _tell(market: Market, ended: RequestEnded, reports: Sequence[FileReport], first: Account, last: Account) -> None:
    print_outcome(ended.outcome, ended.files, market.short)
    for report in reports:
        verdict = f"holds, {len(report.passed)} checks passed" if report.holds else f"does NOT hold: {report.failure}"
        print_line(f"Verified offline: {Path(report.path).name} {verdict}")
    before, after = first.balance, last.balance
    print_line(
        f"Balance of {first.name} (signed queries to the bank): {amount_text(before)} before, "
        f"{amount_text(after)} after, {amount_text(before - after)} paid"
    )


def _keep_agreements(state: StateFolder) -> None:
    """Delete a temporary state folder except for the agreements and the authority that verifies them."""
    for entry in state.path.iterdir():
        if entry.name not in ("agreements", "keys"):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for entry in state.keys.iterdir():
        if entry.name != "ca.pem":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
