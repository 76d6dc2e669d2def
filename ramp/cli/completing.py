"""Completion of ids and names in a shell: what the running market has; nothing where none answers at once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from ramp.errors import RampError
from ramp.runtime.state_folder import StateFolder, state_folder

if TYPE_CHECKING:
    from ramp.client.market import Market
    from ramp.control.events import RequestStanding

LIMIT_S: Final = 1.0
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

        def ask() -> None:
            with contextlib.suppress(RampError, OSError):
                for value, about in found(ctx):
                    begins = next((each for each in (value, random_part(value)) if each.startswith(incomplete)), None)
                    if begins is not None:
                        items.append(CompletionItem(begins, help=about))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(LIMIT_S)
        return list(items)

    return complete
