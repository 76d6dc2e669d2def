"""The generated pages say all that the program declares, and cannot be made where a sentence is missing."""

import tomllib
from dataclasses import fields
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

import command_pages
import configuration_page
import wire_page
from command_blocks import read_page
from ramp.cli.main import VERBS
from ramp.model.agreement import Signed
from ramp.protocol.timing import Timing
from ramp.runtime.configuration.file import CONFIG_VERSION
from ramp.runtime.configuration.values import GuestLimits, UserConfig
from ramp.shipped_files import shipped_directory

ROOT = Path(__file__).parents[2]


def declared() -> dict[str, configuration_page.Key]:
    return {f"{key.table}.{key.name}": key for key in configuration_page.declared_keys()}


@pytest.mark.parametrize("name", ["quickstart", "table2", "torus"])
def test_every_key_of_a_shipped_configuration_is_on_the_page(name: str) -> None:
    data = tomllib.loads((shipped_directory("agents_config/swarms") / f"{name}.toml").read_text("utf-8"))
    used = {f"{table}.{key}" for table in ("market", "server", "timing", "quotas") for key in data.get(table, {})}
    used |= {f"{table}.{key}" for table in ("users", "resources") for entry in data[table] for key in entry}
    used |= {f"machines.{key}" for entry in data["machines"].values() for key in entry}
    assert used <= set(declared())


def test_defaults_are_those_of_the_program() -> None:
    found = declared()
    for field in fields(Timing):
        assert found[f"timing.{field.name}_s"].default == f"`{getattr(Timing(), field.name) / 1_000_000:g}`"
    assert found["market.domain"].default == '`"localhost"`'
    assert found["resources.machine"].default == configuration_page.REQUIRED
    assert found["users.deposit"].default == "`0.00`"
    assert found["quotas.cores_share_max"].default == "`0.5`"
    assert found["machines.torus"].default == "`false`"
    assert found["guests.quote_s"].default == f"`{GuestLimits().quote / 1_000_000:g}`"
    assert found["resources.isolation"].default == '`"auto"`'
    assert found[".version"].default == f"`{CONFIG_VERSION}`"


def test_a_key_without_a_sentence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UserConfig, "__doc__", "A user of the market.")
    with pytest.raises(ValueError, match=r"users\.name"):
        configuration_page.declared_keys()


def test_the_page_of_messages_has_every_attribute_of_the_examples() -> None:
    sections = {part.splitlines()[0]: part for part in wire_page.page().split("\n## ")[1:]}
    for kind in wire_page.kinds():
        if kind is Signed:
            continue
        file = shipped_directory("schemas") / "examples" / "valid" / f"{wire_page._file_name(kind)}.xml"
        root = ElementTree.parse(file).getroot()
        assert root.tag.rpartition("}")[2] == kind.__name__
        missing = [name for name in root.attrib if f"| `{name}` |" not in sections[kind.__name__]]
        assert not missing, kind


def test_a_field_that_nobody_explains_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(wire_page.SENTENCES, "hold_for")
    with pytest.raises(ValueError, match=r"HoldGranted\.hold_for"):
        wire_page.page()


def test_every_verb_has_a_page_with_all_its_options() -> None:
    verbs = {verb.name: verb for verb in command_pages.verbs()}
    assert {f"ramp {name}" for name in VERBS} <= set(verbs)
    for verb in verbs.values():
        page = command_pages.page(verb)
        assert verb.summary
        for below in (verb, *(verb.children() if verb.name != "ramp" else ())):
            for option in below.command.params:
                assert not isinstance(option, click.Option) or option.opts[-1] in page


def test_an_option_without_help_is_an_error() -> None:
    @click.command(help="Do it.")
    @click.option("--silent")
    def bare(silent: str) -> None:
        del silent

    with pytest.raises(ValueError, match="ramp bare: no help for --silent"):
        command_pages.page(command_pages.Verb("ramp bare", bare))


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_commands_of_a_page_can_be_read(page: Path) -> None:
    read_page(page.read_text("utf-8"))
