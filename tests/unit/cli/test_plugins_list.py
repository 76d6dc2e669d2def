"""What is installed, in whole sentences, each thing with its own, in lines that fit the terminal."""

import json
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from ramp.cli.main import cli
from simulation.cli.plugins import plugins


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
