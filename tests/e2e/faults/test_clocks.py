"""Clocks that are set, or left behind, while a market runs in processes: all agree again, and owners are told.

A real suspend is impossible in a test: a preloaded library shows the clocks as one leaves them, and a process that is
stopped stands still as in one.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ramp.protocol.clock_comparison import offset_text
from ramp.protocol.events import Approval
from ramp.protocol.progress import ClockCompared
from tests.e2e.faults.stepped_clock import SteppedClock
from tests.e2e.swarm.swarm_market import PATIENT_TIMING, Machine, Market, in_hours, unit, until

pytestmark = [pytest.mark.e2e, pytest.mark.full]

HOUR_S = 3600
NEXT_CAN_BE_BOUGHT_IN_HOURS = 3


@pytest.fixture
def market(new_market: Callable[..., Market], stepped_clock: SteppedClock, tmp_path: Path) -> Market:
    machines = (Machine("big1", 256), Machine("big2", 256, 40))
    timing = {**PATIENT_TIMING, "discovery_limit_s": 30}  # so long who hears nothing asks on before a request fails
    found = new_market(users={"alice": 10_000}, machines=machines, timing=timing)
    found.up()
    found.wait_ready()
    return found


def buy(market: Market, request_id: str, hours: int = NEXT_CAN_BE_BOUGHT_IN_HOURS) -> tuple[dict[str, Any], list[str]]:
    """The outcome of a purchase, and what the owner was warned of meanwhile."""
    events = list(market.submit("alice", request_id, [unit(1, 64, in_hours(hours))]))
    told = [each for each in events if each["event"] == "clock_compared"]
    compared = [ClockCompared(each["offset"], each["uncertainty"], each["wrong"]) for each in told]
    return events[-1]["outcome"], [offset_text(each) for each in compared if each.wrong]


def all_agree(market: Market) -> bool:
    """Whether every trader's clock has been compared with the bank's, and found right."""
    traders = [each for each in market.status()["agents"] if each["role"] in ("user", "resource")]
    return all(each["clock_offset_ms"] is not None and not each["clock_warning"] for each in traders)


def wait_agreed(market: Market) -> None:
    until(lambda: all_agree(market), lambda: f"all clocks agree: {market.status()['agents']}")


def command(market: Market, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("ramp")), *arguments, "--state-dir", str(market.state.path)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("by_s", [-120, 2 * HOUR_S])
def test_all_processes_agree_again_after_a_step(market: Market, stepped_clock: SteppedClock, by_s: int) -> None:
    """One of them stands still while the clock is set; afterwards all buy and sell by the new time.

    Not back by hours: then it is before the certificates of this market, which is a minute old, begin to hold.
    """
    wait_agreed(market)
    market.kill("big1", signal.SIGSTOP)
    stepped_clock.set(by_s)
    until(lambda: market.status()["as_of"] != "", "the supervisor answers")
    market.kill("big1", signal.SIGCONT)

    def followed() -> bool:
        return market.state.logs.joinpath("alice.log").read_text().count("the system clock was changed by") == 1

    until(followed, market.logs)
    wait_agreed(market)
    outcome, _ = buy(market, "r1", NEXT_CAN_BE_BOUGHT_IN_HOURS + by_s // HOUR_S)
    assert outcome["status"] == "committed", outcome
    until(lambda: sorted(market.listed()) == ["big1", "big2"], "nobody has lost its lease")


def test_an_owner_is_told_of_a_clock_three_seconds_off_and_buys(market: Market, stepped_clock: SteppedClock) -> None:
    wait_agreed(market)
    pid = market.agent("alice")["pid"]
    stepped_clock.set(3, pid=pid)
    until(lambda: market.agent("alice")["clock_warning"], lambda: f"alice is told: {market.agent('alice')}")
    known = market.agent("alice")
    assert known["clock_offset_ms"] == pytest.approx(3000, abs=known["clock_uncertainty_ms"] + 50)
    assert "s ahead of the bank's" in known["clock_warning"]
    outcome, warnings = buy(market, "r1")
    assert outcome["status"] == "committed", outcome
    assert "s ahead of the bank's" in warnings[0]
    shown = json.loads(command(market, "ps", "--json").stdout)
    assert [each["name"] for each in shown["agents"] if each["clock_warning"]] == ["alice"]
    told = re.compile(r"ramp: warning: (alice: )?the clock here is [23]\.\d* s ahead of the bank's")
    assert told.match(command(market, "ps").stderr)
    assert told.match(command(market, "status", "--user", "alice").stderr)
    stepped_clock.join(pid)
    wait_agreed(market)
    assert command(market, "status", "--user", "alice").stderr == ""
    log = market.state.logs.joinpath("alice.log").read_text()
    assert log.count("s ahead of the bank's") == 1
    assert log.count("this computer's clock agrees with the bank's again") == 1


def test_what_has_run_out_in_a_suspend_runs_out(market: Market, stepped_clock: SteppedClock) -> None:
    """The owner is asked to approve and does not; the five minutes for that pass while the machine is suspended."""
    wait_agreed(market)
    with market.submitted("alice", "r1", [unit(1, 64, in_hours(3))], approval=Approval.ASK) as events:
        assert next(each for each in events if each["event"] == "approval_asked")
        stepped_clock.set(0, suspended_s=10 * 60)
        assert market.outcome("alice", "r1")["reason"] == "the offers were not approved in time"
    assert "the system clock was changed" not in market.state.logs.joinpath("alice.log").read_text()
    wait_agreed(market)
    outcome, _ = buy(market, "r2")
    assert outcome["status"] == "committed", outcome
