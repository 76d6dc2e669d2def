"""A plug-in of either kind pointed at the other: `gridengine` at a simulated machine, `mirrored` at a real queue."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from gridengine_cell import LIBRARY, wait_until
from gridengine_selling import SLOTS, now, options_of, unit

from ramp.batch.gridengine.plugin import open_plugin
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource import mirrored

pytestmark = [pytest.mark.e2e, pytest.mark.full]

RAMP = str(Path(sys.executable).with_name("ramp"))
MARKET = """
[[users]]
name = "alice"
deposit = 100000

[machines.queue]
plugin = "fake_qstat"
cores = 64
options = { log = "synthetic", synthetic_load = 0.3 }

[[resources]]
name = "shown1"
machine = "queue"
start_price = 70
minimum_price = 20
"""


def test_a_simulated_machine_is_read_as_a_grid_engine():
    with tempfile.TemporaryDirectory(prefix="ramp-mirror-") as folder:
        (Path(folder) / "market.toml").write_text(MARKET)
        environment = {**os.environ, "RAMP_STATE": f"{folder}/state", "HOME": folder}

        def ramp(*command):
            done = subprocess.run([RAMP, *command], env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            return done.stdout

        try:
            ramp("up", f"{folder}/market.toml", "--detach")
            ramp("rfq", "new", "--cores", "8", "--start", "+2h", "--end", "+12h", "--walltime", "1h", "--price", "90",
                 "-o", f"{folder}/job.xml")  # fmt: skip
            ramp("submit", f"{folder}/job.xml", "--rounds", "1")
            shown = json.loads(ramp("qstat", "shown1", "--json"))
            state = ("--state-dir", f"{folder}/state")
            options = {
                "qstat": [RAMP, "fake-qstat", "shown1", *state],
                "qrstat": [RAMP, "fake-qrstat", "shown1", *state],
            }
            machine = open_plugin(PluginSettings("mirror1", 64, 1, now(), options, Path(folder) / "book"))
            (sold,) = shown["reservations"]
            (seen,) = machine.system.reservations()
            assert sum(cores for _, cores in seen.parts) == sold["cores"] == 8
            running = sum(job["cores"] for job in shown["running"])
            assert 64 - machine.availability(now()).free_at(now() + MINUTE) == running
            slot = machine.quote(unit(1, after=HOUR), now())
            assert isinstance(slot, Slot)
            refused = machine.hold("k1", unit(1, after=HOUR), slot, now() + HOUR, now())
            assert isinstance(refused, Refusal)  # nothing there reserves
            assert "only shows a queue" in refused.detail
        finally:
            subprocess.run([RAMP, "down"], env=environment, capture_output=True, timeout=300)


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
