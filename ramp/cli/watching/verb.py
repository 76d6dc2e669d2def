"""`ramp watch`: events of the running market, drawn at a terminal, otherwise one line an event."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Collection, Coroutine
from typing import Final

import click

from ramp.cli.options import RealNumber, example, state_options
from ramp.cli.views.visible import console
from ramp.cli.watching.stream import KINDS, Lines, Seen, watch_market
from ramp.client.access import running
from ramp.runtime.state_folder import StateFolder

FRAMES_A_SECOND: Final = 4
"""How often the screen is drawn anew."""


@click.command(
    epilog=example(
        "ramp watch",
        "ramp watch --only auctions --only machines --for 60",
        "ramp watch --json --only auctions > auctions.jsonl",
        exits="0 ended by Ctrl-C or --for; 1 no market is running; 2 bad input",
    )
)
@click.option("--only", type=click.Choice(KINDS), multiple=True, help="Kind of event to show; repeatable.")
@click.option("--for", "seconds", type=RealNumber(min=0, min_open=True), metavar="SECONDS", help="End after this time.")
@state_options
def watch(only: tuple[str, ...], seconds: float | None, state: StateFolder, as_json: bool) -> None:
    """Watch the market: auctions with rounds and leaders, machines, agents, and the log of its events.

    Shows the requests of all users, as the market's owner may. A terminal shows a live picture until Ctrl-C; elsewhere
    each event is a line, with --json an object. For earlier auctions and events see `ramp status` and `ramp events`.
    Lines of machines and agents show changes.
    """
    running(state)
    kinds = only or KINDS
    work = _draw(state, kinds) if sys.stdout.isatty() and not as_json else _print(state, kinds, as_json=as_json)
    asyncio.run(_until_ended(work, seconds))


async def _print(state: StateFolder, kinds: Collection[str], *, as_json: bool) -> None:
    seen: asyncio.Queue[Seen] = asyncio.Queue()
    lines = Lines()

    async def write() -> None:
        while True:
            for line in lines.take(await seen.get()):
                if line.kind in kinds:
                    click.echo(json.dumps(line.plain, ensure_ascii=False) if as_json else line.sentence)

    await asyncio.gather(watch_market(state, seen.put_nowait), write())


async def _draw(state: StateFolder, kinds: Collection[str]) -> None:
    from rich.live import Live

    from ramp.cli.watching.screen import Board, Screen

    board = Board()

    async def draw() -> None:
        while True:
            live.refresh()
            await asyncio.sleep(1 / FRAMES_A_SECOND)

    with Live(Screen(board, kinds), console=console(), screen=True, auto_refresh=False) as live:
        await asyncio.gather(watch_market(state, board.take), draw())


async def _until_ended(work: Coroutine[None, None, None], seconds: float | None) -> None:
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError, TimeoutError):
        async with asyncio.timeout(seconds):
            await task
