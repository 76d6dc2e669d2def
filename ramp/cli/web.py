"""`ramp web`: the market in a browser, the links that sign in to it, and a demonstration that keeps trading."""

from __future__ import annotations

import importlib.util
import logging
import os
import random
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from ramp.cli.connection import CLOSED, interrupted_by
from ramp.cli.options import WholeNumber, example, file_type, folder_type, state_options, user_option
from ramp.cli.verbs.launch import launch_in_background, up_text
from ramp.cli.views.output import printed_as_json, say, waiting, wants_json
from ramp.client.access import find_market, running
from ramp.client.connecting import MarketOperator, connect
from ramp.client.request import RequestTemplate, request
from ramp.client.swarm import stop
from ramp.errors import ConfigurationError, NoMarket, RampError
from ramp.model.seal import Role
from ramp.runtime.logs import log_to_stderr
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.shipped_files import DEFAULT_SWARM, find_config
from ramp.web.security.address import PORT_DEFAULT, ServedAddress, served_address
from ramp.web.security.sessions import Sessions

OPENER: Final = """<!doctype html>
<meta charset="utf-8"><title>RAMP</title><meta http-equiv="refresh" content="0;url={link}">
"""
"""A page that leads to a login link: on a browser's command line everybody on this computer could read it."""

SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Environment variables that name a screen or a browser; without one no page is opened."""

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


@click.group(
    invoke_without_command=True,
    epilog=example(
        "ramp web --open                # serve, and open the first user's pages",
        "ramp web --link --user bob     # a login link for bob, while it is served",
        "ramp web --results results     # with the experiments whose results are there",
        "ramp web --openid openid.toml  # with the accounts of a site, by OpenID Connect",
    ),
)
@click.option("--open", "open_it", is_flag=True, help="Open the first login link in a browser.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; other than loopback only with TLS."
)
@click.option("--port", default=PORT_DEFAULT, show_default=True, type=WholeNumber(1, 65_535), help="TCP port.")
@click.option("--name", help="Host name in links, if not --host.")
@click.option("--tls-certificate", type=click.Path(path_type=Path), help="Certificate with its chain, PEM file.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Private key of the certificate, PEM file.")
@click.option("--results", type=folder_type, metavar="DIR",
              help="Folder of experiment results and traces [default: results in the state folder].")  # fmt: skip
@click.option("--openid", type=file_type, metavar="FILE",
              help="Also sign in by OpenID Connect: TOML file with the provider and its accounts.")  # fmt: skip
@click.option("--link", is_flag=True, help="Only print a login link to the pages that are served; good once.")
@user_option
@click.option("--keeper", is_flag=True, help="With --link: for the market's keeper.")
@state_options
@click.pass_context
def web(
    ctx: click.Context,
    open_it: bool,
    host: str,
    port: int,
    name: str | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    results: Path | None,
    openid: Path | None,
    link: bool,
    user: str | None,
    keeper: bool,
    state: StateFolder,
) -> None:
    """Serve the pages of the running market until Ctrl-C.

    A login link is printed for every user and for the market's keeper. Each works once and expires after 15 minutes. A
    session belongs to one user, and that user's agent signs. The market may stop and start meanwhile.

    The laboratory pages show results of `ramp experiment run ... --out DIR` and traces of `ramp simulate ... --trace
    DIR/NAME.jsonl`. The keeper can run experiments there; a run ends with the server.
    """
    if ctx.invoked_subcommand is not None:
        return
    check_installed()
    if link:
        _print_link(user, keeper=keeper, state=state)
        return
    if user is not None or keeper or wants_json():
        raise click.UsageError("--user, --keeper and --json need --link")
    address = served_address(host, port, name=name, certificate=tls_certificate, key=tls_key)
    serve_pages(state, address, open_it, results, openid=openid)


def serve_pages(
    state: StateFolder,
    address: ServedAddress,
    open_it: bool,
    results: Path | None = None,
    *,
    users: Sequence[str] = (),
    notice: str = "",
    openid: Path | None = None,
) -> None:
    """Serve the pages of the running market until they are ended; print login links for `users` (default: all)."""
    from ramp.web.server import serve
    from ramp.web.site import Site

    found = running(state)
    sessions = Sessions(state.web_sessions)
    served = []

    def ready() -> None:
        write_private(state.web_address, address.url)
        served.append(address.url)
        links = [(who, _link(sessions, address.url, who, Role.USER)) for who in users or found.names("user")]
        links += [(f"{who} (keeper)", _link(sessions, address.url, who, Role.KEEPER)) for who in found.names("keeper")]
        say(f"The market's pages are at {address.url}; Ctrl-C ends them. Login links, each good once, for 15 minutes:")
        for who, printed in links:
            click.echo(f"{who}: {printed}")
        sys.stdout.flush()
        if open_it and links:
            write_private(state.web_opener, OPENER.format(link=links[0][1]))
            _open_browser(state.web_opener.as_uri())

    log_to_stderr(logging.WARNING, "ramp web: %(name)s: %(message)s")
    try:
        serve(Site(state, sessions, results, notice), address, openid, ready)
    finally:
        sessions.close()
        if _served_at(state) in served:  # it may be another server's
            for path in (state.web_address, state.web_opener):
                path.unlink(missing_ok=True)


def _open_browser(address: str) -> None:
    """Open a page in a graphical browser, without waiting for it; a text browser would take the terminal."""
    if sys.platform == "darwin" or any(os.environ.get(each) for each in SCREENS):
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    else:
        say("No browser is available here; open one of the links on a computer that has one")


def _print_link(user: str | None, *, keeper: bool, state: StateFolder) -> None:
    """Print a login link to the pages that are served; it is good once and for fifteen minutes."""
    if user is not None and keeper:
        raise click.UsageError("--user and --keeper exclude each other")
    url = _served_at(state)
    if url is None:
        raise NoMarket("no web server is running with this state folder; start one with `ramp web`")
    role = Role.KEEPER if keeper else Role.USER
    who = running(state).names("keeper")[0] if keeper else find_market(state, user).user
    with closing(Sessions(state.web_sessions)) as sessions:
        found = _link(sessions, url, who, role)
    if not printed_as_json({"name": who, "role": role.value, "link": found}):
        click.echo(found)


def _served_at(state: StateFolder) -> str | None:
    try:
        return state.web_address.read_text("ascii")
    except FileNotFoundError:
        return None


def _link(sessions: Sessions, url: str, name: str, role: Role) -> str:
    return f"{url}/login?token={sessions.issue_link(name, role)}"


def check_installed() -> None:
    """Raise a `ConfigurationError` that says how to install the extra `web`, if it is missing."""
    for module, package in (("nicegui", "nicegui"), ("prometheus_client", "prometheus-client"), ("authlib", "authlib")):
        if importlib.util.find_spec(module) is None:
            raise ConfigurationError(
                f"`ramp web` needs the package {package}; pip install 'ramp-market[web]' brings it"
            )


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
