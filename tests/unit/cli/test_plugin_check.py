"""`ramp plugins check` on the plug-ins that come with RAMP, and on what is none."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from ramp.errors import ConfigurationError
from ramp.plugins.interface import PluginSettings
from ramp.runtime.configuration import values
from simulation.cli.plugins import plugins
from simulation.resource.steady import SteadyMachine, open_plugin


def check(*arguments: str) -> Any:
    return CliRunner().invoke(plugins, ["check", *arguments], catch_exceptions=False)


def test_a_plugin_that_keeps_the_contract() -> None:
    result = check("steady", "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    asked = [rule for rule in told["rules"] if "missing" not in rule["name"]]  # it has no queue of its own
    assert {rule["verdict"] for rule in asked} == {"kept"}
    assert set(told["slowest_s"]) >= {"quote", "hold", "confirm", "release", "snapshot"}


def test_the_cores_and_options_of_a_configuration_are_taken() -> None:
    result = check("fake_qstat", "--config", "table2", "--resource", "thunder2")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("fake_qstat (thunder2): ")


def test_one_that_breaks_it_is_told_with_what_would_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(SteadyMachine):
        def _taken(self, *_: object) -> str:
            return ""

    def open_twice(settings: PluginSettings) -> SteadyMachine:
        return open_plugin(settings) if settings.options else Twice("checked", 64, 0.5)

    monkeypatch.setattr(values, "entry_point", lambda *_: SimpleNamespace(load=lambda: open_twice))
    result = check("twice")
    assert result.exit_code == 1
    assert "a-slot-that-has-gone-is-refused: broken" in result.stderr
    assert "right: Of two calls for the last cores" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stedy"], "did you mean 'steady'"),
        (["fake_qstat"], "cannot open .*log.*--config"),
        (["steady", "--config", "table2"], "no resource has the plug-in 'steady'"),
        (["fake_qstat", "--config", "quickstart", "--resource", "bluegene1"], "another plug-in than 'fake_qstat'"),
    ],
)
def test_bad_input(arguments: list[str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        check(*arguments)
    assert caught.value.exit_code == 2


def test_a_call_that_hangs_does_not_keep_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter would wait at its end for a hanging call's thread pool or lock, so the process leaves at once."""
    released = threading.Event()

    class Hanging(SteadyMachine):
        def snapshot(self, *_: object) -> Any:
            released.wait()

    def open_hanging(settings: PluginSettings) -> SteadyMachine:
        return open_plugin(settings) if settings.options else Hanging("checked", 64, 0.5)

    left: list[int] = []
    monkeypatch.setattr(values, "entry_point", lambda *_: SimpleNamespace(load=lambda: open_hanging))
    monkeypatch.setattr("os._exit", left.append)
    try:
        result = check("hanging", "--limit", "0.5")
    finally:
        released.set()
    assert left == [1]
    assert "a-snapshot-is-plain-json: broken: a call did not return within 0.5 s" in result.stderr
    assert "a-slot-lies-in-the-window: not checked" in result.stderr
