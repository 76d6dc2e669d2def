"""`ramp web`: the market in a browser, and the links that sign in to it."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ramp.cli.options import WholeNumber, example, file_type, folder_type, state_options, user_option
from ramp.cli.views.output import print_json, say
from ramp.client.access import running
from ramp.control.status import SwarmStatus
from ramp.errors import ConfigurationError, NoMarket
from ramp.runtime.logs import log_to_stderr
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.web.security.address import PORT_DEFAULT, ServedAddress, served_address
from ramp.web.security.sessions import Role, Sessions

OPENER: Final = """<!doctype html>
<meta charset="utf-8"><title>RAMP</title><meta http-equiv="refresh" content="0;url={link}">
"""
"""A page that leads to a login link: on a browser's command line everybody on this computer could read it."""

SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Environment variables that name a screen or a browser; without one no page is opened."""


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
    as_json: bool,
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
        _print_link(user, keeper=keeper, state=state, as_json=as_json)
        return
    if user is not None or keeper or as_json:
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
    """Serve the pages of the market that runs until they are ended, and print the login links.

    Args:
        state: the market's state folder.
        address: of the pages.
        open_it: whether to open the first link in a browser.
        results: folder of results of experiments.
        users: those who get a login link; by default all.
        notice: one line on the first page.
        openid: file of a provider of OpenID Connect.
    """
    from ramp.web.server import serve
    from ramp.web.site import Served

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
        serve(Served(state, sessions, address, results, notice, openid), ready)
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


def _print_link(user: str | None, *, keeper: bool, state: StateFolder, as_json: bool) -> None:
    """Print a login link to the pages that are served; it is good once and for fifteen minutes."""
    if user is not None and keeper:
        raise click.UsageError("--user and --keeper exclude each other")
    url = _served_at(state)
    if url is None:
        raise NoMarket("no web server is running with this state folder; start one with `ramp web`")
    role = Role.KEEPER if keeper else Role.USER
    who = _named(running(state), user, role)
    sessions = Sessions(state.web_sessions)
    try:
        found = _link(sessions, url, who, role)
    finally:
        sessions.close()
    if as_json:
        print_json({"name": who, "role": role.value, "link": found})
    else:
        click.echo(found)


def _served_at(state: StateFolder) -> str | None:
    try:
        return state.web_address.read_text("ascii")
    except FileNotFoundError:
        return None


def _named(found: SwarmStatus, user: str | None, role: Role) -> str:
    names: Sequence[str] = found.names(role.value)
    if user is None and names:
        return names[0]
    if user not in names:
        raise ConfigurationError(f"unknown {role.value} {user!r}: expected one of {', '.join(names)}", key="--user")
    assert user is not None
    return user


def _link(sessions: Sessions, url: str, name: str, role: Role) -> str:
    return f"{url}/login?token={sessions.issue_link(name, role)}"


def check_installed() -> None:
    """Raise a `ConfigurationError` that says how to install the extra `web`, if it is missing."""
    for module, package in (("nicegui", "nicegui"), ("prometheus_client", "prometheus-client"), ("authlib", "authlib")):
        if importlib.util.find_spec(module) is None:
            raise ConfigurationError(
                f"`ramp web` needs the package {package}; pip install 'ramp-market[web]' brings it"
            )
