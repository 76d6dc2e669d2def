"""`ramp fake-qstat` and `ramp fake-qrstat`: what they print is read by those who read the real commands."""

import json

import pytest

from ramp.batch.gridengine.answers import read_queues, read_reservations
from ramp.cli.main import main
from ramp.model.contents import DirectoryListing, MachineStatus
from ramp.model.instant import HOUR, from_iso
from tests.unit.cli.test_qstat import JOB, SNAPSHOT

HELD = {**SNAPSHOT["reservations"][0], "reservation_id": "ricc3-2", "key": "offer-2/x"}
BUSY = {
    **SNAPSHOT,
    "cores_busy": 80,
    "running": [JOB, {**JOB, "job": 797, "user": None}],
    "queued": [{**JOB, "job": 798, "user": "eve"}],
    "running_total": 2,
    "queued_total": 3,
    "reservations": [
        {**HELD, "reservation_id": "ricc3-1", "key": "offer-1", "cores": 48, "start": "2026-11-21T08:30:00Z",
         "firm": True, "held_until": None},
        HELD,
    ],
}  # fmt: skip


@pytest.fixture
def printed(agent, monkeypatch, capsys):
    """Runs a verb, three at most, against a machine that answers with a snapshot; its output and its complaints."""
    listing = DirectoryListing("query-1", "resource-trader", ("ricc3@localhost",))
    _, market = agent(*([listing], [MachineStatus("query-2", json.dumps(BUSY))]) * 3)

    def run(*arguments, code=0):
        monkeypatch.setattr("simulation.cli.gridengine.open_market", lambda state, user: market)
        assert main([arguments[0], "ricc3", *arguments[1:]]) == code
        return capsys.readouterr()

    return run


def test_the_queue_in_full(printed):
    shown = printed("fake-qstat", "-f", "-r", "-xml", "-u", "*")
    report = read_queues(shown.out)
    (instance,) = report.instances
    # 80 cores are busy, 48 of them with a reservation that has begun
    assert (instance.name, instance.slots_total) == ("all.q@ricc3", 8192)
    assert (instance.slots_used, instance.slots_reserved) == (32, 48)
    running, nameless, waiting = report.jobs
    assert (running.number, running.slots, running.owner, running.run_limit) == (796, 16, "user15", 3 * HOUR)
    assert running.started == from_iso("2026-11-21T08:00:00Z")
    assert nameless.owner == "nobody"
    assert (waiting.state, waiting.owner, waiting.submitted) == ("qw", "eve", from_iso("2026-11-21T07:00:00Z"))
    assert "2 jobs more did not fit" in shown.err


def rows(table, *columns):
    """Return some columns of the rows below a table's head."""
    return [tuple(line.split()[column] for column in columns) for line in table.splitlines()[2:]]


def test_tables_tell_the_same(printed):
    assert rows(printed("fake-qstat").out, 0, 4) == [("796", "r"), ("797", "r"), ("798", "qw")]
    assert rows(printed("fake-qstat", "-u", "eve").out, 0) == [("798",)]
    assert "48/32/8192" in printed("fake-qstat", "-f").out


def test_reservations(printed):
    firm, held = read_reservations(printed("fake-qrstat", "-xml", "-u", "*").out)
    assert (firm.number, firm.name, firm.state) == (1, "ramp_offer-1", "r")
    assert (held.number, held.name, held.state) == (2, "ramp_offer-2-x", "w")
    assert (held.start, held.end) == (from_iso("2026-11-21T10:00:00Z"), from_iso("2026-11-21T11:00:00Z"))
    assert rows(printed("fake-qrstat").out, 0) == [("1",), ("2",)]
    (full,) = read_reservations(printed("fake-qrstat", "-ar", "2", "-xml").out)
    assert (full.slots_at, full.users) == ((("all.q@ricc3", 64),), ("@ramp_offer-2-x",))


def test_a_reservation_that_is_none(printed):
    # the exit codes and words of the real command
    assert read_reservations(printed("fake-qrstat", "-ar", "77", "-xml").out) == ()
    shown = printed("fake-qrstat", "-ar", "77", code=1)
    assert shown.err == "Following advance reservations do not exist:\n77\n"
