"""The folder of the control sockets is the user's own, or it is not used: who else can enter it speaks for agents."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from ramp.agents.control import KeeperControl
from ramp.client.access import SocketLine, status
from ramp.errors import ConfigurationError
from ramp.runtime.state_folder import StateFolder


def open_to_others(folder: Path, mode: int) -> None:
    folder.mkdir(mode=0o700)
    folder.chmod(mode)


def somebody_elses(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)


def a_link(folder: Path) -> None:
    other = folder.with_name("other")
    other.mkdir(mode=0o700)
    folder.symlink_to(other)


TRAPS = [
    (partial(open_to_others, mode=0o777), "has mode 0777, expected 0700"),
    (partial(open_to_others, mode=0o710), "has mode 0710, expected 0700"),
    (somebody_elses, "belongs to user 12345, not to user 0"),
    (a_link, "is not a folder"),
]


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    """One whose path is longer than that of any socket."""
    return StateFolder(tmp_path / ("x" * 100))


@pytest.mark.parametrize(("trap", "finding"), TRAPS)
def test_a_folder_of_sockets_that_is_not_the_users_own_is_refused(
    state: StateFolder, trap: Callable[[Path], None], finding: str
) -> None:
    """By who launches, by agents that open a socket there, and by who would talk to one that is there."""
    state.run.mkdir(parents=True)
    trap(state.sockets)
    control = KeeperControl(SimpleNamespace(jid="keeper@localhost"), state.socket("keeper"), state)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=finding):
        asyncio.run(control.start())
    with socket.socket(socket.AF_UNIX) as listening:
        with contextlib.chdir(state.sockets):
            listening.bind("alice.sock")
        listening.listen()
        with pytest.raises(ConfigurationError, match=finding):
            asyncio.run(SocketLine.open(state.socket("alice")))
    with pytest.raises(ConfigurationError, match=finding):
        status(state)
    with pytest.raises(ConfigurationError, match=finding) as raised:
        state.prepare()
    assert str(state.sockets) in str(raised.value)


def test_a_folder_of_sockets_is_made_private_whatever_the_umask(state: StateFolder) -> None:
    before = os.umask(0)
    try:
        state.prepare()
    finally:
        os.umask(before)
    assert state.sockets.stat().st_mode & 0o777 == 0o700
    state.prepare()


def test_a_socket_is_served_and_reached_whatever_the_length_of_its_path(state: StateFolder) -> None:
    state.prepare()
    control = KeeperControl(SimpleNamespace(jid="keeper@localhost"), state.socket("keeper"), state)  # type: ignore[arg-type]

    async def meet() -> None:
        await control.start()
        async with await SocketLine.open(state.socket("keeper")):
            assert state.socket("keeper").is_socket()
        await control.stop()

    asyncio.run(meet())
    assert not state.socket("keeper").exists()
