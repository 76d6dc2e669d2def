"""`python -m tests.chaos`: a real market whose processes are killed and stopped by turns; nothing may be lost."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from ramp.cli.options import example, json_option
from ramp.cli.views.output import say, wants_json
from ramp.runtime.state_folder import StateFolder
from tests.chaos.market import DEPOSIT, ChaosMarket, configuration
from tests.chaos.run import run_chaos
from tests.chaos.sites import join, two_sites

SECONDS_A_MINUTE: Final = 60.0


@click.command(
    epilog=example(
        "python -m tests.chaos --minutes 1",
        "python -m tests.chaos --minutes 10 --seed 7 --federated --json",
        exits="0 nothing was lost; 1 something was, or the market cannot be launched; 2 wrong usage",
    )
)
@click.option(
    "--minutes", default=1.0, show_default=True, type=click.FloatRange(min=0.1, max=1440), help="How long to strike."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(min=0), help="Draws requests and blows.")
@click.option(
    "--server", default="embedded", show_default=True, type=click.Choice(["embedded", "prosody"]), help="XMPP server."
)
@click.option("--federated", is_flag=True, help="Two sites with agents and a Prosody each, which join one market.")
@click.option("--ledger", default="", metavar="URL", help="PostgreSQL database, empty: two banks share it then.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the state folder and its logs here.")
@json_option
def chaos(minutes: float, seed: int, server: str, federated: bool, ledger: str, keep: Path | None) -> None:
    """Strike a real market by turns under steady load, and check that nothing was lost.

    Two sites of three machines each, users, two directories, a bank and a server run on this computer, on loopback; a
    site is a process of machines, or with --federated all that a site on a computer of its own has. Each user buys one
    request after another. Meanwhile every process by turns, servers and supervisors among them, is killed with SIGKILL
    or stands still for some seconds. Then the market rests, and is checked: money is conserved, every order is posted
    or void, every paid unit is held, none twice, no machine is oversold, users know what they bought, every request
    ends. The report has every blow with the time until all were up again and until the next purchase. The same seed
    draws the same requests and blows; when they fall is the computer's to say.
    """
    with tempfile.TemporaryDirectory(prefix="ramp-chaos-") as folder:
        root = Path(folder) if keep is None else keep
        root.mkdir(parents=True, exist_ok=True)
        sites: tuple[ChaosMarket, ...]
        if federated:
            sites = two_sites(root, ledger)
            servers = "a federated Prosody each, two users"
        else:
            config = root / "market.toml"
            config.write_text(configuration(server=server, ledger=ledger), "utf-8")
            sites = (ChaosMarket(config, StateFolder((root / "state").absolute())),)
            servers = f"one {server} server for both, three users"
        banks = "two banks on PostgreSQL" if ledger else "a bank on SQLite"
        what = f"two sites of three machines, {servers}, two directories, {banks}"
        say(f"launching {what}")
        try:
            sites[0].launch()
            for site in sites[1:]:
                say(f"{site.name} joins {sites[0].name}")
                join(sites[0], site, DEPOSIT)
                site.launch()
            report = run_chaos(sites, what, seconds=minutes * SECONDS_A_MINUTE, seed=seed, tell=say)
        finally:
            for site in reversed(sites):
                site.stop()
    if wants_json():
        click.echo(json.dumps(report.as_json(), indent=2))
    else:
        requests = ", ".join(f"{count} {status}" for status, count in sorted(report.requests.items()))
        click.echo(f"{len(report.blows)} blows in {report.seconds:g} s; requests: {requests or 'none'}")
        for check, found in report.checks.items():
            click.echo(f"{check}: {'holds' if not found else '; '.join(found)}")
    sys.exit(0 if report.holds else 1)


if __name__ == "__main__":
    chaos()
