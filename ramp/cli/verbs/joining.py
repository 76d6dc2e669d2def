"""`ramp invite`: invitations of the market's keeper, and their states; `ramp join`: joining a market with one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from ramp.cli.options import (
    WholeNumber,
    credits_type,
    example,
    existing_file_type,
    file_type,
    output_type,
    state_options,
)
from ramp.cli.verbs.launch import launching
from ramp.cli.views.fields import AMOUNT, MOMENT, Field, Fields
from ramp.cli.views.output import print_object, printed_as_json, say, waiting, wants_json
from ramp.client.access import status
from ramp.client.connecting import MarketOperator, launch_detached, operate
from ramp.errors import ConfigurationError
from ramp.model.contents import EnrolmentGranted, EnrolmentRequest
from ramp.model.instant import Instant, iso
from ramp.model.money import exact_credits
from ramp.rfql.signing import certificates
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.configuration_changes.audit_log import add_line, own_name
from ramp.runtime.joining.account_tokens import AccountInvitation, read_account_invitation
from ramp.runtime.joining.authority import DAYS_DEFAULT, Authority
from ramp.runtime.joining.invitations import INVITED_ROLES, TOKEN_PREFIX, Entry, Invitation, Register, read_invitation
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
from ramp.runtime.joining.requests import contents_text, read_issued, read_request
from ramp.runtime.state_folder import StateFolder


def _fields(now: Instant) -> Fields[Entry]:
    return Fields(
        Field("invitation", "", lambda entry: entry.invitation.invitation_id),
        Field("name", "Name", lambda entry: entry.invitation.name),
        Field("role", "Role", lambda entry: entry.invitation.role.value),
        Field("state", "State", lambda entry: entry.state(now)),
        Field("invited_at", "Invited", lambda entry: entry.made_at, MOMENT),
        Field("ends_at", "Ends", lambda entry: entry.invitation.ends_at, MOMENT),
        Field("", "Invitation", lambda entry: entry.invitation.invitation_id),
        Field("certifies_server", "", lambda entry: entry.invitation.certifies_server),
        Field("account_token", "", lambda entry: bool(entry.invitation.account_token_digest)),
        Field("deposit", "", lambda entry: entry.deposit, AMOUNT),
        Field("overdraft", "", lambda entry: entry.credit_limit, AMOUNT),
        Field("enrolled_at", "", lambda entry: entry.grant and entry.grant.granted_at, MOMENT),
        Field("revoked_at", "", lambda entry: entry.revoked_at, MOMENT),
        Field("reason", "", lambda entry: entry.reason),
    )


class InviteGroup(click.Group):
    """Invites where no other verb is named: `ramp invite --role user NAME`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take arguments that begin with an option or a party's name as those of `make`."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=InviteGroup,
    epilog=example(
        "ramp invite --role resource curie@south.example",
        "ramp invite list",
        "ramp invite sign curie.request -o curie.certificate",
        'ramp invite revoke curie@south.example --reason "left the project"',
    ),
)
def invite() -> None:
    """Invite a party of another site into the market, and list invitations.

    `ramp invite --role ROLE NAME` makes one (`ramp invite make --help`). An invitation is good for one key:
    any reader can use it, so hand it over like a password, and compare the authority's fingerprint by telephone.
    """


@invite.command("make", epilog=example("ramp invite --role user ann@north.example --deposit 5000 -o ann.invitation"))
@click.argument("name")
@click.option(
    "--role", type=click.Choice([role.value for role in INVITED_ROLES]), required=True, help="Role of the new party."
)
@click.option(
    "--days", type=WholeNumber(1, 365), default=DAYS_DEFAULT, show_default=True, help="Validity of the invitation."
)
@click.option("--deposit", type=credits_type, metavar="CREDITS", help="Opening credit of its bank account.")
@click.option(
    "--overdraft", type=credits_type, metavar="CREDITS", help="Credit limit: how far below 0 its balance may go."
)
@click.option("--server/--no-server", "server", default=None,
              help="Also certify the site's XMPP server (default: for the first party of a domain).")  # fmt: skip
@click.option("-o", "--output", type=output_type, metavar="FILE",
              help="File of the invitation (default: NAME.invitation).")  # fmt: skip
@click.option("--token", is_flag=True, help="Print the invitation as one line; write no file.")
@state_options
def make(
    name: str,
    role: Literal["user", "resource"],
    days: int,
    deposit: int | None,
    overdraft: int | None,
    server: bool | None,
    output: Path | None,
    token: bool,
    state: StateFolder,
) -> None:
    """Invite NAME, the full name of a party: agent@site.example, or an account at the market's own domain.

    The invitation fixes the name, the role and the end date. It tells where the market is and pins its authority. The
    bank opens the account when the certificate is issued. Only a user has a deposit or an overdraft.
    """
    made = MarketOperator(state).invite(
        name,
        role,
        days=days,
        deposit=exact_credits(deposit or 0),
        overdraft=exact_credits(overdraft or 0),
        server=server,
    )
    path = None if token else output or Path(f"{name}.invitation")
    if path is not None:
        try:
            write_whole(path.absolute(), made.text().encode(), private=True)
        except OSError as error:
            remedy = f"run `ramp invite revoke {made.name}`, then invite again with another --output"
            raise ConfigurationError(f"cannot be written: {error.strerror}; {remedy}", path=path) from error
    _tell_made(made, path)


def _tell_made(made: Invitation, path: Path | None) -> None:
    told = {
        "invitation": made.invitation_id,
        "name": made.name,
        "role": made.role.value,
        "ends_at": iso(made.ends_at),
        "certifies_server": made.certifies_server,
        "account_token": bool(made.account_token_digest),
        "authority_fingerprint": made.ca_fingerprint,
    }
    if path is None and not wants_json():
        click.echo(made.token())
    else:
        place = {"file": None, "token": made.token()} if path is None else {"file": str(path), "token": None}
        print_object({**told, **place})
    if path is not None:
        say(f"{path} contains a secret: the first to use it joins as {made.name}")


@invite.command("list")
@state_options
def list_command(state: StateFolder) -> None:
    """List invitations: open, enrolled, expired or revoked."""
    now = SystemClock().now()
    entries = list(Register(state.invitations).entries().values())
    _fields(now).print_list(entries, empty="No invitations")


@invite.command("sign", epilog=example("ramp invite sign curie.request -o curie.certificate"))
@click.argument("request", type=file_type)
@click.option("-o", "--output", type=output_type, required=True, metavar="FILE",
              help="File of the certificate; it contains no secret.")  # fmt: skip
@state_options
def sign(request: Path, output: Path, state: StateFolder) -> None:
    """Issue the certificate for a request of `ramp join INVITATION --request FILE`.

    No market needs to run, so the state folder with the authority's key may be on a computer without a network. The
    same request gets the same certificate again.
    """
    now = SystemClock().now()
    asked = read_request(click.open_file(str(request)).read(), str(request))
    authority = Authority(state)
    issued = authority.issue(asked, now)
    entry = authority.register.entries()[asked.invitation_id]
    name = entry.invitation.name
    write_whole(output.absolute(), contents_text(issued).encode(), private=False)
    add_line(state, now, own_name(), "invite sign", name, f"{name} is enrolled ({asked.invitation_id})")
    if not printed_as_json({**_fields(now).plain(entry), "file": str(output)}):
        click.echo(f"{name} is enrolled as {entry.invitation.role}; {output} is for `ramp join --certificate`")


@invite.command("revoke")
@click.argument("invited", metavar="NAME")
@click.option("--reason", default="", metavar="TEXT", help="Reason shown to the party.")
@state_options
def revoke(invited: str, reason: str, state: StateFolder) -> None:
    """Revoke the invitation NAME (a name or an id) and the certificate that was issued on it.

    This market rejects the party at once, other sites with their next revocation list. The bank account stays, with its
    balance.
    """
    now = SystemClock().now()
    revoked = Authority(state).revoke(invited, now, reason)
    for entry in revoked:
        why = f": {reason}" if reason else ""
        add_line(
            state, now, own_name(), "invite revoke", entry.invitation.name, f"{entry.invitation.name} is revoked{why}"
        )
    if not printed_as_json([_fields(now).plain(entry) for entry in revoked]):
        for entry in revoked:
            what = "invitation" if entry.grant is None else "invitation and certificate"
            click.echo(f"{entry.invitation.name}: {what} revoked")
    if not revoked:
        say(f"{invited}: everything was revoked before")


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
