"""A market with an authority that invites; times are fixed."""

from dataclasses import dataclass
from pathlib import Path

from ramp.model.instant import DAY, Instant, from_iso
from ramp.model.seal import Role
from ramp.runtime.joining.authority import Authority
from ramp.runtime.joining.invitations import Invitation
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder

NOW = from_iso("2026-11-21T08:00:00Z")
NAME = "curie@south.example"


def draft(name: str = NAME, role: Role = Role.RESOURCE, *, certifies_server: bool = False) -> Invitation:
    return Invitation(
        invitation_id="",
        name=name,
        role=role,
        ends_at=NOW + 7 * DAY,
        market="west.example",
        servers=("192.0.2.1:5222",),
        server_ca="",
        ca="",
        enrolment="enrolment",
        bank="bank",
        directory="directory",
        directories=1,
        keeper="keeper",
        account="",
        certifies_server=certifies_server,
        signed_offers=True,
        secret="",
    )


@dataclass
class Market:
    """The keeper's side."""

    state: StateFolder
    keys: KeyStore
    authority: Authority

    def invite(self, name: str = NAME, role: Role = Role.RESOURCE, *, certifies_server: bool = False) -> Invitation:
        return self.authority.invite(draft(name, role, certifies_server=certifies_server), NOW)


def market_in(folder: Path, now: Instant = NOW) -> Market:
    state = StateFolder(folder)
    keys = KeyStore(state.keys)
    keys.create_ca(now)
    return Market(state, keys, Authority(state))
