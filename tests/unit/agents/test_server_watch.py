"""A server that nobody reaches is told: at once where it refuses, after two silences where it is only silent."""

import socket

import pytest

from ramp.agents.watches import ServerWatch
from ramp.servers.process import SILENCE, free_port, probe_problem


@pytest.fixture
def told() -> list[str]:
    return []


def test_a_port_where_nobody_listens_is_told_at_once(told: list[str]) -> None:
    port = free_port()
    watch = ServerWatch(lambda: (("127.0.0.1", port),), "localhost", told.append)
    watch._take(watch._look())
    assert told == [watch.problem] == ["cannot be reached: Connection refused"]
    watch._take("")
    assert told[1:] == [watch.problem] == [""]


def test_one_silence_is_none(told: list[str]) -> None:
    watch = ServerWatch(tuple, "localhost", told.append)
    for found in (SILENCE, "", SILENCE):
        watch._take(found)
    assert told == []
    watch._take(SILENCE)
    assert told == [SILENCE]


def test_what_hangs_up_or_says_nothing_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert probe_problem("127.0.0.1", silent.getsockname()[1], "localhost", 0.2) == SILENCE


def test_one_of_several_servers_is_enough(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {5222: "cannot be reached: Connection refused", 5223: ""}
    monkeypatch.setattr("ramp.agents.watches.probe_problem", lambda host, port, domain, limit_s: answers[port])
    watch = ServerWatch(lambda: (("a.example", 5222), ("b.example", 5223)), "localhost", told.append)
    assert watch._look() == ""
    answers[5223] = "cannot be reached: Connection refused"
    assert watch._look() == answers[5223]
