"""A start on a real Slurm's queue is bought in a market, and the buyer's command runs in that very job."""

import os
import tempfile
from pathlib import Path

import pytest

import ramp
from tests.e2e.batch_jobs.psij_environment import ACCOUNT
from tests.e2e.slurm.cluster_fixture import CORES, running_cluster
from tests.tiny_market import tiny_market
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]

LAUNCHING = '[launching]\nexecutor = "slurm"\nfolder = "{folder}/jobs"\n[accounts]\nalice = "{account}"\n'
QUEUE = """cores_per_node = {cores}
plugin = "queue-bound"
options = {{ system = "slurm", queue = {{ partition = "debug", conf = "{conf}" }} }}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="jobs run as other accounts, which needs root")
def test_what_is_launched_on_a_bought_start_runs_in_that_very_job() -> None:
    with tempfile.TemporaryDirectory(prefix="ramp-queue-", dir="/tmp") as name, running_cluster("mq", 2) as cluster:
        folder = Path(name)
        folder.chmod(0o755)
        path = folder / "market.toml"
        machine = QUEUE.format(cores=CORES, conf=cluster.conf)
        market = tiny_market({"alice": 10_000}, prices={"queue1": (40, 20)}, cores=2 * CORES, machine=machine)
        path.write_text(LAUNCHING.format(folder=folder, account=ACCOUNT) + market)
        with ramp.launch(path, state_dir=folder / "state") as market:
            wanted = ramp.request(cores=4, wall_time="10min", price=60, end="+3h", start_probability=0.9)

            def submitted() -> ramp.Purchase | None:
                found = market.submit(wanted)
                return found if found.committed else None  # a busy computer's Slurm may be slow

            bought = until(submitted, "the start is bought")
            (unit,) = bought.units
            assert cluster.run("squeue", "-h", "-o", "%A %u %T").split() == [unit.reservation_id, ACCOUNT, "RUNNING"]
            (job,) = market.launch(unit.agreement_id, ["sh", "-c", 'echo "$(id -un) $SLURM_JOB_ID"; exit 3'])
            until(lambda: market.job(job.job_id).has_ended, lambda: f"it ends: {market.job(job.job_id)}")
            seen = market.job(job.job_id)
            assert (seen.state, seen.exit_code, seen.delivery) == ("failed", 3, "on_time")
            assert market.job_output(job.job_id).decode() == f"{ACCOUNT} {unit.reservation_id}\n"
