"""`ramp plugins`: what is installed, each with its own words, and which plug-ins keep the contract."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from ramp.cli.main import cli
from ramp.errors import ConfigurationError
from ramp.plugins.interface import PluginSettings
from ramp.runtime.configuration import values
from simulation.cli.plugins import plugins
from simulation.resource.steady import SteadyMachine, open_plugin


def listed(*sorts: str) -> dict[tuple[str, str], dict[str, Any]]:
    result = CliRunner().invoke(plugins, ["list", *sorts, "--json"], catch_exceptions=False)
    return {(one["sort"], one["name"]): one for one in json.loads(result.stdout)}


def test_options_are_told_to_their_last_word() -> None:
    found = listed("resource")
    told = {(name, option["name"]): option["about"] for (_, name), one in found.items() for option in one["options"]}
    assert "Debian's real ones are in" in told["gridengine", "commands"]
    assert [where for where, words in told.items() if words and not words.endswith(".")] == []
    types = {option["type"] for one in found.values() for option in one["options"]}
    assert [each for each in types if each.endswith(",")] == []


def test_everything_has_words_of_its_own_and_defaults_are_marked() -> None:
    found = listed("scheduler", "allocator", "approach", "sizes", "placement", "rule", "pricing")
    words = [one["about"] for one in found.values()]
    assert len(set(words)) == len(words)
    assert all(words)
    defaults = {where for where, one in found.items() if "default" in one["about"]}
    assert defaults == {
        ("scheduler", "easy"),
        ("allocator", "two-phase"),
        ("allocator", "find-systems-mss"),
        ("rule", "open-rounds"),
        ("pricing", "ramp"),
    }


@pytest.mark.parametrize("width", [60, 100])
def test_the_list_fits_its_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ramp.cli.views.output.console", lambda *, error=False: Console(width=width, force_terminal=True)
    )
    lines = CliRunner().invoke(plugins, ["list", "resource"], catch_exceptions=False).stdout.splitlines()
    assert max(len(line) for line in lines) <= width
    assert "  gridengine" in "\n".join(lines)


def test_alone_the_verb_lists_everything_and_its_singular_is_the_same_verb() -> None:
    everything = CliRunner().invoke(plugins, ["list"], catch_exceptions=False).stdout
    assert everything
    assert CliRunner().invoke(plugins, [], catch_exceptions=False).stdout == everything
    assert CliRunner().invoke(cli, ["plugin", "list"], catch_exceptions=False).stdout == everything
    assert "\n  plugin " not in CliRunner().invoke(cli, ["--help"]).stdout


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
