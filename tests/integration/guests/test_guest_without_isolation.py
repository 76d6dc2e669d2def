"""A plug-in in its agent's process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ramp.agents.building import PartyBuilder
from ramp.protocol import effects as fx
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import PLUGIN_GROUP
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from ramp.xmpp.link import TransportSettings
from tests.packages import install
from tests.tiny_market import tiny_market

LOUD = """
import os, sys
from ramp.errors import ConfigurationError

def open_plugin(settings):
    print(100_000 * "x", end="")
    print("at once" if sys.stdout is sys.stderr else "at some time", os.readlink("/proc/self/fd/0"))
    os.system("echo a program")
    raise ConfigurationError("too loud")
"""

TENDED = """
from ramp.plugins.interface import ResourcePlugin

class open_plugin(ResourcePlugin):
    tended = True
    def __init__(self, settings): pass
    quote = hold = confirm = release = reservation = reservations = None
"""


@pytest.fixture
def market(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[Path, StateFolder]:
    """The configuration of one machine, with the plug-in of the test's mark, and a state folder with its keys."""
    (tmp_path / "guest.py").write_text(request.param)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delitem(sys.modules, "guest", raising=False)
    install(tmp_path, "guest", f"[{PLUGIN_GROUP}]\nguest = guest:open_plugin\n")
    path, state = tmp_path / "market.toml", StateFolder(tmp_path / "state")
    machine = 'operating_system = "LINUX"\narchitecture = "x86_64"\nplugin = "guest"\n'
    path.write_text(tiny_market({"alice": 1}, prices={"m1": (20, 10)}, machine=machine) + 'isolation = "none"\n')
    state.prepare()
    keys, now, config = KeyStore(state.keys), SystemClock().now(), load_config(path)
    keys.create_ca(now)
    keys.issue(config.address("m1"), config.roles()["m1"], now)
    return path, state


@pytest.mark.parametrize("market", [LOUD], indirect=True)
def test_what_it_and_its_programs_print_disturbs_no_event_of_the_process(market: tuple[Path, StateFolder]) -> None:
    path, state = market
    command = [sys.executable, "-m", "ramp.agents.process", "--config", str(path), "--state-dir", str(state.path)]
    ended = subprocess.run(
        [*command, "--agents", "m1", "--parent", str(os.getpid()), "--launch", "--port", "9"],
        stdin=subprocess.PIPE,
        capture_output=True,
        check=False,
    )
    (event,) = map(json.loads, ended.stdout.splitlines())
    assert event["event"] == "broken", ended.stderr[-500:]
    assert "too loud" in event["detail"]
    assert 100_000 * b"x" in ended.stderr
    assert b"at once /dev/null" in ended.stderr, "calls of the supervisor are not for a program"
    assert b"a program" in ended.stderr


@pytest.mark.parametrize("market", [TENDED], indirect=True)
async def test_it_is_tended_as_one_in_a_process_of_its_own(market: tuple[Path, StateFolder]) -> None:
    path, state = market
    agent = PartyBuilder(load_config(path), state, TransportSettings(servers=(("127.0.0.1", 9),)), SystemClock()).build(
        "m1"
    )
    assert fx.TendSlots(()) in [*agent.host.party.start(0), *agent.host.party.tick(0)], "at once, without a sold slot"
