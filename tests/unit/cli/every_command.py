"""Every command of the command line with its parameters, from the parser itself."""

from collections.abc import Iterator

import click

from ramp.cli.main import cli


def below(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from below(found, (*words, name))


COMMANDS = dict(below(cli))
