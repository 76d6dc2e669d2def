"""Every command that a text or a message of the product names in `backquotes` is one that the command line has."""

import re
from pathlib import Path

import click
import pytest

from tests.unit.cli.every_command import COMMANDS

ROOT = Path(__file__).parents[2]
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
