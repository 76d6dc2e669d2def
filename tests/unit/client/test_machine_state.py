"""A machine's snapshot read into types; what is none is the machine's failure, and is told so."""

from __future__ import annotations

import json

import pytest

from ramp.client.machine_state import MachineJob, parse_snapshot
from ramp.errors import MarketRefused
from ramp.model.instant import from_iso, to_datetime

SNAPSHOT = {
    "resource": "ricc3",
    "source": "log",
    "time": "2026-11-21T09:00:00Z",
    "machine_time_s": 500000.0,
    "cores": 8192,
    "cores_busy": 8000,
    "load": 0.9765625,
    "running": [
        {"job": "7.1", "cores": 16, "start": "2026-11-21T08:00:00Z", "end": "2026-11-21T11:00:00Z",
         "submitted": "2026-11-21T07:00:00Z", "user": None},
    ],
    "queued": [],
    "running_total": 418,
    "queued_total": 0,
    "reservations": [],
    "projected_load": [{"time": "2026-11-21T09:00:00Z", "load": 1}],
    "architecture": "x86_64",
    "start_price": 40,
    "map": {"machine": "bgl"},
}  # fmt: skip


def test_types_of_what_is_common_and_the_rest_as_it_is() -> None:
    state = parse_snapshot(json.dumps(SNAPSHOT), "ricc3")
    assert (state.cores_free, state.running_total, state.architecture, state.start_price) == (192, 418, "x86_64", 40)
    eight, eleven, seven = (to_datetime(from_iso(f"2026-11-21T{hour:02}:00:00Z")) for hour in (8, 11, 7))
    assert state.running == (MachineJob("7.1", 16, eight, eleven, seven, None),)
    assert state.projected_load[0].load == 1.0
    assert state.operating_system is None, "it is not stated"
    assert state.snapshot == SNAPSHOT


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"error": "snapshot: disk full"}', "the machine of ricc3 cannot be asked: snapshot: disk full"),
        ("", "no snapshot"),
        ("[]", "no snapshot"),
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
