"""`ramp web demo`: a market with live tori, requests that keep coming, and its pages."""

from __future__ import annotations

import os
import random
import tempfile
import threading
from pathlib import Path
from typing import Final

import click

from ramp.cli.interruption import CLOSED, interrupted_by
from ramp.cli.options import WholeNumber, example
from ramp.cli.verbs.launch import launch_in_background, up_text
from ramp.cli.views.output import say, waiting
from ramp.cli.web import check_installed, serve_pages, web
from ramp.client.connecting import MarketOperator, connect
from ramp.client.request import RequestTemplate, request
from ramp.client.swarm import stop
from ramp.errors import RampError
from ramp.runtime.shipped_swarms import DEFAULT_SWARM, find_config
from ramp.runtime.state_folder import StateFolder
from ramp.web.security.address import PORT_DEFAULT, served_address

ROBOTS: Final = ("robot1", "robot2", "robot3")
"""Users that keep buying; the market's own users are the visitor's."""

ROBOT_CREDITS: Final = 1_000_000_000
"""Credits of a robot: at three hundred purchases of 15 000 credits an hour it lasts for days."""

NOTICE: Final = (
    "A demonstration: three robots keep buying time on simulated machines. "
    "Ask for some yourself; no real money is spent."
)

PAUSE_S: Final = 10.0
"""Seconds between two requests of a robot: short enough to be lively, long enough to follow."""

BUYER_END_S: Final = 1.0
"""How long a buyer is waited for once the market has ended, in seconds."""

PRICES: Final = (40, 90)
"""Range of the buyers' maximum prices in credits per core-hour, which are those of the machines of Table 2."""

CORES: Final = (16, 32, 64, 128, 256, 512)
TORI: Final = {"8x8x8": 1024, "8x8x16": 2048, "4x4x2": 512}
"""Extents that a torus of the market can serve, some of them only now and then, with all cores of their nodes."""

TORUS_SHARE: Final = 0.3
"""Share of the requests that ask for a torus."""

CANCEL_SHARE: Final = 0.3
"""Share of the purchases that are given back."""


@web.command(epilog=example("ramp web demo --open", "make demo-web"))
@click.option("--open", "open_it", is_flag=True, help="Open the first login link in a browser.")
@click.option("--port", default=PORT_DEFAULT, show_default=True, type=WholeNumber(1, 65_535), help="TCP port.")
@click.option("--config", "name", default=DEFAULT_SWARM, show_default=True, metavar="CONFIG",
              help="The market: a TOML file, or the name of one that comes with RAMP.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=WholeNumber(), help="Seed of the random requests.")
def demo(open_it: bool, port: int, name: str, seed: int) -> None:
    """Launch a market of machines and live tori with random requests, and serve its pages until Ctrl-C.

    Robots submit a request every few seconds, for single machines and tori, and cancel some of the reservations. The
    users of the market are yours: they have money and no requests.
    Ctrl-C stops everything and removes its files.
    """
    from ramp.runtime.configuration.file import load_config

    check_installed()
    address = served_address("127.0.0.1", port)
    config = load_config(find_config(name))
    visitors = [user.name for user in config.users]
    robots = [robot for robot in ROBOTS if robot not in config.roles()]
    ended, buyers = threading.Event(), []
    # after a second Ctrl-C ending processes may still use the folder
    folder = tempfile.TemporaryDirectory(prefix="ramp-web-demo-", ignore_cleanup_errors=True)
    with interrupted_by(*CLOSED), folder as path:
        state = StateFolder(Path(path) / "state")
        try:
            found = launch_in_background(config, state, parent=os.getpid())
            say(up_text(found))
            with waiting("adding the robots"):
                for robot in robots:
                    MarketOperator(state).add_user(robot, deposit=ROBOT_CREDITS)
            for user in robots:
                drawn = random.Random(f"{seed} {user}")
                buyers.append(threading.Thread(target=_buy, args=(state, user, drawn, ended), daemon=True))
                buyers[-1].start()
            serve_pages(state, address, open_it, users=visitors, notice=NOTICE)
        finally:
            ended.set()
            with waiting("stopping the market"):
                stop(state)
            for buyer in buyers:  # their last requests ended with the market
                buyer.join(BUYER_END_S)


def _buy(state: StateFolder, user: str, drawn: random.Random, ended: threading.Event) -> None:
    """Submit requests of one user, and cancel some; failures are retried later."""
    while not ended.wait(PAUSE_S * drawn.uniform(0.5, 1.5)):
        try:
            with connect(state.path, user=user) as market:
                units = [wanted(drawn) for _ in range(drawn.choice((1, 1, 2)))]
                bought = market.submit(*units, rounds=drawn.choice((3, 4, 5)))
                if bought.committed and drawn.random() < CANCEL_SHARE:
                    market.cancel(bought.request_id, "the demonstration gives it back")
        except RampError as error:
            if ended.is_set():
                return
            say(f"{user}: {error}")


def wanted(drawn: random.Random) -> RequestTemplate:
    """Draw a request."""
    price = drawn.randint(*PRICES)
    start = f"+{drawn.choice((2, 5, 10, 60))}min"
    if drawn.random() < TORUS_SHARE:
        geometry = drawn.choice(sorted(TORI))
        return request(
            cores=TORI[geometry],
            geometry=geometry,
            connection=drawn.choice(("torus", "mesh", "any")),
            wall_time="30min",
            start=start,
            slack="10h",
            price=price,
        )
    return request(
        cores=drawn.choice(CORES), wall_time=drawn.choice(("15min", "1h", "2h")), start=start, slack="6h", price=price
    )
