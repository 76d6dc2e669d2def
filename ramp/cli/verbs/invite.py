"""`ramp invite`: invitations of the market's keeper, and their states."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from ramp.cli.options import (
    WholeNumber,
    credits_type,
    example,
    file_type,
    output_type,
    state_options,
)
from ramp.cli.views.fields import AMOUNT, MOMENT, Field, Fields
from ramp.cli.views.output import print_object, printed_as_json, say, wants_json
from ramp.client.connecting import MarketOperator
from ramp.errors import ConfigurationError
from ramp.model.instant import Instant, iso
from ramp.model.money import exact_credits
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration_changes.audit_log import add_line, own_name
from ramp.runtime.joining.authority import DAYS_DEFAULT, Authority
from ramp.runtime.joining.invitations import INVITED_ROLES, Entry, Invitation, Register
from ramp.runtime.joining.requests import contents_text, read_request
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
