"""Holds, confirmations and releases are advance reservations of a real Grid Engine, through all that may go wrong."""

import os
import signal
import time
from dataclasses import replace

import pytest

from ramp.batch.gridengine.plugin import open_plugin
from ramp.errors import ConfigurationError, PluginError
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation
from tests.e2e.gridengine.gridengine_cell import wait_until
from tests.e2e.gridengine.gridengine_selling import SLOTS, held, now, unit
from tests.slots import refused

pytestmark = [pytest.mark.e2e, pytest.mark.full]

BUYER, STRANGER = "nobody", "daemon"


def listed(cluster):
    """Names and ids of the advance reservations, as the real command prints them."""
    return {line.split()[1]: line.split()[0] for line in cluster("qrstat", "-u", "*").splitlines()[2:]}


def usersets(cluster):
    return [name for name in cluster("qconf", "-sul").split() if name.startswith("ramp_")]


def submitted(cluster, number, user, *command, status=0):
    return cluster("qsub", "-terse", "-ar", number, "-b", "y", "-wd", "/tmp", "-o", "/dev/null", "-e", "/dev/null",
                   "-pe", "mpi", "2", *command, user=user, status=status)  # fmt: skip


def test_a_hold_becomes_the_buyers_and_is_given_back(cluster, machine):
    hold = held(machine, "k1", cores=20, after=0)
    assert isinstance(hold, Reservation)
    number = listed(cluster)["ramp_ge1.k1"[:10]]
    assert number == hold.reservation_id
    assert "granted_slots_list             all.q@localhost=20\n" in cluster("qrstat", "-ar", number)
    assert "no suitable queues" in submitted(cluster, number, BUYER, "sleep", "60", status=1)  # a hold is nobody's yet

    firm = machine.confirm("k1", now())
    assert (firm.firm, firm.reservation_id) == (True, number)
    assert machine.tend({"k1": BUYER}, now()) == {}
    assert "no suitable queues" in submitted(cluster, number, STRANGER, "sleep", "60", status=1)
    job = submitted(cluster, number, BUYER, "sleep", "600").strip()
    wait_until(lambda: "JAT_start_time" in cluster("qstat", "-xml", "-u", BUYER), f"job {job} runs in the slot")
    assert machine.reservation("k1", now()) == firm
    # the buyer's job takes the buyer's slots, and no others; Grid Engine may let it begin within the second before
    begun = max(now(), firm.slot.start)
    assert machine.availability(begun).load(begun, begun + SECOND) == pytest.approx(20 / SLOTS)

    machine.release("k1", now())
    assert listed(cluster) == {}
    assert usersets(cluster) == []
    assert job not in cluster("qstat", "-u", "*")
    assert machine.reservation("k1", now()) is None


def test_a_deleted_reservation_is_made_again_and_its_number_is_passed_on(cluster, machine):
    hold = held(machine, "k1", cores=4, after=HOUR)
    machine.confirm("k1", now())
    assert machine.tend({"k1": BUYER}, now()) == {}
    cluster("qrdel", hold.reservation_id)
    wait_until(lambda: not listed(cluster), "the reservation is gone")
    (move,) = machine.tend({"k1": BUYER}, now()).values()
    number = listed(cluster)["ramp_ge1.k1"[:10]]
    assert number != hold.reservation_id
    assert move.reservation_id == number
    submitted(cluster, number, BUYER, "sleep", "60")
    machine.release("k1", now())


def test_somebody_elses_reservation_is_seen_and_left_alone(cluster, machine, settings):
    begin = time.strftime("%Y%m%d%H%M.%S", time.gmtime(time.time() + 7200))
    cluster("qrsub", "-a", begin, "-d", "3600", "-pe", "mpi", "60", "-u", "root", "-N", "maintenance")
    request = unit(8, after=2 * HOUR + 10 * MINUTE, run=10 * MINUTE, slack=MINUTE)
    refusal = refused(machine, request, now())
    assert refusal.code is RefusalCode.CORES_TAKEN
    open_plugin(settings())  # sweeps what is its own
    number = listed(cluster)["maintenanc"]  # the table cuts names at ten characters
    cluster("qrdel", number)
    wait_until(lambda: not listed(cluster), "the reservation is gone")
    assert not isinstance(machine.quote(request, now()), Refusal)


def test_a_disabled_queue_sells_nothing_though_grid_engine_would_reserve_it(cluster, machine):
    cluster("qmod", "-d", "all.q")
    try:
        assert isinstance(machine.quote(unit(1, after=HOUR), now()), Refusal)
        shown = machine.snapshot(now(), HOUR)
        assert shown["cores_busy"] == shown["cores"] == SLOTS, "nothing of it is free"
        begin = time.strftime("%Y%m%d%H%M.%S", time.gmtime(time.time() + 3600))
        asked = cluster("qrsub", "-a", begin, "-d", "60", "-pe", "mpi", "1", "-u", "root", "-w", "v")
        assert "found possible assignment" in asked  # which is the trap
    finally:
        cluster("qmod", "-e", "all.q")
    assert not isinstance(machine.quote(unit(1, after=HOUR), now()), Refusal)


def test_a_job_without_a_limit_of_its_time_is_there_for_ever(cluster, machine):
    job = cluster("qsub", "-terse", "-b", "y", "-wd", "/tmp", "-o", "/dev/null", "-e", "/dev/null", "-pe", "mpi", "60",
                  "sleep", "3600", user=BUYER).strip()  # fmt: skip
    wait_until(lambda: "JAT_start_time" in cluster("qstat", "-xml", "-u", BUYER), f"job {job} runs")
    refused(machine, unit(8, after=HOUR), now())
    assert not isinstance(machine.quote(unit(4, after=HOUR), now()), Refusal)
    cluster("qdel", job)
    wait_until(lambda: job not in cluster("qstat", "-u", "*"), f"job {job} is gone")
    assert not isinstance(machine.quote(unit(8, after=HOUR), now()), Refusal)


def test_a_qmaster_that_hangs_is_not_waited_for_and_leaves_nothing(cluster, machine):
    request = unit(16, after=HOUR)
    slot = machine.quote(request, now())
    os.kill(cluster.master_pid, signal.SIGSTOP)
    try:
        with pytest.raises(PluginError) as error:
            machine.hold("k1", request, slot, now() + 10 * MINUTE, now())
        assert error.value.transient
        with pytest.raises(PluginError):
            machine.quote(request, now())
    finally:
        os.kill(cluster.master_pid, signal.SIGCONT)
    # what the resource does then: it looks, and gives up
    assert machine.reservation("k1", now()) is None
    machine.release("k1", now())
    assert listed(cluster) == {}
    assert usersets(cluster) == []


def test_a_late_end_of_jobs_is_asked_for_before_anything_is_sold(cluster, settings):
    cluster.change("-ssconf", "-Msconf", {"params": "none"})
    try:
        with pytest.raises(
            ConfigurationError, match=r"killed 60 s before their slot's end; set `params DURATION_OFFSET=1"
        ):
            open_plugin(settings())
    finally:
        cluster.change("-ssconf", "-Msconf", {"params": "DURATION_OFFSET=1"})


@pytest.mark.parametrize(
    ("options", "cores", "words"),
    [
        ({"queue": "no.q"}, SLOTS, r"ge1\.queue: Grid Engine has no queue 'no\.q'"),
        ({"parallel_environment": "omp"}, SLOTS, r"ge1\.parallel_environment: Grid Engine has no parallel environment"),
        ({}, SLOTS + 1, r"ge1\.cores: the queue all\.q has 64 slots, fewer than the 65 cores"),
        ({"market_user": "nosuch"}, SLOTS, r"ge1\.market_user: got 'nosuch'"),
        ({"commands": "/nowhere"}, SLOTS, "/nowhere/qstat"),
        ({"environment": {"PATH": "/tmp"}}, SLOTS, "the configuration cannot set 'PATH'"),
    ],
)
def test_what_the_configuration_says_is_compared_with_the_system(settings, options, cores, words):
    with pytest.raises(ConfigurationError, match=words):
        open_plugin(replace(settings(**options), cores=cores))


def test_a_cell_that_does_not_answer_may_answer_later(settings):
    with pytest.raises(PluginError) as error:
        open_plugin(settings(environment={"SGE_QMASTER_PORT": "1", "SGE_EXECD_PORT": "2"}))
    assert error.value.transient


@pytest.mark.parametrize("pending", ["firm", "held"])
def test_what_is_set_aside_survives_the_death_of_qmaster(cluster, machine, settings, pending):
    cluster.wait_for_host()
    hold = held(machine, "k1", cores=16)
    if pending == "firm":
        hold = machine.confirm("k1", now())
    cluster.kill_master()
    with pytest.raises(PluginError) as error:
        machine.reservation("k1", now())
    assert error.value.transient
    cluster.start_master()
    again = open_plugin(settings())
    assert again.reservation("k1", now()) == hold
    again.release("k1", now())
    assert listed(cluster) == {}
    assert usersets(cluster) == []
