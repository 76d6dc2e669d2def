"""Starts on a real Grid Engine that nobody reserves: a held job is let go when it is bought, and its start is told."""

import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

from ramp.batch.waiting.plugin import open_plugin
from ramp.launching.acting import Acting, system_python
from ramp.model.instant import MINUTE, SECOND
from ramp.plugins.interface import PluginSettings
from tests.e2e.batch_jobs.job_at_site import JobAtSite
from tests.e2e.batch_jobs.psij_environment import ACCOUNT
from tests.e2e.gridengine.gridengine_cell import LIBRARY, wait_until
from tests.e2e.gridengine.gridengine_selling import SLOTS, now, options_of, unit
from tests.slots import held, quoted

pytestmark = [pytest.mark.e2e, pytest.mark.full]


@pytest.fixture
def machine(cluster, tmp_path):
    """The plug-in over the cluster; afterwards nothing of it is left there."""
    queue = {"queue": "all.q", "parallel_environment": "mpi", **options_of(cluster)}
    options = {"system": "gridengine", "queue": queue, "snapshot_age_s": 0.0}
    opened = open_plugin(PluginSettings("queue1", SLOTS, 1, now(), options, tmp_path / "reservations"))
    yield opened
    for each in opened.reservations(now()):
        opened.release(each.key, now())


def states(cluster):
    """The state of each job by its number, as the real command prints them."""
    return {line.split()[0]: line.split()[4] for line in cluster("qstat", "-u", "*").splitlines()[2:]}


def test_a_held_job_is_let_go_starts_and_is_released(cluster, machine):
    number = held(machine, "offer-1", unit(4, run=90 * SECOND), now()).reservation_id
    assert states(cluster) == {number: "hqw"}
    assert machine.reservation("offer-1", now()).started_at is None
    begun = now()
    assert machine.confirm("offer-1", begun).firm
    wait_until(lambda: machine.reservation("offer-1", now()).started_at is not None, "the job starts")
    assert states(cluster)[number] in {"r", "t"}
    assert begun - SECOND <= machine.reservation("offer-1", now()).started_at <= now()
    machine.release("offer-1", now())
    wait_until(lambda: not states(cluster), "the job is gone")
    assert machine.reservation("offer-1", now()) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="jobs run as other accounts, which needs root")
def test_what_the_buyer_orders_runs_in_that_very_job_as_the_buyers_account(cluster, tmp_path):
    queue = {"queue": "all.q", "parallel_environment": "mpi", **options_of(cluster)}
    options = {"system": "gridengine", "queue": queue, "snapshot_age_s": 0.0}
    with tempfile.TemporaryDirectory(prefix="ramp-jobs-", dir="/tmp") as folder:
        acting = asdict(Acting("", system_python(), folder))
        machine = open_plugin(PluginSettings("queue1", SLOTS, 1, now(), options, tmp_path / "own", acting=acting))
        wanted = unit(4, run=400 * SECOND)
        slot = quoted(machine, wanted, now())
        bought = machine.hold_for(ACCOUNT, "offer-3", wanted, slot, now() + 10 * MINUTE, now())
        assert cluster("qstat", "-u", ACCOUNT).splitlines()[2].split()[0] == bought.reservation_id
        machine.confirm("offer-3", now())
        wait_until(lambda: machine.reservation("offer-3", now()).started_at is not None, "the job starts")
        where = {**cluster.environment, "PATH": str(LIBRARY)}

        def ordered(name, command):
            own, key, number = Path(folder) / ACCOUNT, {"queue_key": "offer-3"}, bought.reservation_id
            job = JobAtSite("gridengine", where, own, name, number, 4, command, **key)
            assert job.seen("submit")["native_id"] == number  # it may have ended already
            return job

        one, two = ordered("job-1", 'echo "$(id -un) $NSLOTS $JOB_ID"; exit 3'), ordered("job-2", "exec sleep 300")
        seen = one.until("failed")
        assert (seen["exit_code"], seen["cores"]) == (3, 4), (seen, one.output("stderr"))
        assert one.output() == f"{ACCOUNT} 4 {bought.reservation_id}\n"
        two.until("running")
        machine.release("offer-3", now())
        wait_until(lambda: not states(cluster), "the job in the queue is gone")
        assert two.until("failed")["started_at"] is not None
