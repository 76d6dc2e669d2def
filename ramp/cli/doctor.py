"""`ramp doctor`: diagnosis of a market and its batch systems, with suggested fixes."""

from __future__ import annotations

from dataclasses import asdict

import click

from ramp.batch.inspecting import Remark
from ramp.cli.options import example, state_options
from ramp.cli.views.output import count_text, print_rows, printed_as_json, say, waiting
from ramp.runtime.state_folder import StateFolder
from ramp.shipped_files import find_config

EXITS = "0 no problems; 1 problems found; 2 bad input; 130 interrupted"


@click.command(epilog=example("ramp doctor", "ramp doctor market.toml --all", "ramp doctor --json", exits=EXITS))
@click.argument("name", required=False, metavar="[CONFIG]")
@click.option("--all", "show_all", is_flag=True, help="Also show passed checks.")
@state_options
def doctor(name: str | None, show_all: bool, state: StateFolder) -> int:
    """Diagnose a market's problems and suggest fixes; nothing is changed.

    The checks cover agents, servers, expiring certificates, clocks, disk space and versions. For a resource on Slurm or
    Grid Engine they also compare its reservations with the agreements, look at the age of its queue data, and check the
    helper program that changes reservations. A running market is asked; for a stopped one, the state folder and the
    batch systems are read.

    CONFIG is the configuration of a stopped market (default: the one that ran last with the state folder).
    """
    from ramp.doctor.examination import examine

    with waiting("looking"):
        report = examine(state, None if name is None else find_config(name))
    found = {
        "running": report.is_up,
        "state_dir": str(state.path),
        "findings": [_object(each) for each in report.findings],
        "well": [_object(each) for each in report.remarks if not each.is_finding],
    }
    if not printed_as_json(found):
        if not report.is_up:
            say(f"ramp: no market is running; reading the state folder {state.path}")
        shown = report.remarks if show_all else report.findings
        rows = [(each.check, each.subject, each.says, each.do or "(well)") for each in shown]
        print_rows(("Looked at", "Of", "Found", "Suggested fix"), rows, wrap=("Found", "Suggested fix"))
        if not report.findings:
            click.echo(f"No problems found: {count_text(len(report.remarks), 'check')} made")
    return 1 if report.findings else 0


def _object(each: Remark) -> dict[str, str]:
    return {key: text for key, text in asdict(each).items() if key != "do" or each.is_finding}
