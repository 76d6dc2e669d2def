"""Invitations: read again as they were written, and void when anything in them was changed."""

import hashlib
import hmac
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError
from ramp.runtime.joining.invitations import TOKEN_PREFIX, proof, read_invitation
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
