"""The folder of the control sockets is the user's own, or it is not used: who else can enter it speaks for agents."""

import asyncio
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ramp.agents.control import KeeperControl
from ramp.client.line import SocketLine
from ramp.client.swarm import status
from ramp.errors import ConfigurationError
from ramp.runtime.state_folder import StateFolder


def open_to_all(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)


def open_to_the_group(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    folder.chmod(0o710)


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
    (open_to_all, "has mode 0777, expected 0700"),
    (open_to_the_group, "has mode 0710, expected 0700"),
    (somebody_elses, "belongs to user 12345, not to user 0"),
    (a_link, "is not a folder"),
]


@pytest.fixture(params=["short", "long"])
def state(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    """One with its sockets inside, and one whose path is too long for that."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with tempfile.TemporaryDirectory(prefix="r") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        root = Path(short) / "s" if request.param == "short" else tmp_path / ("x" * 100)
        found = StateFolder(root)
        yield found  # type: ignore[misc]


@pytest.mark.parametrize(("trap", "finding"), TRAPS)
def test_a_folder_of_sockets_that_is_not_the_users_own_is_refused(
    state: StateFolder, trap: Callable[[Path], None], finding: str
) -> None:
    """By who launches, by agents that open a socket there, and by who would talk to one that is there."""
    state.run.mkdir(parents=True)
    is_long = len(str(state.path)) > 100
    if is_long:  # its folder was cleaned away, and somebody else has made one of that name
        state.prepare()
        state.sockets.rmdir()
    trapped = state.sockets
    trap(trapped)
    control = KeeperControl(SimpleNamespace(jid="keeper@localhost"), state.socket("keeper"), state)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=finding):
        asyncio.run(control.start())
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(state.socket("alice")))
        listening.listen()
        with pytest.raises(ConfigurationError, match=finding):
            asyncio.run(SocketLine.open(state.socket("alice")))
    with pytest.raises(ConfigurationError, match=finding):
        status(state)
    if is_long:  # which keeps nobody from starting the market
        state.prepare()
        assert state.sockets != trapped
        return
    with pytest.raises(ConfigurationError, match=finding) as raised:
        state.prepare()
    assert str(trapped) in str(raised.value)


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_sockets_of_a_long_path_lie_in_the_users_runtime_folder_if_that_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as runtime:
        Path(runtime).chmod(mode)
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        state, same = StateFolder(tmp_path / ("x" * 100)), StateFolder(tmp_path / ("x" * 100))
        state.prepare()
        assert state.sockets.is_relative_to(runtime) == (mode == 0o700)
        assert state.sockets.stat().st_mode & 0o777 == 0o700
        monkeypatch.delenv("XDG_RUNTIME_DIR")  # as in the shell of another log-in
        assert same.sockets == state.sockets
        before = state.sockets
        same.prepare()
        assert same.sockets == before
        state.leave_sockets()
        assert not before.exists()


def test_a_folder_of_sockets_is_made_private_whatever_the_umask(state: StateFolder) -> None:
    before = os.umask(0)
    try:
        state.prepare()
    finally:
        os.umask(before)
    assert state.sockets.stat().st_mode & 0o777 == 0o700
    state.prepare()


def test_sockets_outside_the_state_folder_leave_no_folder_behind_once_the_last_is_closed(state: StateFolder) -> None:
    state.prepare()
    state.socket("alice").touch()
    state.leave_sockets()
    assert state.sockets.exists()
    state.socket("alice").unlink()
    used = state.sockets
    state.leave_sockets()
    assert used.exists() == used.is_relative_to(state.path)
    state.leave_sockets()
    state.prepare()
    assert state.sockets.exists()
