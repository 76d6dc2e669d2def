"""Options that many verbs share, so that they are named and explained alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from ramp.runtime.state_folder import StateFolder

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

STATE_VARIABLE: Final = "RAMP_STATE"


def default_state_dir(environment: Mapping[str, str] | None = None) -> Path:
    """The state folder where none is given: $RAMP_STATE, $XDG_STATE_HOME/ramp, or ~/.local/state/ramp."""
    known = os.environ if environment is None else environment
    if known.get(STATE_VARIABLE):
        return Path(known[STATE_VARIABLE])
    if known.get("XDG_STATE_HOME"):
        return Path(known["XDG_STATE_HOME"]) / "ramp"
    return Path.home() / ".local" / "state" / "ramp"


def _state_folder(_: click.Context, __: click.Parameter, path: Path | None) -> StateFolder:
    return StateFolder((path or default_state_dir()).absolute())


state_option: Final[Decorator] = click.option(
    "--state-dir",
    "state",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_state_folder,
    help=f"Where the market keeps its state (default: ${STATE_VARIABLE}, or ~/.local/state/ramp).",
)
json_option: Final[Decorator] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: times ISO 8601 UTC, amounts in credits, durations in seconds."
)
user_option: Final[Decorator] = click.option(
    "--user", metavar="NAME", help="As which user (default: the first of the running market)."
)
file_type: Final = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


def example(*commands: str) -> str:
    """The end of a verb's help: commands to try; the backspace keeps click from joining the lines."""
    return "\n".join(("\b", "Example:", *(f"  {command}" for command in commands)))


def market_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of verbs that speak with a User Agent: --user, --state-dir, --json."""
    return user_option(state_option(json_option(command)))
