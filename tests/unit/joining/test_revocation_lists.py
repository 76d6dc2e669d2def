"""Signed revocation lists: believed for the authority's signature, newest number only, checked against OpenSSL."""

import subprocess
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError, SignatureInvalid
from ramp.model.instant import DAY
from ramp.model.seal import Role
from ramp.rfql.signing import certificates
from ramp.runtime.joining.membership import install, request_of
from ramp.runtime.keys.revocations import read_list, sign_list
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from tests.unit.joining.inviting_market import NAME, NOW, Market, market_in

WEEK = 7 * DAY


@pytest.fixture
def joined_site(market: Market, site: StateFolder) -> StateFolder:
    invitation = market.invite()
    install(site, invitation, market.authority.issue(request_of(site, invitation, NOW), NOW), NOW)
    return site


def test_a_list_strikes_out_at_the_site_whom_the_market_revokes(market: Market, joined_site: StateFolder) -> None:
    alice = market.keys.issue("alice@west.example", Role.USER, NOW)
    keys = KeyStore(joined_site.keys)
    assert not keys.is_revoked(alice)
    market.keys.revoke("alice@west.example", NOW, "key lost")
    signed = keys.keep_signed_list(market.keys.sign_revocations(NOW, WEEK).pem)
    assert signed.revoked_at == {certificates.serial_text(alice): NOW}
    assert keys.is_revoked(alice)
    assert KeyStore(joined_site.keys).is_revoked(alice)  # also after a restart


def test_numbers_only_grow_and_an_old_list_takes_nothing_back(market: Market, joined_site: StateFolder) -> None:
    keys = KeyStore(joined_site.keys)
    first = market.keys.sign_revocations(NOW, WEEK)
    assert market.keys.sign_revocations(NOW + DAY, WEEK) == first  # nothing new, and half its life is not over
    renewed = market.keys.sign_revocations(NOW + 4 * DAY, WEEK)
    assert (renewed.number, renewed.expires_at) == (first.number + 1, NOW + 11 * DAY)
    alice = market.keys.issue("alice@west.example", Role.USER, NOW)
    market.keys.revoke("alice@west.example", NOW + 4 * DAY)
    newest = market.keys.sign_revocations(NOW + 4 * DAY, WEEK)
    assert newest.number == renewed.number + 1
    keys.keep_signed_list(newest.pem)
    for replayed in (first, renewed):
        assert keys.keep_signed_list(replayed.pem) == newest
    assert keys.is_revoked(alice)


def test_only_the_markets_authority_is_believed(market: Market, joined_site: StateFolder, tmp_path: Path) -> None:
    keys = KeyStore(joined_site.keys)
    forged = market_in(tmp_path / "other").keys.sign_revocations(NOW, WEEK)
    with pytest.raises(SignatureInvalid, match="not signed by an authority of this market"):
        keys.keep_signed_list(forged.pem)
    ours = market.keys.sign_revocations(NOW, WEEK).pem.splitlines()
    middle = len(ours) // 2
    ours[middle] = ours[middle][::-1]
    for junk in ("", "junk", "\n".join(ours), "x" * 70_000):
        with pytest.raises(SignatureInvalid):
            keys.keep_signed_list(junk)


def test_a_damaged_file_does_not_pass_for_an_empty_list(joined_site: StateFolder) -> None:
    (joined_site.keys / "revocations.pem").write_text("junk")
    keys = KeyStore(joined_site.keys)
    with pytest.raises(ConfigurationError, match="revocation list cannot be read"):
        keys.is_revoked(keys.identity(NAME)[1])


def test_openssl_reads_the_same(market: Market, tmp_path: Path) -> None:
    alice = market.keys.issue("alice@west.example", Role.USER, NOW)
    market.keys.revoke("alice@west.example", NOW)
    path = tmp_path / "list.pem"
    path.write_text(market.keys.sign_revocations(NOW, WEEK).pem)
    command = ["openssl", "crl", "-in", path, "-CAfile", market.keys.folder / "ca.pem", "-noout", "-text"]
    told = subprocess.run([*command, "-verify"], capture_output=True, text=True, check=True)
    assert "verify OK" in told.stderr + told.stdout
    assert f"{alice.serial_number:X}" in told.stdout
    assert "Nov 28 08:00:00 2026 GMT" in told.stdout


def test_a_thousand_revocations_fit_into_a_message(market: Market) -> None:
    from ramp.runtime.keys.revocations import Revocation

    lines = [Revocation(f"{2**158 + number:x}", f"user{number}", NOW, "") for number in range(1_000)]
    pem = sign_list(lines, 1, market.keys.issuer(), NOW, WEEK)
    assert len(read_list(pem, market.keys.ca_certificates()).revoked_at) == 1_000
