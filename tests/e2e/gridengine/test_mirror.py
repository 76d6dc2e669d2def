"""The plug-in `mirrored` drives a simulated machine by a real queue."""

from __future__ import annotations

import pytest
from gridengine_cell import LIBRARY, wait_until
from gridengine_selling import SLOTS, now, options_of, unit

from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource import mirrored

pytestmark = [pytest.mark.e2e, pytest.mark.full]


def test_a_simulated_machine_is_driven_by_a_real_queue(cluster, tmp_path):
    environment = {**cluster.environment}
    options = {"qstat": [str(LIBRARY / "qstat")], "environment": environment, "snapshot_age_s": 0}
    machine = mirrored.open_plugin(PluginSettings("mirror1", SLOTS, 1, now(), options, tmp_path))
    assert options_of(cluster)["root"] == environment["SGE_ROOT"]
    job = cluster("qsub", "-terse", "-b", "y", "-wd", "/tmp", "-o", "/dev/null", "-e", "/dev/null", "-pe", "mpi", "60",
                  "-l", "h_rt=7200", "sleep", "7200", user="nobody").strip()  # fmt: skip
    wait_until(lambda: "JAT_start_time" in cluster("qstat", "-xml", "-u", "nobody"), f"job {job} runs")
    refused = machine.quote(unit(8, after=30 * MINUTE, run=HOUR, slack=MINUTE), now())
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.CORES_TAKEN
    later = machine.quote(unit(8, after=30 * MINUTE), now())
    assert isinstance(later, Slot)
    (running,) = machine.snapshot(now(), HOUR)["running"]
    assert (str(running["job"]), running["cores"], running["user"]) == (job, 60, "nobody")
    assert isinstance(machine.hold("k1", unit(8), later, now() + HOUR, now()), Reservation)
    assert cluster("qrstat", "-u", "*") == ""  # its reservations are the market's own
    cluster("qdel", job)
    wait_until(lambda: job not in cluster("qstat", "-u", "*"), f"job {job} is gone")
