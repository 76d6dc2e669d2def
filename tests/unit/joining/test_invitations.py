"""Invitations, void when anything in them was changed; tokens with which those invited make their accounts."""

import hashlib
import hmac
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY
from ramp.model.seal import Role
from ramp.runtime.joining.account_tokens import (
    AccountInvitation,
    AccountToken,
    draw_token,
    read_account_invitation,
    token_digest,
)
from ramp.runtime.joining.invitations import TOKEN_PREFIX, Invitation, Register, proof, read_invitation
from ramp.runtime.joining.membership import install, invited_account, market_account, own_password, request_of
from ramp.runtime.state_folder import StateFolder
from tests.tiny_market import config_of
from tests.unit.joining.inviting_market import NOW, Market, draft, market_in


def test_is_read_again_as_file_and_as_one_line(market: Market) -> None:
    made = market.invite()
    assert read_invitation(made.text()) == made
    assert read_invitation(f"  {made.token()}\n") == made
    assert "\n" not in made.token()
    assert made.ca_fingerprint == _fingerprint(made.ca)


def _fingerprint(pem: str) -> str:
    """SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` has it, by the standard library."""
    import ssl

    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest().hex(":")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "bank@south.example"},
        {"role": "user"},
        {"ends_at": "2036-11-21T08:00:00Z"},
        {"servers": ["203.0.113.66:5222"]},
        {"secret": "00" * 32},
        {"bank": "mallory"},
        {"signed_offers": False},
        {"certifies_server": True},
        {"server_ca": "another"},
        {"directories": 2},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_part_voids_it(market: Market, change: dict[str, object]) -> None:
    plain = json.loads(market.invite().text())
    with pytest.raises(ConfigurationError, match="forged, or a part of it was changed"):
        read_invitation(json.dumps(plain | change), "curie.invitation")


def test_a_forgery_of_another_authority_does_not_open_the_market(market: Market, tmp_path: Path) -> None:
    """Whoever makes up an authority can make an invitation that reads well; its fingerprint is another, and the market
    knows neither its id nor its secret (`test_authority`)."""
    genuine, forged = market.invite(), market_in(tmp_path / "other").invite()
    assert read_invitation(forged.text()).ca_fingerprint != genuine.ca_fingerprint
    mixed = json.loads(forged.text()) | {"ca": genuine.ca}
    with pytest.raises(ConfigurationError, match="forged"):
        read_invitation(json.dumps(mixed))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "invalid invitation"),
        ("[]", "not a JSON object of version 1"),
        ('{"version": 9}', "not a JSON object of version 1"),
        ('{"version": 1}', "is missing"),
        ('{"version": 1, "colour": "red"}', "colour: unknown"),
        (TOKEN_PREFIX + "====", "invalid invitation"),
        (TOKEN_PREFIX + "AAAA", "invalid invitation"),
        ("x" * 70_000, "70000 characters"),
    ],
)
def test_what_is_none_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as refused:
        read_invitation(text, "a.invitation")
    assert str(refused.value).startswith("a.invitation: ")


@pytest.mark.parametrize("key", ["name", "role", "ends_at", "secret", "servers", "directories", "ca", "signature"])
def test_every_part_has_its_kind(market: Market, key: str) -> None:
    plain = json.loads(market.invite().text())
    for wrong in (7.5, None, [1], {}):
        with pytest.raises(ConfigurationError):
            read_invitation(json.dumps(plain | {key: wrong}))


def test_the_secret_is_in_nothing_that_travels(market: Market) -> None:
    made = market.invite()
    assert proof(made.secret, b"part") == hmac.new(bytes.fromhex(made.secret), b"part", hashlib.sha256).hexdigest()


def test_an_invited_name_is_not_invited_again(market: Market) -> None:
    market.invite()
    with pytest.raises(ConfigurationError, match=r"invited already \(open\)"):
        market.invite()
    later = replace(draft(), ends_at=NOW - 1)
    market.authority.revoke("curie@south.example", NOW, "mistake")
    assert market.authority.invite(later, NOW - 2).name == "curie@south.example"


NAME = "curie@south.example"
GUEST = "dora@west.example"


def invite(market: Market, name: str = NAME) -> Invitation:
    return market.authority.invite(replace(drafted(name), account_token=draw_token()), NOW)


def drafted(name: str) -> Invitation:
    """Who is of the market's own domain has an account of his name there; all others one to enrol with."""
    local, _, domain = name.partition("@")
    return replace(draft(name, Role.USER), account=local if domain == "west.example" else "")


def tokens(market: Market, now: int = NOW) -> dict[str, AccountToken | None]:
    return Register(market.state.invitations).account_tokens(now)


def test_tokens_differ_and_a_digest_is_sha_256() -> None:
    drawn = {draw_token() for _ in range(100)}
    assert len(drawn) == 100
    assert min(map(len, drawn)) >= 32  # 192 bits in base64
    assert token_digest("abc") == hashlib.sha256(b"abc").hexdigest()


def test_the_token_is_in_the_invitation_and_in_nothing_that_is_kept(market: Market, site: StateFolder) -> None:
    made = invite(market)
    assert read_invitation(made.text()) == made
    assert read_invitation(made.token()) == made
    assert token_digest(made.account_token) == made.account_token_digest
    assert made.account_token not in market.state.invitations.read_text("utf-8")
    install(site, made, market.authority.issue(request_of(site, made, NOW), NOW), NOW)
    kept = [path.read_bytes() for path in site.path.rglob("*") if path.is_file()]
    assert len(kept) > 3
    assert not any(made.account_token.encode() in each for each in kept)


def test_the_signature_covers_it(market: Market) -> None:
    plain = json.loads(invite(market).text())
    for change in (
        {"account_token": "another"},
        {"account_token": "another", "account_token_digest": token_digest("another")},
        {"account_token_digest": token_digest("another")},
        {"account_token": 7},
        {"account_token_digest": ""},
    ):
        with pytest.raises(ConfigurationError):
            read_invitation(json.dumps(plain | change))
    for key in ("account_token_digest",), ("account_token", "account_token_digest"):
        with pytest.raises(ConfigurationError):
            read_invitation(json.dumps({each: value for each, value in plain.items() if each not in key}))


def test_a_market_on_an_external_server_gives_no_tokens(market: Market) -> None:
    made = market.invite()
    assert (made.account_token, made.account_token_digest) == ("", "")
    assert read_invitation(made.text()) == made
    assert tokens(market) == {}


def test_what_the_server_is_given(market: Market, site: StateFolder) -> None:
    """A token until its end; ended for who is revoked after he enrolled, so that he can be told; else no account."""
    guest, used, stolen = (invite(market, f"{name}@west.example") for name in ("dora", "emil", "fay"))
    ends = NOW + 7 * DAY
    assert tokens(market) == {
        each.account: AccountToken(each.account_token_digest, ends) for each in (guest, used, stolen)
    }
    market.authority.issue(request_of(site, used, NOW), NOW)
    market.authority.revoke(used.name, NOW + DAY, "left")
    market.authority.revoke(stolen.name, NOW + DAY, "somebody came first")
    assert tokens(market, NOW + 2 * DAY) == {
        "dora": AccountToken(guest.account_token_digest, ends),
        "emil": AccountToken(used.account_token_digest, NOW + DAY),
        "fay": None,
    }
    assert tokens(market, ends + 1)["dora"] is None


def test_of_one_name_the_last_invitation_counts(market: Market) -> None:
    first = invite(market, GUEST)
    market.authority.revoke(GUEST, NOW, "mistake")
    second = invite(market, GUEST)
    given = tokens(market)["dora"]
    assert given.digest == second.account_token_digest != first.account_token_digest


def test_an_invited_name_is_promised(market: Market) -> None:
    register = Register(market.state.invitations)
    assert not register.promised(NOW)
    invite(market, GUEST)
    assert [each.name for each in register.promised(NOW)] == [GUEST]
    assert not register.promised(NOW + 8 * DAY)
    market.authority.revoke(GUEST, NOW, "")
    assert not register.promised(NOW)


@pytest.mark.parametrize(
    ("uri", "read"),
    [
        # XEP-0445, section 2: the three forms
        ("xmpp:juliet@example.com?register;preauth=TOKEN", AccountInvitation("example.com", "juliet", "TOKEN")),
        ("xmpp:example.com?register;preauth=TOKEN", AccountInvitation("example.com", "", "TOKEN")),
        ("xmpp:romeo@example.com?roster;preauth=TOKEN;ibr=y", AccountInvitation("example.com", "", "TOKEN")),
        # RFC 5122, section 2.7.2: the scheme in any case, characters escaped
        ("  XMPP:b%C3%A9n@example.com?register;preauth=a%2Bb\n", AccountInvitation("example.com", "b\u00e9n", "a+b")),
    ],
)
def test_account_invitations_of_other_servers(uri: str, read: AccountInvitation) -> None:
    assert read_account_invitation(uri) == read


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "juliet@example.com",
        "http://example.com?register;preauth=TOKEN",
        "xmpp:?register;preauth=TOKEN",
        "xmpp:juliet@example.com?register",
        "xmpp:juliet@example.com?register;preauth=",
        f"xmpp:juliet@example.com?register;preauth={'t' * 300}",
        "xmpp:romeo@example.com?roster;preauth=TOKEN",
        "xmpp:romeo@example.com?message;preauth=TOKEN",
        "xmpp:romeo@example.com/x?register;preauth=TOKEN",
    ],
)
def test_what_invites_to_no_account_is_refused(uri: str) -> None:
    with pytest.raises(ConfigurationError, match="expected "):
        read_account_invitation(uri)


def test_the_account_that_an_owner_invites_to(market: Market) -> None:
    invitation = invite(market)
    config = config_of(
        '[market]\ndomain = "south.example"\n[site]\nmarket = "west.example"\n'
        '[server]\naddresses = ["192.0.2.9:5222"]\nfederation = true\n[[users]]\nname = "curie"\n'
    )
    at_market = AccountInvitation("west.example", "", "t")
    assert invited_account(at_market, invitation, config) == market_account(invitation)
    own = invited_account(AccountInvitation("south.example", "curie", "t"), invitation, config)
    assert (own.name, own.domain, own.servers) == ("curie", "south.example", (("192.0.2.9", 5222),))
    for wrong in (
        AccountInvitation("north.example", "", "t"),
        AccountInvitation("south.example", "mallory", "t"),
        AccountInvitation("west.example", "bank", "t"),
    ):
        with pytest.raises(ConfigurationError, match="expected "):
            invited_account(wrong, invitation, config)
    with pytest.raises(ConfigurationError, match="expected "):
        invited_account(AccountInvitation("south.example", "curie", "t"), invitation, None)


def test_a_password_is_drawn_once_and_is_not_the_keepers(market: Market, site: StateFolder) -> None:
    place = market_account(invite(market, GUEST))
    site.prepare()
    first = own_password(site, place)
    assert own_password(StateFolder(site.path), place) == first
    assert len(first) >= 24
    assert (site.path / "passwords.json").stat().st_mode & 0o077 == 0
