"""`ramp keys`: the market's certificate authority, and the keys and certificates of its parties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ramp.cli.options import WholeNumber, example, state_options
from ramp.cli.views.fields import MOMENT, Field, Fields
from ramp.cli.views.output import moment_text, print_object, printed_as_json, say, wants_json
from ramp.client.access import status
from ramp.client.connecting import operate
from ramp.control.requests import CERTIFICATE_DAYS
from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, iso
from ramp.model.seal import Role
from ramp.runtime.configuration_changes.audit_log import add_line, own_name
from ramp.runtime.state_folder import StateFolder

if TYPE_CHECKING:
    from ramp.runtime.keys.store import CertificateEntry, KeyStore

_roles = click.Choice([role.value for role in Role])
_days_option = click.option("--days", type=WholeNumber(1, 3650), default=CERTIFICATE_DAYS, show_default=True,
                            help="Validity of the certificate.")  # fmt: skip


def _fields(store: KeyStore) -> Fields[CertificateEntry]:
    return Fields(
        Field("name", "Name", lambda entry: entry.name),
        Field("role", "Role", lambda entry: entry.role),
        Field("state", "State", lambda entry: entry.state, text=_state_text),
        Field("current", "", lambda entry: entry.current),
        Field("serial", "Serial", lambda entry: entry.serial),
        Field("fingerprint", "Fingerprint", lambda entry: entry.fingerprint),
        Field("valid_from", "", lambda entry: entry.valid_from, MOMENT),
        Field("valid_until", "", lambda entry: entry.valid_until, MOMENT),
        Field("", "Valid", lambda entry: f"{moment_text(entry.valid_from)} to {moment_text(entry.valid_until)}"),
        Field("certificate", "Certificate", lambda entry: str(store.folder / "issued" / f"{entry.serial}.pem")),
    )


LISTED: Final[Fields[CertificateEntry]] = Fields(
    Field("", "Name", lambda entry: entry.name),
    Field("", "Role", lambda entry: entry.role),
    Field("", "State", lambda entry: entry.state),
    Field("", "Valid until", lambda entry: entry.valid_until, MOMENT),
    Field("", "Serial", lambda entry: entry.serial),
)


@click.group(epilog=example("ramp keys init", "ramp keys issue carol@localhost --role user", "ramp keys show"))
def keys() -> None:
    """Make, show, renew and revoke keys and certificates.

    `ramp up` makes all keys of a market on one computer. These commands are for markets on several computers, for
    renewal, and for lost keys. NAME is the address of a party's agent, such as alice@localhost. A certificate states
    the party's role: user, resource, bank, directory, keeper or enrolment.
    """


@keys.command("init")
@click.option("--market", default="RAMP market", show_default=True, metavar="NAME", help="The market's name.")
@state_options
def init(market: str, state: StateFolder) -> None:
    """Make the market's certificate authority, unless it exists."""
    from ramp.rfql.signing import certificates

    store, now = _store(state)
    existed = (store.folder / "ca").is_dir()
    certificate = store.create_ca(now, market=market)
    result = {
        "ca_file": str(store.folder / "ca.pem"),
        "subject": certificate.subject.rfc4514_string(),
        "fingerprint": certificates.fingerprint(certificate),
        "valid_until": iso(certificates.valid_until(certificate)),
    }
    if printed_as_json({"created": not existed, **result}):
        return
    say("the authority is made" if not existed else "the authority already exists; nothing was changed")
    print_object(result)


@keys.command("issue")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--role", type=_roles, required=True, help="Role of the parties.")
@_days_option
@state_options
def issue(names: tuple[str, ...], role: str, days: int, state: StateFolder) -> None:
    """Issue certificates; a valid certificate is kept."""
    store, now = _store(state)
    for name in names:
        if "@" not in name:
            raise ConfigurationError(f"invalid address: got {name!r}, expected an address such as {name}@localhost")
        store.issue(name, Role(role), now, lifetime=days * DAY)
    _print_entries(store, now, names)


@keys.command("show")
@click.argument("name", required=False)
@click.option("--all", "show_all", is_flag=True, help="Without NAME: also certificates that are no longer in use.")
@state_options
def show(name: str | None, show_all: bool, state: StateFolder) -> None:
    """List the certificates that were issued here, or show those of one party in full."""
    store, now = _store(state)
    if name is None:
        entries = [entry for entry in store.inventory(now) if show_all or entry.current]
        fields = _fields(store) if wants_json() else LISTED
        fields.print_list(entries, empty="No certificates")
        return
    _print_entries(store, now, (_full_name(store, name, now),))


@keys.command("renew")
@click.argument("name")
@click.option("--new-key", is_flag=True, help="Also create a new key; needed after a revocation.")
@_days_option
@state_options
def renew(name: str, new_key: bool, days: int, state: StateFolder) -> None:
    """Give a party a new certificate, by default for its present key; a running agent uses it at once."""
    store, now = _store(state)
    full_name = _full_name(store, name, now)
    if _runs(state, full_name):
        local = full_name.partition("@")[0]
        lines = operate(state.path).renew_keys(local, new_key=new_key, days=days).lines
        for line in lines:
            (say if wants_json() else click.echo)(line.text)
        _print_entries(store, now, (full_name,))
        return
    store.renew(full_name, now, new_key=new_key, lifetime=days * DAY)
    what = f"{full_name} has a new certificate"
    add_line(state, now, own_name(), "keys renew", full_name, what)
    (say if wants_json() else click.echo)(what)
    _print_entries(store, now, (full_name,))
    say("no agent of this name is running")


@keys.command("revoke")
@click.argument("name")
@click.option("--reason", default="", metavar="TEXT", help="Reason in the revocation list.")
@state_options
def revoke(name: str, reason: str, state: StateFolder) -> None:
    """Revoke all certificates of a party; its key is not trusted any more, for old signatures either."""
    store, now = _store(state)
    full_name = _full_name(store, name, now)
    revoked = store.revoke(full_name, now, reason)
    if revoked:
        what = f"{full_name}: {len(revoked)} revoked{reason and f': {reason}'}"
        add_line(state, now, own_name(), "keys revoke", full_name, what)
    if printed_as_json([{"name": line.name, "serial": line.serial, "reason": line.reason} for line in revoked]):
        return
    if revoked:
        for line in revoked:
            click.echo(f"{line.name}: certificate {line.serial} is revoked")
    else:
        say(f"{full_name}: everything was revoked before")


def _runs(state: StateFolder, full_name: str) -> bool:
    local, _, domain = full_name.partition("@")
    found = status(state)
    return found is not None and found.agent(local) is not None and found.domain == domain


def _store(state: StateFolder) -> tuple[KeyStore, int]:
    from ramp.runtime.clock import SystemClock
    from ramp.runtime.keys.store import KeyStore

    return KeyStore(state.keys), SystemClock().now()


def _full_name(store: KeyStore, name: str, now: int) -> str:
    """Return an address, given whole or by a local name that is unique."""
    known = sorted({entry.name for entry in store.inventory(now)})
    if name in known:
        return name
    found = [address for address in known if address.partition("@")[0] == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigurationError(f"{name!r} is ambiguous: it matches {' or '.join(found)}")
    raise ConfigurationError(f"no certificate was issued for {name!r}; list all with `ramp keys show --all`")


def _print_entries(store: KeyStore, now: int, names: tuple[str, ...]) -> None:
    """Print certificates by name, each party's current one first, then the newest."""
    entries = [entry for entry in store.inventory(now) if entry.name in names]
    entries.sort(key=lambda entry: (entry.name, not entry.current, -entry.valid_from))
    if printed_as_json([_fields(store).plain(entry) for entry in entries]):
        return
    for number, entry in enumerate(entries):
        if number:
            click.echo()
        _fields(store).print_pairs(entry)


def _state_text(entry: CertificateEntry) -> str:
    if entry.current:
        return entry.state
    return "replaced" if entry.state == "valid" else f"replaced, {entry.state}"
