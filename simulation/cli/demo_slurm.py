"""`ramp demo-slurm`: half of a real Slurm cluster, with emulated nodes, in a market."""

from __future__ import annotations

import getpass
import tempfile
import time
from pathlib import Path
from typing import Final

import click

from ramp.cli.options import example, json_option
from ramp.cli.views.output import printed_as_json, waiting, wants_json
from ramp.client.connecting import connect, launch
from ramp.client.request import request
from ramp.client.results import Purchase
from simulation.emulated_slurm import EmulatedCluster

PRICE: Final = 70
"""Price limit in credits per core-hour."""

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
