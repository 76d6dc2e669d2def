"""The authority: one invitation, one key, one certificate; and the signed lists of certificates that it has revoked."""

import base64
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding

from ramp.errors import ConfigurationError, EnrolmentRefused, SignatureInvalid, SignerUnknown, WrongVersion
from ramp.ledger.entry import AccountKind
from ramp.model.acl import Message, Performative
from ramp.model.contents import EnrolmentRequest, MachineStatus
from ramp.model.instant import DAY, HOUR, Duration
from ramp.model.seal import Role
from ramp.rfql.signing import certificates
from ramp.runtime.joining import requests
from ramp.runtime.joining.authority import RENEW_BEFORE
from ramp.runtime.joining.invitations import Invitation, Register, proof
from ramp.runtime.joining.membership import install, joined, request_of
from ramp.runtime.joining.requests import read_issued, read_request
from ramp.runtime.keys.issuing import read_list, sign_list
from ramp.runtime.keys.store import CERTIFICATE_LIFETIME, KeyStore
from ramp.runtime.state_folder import StateFolder
from tests.unit.joining.inviting_market import NAME, NOW, Market, market_in


def refusal(market: Market, asked: EnrolmentRequest, after: Duration = 0) -> str:
    with pytest.raises(EnrolmentRefused) as refused:
        market.authority.issue(asked, NOW + after)
    return refused.value.code


def test_a_site_joins_by_files_and_its_key_never_leaves(market: Market, site: StateFolder) -> None:
    invitation = market.invite(certifies_server=True)
    asked = request_of(site, invitation, NOW)
    travelled = requests.contents_text(asked)
    issued = market.authority.issue(read_request(travelled, "r"), NOW)
    back = requests.contents_text(issued)
    certificate = install(site, invitation, read_issued(back, "c"), NOW)
    assert (certificates.identity_of(certificate), certificates.role_of(certificate)) == (NAME, Role.RESOURCE)
    assert joined(site) == {NAME: invitation}
    key, kept = KeyStore(site.keys).identity(NAME)
    assert kept == certificate
    secret_number = f"{key.private_numbers().private_value:x}"  # type: ignore[union-attr]
    for text in (travelled, back):
        assert "PRIVATE" not in text
        assert invitation.secret not in text
        assert secret_number not in text
    assert [path for path in market.state.path.rglob("*") if NAME in path.name and path.is_dir()] == []


@pytest.mark.parametrize(
    "name", ["curie@*.example", "curie@*", "curie@b\u00fccher.example", "j\u00fcrgen@south.example"]
)
def test_a_name_that_can_have_no_certificate_is_not_invited(market: Market, name: str) -> None:
    with pytest.raises(ConfigurationError, match="invalid name"):
        market.invite(name)
    assert not market.authority.register.entries()


def test_what_the_site_seals_is_believed_in_the_market(market: Market, site: StateFolder) -> None:
    invitation = market.invite()
    install(site, invitation, market.authority.issue(request_of(site, invitation, NOW), NOW), NOW)
    said = Message(Performative.INFORM, NAME, "alice@west.example", "c1", MachineStatus("q1", "{}"))
    seal = KeyStore(site.keys).notary(NAME).seal(said, NOW).seal
    assert seal is not None
    market.keys.issue("bank@west.example", Role.BANK, NOW)
    bank = market.keys.notary("bank@west.example")
    assert bank.open(seal.text, NOW).sender == NAME
    market.authority.revoke(NAME, NOW, "left")
    with pytest.raises(Exception, match="has been revoked"):
        bank.open(seal.text, NOW)


def test_the_same_request_again_gets_the_same_certificate(market: Market, site: StateFolder) -> None:
    invitation = market.invite(certifies_server=True)
    asked = request_of(site, invitation, NOW)
    first = market.authority.issue(asked, NOW)
    again = market.authority.issue(request_of(site, invitation, NOW + DAY), NOW + DAY)
    assert (again.certificate, again.server_certificate) == (first.certificate, first.server_certificate)
    late = market.authority.issue(asked, NOW + 30 * DAY)  # the answer was lost, and the invitation has ended meanwhile
    assert late.certificate == first.certificate
    assert len(list((market.keys.folder / "issued").glob("*.pem"))) == 1


def test_near_its_end_the_same_key_gets_a_new_certificate(market: Market, site: StateFolder) -> None:
    invitation = market.invite()
    first = market.authority.issue(request_of(site, invitation, NOW), NOW)
    install(site, invitation, first, NOW)
    later = NOW + CERTIFICATE_LIFETIME - RENEW_BEFORE + HOUR
    new = market.authority.issue(request_of(site, invitation, later), later)
    assert new.certificate != first.certificate
    renewed = install(site, invitation, new, later)
    assert certificates.same_key(renewed, x509.load_pem_x509_certificate(first.certificate.encode()))
    assert certificates.valid_until(renewed) > later + RENEW_BEFORE


def test_another_key_is_refused(market: Market, site: StateFolder, tmp_path: Path) -> None:
    invitation = market.invite()
    market.authority.issue(request_of(site, invitation, NOW), NOW)
    thief = StateFolder(tmp_path / "thief")
    assert refusal(market, request_of(thief, invitation, NOW)) == "other_key"


def test_forged_replayed_and_foreign_requests_are_refused(market: Market, site: StateFolder, tmp_path: Path) -> None:
    invitation = market.invite()
    other = market.invite("ann@south.example", Role.USER)
    asked = request_of(site, invitation, NOW)
    assert refusal(market, replace(asked, proof="0" * 64)) == "forged"
    assert refusal(market, replace(asked, invitation_id="invitation-0")) == "unknown_invitation"
    assert refusal(market, replace(asked, invitation_id=other.invitation_id)) == "forged"
    thief = request_of(StateFolder(tmp_path / "thief"), other, NOW)
    assert refusal(market, replace(asked, request=thief.request)) == "forged"  # a captured proof fits no other key
    elsewhere = market_in(tmp_path / "elsewhere")
    assert refusal(market, request_of(StateFolder(tmp_path / "s2"), elsewhere.invite(), NOW)) == "unknown_invitation"
    assert Register(market.state.invitations).members() == ()


def test_revoked_and_expired_invitations_are_refused(market: Market, site: StateFolder) -> None:
    invitation = market.invite()
    asked = request_of(site, invitation, NOW)
    assert refusal(market, asked, after=7 * DAY + 1) == "expired"
    with pytest.raises(ConfigurationError, match="the invitation ended at 2026-11-28T08:00:00Z"):
        request_of(site, invitation, NOW + 8 * DAY)
    market.authority.revoke(invitation.invitation_id, NOW, "sent to the wrong address")
    with pytest.raises(EnrolmentRefused, match=r"revoked at 2026-11-21T08:00:00Z: sent to the wrong address"):
        market.authority.issue(asked, NOW)


def test_a_revoked_party_gets_no_certificate_again(market: Market, site: StateFolder) -> None:
    invitation = market.invite()
    asked = request_of(site, invitation, NOW)
    market.authority.issue(asked, NOW)
    market.keys.revoke(NAME, NOW, "key lost")  # by `ramp keys revoke`, which knows of no invitations
    assert refusal(market, asked) == "revoked"


def _asking(invitation: Invitation, request: bytes, server: bytes = b"") -> EnrolmentRequest:
    """A request of whoever holds the invitation, whatever he asks for."""
    said = proof(invitation.secret, requests._transcript(invitation, request, server))
    packed, packed_server = (base64.b64encode(part).decode() for part in (request, server))
    return EnrolmentRequest(invitation.invitation_id, packed, said, packed_server)


def _request_for(*names: x509.GeneralName, key: object = None) -> bytes:
    private = ec.generate_private_key(ec.SECP256R1()) if key is None else key
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    digest = None if isinstance(private, ed25519.Ed25519PrivateKey) else requests.hashes.SHA256()
    return builder.sign(private, digest).public_bytes(Encoding.DER)  # type: ignore[arg-type]


def _uri(name: str) -> x509.UniformResourceIdentifier:
    return x509.UniformResourceIdentifier(f"xmpp:{name}")


def test_whoever_holds_an_invitation_gets_no_other_name(market: Market) -> None:
    invitation = market.invite()
    for names in (
        (_uri("bank@west.example"),),
        (_uri(NAME), _uri("bank@west.example")),
        (x509.DNSName("south.example"),),
    ):
        assert refusal(market, _asking(invitation, _request_for(*names))) == "other_name"
    good = _request_for(_uri(NAME))
    server = _request_for(x509.DNSName("south.example"))
    assert refusal(market, _asking(invitation, good, server)) == "no_server"


def test_a_server_is_certified_for_its_own_domain_only(market: Market) -> None:
    invitation = market.invite(certifies_server=True)
    good = _request_for(_uri(NAME))
    for name in ("west.example", "*.south.example", "a.south.example"):
        assert refusal(market, _asking(invitation, good, _request_for(x509.DNSName(name)))) == "other_name"
    issued = market.authority.issue(_asking(invitation, good, _request_for(x509.DNSName("south.example"))), NOW)
    server = x509.load_pem_x509_certificate(issued.server_certificate.encode())
    with pytest.raises(SignerUnknown, match="names 0 parties"):  # a server is no party: nothing it signs is believed
        certificates.identity_of(server)


def test_weak_broken_and_unsigned_requests_are_refused(market: Market) -> None:
    invitation = market.invite()
    good = _request_for(_uri(NAME))
    broken = (
        b"",
        b"\x30",
        good[:-1] + bytes([good[-1] ^ 1]),
        _request_for(),
        _request_for(_uri(NAME), key=ec.generate_private_key(ec.SECP384R1())),
        _request_for(_uri(NAME), key=ed25519.Ed25519PrivateKey.generate()),
        bytes(9_000),
    )
    for request in broken:
        assert refusal(market, _asking(invitation, request)) == "bad_request"
    assert refusal(market, replace(_asking(invitation, good), request="no base64 !")) == "bad_request"


def test_offline_the_authority_says_so(market: Market, site: StateFolder) -> None:
    invitation = market.invite()
    asked = request_of(site, invitation, NOW)
    (market.keys.folder / "ca").rename(market.keys.folder / "put-away")
    assert refusal(market, asked) == "offline"
    trusted = market.keys.ca_certificates()
    assert (market.keys.create_ca(NOW),) == trusted  # a start makes no other authority in its place
    assert not (market.keys.folder / "ca").exists()


def test_members_open_accounts_of_their_kind(market: Market, site: StateFolder) -> None:
    register = Register(market.state.invitations)
    for name, role in ((NAME, Role.RESOURCE), ("ann@south.example", Role.USER)):
        invitation = market.invite(name, role)
        market.authority.issue(request_of(site, invitation, NOW), NOW)
    assert [(each.invitation.name, each.kind) for each in register.members()] == [
        (NAME, AccountKind.RESOURCE),
        ("ann@south.example", AccountKind.USER),
    ]


def test_the_register_is_private_and_a_damaged_one_is_told(market: Market) -> None:
    market.invite()
    path = market.state.invitations
    assert path.stat().st_mode & 0o077 == 0
    for damage in ("", "[]", '{"version": 1}', path.read_text("utf-8").replace("curie", "bank")):
        path.write_text(damage)
        with pytest.raises(ConfigurationError, match="register of invitations cannot be read"):
            Register(path).entries()
    path.write_text(json.dumps({"version": 2, "invitations": []}))
    with pytest.raises(WrongVersion, match="wrong version of this register of invitations: got 2, expected 1"):
        Register(path).entries()


@pytest.mark.parametrize("part", ["certificate", "other site", "other market", "server"])
def test_a_site_takes_only_what_it_asked_for(market: Market, site: StateFolder, tmp_path: Path, part: str) -> None:
    invitation = market.invite(certifies_server=True)
    issued = market.authority.issue(request_of(site, invitation, NOW), NOW)
    if part == "certificate":
        other = market.invite("ann@south.example", Role.USER)
        foreign = market.authority.issue(request_of(tmp_path_state(tmp_path), other, NOW), NOW)
        wrong, why = replace(issued, certificate=foreign.certificate), "issued for ann@south.example as user"
    elif part == "other site":
        fresh = tmp_path_state(tmp_path)
        with pytest.raises(ConfigurationError, match="for another key than this site's"):
            install(fresh, invitation, issued, NOW)
        return
    elif part == "other market":
        there = market_in(tmp_path / "there")
        foreign = there.authority.issue(request_of(tmp_path_state(tmp_path), there.invite(), NOW), NOW)
        wrong, why = replace(issued, certificate=foreign.certificate), "not from the market's authority"
    else:
        wrong, why = replace(issued, server_certificate=issued.certificate), "is not for south.example"
    with pytest.raises(ConfigurationError, match=why):
        install(site, invitation, wrong, NOW)
    assert joined(site) == {}


def tmp_path_state(folder: Path) -> StateFolder:
    return StateFolder(folder / "another-site")


def test_a_folder_belongs_to_one_market(market: Market, site: StateFolder, tmp_path: Path) -> None:
    invitation = market.invite()
    with pytest.raises(ConfigurationError, match="belongs to a market of its own"):
        request_of(market.state, invitation, NOW)
    install(site, invitation, market.authority.issue(request_of(site, invitation, NOW), NOW), NOW)
    with pytest.raises(ConfigurationError, match="belongs to another market"):
        request_of(site, market_in(tmp_path / "there").invite("ann@south.example", Role.USER), NOW)


def test_openssl_accepts_the_certificates(market: Market, site: StateFolder, tmp_path: Path) -> None:
    """An independent reference: chain, purpose and host name of the server's certificate."""
    invitation = market.invite(certifies_server=True)
    issued = market.authority.issue(request_of(site, invitation, NOW), NOW)
    (tmp_path / "server.pem").write_text(issued.server_certificate)
    ca = market.keys.folder / "ca.pem"
    for purpose in ("sslserver", "sslclient"):
        command = ["openssl", "verify", "-CAfile", ca, "-purpose", purpose, "-verify_hostname", "south.example"]
        command += ["-attime", str(NOW // 1_000_000), tmp_path / "server.pem"]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert isinstance(KeyStore(market.state.keys).certificate_on_file(NAME), x509.Certificate)


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
    from ramp.runtime.keys.issuing import Revocation

    lines = [Revocation(f"{2**158 + number:x}", f"user{number}", NOW, "") for number in range(1_000)]
    pem = sign_list(lines, 1, market.keys.issuer(), NOW, WEEK)
    assert len(read_list(pem, market.keys.ca_certificates()).revoked_at) == 1_000
