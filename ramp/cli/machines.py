"""`ramp qstat` and `ramp resources`: what is sold, and how the machines are."""

from __future__ import annotations

import contextlib
import difflib
import json
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import click

from ramp.cli.connection import Market, open_market
from ramp.cli.moments import DURATION_HELP, DurationType
from ramp.cli.options import example, market_options
from ramp.cli.output import bar_text, count_text, duration_text, moment_text, print_json, print_rows, waiting
from ramp.errors import ConfigurationError, RampError
from ramp.model.instant import HOUR, Duration, from_iso, seconds
from ramp.runtime.state_folder import StateFolder

LOAD_LIMIT_S: Final = 25.0
"""How long all machines together may take to say how busy they are, in seconds."""

JOBS_SHOWN: Final = 10
"""So many running and queued jobs are shown unless --all is given."""


def ask_machine(market: Market, name: str, horizon: Duration) -> dict[str, Any]:
    """A machine's snapshot; see `ramp.plugins.interface.ResourcePlugin.snapshot` and `ramp.runtime.snapshot`."""
    event = market.ask({"verb": "machine", "resource": name, "horizon_s": seconds(horizon)}, f"asking {name}")
    snapshot: dict[str, Any] = json.loads(event["answer"]["snapshot"])
    return snapshot


def ask_machines(market: Market, names: Sequence[str], limit_s: float) -> dict[str, dict[str, Any]]:
    """Snapshots of many machines, asked at the same time; those that do not answer within the limit are missing.

    Args:
        market: where.
        names: of the resources.
        limit_s: how long to wait for them all, in seconds.
    """
    found: dict[str, dict[str, Any]] = {}

    def ask(name: str) -> None:
        with contextlib.suppress(RampError, OSError), market.connect() as client:
            event = client.answer({"verb": "machine", "resource": name, "horizon_s": seconds(HOUR)})
            if event["event"] != "error":
                found[name] = json.loads(event["answer"]["snapshot"])

    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limit_s
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return dict(found)


def ask_resources(market: Market) -> list[str]:
    """Full names of the resources that are registered now."""
    event = market.ask({"verb": "resources"}, "asking the directory")
    return list(event["answer"]["names"])


@click.command(epilog=example("ramp qstat thunder1 --horizon 12h"))
@click.argument("machine")
@click.option("--horizon", type=DurationType(), default="24h", show_default=True, metavar="TIME",
              help=f"How far ahead to show the projected load, {DURATION_HELP}.")  # fmt: skip
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help=f"Show all jobs that fit a message, not only the first {JOBS_SHOWN} of each table.",
)
@market_options
def qstat(machine: str, horizon: Duration, show_all: bool, user: str | None, state: StateFolder, as_json: bool) -> None:
    """Show a machine's running and queued jobs, its reservations, and its projected load."""
    market = open_market(state, user)
    check_registered(market, machine)
    snapshot = ask_machine(market, machine, horizon)
    if as_json:
        print_json(snapshot)
        return
    limit = None if show_all else JOBS_SHOWN
    click.echo(
        f"{snapshot['resource']} at {snapshot['time']}: {snapshot['cores_busy']} of {snapshot['cores']} cores busy "
        f"({snapshot['load']:.1%}); {source_text(snapshot)}"
    )
    shares = [part["load"] for part in snapshot["projected_load"]]
    if shares:
        click.echo(f"projected load over {duration_text(horizon)}: {bar_text(shares)} (mean {_mean(shares):.1%})")
    _print_jobs("Running", snapshot["running"], snapshot["running_total"], limit)
    _print_jobs("Queued", snapshot["queued"], snapshot["queued_total"], limit)
    _print_reservations(snapshot["reservations"], limit)


@click.command(epilog=example("ramp resources --load"))
@click.option("--load", "with_load", is_flag=True, help="Also ask every machine how busy it is.")
@market_options
def resources(with_load: bool, user: str | None, state: StateFolder, as_json: bool) -> None:
    """Show which resources are registered in the market now: these would be called by the next request."""
    market = open_market(state, user)
    names = ask_resources(market)
    rows: list[dict[str, Any]] = [{"resource": market.short(name), "address": name} for name in names]
    if with_load:
        with waiting(f"asking {count_text(len(names), 'machine')}"):
            snapshots = ask_machines(market, names, LOAD_LIMIT_S)
        for row in rows:
            row.update(load_object(snapshots.get(row["address"])))
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("No resource is registered")
    elif with_load:
        columns = ("Resource", "Cores", "Busy", "Load", "Running (jobs)", "Queued (jobs)", "Queue driven by")
        print_rows(
            columns,
            [
                (
                    row["resource"],
                    *(known(row[key]) for key in ("cores", "cores_busy")),
                    known(None if row["load"] is None else f"{row['load']:.1%}"),
                    *(known(row[key]) for key in ("running", "queued")),
                    row["source"] or "(no answer)",
                )
                for row in rows
            ],
            right=columns[1:6],
        )
    else:
        print_rows(("Resource", "Address"), [(row["resource"], row["address"]) for row in rows])


def check_registered(market: Market, name: str) -> None:
    """Refuse a name that nobody has before its machine is waited for; addresses of other domains may be unknown here.

    Raises:
        ConfigurationError: naming the nearest one.
    """
    names = [market.short(address) for address in ask_resources(market)]
    if market.short(name) in names or "@" in market.short(name):
        return
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names) or 'none'}"
    raise ConfigurationError(f"no resource is registered as {name!r}; {hint}")


def load_object(snapshot: dict[str, Any] | None) -> dict[str, Any]:
    """How busy a machine is, for JSON; everything None where it did not answer."""
    if snapshot is None:
        return dict.fromkeys(("cores", "cores_busy", "load", "source", "running", "queued"))
    return {
        "cores": snapshot["cores"],
        "cores_busy": snapshot["cores_busy"],
        "load": round(snapshot["load"], 4),
        "source": snapshot["source"],
        "running": snapshot["running_total"],
        "queued": snapshot["queued_total"],
    }


def known(value: object) -> object:
    """A value, or a question mark where a machine did not say."""
    return "?" if value is None else value


def source_text(snapshot: dict[str, Any]) -> str:
    """What drives the machine's queue, in words."""
    torus = {
        "log": "a live torus, whose own users submit the jobs of a workload log",
        "synthetic": "a live torus, whose own users submit synthetic jobs",
    }
    if "map" in snapshot and snapshot["source"] in torus:
        return torus[snapshot["source"]]
    words = {
        "log": "its queue replays a workload log",
        "synthetic": "its queue is a synthetic workload (no log on this machine)",
        "live": "its queue is a live batch system's",
    }
    return words.get(snapshot["source"], str(snapshot["source"]))


def _mean(shares: list[float]) -> float:
    return sum(shares) / len(shares)


def _whole_second(text: str) -> str:
    return moment_text(from_iso(text))


def _print_jobs(title: str, jobs: list[dict[str, Any]], total: int, limit: int | None) -> None:
    rows = [
        (
            job["job"],
            "" if job["user"] is None else job["user"],
            job["cores"],
            *(_whole_second(job[key]) for key in ("submitted", "start", "end")),
        )
        for job in jobs[:limit]
    ]
    columns = ("Job", "User", "Cores", "Submitted", "Start", "End")
    projected = "start and end projected" if title == "Queued" else "end projected"
    print_rows(columns, rows, right=columns[:3], title=_title(title, total, len(rows), f"jobs, {projected}"))


def _print_reservations(reservations: list[dict[str, Any]], limit: int | None) -> None:
    rows = [
        (entry["reservation_id"], entry["cores"], _whole_second(entry["start"]), _whole_second(entry["end"]),
         "firm" if entry["firm"] else f"held until {_whole_second(entry['held_until'])}")
        for entry in reservations[:limit]
    ]  # fmt: skip
    columns = ("Reservation", "Cores", "Start", "End", "State")
    print_rows(columns, rows, right=("Cores",), title=_title("Reservations", len(reservations), len(rows), ""))


def _title(name: str, number: int, shown: int, note: str) -> str:
    cut = ""
    if number and not shown:
        cut = "; too many for one answer, none is listed"
    elif shown < number:
        cut = f"; the first {shown} are shown" + (" (--all shows more)" if shown == JOBS_SHOWN else "")
    return f"{name}: {number}{' ' + note if note and number else ''}{cut}"
