"""The plug-in on a real cluster: the contract of all plug-ins, and what Slurm does that no other machine does."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.batch.machine import BatchMachine
from ramp.batch.slurm import conditions
from ramp.batch.slurm.plugin import open_plugin
from ramp.errors import ConfigurationError, PluginError
from ramp.model.instant import HOUR, MINUTE, SECOND, Instant
from ramp.model.offer import RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.model.slot import Reservation
from ramp.plugins.contract import Rule, Subject
from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.slurm.cluster_fixture import now_in_seconds, reservation_names, saved, settings_of, wait_for
from tests.slots import held, quoted, refused
from tests.waiting import LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.full]
CLUSTER = ("ca",)


def _open(cluster: EmulatedCluster, folder: Path | None = None, **options: Any) -> BatchMachine:
    return open_plugin(settings_of(cluster, folder, **options))


def _unit(cores: int, now: Instant, after: int = HOUR) -> RequestUnit:
    return RequestUnit(1, 70, now + after + 9 * HOUR, TotalCores(cores), not_before=now + after, wall_time=30 * MINUTE)


def test_keeps_the_contract(
    plugin_rule: Rule, cluster: EmulatedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "CLOCK_OFF_MAX_S", LIMIT_S)  # a rule's time stands still, however long it takes
    subject = Subject(open_plugin, settings_of(cluster), now_in_seconds(), tmp_path / "states")
    plugin_rule.check(subject)
    assert reservation_names(cluster) == []


def test_quotes_see_jobs_plans_reservations_and_nodes_out_of_service(cluster: EmulatedCluster) -> None:
    cluster.run("sbatch", "-w", "ca1,ca2", "-N2", "--ntasks-per-node=4", "-t60", "-o/dev/null", "--wrap", "sleep 600")
    cluster.run("sbatch", "-w", "ca3", "-n8", "-o/dev/null", "--wrap", "sleep 600")  # without a limit
    cluster.run("scontrol", "update", "NodeName=ca4", "State=DRAIN", "Reason=a bad | disk")
    now = now_in_seconds()
    cluster.run(
        *("scontrol", "create", "reservation", "ReservationName=theirs", f"StartTime=uts{now // SECOND + 600}"),
        *("Duration=600", "Users=root", "Nodes=ca5", "CoreCnt=3"),
    )
    wait_for(lambda: "CoreIDs=" in cluster.run("scontrol", "-o", "show", "reservation"), "cores of each node are told")
    wait_for(lambda: len(cluster.run("squeue", "-h", "-t", "R", "-o", "%A").split()) == 2, "both jobs run")
    machine = _open(cluster)
    now = now_in_seconds()
    most = quoted(machine, RequestUnit(1, 70, now + 2 * HOUR, Nodes(11, 8), now + 5 * MINUTE, 20 * MINUTE), now)
    assert most.placement == "ca[6-16]"
    # 4 + 4 of the job on two nodes, 5 beside the reservation, 11 whole nodes
    exact = quoted(machine, RequestUnit(1, 70, now + 30 * MINUTE, TotalCores(101), now + 5 * MINUTE, 20 * MINUTE), now)
    assert exact.placement == "ca[1-2,5-16]"
    none = refused(machine, RequestUnit(1, 70, now + 30 * MINUTE, TotalCores(102), now + 5 * MINUTE, 20 * MINUTE), now)
    assert none.code is RefusalCode.CORES_TAKEN
    later = quoted(machine, RequestUnit(1, 70, now + 9 * HOUR, TotalCores(105), now + 5 * MINUTE, 20 * MINUTE), now)
    assert later.start > now + 50 * MINUTE
    held(machine, "offer-exact", _unit(101, now, 5 * MINUTE), now)


def test_what_is_quoted_is_reserved_to_the_second_and_core(cluster: EmulatedCluster) -> None:
    machine = _open(cluster, market_user="daemon")
    now = now_in_seconds()
    unit = RequestUnit(1, 70, now + 9 * HOUR, TotalCores(21), now + HOUR, 95 * SECOND)
    hold = held(machine, "offer-1", unit, now)
    assert hold.reservation_id == "ramp_slurm1.offer-1"
    (found,) = machine.system.reservations()
    assert (found.start, found.end) == (now + HOUR, now + HOUR + 95 * SECOND)
    assert (found.cores_in_all or sum(count for _, count in found.parts)) == 21
    assert found.users == ("daemon",)
    wait_for(
        lambda: machine.system.reservations()[0].parts == (("ca1", 8), ("ca2", 8), ("ca3", 5)), "cores of each node"
    )
    machine.confirm("offer-1", now)
    assert machine.tend({"offer-1": "nobody"}, now) == {}
    (found,) = machine.system.reservations()
    assert found.users == ("nobody",)
    assert machine.tend({"offer-1": "no-such-account"}, now) == {}  # for a minute


def test_a_release_takes_the_jobs_along(cluster: EmulatedCluster) -> None:
    machine = _open(cluster)
    now = now_in_seconds()
    held(machine, "offer-1", _unit(16, now, 0), now)
    name = "--reservation=ramp_slurm1.offer-1"
    cluster.run("sbatch", name, "-n8", "-t20", "-o/dev/null", "--wrap", "sleep 600")
    cluster.run("sbatch", name, "-n16", "-t20", "-o/dev/null", "--wrap", "sleep 600")
    wait_for(lambda: cluster.run("squeue", "-h", "-t", "R").strip(), "a job runs in the slot")
    machine.release("offer-1", now)
    assert reservation_names(cluster) == []
    wait_for(lambda: not cluster.run("squeue", "-h").strip(), "the jobs have ended")


@pytest.mark.parametrize("confirmed", [False, True])
def test_what_a_killed_controller_forgets_is_made_again(
    cluster: EmulatedCluster, tmp_path: Path, confirmed: bool
) -> None:
    machine = _open(saved(cluster), tmp_path)
    now = now_in_seconds()
    for number in range(4):
        held(machine, f"offer-{number}", _unit(8, now), now)
        if confirmed:
            machine.confirm(f"offer-{number}", now)
    machine.release("offer-3", now)
    cluster.processes["slurmctld"].kill()
    cluster.processes["slurmctld"].wait()
    cluster.start_controller()
    wait_for(lambda: "ca" in cluster.run("sinfo", "-h", "-o", "%N"), "the controller answers")
    for number in range(3):
        found = machine.reservation(f"offer-{number}", now)
        assert found.firm is confirmed
        if not confirmed:
            assert isinstance(machine.confirm(f"offer-{number}", now), Reservation)
    assert machine.reservation("offer-3", now) is None
    _open(cluster, tmp_path)
    assert sorted(reservation_names(cluster)) == [f"ramp_slurm1.offer-{number}" for number in range(3)]


def test_a_controller_that_hangs_makes_nothing_that_stays_unknown(cluster: EmulatedCluster, tmp_path: Path) -> None:
    machine = _open(cluster, tmp_path, command_limit_s=2, snapshot_age_s=60)
    now = now_in_seconds()
    unit = _unit(8, now)
    slot = quoted(machine, unit, now)
    cluster.processes["slurmctld"].send_signal(signal.SIGSTOP)
    with pytest.raises(PluginError) as failed:
        machine.hold("offer-1", unit, slot, now + 10 * MINUTE, now)
    assert failed.value.transient
    with pytest.raises(PluginError):
        machine.release("offer-1", now)
    cluster.processes["slurmctld"].send_signal(signal.SIGCONT)

    def released() -> bool:
        try:
            machine.release("offer-1", now)
        except PluginError:
            return False
        return True

    wait_for(released, "the slot is given back")
    _open(cluster, tmp_path)  # what came late is swept
    assert reservation_names(cluster) == []


@pytest.mark.parametrize(
    ("options", "cores", "message"),
    [
        ({}, 120, "cores is 120; partition debug has 128 cores on 16 nodes"),
        ({"partition": "nope"}, 128, "no nodes of partition 'nope'"),
        ({"market_user": "no-such-account"}, 128, "got 'no-such-account', expected an account"),
        ({"conf": "/no/slurm.conf"}, 128, "/no/slurm.conf is not a file"),
        ({"for_sale": {"hours": ["Mon"]}}, 128, "expected hours of the week such as 'Mon-Fri 18:00-24:00'"),
        ({"partition": "a b"}, 128, "expected a partition's name"),
    ],
)
def test_static_terms_and_options_are_checked_at_the_start(
    cluster: EmulatedCluster, options: dict[str, Any], cores: int, message: str
) -> None:
    with pytest.raises((ConfigurationError, PluginError), match=message):
        open_plugin(replace(settings_of(cluster, **options), cores=cores))
