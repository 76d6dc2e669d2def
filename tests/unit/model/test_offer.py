"""The order of values that would pass: the one that is easiest to meet comes first."""

import pytest

from ramp.model.offer import RefusalCode, ease


@pytest.mark.parametrize(
    ("code", "in_order"),
    [
        (RefusalCode.PRICE, ["20 credits/core-hour", "100 credits/core-hour"]),  # least to add
        (RefusalCode.MACHINE_TOO_SMALL, ["9216 cores", "512 cores", "64 cores"]),  # least to leave out
        (RefusalCode.MEMORY, ["2048 MB a core", "512 MB a core"]),
        (RefusalCode.CORES_TAKEN, ["2027-01-15T09:00:00Z", "2027-01-16T08:00:00Z"]),  # least to wait
        (RefusalCode.OPERATING_SYSTEM, ["AIX", "LINUX"]),
    ],
)
def test_the_easiest_is_the_first(code: RefusalCode, in_order: list[str]) -> None:
    given = in_order[::-1]
    assert sorted(given, key=lambda nearest: ease(code, nearest)) == in_order
