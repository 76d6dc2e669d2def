"""XMPP servers for the end-to-end tests, and how these tests are run.

`make e2e` runs every flow, server and batch system once; a test that is marked `full` is left to `make e2e-full`, which
runs all of them. What is parametrised by the kind of server runs on Prosody in the full tier only, unless its file says
otherwise. Nothing is tried again: a test waits for events, with limits of minutes, and asserts nothing about times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ramp.servers.embedded import EmbeddedServer
from ramp.servers.process import ServerProcess
from ramp.servers.prosody import ProsodyServer, prosody_executable

ROOT = Path(__file__).parents[2]


KINDS = ("embedded", pytest.param("prosody", marks=pytest.mark.full))


def make_server(kind: str, state_dir: Path) -> ServerProcess:
    """A server of a kind, not started; skips the test where that kind is not installed."""
    if kind == "prosody":
        if prosody_executable() is None:
            pytest.skip("Prosody is not installed (apt-get install prosody)")
        return ProsodyServer(state_dir)
    return EmbeddedServer(state_dir)


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    """Each kind of XMPP server, for markets that start their own; skips where it is not installed."""
    if request.param == "prosody" and prosody_executable() is None:
        pytest.skip("Prosody is not installed (apt-get install prosody)")
    return request.param


@pytest.fixture(params=KINDS)
def xmpp_server(request, tmp_path):
    """A running XMPP server of each kind; the test may kill and restart it."""
    with make_server(request.param, tmp_path / "xmpp") as server:
        yield server


@pytest.fixture(scope="module", params=KINDS)
def shared_server(request, tmp_path_factory):
    """A running XMPP server of each kind for all tests of a module, none of which hurts it."""
    with make_server(request.param, tmp_path_factory.mktemp("server") / "xmpp") as server:
        yield server


@pytest.fixture
def embedded_server(tmp_path):
    """A running embedded server, for tests that need no second kind."""
    with make_server("embedded", tmp_path / "xmpp") as server:
        yield server


@pytest.fixture
def prosody_server(tmp_path):
    """A running Prosody; skips where it is not installed."""
    with make_server("prosody", tmp_path / "xmpp") as server:
        yield server


@pytest.fixture
def spawn():
    """Starts Python programs as processes of their own and ends them after the test.

    `spawn(path, *arguments)` waits for the program's first line of output ("ready").
    """
    processes = []

    def start(program: Path, *arguments: str) -> subprocess.Popen[str]:
        path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
        process = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.strip() == "ready", f"{program.name} said {line!r} and ended with {process.poll()}"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
