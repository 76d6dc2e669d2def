"""`ramp logs`: which workload logs are here, and getting those that are not."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import click
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ramp.cli.options import example
from ramp.cli.views.output import console, print_rows, say
from ramp.errors import WorkloadError
from simulation.workload.fetch import fetch_log
from simulation.workload.logs import find_log, known_log, known_logs, logs_cache_dir

SHOWN: Final = ("name", "machine", "cores", "jobs", "start", "months")


@click.command(epilog=example("ramp logs", "ramp logs --fetch SDSC-BLUE", "ramp logs --fetch all"))
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--fetch", is_flag=True, help="Download logs into the cache; without NAME only show from where.")
@click.option("--from", "source", metavar="URL", help="With --fetch: folder (or file) instead of the archive.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def logs(names: tuple[str, ...], fetch: bool, source: str | None, as_json: bool) -> None:
    """Show the known logs that simulated machines replay, and where they were found; or download them.

    RAMP looks in the folders of the environment variable RAMP_LOGS, then in the cache of `ramp logs --fetch`. A
    synthetic workload that fits the machine's size replaces a missing log.

    --fetch downloads logs from the Parallel Workloads Archive and verifies them; NAME is a known log, or `all`. An
    interrupted download is continued.
    """
    if fetch and as_json:
        raise click.UsageError("--fetch and --json exclude each other")
    if source is not None and not fetch:
        raise click.UsageError("--from needs --fetch")
    if fetch and names:
        _fetch(names, source)
    elif fetch:
        _tell_missing()
    else:
        _list(names or tuple(known_logs()), as_json)


def _list(names: tuple[str, ...], as_json: bool) -> None:
    rows = [_row(known_log(name).name) for name in names]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    columns = ("Log", "Machine", "Cores", "Jobs", "From", "Months", "Found")
    print_rows(
        columns,
        [(*(row[key] for key in SHOWN), row["path"] or "missing") for row in rows],
        right=("Cores", "Jobs", "Months"),
    )
    if not all(row["found"] for row in rows):
        say("`ramp logs --fetch NAME` gets one that is missing, `ramp logs --fetch` says from where")


def _row(name: str) -> dict[str, Any]:
    log = known_logs()[name]
    path = find_log(name)
    return {
        **{key: getattr(log, key) for key in (*SHOWN, "address")},
        "found": path is not None,
        "path": None if path is None else str(path),
        "source": "synthetic" if path is None else "log",
    }


def _fetch(names: tuple[str, ...], source: str | None) -> None:
    wanted = list(known_logs()) if "all" in names else list(dict.fromkeys(names))
    chosen = [known_log(name) for name in wanted]
    if source is not None and source.endswith(".gz") and len(chosen) > 1:
        raise WorkloadError(f"--from {source} is one file, but {len(chosen)} logs are wanted; give their folder")
    folder = logs_cache_dir()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console(error=True), disable=not sys.stderr.isatty()) as bar:
        for log in chosen:
            task = bar.add_task(log.name, total=None)

            def show(received: int, total: int | None, task: Any = task) -> None:
                bar.update(task, completed=received, total=total)

            path = fetch_log(log, folder, source=source, progress=show)
            click.echo(f"{log.name}: {path}")


def _tell_missing() -> None:
    """What a fetch of all logs would fetch; what is here stays as it is."""
    missing = [log for log in known_logs().values() if find_log(log.name) is None]
    for log in missing:
        click.echo(f"{log.name} ({log.machine}, {log.jobs} jobs): {log.address}")
    here = len(known_logs()) - len(missing)
    click.echo(f"{len(missing)} of {len(known_logs())} known logs are not here, {here} are", err=True)
    if missing:
        click.echo(f"`ramp logs --fetch {missing[0].name}` gets one, `ramp logs --fetch all` gets all", err=True)
