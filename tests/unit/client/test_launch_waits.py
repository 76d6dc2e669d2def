"""A launch in the background says what it waits for when nobody comes up."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ramp.client import swarm
from ramp.control.status import AgentStatus, ServerStatus, SwarmStatus
from ramp.runtime.state_folder import StateFolder


def test_who_is_waited_for_is_told_with_the_server_and_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = (
        AgentStatus("bank", "bank", 2, "ready", "", 0, "", is_up=True),
        AgentStatus("alice", "user", 3, "starting", "", 0, ""),
    )
    server = ServerStatus("external", "192.0.2.1", 5222, None)
    found = SwarmStatus("starting", "2026-12-01T10:00:00Z", 1, "swarm.toml", server, agents)
    seen: list[SwarmStatus | None] = [None, None, found]
    monkeypatch.setattr(swarm, "status", lambda _: seen.pop(0) if seen else found)
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: passed[0], sleep=lambda _: passed.insert(0, passed[0] + 10))
    monkeypatch.setattr(swarm, "time", clock)
    told: list[dict[str, str]] = []
    process: Any = SimpleNamespace(pid=1, poll=lambda: None if seen else 1)
    assert swarm._wait_up(StateFolder(tmp_path), process, told.append) is None
    waiting = [event["detail"] for event in told if event["event"] == swarm.WAITING]
    logs = f"their logs are in {tmp_path}/logs"
    server_text = "the external XMPP server at 192.0.2.1:5222"
    assert waiting == [
        f"10 s: waiting for the supervisor; {logs}",
        f"20 s: waiting for 1 of 2 agents to come up on {server_text}; {logs}",
    ]
