"""Pages are what the code says: those that are generated, the commands that they name, the results of the papers."""

import csv
import re
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
from paper_results import FOLDER, write_tables
from ramp.cli.main import VERBS
from ramp.model.agreement import Signed
from ramp.protocol.timing import Timing
from ramp.runtime.configuration.file import CONFIG_VERSION
from ramp.runtime.configuration.values import GuestLimits, UserConfig
from ramp.shipped_files import shipped_directory
from simulation.experiments.comparison import Verdict
from simulation.experiments.discovery import shipped_experiments
from simulation.experiments.headlines import HEADLINES, as_row
from simulation.workload.logs import find_log
from tests.unit.cli.every_command import COMMANDS

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


TEXTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "ramp/**/*.py", "simulation/**/*.py", "examples/**/*", "agents_config/**/*")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md" and path.suffix in {".md", ".py", ".toml", ".xml", ".sh"}
)
NAMED = re.compile(r"(`+)ramp\s+([^`]+?)\1")
LITERAL_JOINT = re.compile(r"\"\s*\n\s*f?\"")
COMMENT_SIGN = re.compile(r"\n\s*#")


def unknown_words(line: str) -> list[str]:
    """The words of a command after `ramp` that name no command or argument, and the options that its command lacks."""
    words = COMMENT_SIGN.sub("\n", line).split()
    path: tuple[str, ...] = ()
    while words and isinstance(COMMANDS[path], click.Group) and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        path = (*path, words.pop(0))
        if path not in COMMANDS:
            return [" ".join(path)]
    command = COMMANDS.get((*path, "make"), COMMANDS[path])  # `ramp invite NAME` is `ramp invite make NAME`
    takes_words = isinstance(command, click.Group) or any(isinstance(each, click.Argument) for each in command.params)
    options = {name: each for each in command.params for name in (*each.opts, *each.secondary_opts)}
    unknown, before = [], ""
    for word in words:
        option = re.sub(r"[^a-z-].*", "", word)
        value = isinstance(options.get(before), click.Option) and not getattr(options[before], "is_flag", False)
        if word.startswith("--"):
            unknown += [word] if option not in {*options, "--help", "--"} else []
        elif re.fullmatch(r"[a-z]+", word) and not takes_words and not value:
            unknown.append(word)
        before = option
    return unknown


def test_named_commands_exist() -> None:
    wrong = []
    for path in TEXTS:
        text = path.read_text("utf-8")
        if path.suffix == ".py":
            text = LITERAL_JOINT.sub("", text)
        named = ((found[2], unknown_words(found[2])) for found in NAMED.finditer(text))
        wrong += [f"{path.relative_to(ROOT)}: `ramp {line}`: {words}" for line, words in named if words]
    assert wrong == []


@pytest.mark.parametrize("line", ["job ID", "statement", "balance statement", "logs --from-where X", "web link"])
def test_a_name_of_no_command_is_found(line: str) -> None:
    assert unknown_words(line)


PAGES = {path.stem: path.read_text("utf-8") for path in FOLDER.parent.glob("*.md")}
README = Path(__file__).parents[2] / "README.md"
EXPERIMENTS = shipped_experiments()


def rows(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_results_of_an_experiment_stand_on_one_page(name: str) -> None:
    assert sum(f":file: results/{name}.csv" in text for text in PAGES.values()) == 1
    for row in rows(name):
        assert row["verdict"] in set(Verdict)
        assert row["why"] or row["verdict"] == Verdict.AGREES, row["result"]


@pytest.mark.parametrize("name", ["rounds", "workloads"])
def test_a_run_compares_the_rows_of_the_page(name: str, tmp_path: Path) -> None:
    results, tables = tmp_path / name, tmp_path / "tables"
    results.mkdir()
    tables.mkdir()
    EXPERIMENTS[name].run(results, quick=True, seed=1, processes=1, on_progress=None)
    write_tables(tmp_path, tables)
    made, shown = (
        {re.sub("[0-9]+ most", "most", row["result"]) for row in rows(name, folder)} for folder in (tables, FOLDER)
    )
    assert made == shown


def headlines_of_readme() -> list[tuple[str, ...]]:
    row = r"^\| (.+) \| (.+) \| (.+) \| (agrees|DIFFERS)[^|]* \| `([\w-]+)` \|$"
    return [match.groups() for match in re.finditer(row, README.read_text("utf-8"), re.MULTILINE)]


def test_the_headlines_of_the_readme_are_of_these_results() -> None:
    """Each number and verdict of the table's column `here` is in the results of its experiment."""
    lines = headlines_of_readme()
    assert [(about, name) for about, *_, name in lines] == [(one.about, one.name) for one in HEADLINES]
    for result, _, here, verdict, name in lines:
        found = {f"{float(row['here'].split()[0]):.1f}" for row in rows(name) if row["verdict"] == verdict}
        for number in re.findall(r"-?\d+\.\d", here):
            assert number in found, (result, number)


@pytest.mark.slow
@pytest.mark.logs
@pytest.mark.skipif(find_log("CTC-SP2-1996-3.1-cln") is None, reason="needs the workload logs (RAMP_LOGS)")
def test_the_headlines_of_a_run_are_those_of_the_readme(tmp_path: Path) -> None:
    told = []
    for one in HEADLINES:
        (tmp_path / one.name).mkdir()
        found = one.run(tmp_path / one.name, quick=False, seed=1, processes=1, on_progress=None)
        told.append((*as_row(one.about, found["comparison"]), one.name))
    assert [tuple(cell.partition(" (")[0] for cell in line) for line in told] == headlines_of_readme()
