"""`ramp completion`: the script that completes verbs, options, ids and names in a shell."""

from __future__ import annotations

import click

from ramp.cli.options import example


@click.command(
    epilog=example(
        'eval "$(ramp completion bash)"                                    # in ~/.bashrc',
        "ramp completion fish > ~/.config/fish/completions/ramp.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    It completes verbs, options, the ids of your requests, reservations and jobs, and the names of agents.
    """
    from click.shell_completion import get_completion_class

    from ramp.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None, "click completes each of the shells offered"
    click.echo(found(cli, {}, "ramp", "_RAMP_COMPLETE").source())
