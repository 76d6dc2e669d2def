"""`ramp demo`: a whole market at work, from launch to stop; `ramp demo-slurm`: half of a Slurm cluster in a market."""

from __future__ import annotations

import getpass
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
from ramp.client.connecting import connect, launch
from ramp.client.market import Market
from ramp.client.request import request, resolved
from ramp.client.results import Account, Purchase, Resource
from ramp.client.swarm import stop
from ramp.model.money import credits_decimal
from ramp.protocol.events import AuctionOptions
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RequestEnded
from ramp.runtime.state_folder import StateFolder
from ramp.shipped_files import DEFAULT_SWARM, find_config

if TYPE_CHECKING:
    from ramp.batch.slurm.emulated import EmulatedCluster
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


NODES: Final = 64
CORES: Final = 8
JOB_LIMIT_S: Final = 120.0
"""Seconds for the job to begin and end; the slot begins within some."""

BUYERS: Final = ("alice", "bob")

JOB: Final = "srun -N4 -n4 sh -c 'echo task $SLURM_PROCID on $SLURMD_NODENAME in $SLURM_JOB_RESERVATION as $(id -un)'"
"""Four tasks on four nodes."""

JOB_CORES: Final = 4 * CORES

MARKET: Final = """\
[market]
domain = "localhost"

[launching]
executor = "handover"

[server]
kind = "embedded"

[[users]]
name = "alice"
deposit = 100000

[[users]]
name = "bob"
deposit = 100000

[accounts]
alice = "{account}"
bob = "{account}"

[machines.emulated]
plugin = "slurm"
cores = {cores}
cores_per_node = {cores_per_node}
operating_system = "LINUX"
architecture = "x86_64"

[machines.emulated.options]
partition = "debug"
conf = "{conf}"
for_sale = {{ share = 0.5 }}

[[resources]]
name = "emulated"
machine = "emulated"
start_price = 45
minimum_price = 20
"""


@click.command("demo-slurm", epilog=example("ramp demo-slurm", "ramp demo-slurm --json"))
@json_option
def demo_slurm() -> int:
    """Start a real Slurm of 64 emulated nodes, sell half of it to two users, run a job on a slot, and stop everything.

    This needs Slurm's programs (Debian: apt-get install slurmctld slurmd slurm-client munge), takes less than a minute
    and leaves nothing running.
    """
    from ramp.batch.slurm.emulated import EmulatedCluster

    begin = time.monotonic()

    def tell(text: str) -> None:
        if not wants_json():
            click.echo(text)

    with tempfile.TemporaryDirectory(prefix="ramp-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the buyers' account reads slurm.conf there
        tell(f"Starting Slurm with {NODES} emulated nodes of {CORES} cores; half of all cores are for sale")
        with EmulatedCluster(folder / "s", "em", NODES, CORES) as cluster:
            config = folder / "market.toml"
            user = getpass.getuser()
            account = "nobody" if user == "root" else user
            market = MARKET.format(cores=NODES * CORES, cores_per_node=CORES, conf=cluster.conf, account=account)
            config.write_text(market, encoding="utf-8")
            with launch(config, state_dir=folder / "state"):
                bought = {}
                wanted = request(cores=NODES * CORES // 4, wall_time="30min", end="+2h", price=PRICE)
                for buyer in BUYERS:
                    bought[buyer] = connect(folder / "state", user=buyer).submit(wanted, rounds=2)
                    tell(_told(buyer, bought[buyer]))
                tell(cluster.run("sinfo").rstrip())
                said = ""
                if bought[BUYERS[0]].committed:
                    reservation = str(bought[BUYERS[0]].units[0].reservation_id)
                    with waiting("running a job on the slot"):
                        said = _submitted(cluster, reservation, account)
                    tell(f"alice's job on her slot, submitted by sbatch, says:\n{said.rstrip()}")
    total = time.monotonic() - begin
    all_bought = all(each.committed for each in bought.values())
    units = {buyer: [unit.reservation_id for unit in each.units] for buyer, each in bought.items()}
    printed_as_json({"bought": units, "output": said, "total_s": round(total, 3)})
    tell(f"Everything is stopped after {total:.1f} s")
    return 0 if all_bought and said else 1


def _told(buyer: str, purchase: Purchase) -> str:
    if not purchase.committed:
        return f"{buyer} bought nothing: {purchase.status}: {purchase.reason}"
    unit = purchase.units[0]
    return f"{buyer} bought {unit.cores} cores from {unit.start:%H:%M:%S} UTC: reservation {unit.reservation_id}"


def _submitted(cluster: EmulatedCluster, reservation: str, account: str) -> str:
    """Submit a job as its buyer when the slot begins; return its output."""
    user = None if account == getpass.getuser() else account
    with tempfile.TemporaryDirectory(prefix="ramp-", dir="/tmp") as name:
        output = Path(name) / "output"
        output.touch(mode=0o666)
        Path(name).chmod(0o755)
        output.chmod(0o666)
        argv = (
            "sbatch",
            "--wait",
            f"--reservation={reservation}",
            f"--ntasks={JOB_CORES}",
            "-t5",
            f"--output={output}",
        )
        cluster.run(*argv, f"--wrap={JOB}", limit_s=JOB_LIMIT_S, user=user)
        return output.read_text("utf-8", errors="replace")
