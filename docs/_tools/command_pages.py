"""A page for every verb of `ramp`, drawn from the command line itself; the man pages are the same pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click

from ramp.cli.main import cli

_OPTION: Final = re.compile(r"(?<![\w`-])(--[a-z][\w-]*)")


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: its words (`ramp rfq`), its command, and the commands below it."""

    name: str
    command: click.Command

    @property
    def page(self) -> str:
        """Name of its page and man page: `ramp-rfq`."""
        return self.name.replace(" ", "-")

    @property
    def summary(self) -> str:
        """Its first sentence."""
        return _plain(self.command.help or "").split("\n\n")[0].replace("\n", " ").rstrip(".")

    def children(self) -> Iterator[Verb]:
        """The commands below it."""
        if isinstance(self.command, click.Group):
            context = click.Context(self.command, info_name=self.name)
            for name in self.command.list_commands(context):
                below = self.command.get_command(context, name)
                assert below is not None
                yield Verb(f"{self.name} {name}", below)


def verbs() -> list[Verb]:
    """`ramp` and every verb of it, by name."""
    root = Verb("ramp", cli)
    return [root, *sorted(root.children(), key=lambda verb: verb.name)]


def page(verb: Verb) -> str:
    """A verb's page as Markdown; its sections are those of a man page."""
    lines = [f"# {verb.name}", "", *_described(verb, "## {}")]
    if verb.name == "ramp":
        lines += ["## Commands", ""]
        lines += [f"[{child.name}]({child.page}.md)\n: {child.summary}.\n" for child in verbs()[1:]]
        return "\n".join([*lines, *_EXIT_CODES])
    for child in verb.children():
        lines += [f"## {child.name}", "", *_described(child, "**{}**")]
    return "\n".join(lines)


_EXIT_CODES: Final = [
    "## Exit codes",
    "",
    "0\n: Done; for `submit`: bought.\n",
    "1\n: Not bought, refused or failed.\n",
    "2\n: Bad input.\n",
    "70\n: A bug in RAMP.\n",
    "130\n: Interrupted.\n",
]


def _described(verb: Verb, heading: str) -> list[str]:
    context = click.Context(verb.command, info_name=verb.name)
    usage = " ".join([verb.name, *verb.command.collect_usage_pieces(context)])
    lines = [heading.format("Synopsis"), "", "```text", usage, "```", ""]
    lines += [heading.format("Description"), "", _plain(verb.command.help or ""), ""]
    named = [each for each in verb.command.get_params(context) if isinstance(each, click.Option)]
    options = [row for each in named if (row := each.get_help_record(context))]
    if without := [names for names, text in options if not text]:
        raise ValueError(f"{verb.name}: no help for {', '.join(without)}")
    if options:
        lines += [heading.format("Options"), ""]
        lines += [f"`{names}`\n: {_marked(text)}\n" for names, text in options]
    example = [line.strip() for line in (verb.command.epilog or "").replace("\b", "").splitlines()]
    commands = [line for line in example if line.startswith("ramp")]
    return [*lines, *([heading.format("Example"), "", "```text", *commands, "```", ""] if commands else [])]


def _plain(text: str) -> str:
    return _marked(inspect.cleandoc(text.replace("\b\n", "")))


def _marked(text: str) -> str:
    """Options and brackets as they are: Markdown would make a dash of two hyphens, and a link of brackets."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = [part if part.startswith("`") else _OPTION.sub(r"`\1`", part) for part in parts]
    return "".join(part if part.startswith("`") else re.sub(r"([\[\]<>*_$])", r"\\\1", part) for part in plain)
