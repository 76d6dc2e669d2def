"""A clock that is set back by hours while a market runs: its agents, and what starts anew, can still be reached."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from swarm_market import Machine, Market, until

pytestmark = pytest.mark.e2e

HOURS_BACK = 2


def test_users_can_be_reached_after_a_step_back(
    new_market: Callable[..., Market], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that starts after the step logs in, and its control socket is there and answers."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler for the stepped clock")
    library, offset = tmp_path / "stepped_clock.so", tmp_path / "offset"
    source = Path(__file__).with_name("stepped_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    offset.write_text("0")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("CLOCK_OFFSET_FILE", str(offset))
    market = new_market(tmp_path, users={"alice": 1_000}, machines=(Machine("big1", 256),))
    market.up()
    market.wait_ready()
    offset.write_text(str(-HOURS_BACK * 3600))
    assert market.ask("alice", {"verb": "agreements"})["event"] == "agreements"
    first = market.agent("alice")["pid"]
    market.kill("alice")
    until(
        lambda: market.agent("alice")["state"] == "ready" and market.agent("alice")["pid"] != first,
        lambda: str(market.status()),
    )
    assert market.state.socket("alice").is_socket()
    assert market.ask("alice", {"verb": "agreements"})["event"] == "agreements"
