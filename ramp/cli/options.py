"""Options that many verbs share, so that they are named and explained alike, and how a shell completes their values."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from ramp.cli.views.output import JSON
from ramp.client.times import duration_of, moment_of
from ramp.errors import RampError
from ramp.model.instant import Instant, local_iso
from ramp.model.money import credits_of
from ramp.model.request import NUMBER_MAX
from ramp.runtime.state_folder import STATE_VARIABLE, StateFolder, state_folder

if TYPE_CHECKING:
    from ramp.client.market import Market
    from ramp.control.events import RequestStanding

T = TypeVar("T")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


COMPLETION_LIMIT_S: Final = 1.0
"""How long a shell waits for a market, in seconds."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Found = Iterable[tuple[str, str]]
"""Values, each with a word about it."""


def complete_agents(role: str = "") -> Complete:
    """Complete the local names of the agents of a role, or of all."""

    def found(ctx: click.Context) -> Found:
        from ramp.client.access import running

        return [(each.name, each.role) for each in running(_state(ctx)).agents if role in ("", each.role)]

    return _completing(found)


def complete_ids(*kinds: str) -> Complete:
    """Complete ids of the user's own: `request`, `agreement`, `reservation`, `job`."""

    def found(ctx: click.Context) -> Found:
        from ramp.client.access import find_market
        from ramp.client.market import Market

        market = Market(find_market(_state(ctx), ctx.params.get("user")))
        return [each for kind in kinds for each in _IDS[kind](market)]

    return _completing(found)


def _status(standing: RequestStanding) -> str:
    return standing.stage if standing.outcome is None else standing.outcome.status


_IDS: Final[Mapping[str, Callable[[Market], Found]]] = {
    "request": lambda market: [(each.request_id, _status(each)) for each in market.requests()],
    "agreement": lambda market: [(each.agreement_id, each.state) for each in market.reservations()],
    "reservation": lambda market: [(each.reservation_id, each.state) for each in market.reservations()],
    "job": lambda market: [(each.job_id, each.state) for each in market.jobs()],
}


def _state(ctx: click.Context) -> StateFolder:
    given = ctx.params.get("state")
    return given if isinstance(given, StateFolder) else state_folder(None)


def _completing(found: Callable[[click.Context], Found]) -> Complete:
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from ramp.client.identifiers import random_part

        items: list[CompletionItem] = []
        for value, about in within(COMPLETION_LIMIT_S, lambda: list(found(ctx))) or ():
            begins = next((each for each in (value, random_part(value)) if each.startswith(incomplete)), None)
            if begins is not None:
                items.append(CompletionItem(begins, help=about))
        return items

    return complete


def within(limit_s: float, ask: Callable[[], T]) -> T | None:
    """Return what a market answers; None if that fails or takes longer than a limit in seconds."""
    found: list[T] = []

    def run() -> None:
        with contextlib.suppress(RampError, OSError):
            found.append(ask())

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(limit_s)
    return found[0] if found else None


def _take_json(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    if given:
        ctx.meta[JSON] = given


state_option: Final[Decorator] = click.option(
    "--state-dir",
    "state",
    type=click.Path(file_okay=False, path_type=Path),
    callback=lambda _, __, path: state_folder(path),
    help=f"Folder of the market's state (default: ${STATE_VARIABLE}, or ~/.local/state/ramp).",
)
json_option: Final[Decorator] = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_take_json,
    help="Print JSON: times in ISO 8601 UTC, amounts in credits as exact decimal strings, durations in seconds.",
)
csv_option: Final[Decorator] = click.option(
    "--csv", "as_csv", is_flag=True, help="Print CSV with a header: times in ISO 8601 UTC, amounts in credits."
)
user_option: Final[Decorator] = click.option(
    "--user",
    metavar="NAME",
    shell_complete=complete_agents("user"),
    help="User to act as (default: the first of the running market).",
)
file_type: Final = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
existing_file_type: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
output_type: Final = click.Path(dir_okay=False, path_type=Path)
folder_type: Final = click.Path(file_okay=False, path_type=Path)


class WholeNumber(click.IntRange):
    """A whole number within bounds, and never above those of requests."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found: int = super().convert(value, param, ctx)
        if abs(found) > NUMBER_MAX:
            self.fail(f"got {found}, expected at most {NUMBER_MAX}", param, ctx)
        return found

    def _describe_range(self) -> str:
        return "" if self.min is self.max is None else super()._describe_range()


class RealNumber(click.FloatRange):
    """A finite number within bounds."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"got {value!r}, expected a finite number", param, ctx)
        return found

    def _describe_range(self) -> str:
        return "" if self.min is self.max is None else super()._describe_range()


class ReadAs(click.ParamType[T]):
    """A text that a function reads; the function raises `ValueError` for an invalid one."""

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name = name
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # it was read before
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _moment(text: str) -> Instant:
    from ramp.runtime.clock import SystemClock

    return moment_of(text, SystemClock().now())


credits_type: Final = ReadAs("credits", credits_of)
"""An amount on the command line, above 0: credits, in minor units afterwards."""

duration_type: Final = ReadAs("duration", partial(duration_of, zero=False))
"""A duration on the command line, above 0, in microseconds."""

duration_or_zero_type: Final = ReadAs("duration", duration_of)
moment_type: Final = ReadAs("moment", _moment)
"""A moment on the command line: instant in microseconds."""

start_probability_option: Final[Decorator] = click.option(
    "--start-probability",
    type=RealNumber(0, 1, min_open=True),
    metavar="SHARE",
    help="Buy a job in a queue, too, if it starts early enough with at least this probability, such as .95; it is paid "
    "when it has started, else all money goes back (default: a reserved slot only).",
)
site_option: Final[Decorator] = click.option(
    "--site",
    "sites",
    multiple=True,
    metavar="NAME",
    help="Only resources of this site, the domain of their names; repeatable (default: any).",
)

EXITS: Final = "0 done; 1 refused, failed, or no market is running; 2 bad input; 130 interrupted"


def example(*commands: str, exits: str = EXITS) -> str:
    """Make the end of a verb's help: exit codes, and commands to try, each on a line of its own."""
    examples = "\n".join(("\b", "Example:", *(f"  {command}" for command in commands)))
    return f"\b\nExit codes: {exits}\n\n{examples}"


def check_period(since: Instant | None, until: Instant | None) -> None:
    """Refuse a period that ends before it begins."""
    if since is not None and until is not None and since > until:
        raise click.UsageError(f"--since must be before --until: got {local_iso(since)} and {local_iso(until)}")


def together(*options: Decorator) -> Decorator:
    """Make one decorator of several options, in the order of the help."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


state_options: Final = together(state_option, json_option)
"""The options of verbs that use a state folder."""

market_options: Final = together(user_option, state_options)
"""The options of verbs that use a User Agent."""


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
