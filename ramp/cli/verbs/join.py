"""`ramp join`: join another market with an invitation of its keeper."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ramp.cli.options import (
    example,
    existing_file_type,
    file_type,
    output_type,
    state_options,
)
from ramp.cli.verbs.launch import launching
from ramp.cli.views.output import print_object, printed_as_json, say, waiting
from ramp.client.connecting import operate
from ramp.client.launching import launch_detached
from ramp.client.swarm import status
from ramp.errors import ConfigurationError
from ramp.model.contents import EnrolmentGranted, EnrolmentRequest
from ramp.model.instant import iso
from ramp.rfql.signing import certificates
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.joining.account_tokens import AccountInvitation, read_account_invitation
from ramp.runtime.joining.invitations import TOKEN_PREFIX, Invitation, read_invitation
from ramp.runtime.joining.membership import (
    AccountPlace,
    check_configuration,
    install,
    invited_account,
    joined,
    market_account,
    not_enrolled,
    own_password,
    request_of,
    site_text,
)
from ramp.runtime.joining.requests import contents_text, read_issued
from ramp.runtime.state_folder import StateFolder


@click.command(
    epilog=example(
        "ramp join curie.invitation site.toml --request curie.request",
        "ramp join curie.invitation site.toml --certificate curie.certificate",
    )
)
@click.argument("invitation")
@click.argument("config", type=existing_file_type, required=False)
@click.option(
    "--request", type=output_type, metavar="FILE", help="Only create the key and write the request to this file."
)
@click.option("--certificate", type=file_type, metavar="FILE", help="File written by the keeper's `ramp invite sign`.")
@click.option("--fingerprint", metavar="SHA256", help="Expected fingerprint of the authority; any other is refused.")
@click.option("--account-invitation", metavar="URI|FILE",
              help="Make the XMPP account with the invitation of its server's owner: "
                   "xmpp:NAME@DOMAIN?register;preauth=TOKEN, or a file that holds it.")  # fmt: skip
@click.option(
    "--start/--no-start", default=True, show_default=True, help="Start the site's agents after all have joined."
)
@state_options
def join(
    invitation: str,
    config: Path | None,
    request: Path | None,
    certificate: Path | None,
    fingerprint: str | None,
    account_invitation: str | None,
    start: bool,
    state: StateFolder,
) -> None:
    """Join a market with INVITATION: a file, or the line printed by `ramp invite --token` (`-`: standard input).

    The private key and the XMPP password are made here and never leave this computer. CONFIG is the site's own
    configuration, with a table [site]: its server, users and resources. Without it, the party is a user with an account
    on the market's server. After all parties of the site have joined, its agents start; `ramp down` and `ramp up
    CONFIG` work as for any market.
    """
    given, now = _given(invitation), SystemClock().now()
    if fingerprint is not None and _digits(fingerprint) != _digits(given.ca_fingerprint):
        raise ConfigurationError(
            f"wrong authority: the invitation has {given.ca_fingerprint}, expected {fingerprint}; "
            "it is forged or of another market"
        )
    loaded = None if config is None else load_config(config.absolute())
    if loaded is not None:
        check_configuration(loaded, given)
    state.prepare()
    asked = request_of(state, given, now)
    if request is not None:
        write_whole(request.absolute(), contents_text(asked).encode(), private=False)
        _tell_requested(given, request)
        return
    password = _accounts(state, given, loaded, account_invitation, by_files=certificate is not None)
    issued = _issued(given, asked, certificate, password)
    made = install(state, given, issued, now)
    told: dict[str, object] = {
        "name": given.name,
        "role": given.role.value,
        "market": given.market,
        "authority_fingerprint": given.ca_fingerprint,
        "certificate": certificates.serial_text(made),
        "valid_until": iso(certificates.valid_until(made)),
    }
    path = _configuration(state, given, loaded)
    standing = _started(path, state, start=start)
    if not printed_as_json({**told, "config": None if path is None else str(path), **standing}):
        print_object(told)
        say(str(standing["standing"]))


def _digits(fingerprint: str) -> str:
    return fingerprint.lower().replace(":", "")


def _given(text: str) -> Invitation:
    if text.startswith(TOKEN_PREFIX):
        return read_invitation(text)
    if text == "-":
        return read_invitation(sys.stdin.read(), "standard input")
    return read_invitation(_read(text, "invitation"), text)


def _read(path: str, what: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the {what} cannot be read: {error}", path=path) from error


def _tell_requested(given: Invitation, path: Path) -> None:
    if not printed_as_json({"name": given.name, "invitation": given.invitation_id, "file": str(path)}):
        text = f"{path} is the request of {given.name} and contains no secret; the keeper signs it with"
        click.echo(f"{text} `ramp invite sign`")


def _accounts(
    state: StateFolder, given: Invitation, loaded: SwarmConfig | None, account_invitation: str | None, *, by_files: bool
) -> str:
    """Make the accounts that the party has tokens for; return the password at the market's server."""
    here = market_account(given)
    token, password = given.account_token, own_password(state, here)
    if account_invitation is not None:
        uri = _uri(account_invitation)
        place = invited_account(uri, given, loaded)
        if place == here:
            token = uri.token
        else:
            _register(place, own_password(state, place), uri.token)
    if by_files and given.domain != given.market:
        return password  # nobody logs in with it
    if not token and not given.account_token_digest:
        return password  # of an account that exists at an external server
    if not token:
        raise ConfigurationError("the invitation has no account token; ask the keeper for the complete invitation")
    _register(here, password, token)
    return password


def _uri(text: str) -> AccountInvitation:
    if text.lower().startswith("xmpp:"):
        return read_account_invitation(text)
    return read_account_invitation(_read(text, "account invitation"))


def _register(place: AccountPlace, password: str, token: str) -> None:
    from ramp.agents.joining.applying import register  # brings SPADE along

    with waiting(f"registering the account {place.name}@{place.domain}"):
        register(place, password, token)


def _issued(given: Invitation, asked: EnrolmentRequest, certificate: Path | None, password: str) -> EnrolmentGranted:
    if certificate is not None:
        return read_issued(click.open_file(str(certificate)).read(), str(certificate))
    from ramp.agents.joining.applying import apply  # brings SPADE along

    with waiting(f"asking the enrolment office of {given.market}"):
        return apply(given, asked, password)


def _configuration(state: StateFolder, given: Invitation, loaded: SwarmConfig | None) -> Path | None:
    """Return the site's own configuration, or write one for users with accounts at the market's server."""
    if loaded is not None:
        return loaded.path
    guests = [each for each in joined(state).values() if each.domain == each.market and each.role.value == "user"]
    if given.without_token() not in guests:
        return None
    path = state.path / "site.toml"
    write_whole(path, site_text(guests, state).encode(), private=False)
    return path


def _started(path: Path | None, state: StateFolder, *, start: bool) -> dict[str, object]:
    """Start the site if everything is there; return the text to print."""
    if path is None:
        return {"up": False, "standing": "enrolled; `ramp up CONFIG` with the site's configuration starts its agents"}
    config = load_config(path)
    missing = not_enrolled(config, state)
    if missing:
        return {"up": False, "standing": f"still to join before the site can start: {', '.join(missing)}"}
    if not start:
        return {"up": False, "standing": f"enrolled; `ramp up {path}` starts the site"}
    if status(state) is not None:
        with waiting("adding it to the site"):
            operate(state.path).reload()
        return {"up": True, "standing": "added to the running site"}
    with launching(config) as launched:
        launch_detached(config, state, launched)
    return {"up": True, "standing": f"the site is up; `ramp down` stops it, `ramp up {path}` starts it again"}
