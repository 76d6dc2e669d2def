"""The system's clock as agents read it: steps are followed and told; a suspend is none, nor an error of reading."""

import pytest

from ramp.model.instant import HOUR, MILLISECOND, SECOND
from ramp.runtime.clock import STEP_MIN, SystemClock


class Hardware:
    """A wall clock and a steady one; reading either takes a microsecond.

    Attributes:
        time: the steady clock.
        ahead: of it the wall clock is so much.
        stops: how long the process stands still before the next reading of the wall clock, once each.
    """

    def __init__(self) -> None:
        self.time = 10**9
        self.ahead = 10**15
        self.stops: list[int] = []

    def wall(self) -> int:
        read = self.steady() + self.ahead
        self.time += self.stops.pop(0) if self.stops else 0
        return read

    def steady(self) -> int:
        self.time += 1
        return self.time


@pytest.fixture
def hardware() -> Hardware:
    return Hardware()


@pytest.mark.parametrize("by", [-3 * HOUR, -SECOND, -STEP_MIN, STEP_MIN, SECOND, 3 * HOUR])
def test_a_step_is_followed_at_the_next_reading_and_told(hardware: Hardware, by: int) -> None:
    clock = SystemClock(hardware.wall, hardware.steady)
    before = clock.now()
    hardware.ahead += by
    assert abs(clock.now() - before - by) < MILLISECOND
    assert abs(clock.set_by - by) < MILLISECOND
    told = clock.set_by
    assert clock.now() > before + by
    assert clock.set_by == told


def test_steps_add_up(hardware: Hardware) -> None:
    clock = SystemClock(hardware.wall, hardware.steady)
    for by in (HOUR, -HOUR, 2 * SECOND):
        hardware.ahead += by
        clock.now()
    assert abs(clock.set_by - 2 * SECOND) < MILLISECOND
    hardware.ahead -= 2 * SECOND
    clock.now()
    assert abs(clock.set_by) < MILLISECOND


def test_time_that_passes_is_no_step(hardware: Hardware) -> None:
    """Also in a suspend, in which both clocks count on."""
    clock = SystemClock(hardware.wall, hardware.steady)
    before = clock.now()
    hardware.time += 8 * HOUR
    assert abs(clock.now() - before - 8 * HOUR) < MILLISECOND
    assert clock.set_by == 0


def test_a_process_that_is_stopped_between_two_readings_sees_no_step(hardware: Hardware) -> None:
    clock = SystemClock(hardware.wall, hardware.steady)
    hardware.stops = [3 * SECOND, 40 * MILLISECOND]
    assert abs(clock.now() - hardware.time - hardware.ahead) < MILLISECOND
    assert clock.set_by == 0


def test_the_system_s_own_clocks_agree() -> None:
    clock = SystemClock()
    readings = [clock.now() for _ in range(1000)]
    assert readings == sorted(readings)
    assert clock.set_by == 0
