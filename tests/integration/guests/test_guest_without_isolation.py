"""A plug-in in its agent's process: what it prints belongs to the log."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import PLUGIN_GROUP
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from tests.packages import install
from tests.tiny_market import tiny_market

LOUD = """
import os
from ramp.errors import ConfigurationError

def open_plugin(settings):
    print(100_000 * "x", end="", flush=True)
    os.system("echo a program")
    raise ConfigurationError("too loud")
"""


def test_what_it_and_its_programs_print_disturbs_no_event_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    install(tmp_path, "loud", f"[{PLUGIN_GROUP}]\nloud = loud:open_plugin\n")
    path, state = tmp_path / "market.toml", StateFolder(tmp_path / "state")
    machine = 'operating_system = "LINUX"\narchitecture = "x86_64"\nplugin = "loud"\n'
    path.write_text(tiny_market({"alice": 1}, prices={"m1": (20, 10)}, machine=machine) + 'isolation = "none"\n')
    state.prepare()
    keys, now, config = KeyStore(state.keys), SystemClock().now(), load_config(path)
    keys.create_ca(now)
    keys.issue(config.address("m1"), config.roles()["m1"], now)
    command = [sys.executable, "-m", "ramp.agents.process", "--config", str(path), "--state-dir", str(state.path)]
    ended = subprocess.run(
        [*command, "--agents", "m1", "--parent", str(os.getpid()), "--launch", "--port", "9"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    (event,) = map(json.loads, ended.stdout.splitlines())
    assert event["event"] == "broken", ended.stderr[-500:]
    assert "too loud" in event["detail"]
    assert 100_000 * b"x" + b"a program" in ended.stderr
