"""A machine's snapshot read into types; what is none is the machine's failure, and is told so."""

import json

import pytest

from ramp.client.machine_state import MachineJob, parse_snapshot
from ramp.errors import MarketRefused
from ramp.model.instant import from_iso, to_datetime
from tests.unit.cli.test_qstat import JOB
from tests.unit.cli.test_qstat import SNAPSHOT as QSTAT

SNAPSHOT = {
    **QSTAT,
    "cores_busy": 8000,
    "running": [{**JOB, "job": "7.1", "user": None}],
    "reservations": [],
    "architecture": "x86_64",
    "start_price": 40,
    "map": {"machine": "bgl"},
}


def test_types_of_what_is_common_and_the_rest_as_it_is() -> None:
    state = parse_snapshot(json.dumps(SNAPSHOT), "ricc3")
    assert (state.cores_free, state.running_total, state.architecture, state.start_price) == (192, 418, "x86_64", 40)
    eight, eleven, seven = (to_datetime(from_iso(JOB[name])) for name in ("start", "end", "submitted"))
    assert state.running == (MachineJob("7.1", 16, eight, eleven, seven, None),)
    assert state.projected_load[0].load == 1.0
    assert state.operating_system is None, "it is not stated"
    assert state.snapshot == SNAPSHOT


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"error": "snapshot: disk full"}', "the machine of ricc3 did not answer: snapshot: disk full"),
        ("", "not a valid machine state"),
        ("[]", "not a valid machine state"),
        ("{}", "required field missing"),
        (json.dumps({**SNAPSHOT, "time": "soon"}), "$.time"),
        (json.dumps({**SNAPSHOT, "running": 3}), "$.running"),
    ],
)
def test_what_is_no_snapshot_is_the_machines_failure(text: str, told: str) -> None:
    with pytest.raises(MarketRefused) as raised:
        parse_snapshot(text, "ricc3")
    assert raised.value.code == "machine_failed"
    assert told in str(raised.value)
