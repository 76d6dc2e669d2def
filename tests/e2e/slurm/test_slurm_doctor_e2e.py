"""`ramp doctor` on a market with a real cluster, up and down: what agrees, an orphan, and a sold slot that is gone."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ramp
from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.slurm.cluster_fixture import market_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1200)]
CLUSTER = ("cd", 4)


def _doctor(state: Path) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "ramp.cli.main", "doctor", "--json", "--state-dir", str(state)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def _reserve(cluster: EmulatedCluster, name: str) -> None:
    start = f"StartTime=uts{int(time.time()) + 36_000}"
    words = ("Duration=60", "Users=root", f"Nodes={cluster.name}1", "CoreCnt=1")
    cluster.run("scontrol", "create", "reservation", f"ReservationName={name}", start, *words)


def test_orphans_and_slots_without_reservation_are_found(cluster: EmulatedCluster, tmp_path: Path) -> None:
    config, state = market_of(cluster, tmp_path), tmp_path / "state"
    with ramp.launch(config, state_dir=state) as market:
        bought = market.submit(ramp.request(cores=8, wall_time="30min", start="+2h", end="+4h", price=70), rounds=2)
        assert bought.committed, f"{bought.status}: {bought.reason}"
        sold = bought.units[0].reservation_id
        assert sold is not None
        wait_for(lambda: "nobody" in cluster.run("scontrol", "show", "reservation", sold), "the slot is handed over")
        code, shown = _doctor(state)
        assert (code, shown["findings"], shown["running"]) == (0, [], True)
        well = {(each["check"], each["subject"]) for each in shown["well"]}
        asked = {("reservations", "emulated"), ("queue", "emulated"), ("clock", "emulated"), ("version", "emulated")}
        assert well >= asked
    _reserve(cluster, "ramp_emulated.ghost")
    _reserve(cluster, "theirs")
    cluster.run("scontrol", "delete", f"ReservationName={sold}")
    code, shown = _doctor(state)
    assert (code, shown["running"]) == (1, False)
    says = sorted(each["says"] for each in shown["findings"])
    assert len(says) == 2, says
    assert says[0].startswith(f"{sold} is sold until ")
    assert says[0].endswith("and slurm does not have it")
    assert says[1] == "slurm has the reservation ramp_emulated.ghost, and no agreement covers it"
    cluster.run("scontrol", "delete", "ReservationName=ramp_emulated.ghost")
    with ramp.launch(config, state_dir=state):
        wait_for(lambda: _doctor(state)[0] == 0, "what was lost is made again")
