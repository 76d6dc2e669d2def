"""Keys and certificates on disk: modes, reuse, renewal, revocation, and what happens to damaged files."""

import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from ramp.errors import ConfigurationError, SealInvalid
from ramp.model import contents
from ramp.model.acl import Message, Performative
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND
from ramp.model.seal import Role
from ramp.rfql.signing import certificates
from ramp.runtime.keys import issuing
from ramp.runtime.keys.store import CA_LIFETIME, KeyStore, load_ca_certificates
from tests.unit.rfql.conftest import NOW, USER
from tests.unit.rfql.forgery import text_of

QUERY = Message(
    Performative.QUERY_REF, USER, "bank@localhost", "query-1", contents.AccountQuery("n-1", USER), "query-1-1"
)


@pytest.fixture
def keys(tmp_path: Path) -> KeyStore:
    store = KeyStore(tmp_path / "keys")
    store.create_ca(NOW)
    return store


def test_ca_is_made_once(keys: KeyStore) -> None:
    first = keys.ca_certificates()
    assert keys.create_ca(NOW + DAY) == first[0]
    assert KeyStore(keys.folder).create_ca(NOW + DAY) == first[0]
    assert load_ca_certificates(keys.folder / "ca.pem") == first
    assert first[0].extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(True, 0)


def test_lost_public_ca_file_is_written_again(keys: KeyStore) -> None:
    (keys.folder / "ca.pem").unlink()
    with pytest.raises(ConfigurationError, match="ramp keys init"):
        keys.ca_certificates()
    keys.create_ca(NOW)
    assert len(keys.ca_certificates()) == 1


def test_private_keys_are_the_owner_s_alone(keys: KeyStore) -> None:
    keys.issue(USER, Role.USER, NOW)
    private = [path for path in keys.folder.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
    assert sorted(path.relative_to(keys.folder).as_posix() for path in private) == [
        "agents/alice@localhost/identity.pem",
        "ca/identity.pem",
    ]
    for path in private:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.chmod(0o640), r"identity\.pem: others can read .* chmod 600"),
        (lambda path: path.write_bytes(path.read_bytes()[:40]), r"identity\.pem: not a private key in PEM"),
    ],
    ids=["others can read", "cut"],
)
def test_key_that_others_can_read_or_that_is_damaged_is_not_used(
    keys: KeyStore, damage: Callable[[Path], object], told: str
) -> None:
    keys.issue(USER, Role.USER, NOW)
    damage(keys.folder / "agents" / USER / "identity.pem")
    with pytest.raises(ConfigurationError, match=told):
        keys.identity(USER)


def test_certificate_of_a_party(keys: KeyStore) -> None:
    """From the CA, for this identity, for signing only, P-256, for a year, and from a little before its issue."""
    certificate = keys.issue(USER, Role.USER, NOW)
    certificate.verify_directly_issued_by(keys.ca_certificates()[0])
    assert certificates.identity_of(certificate) == USER
    assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_cert_sign, usage.key_encipherment) == (True, False, False)
    assert certificates.valid_from(certificate) == NOW - 5 * MINUTE
    assert certificates.valid_until(certificate) == NOW + 365 * DAY
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["xmpp:alice@localhost"]


def test_issue_gives_the_certificate_that_still_holds(keys: KeyStore) -> None:
    first = keys.issue(USER, Role.USER, NOW)
    assert keys.issue(USER, Role.USER, NOW + 364 * DAY) == first
    second = keys.issue(USER, Role.USER, NOW + 366 * DAY)
    assert second != first
    assert not certificates.same_key(first, second)


@pytest.mark.parametrize("back", [DAY, 300 * DAY])
def test_a_clock_before_the_certificates_begin_is_told_of_at_once(keys: KeyStore, back: int) -> None:
    keys.create_ca(NOW)
    keys.issue("alice@localhost", Role.USER, NOW)
    with pytest.raises(
        ConfigurationError, match=r"clock here shows .*the market's authority holds only from .*set the clock"
    ):
        keys.create_ca(NOW - back)
    with pytest.raises(
        ConfigurationError, match=r"certificate of alice@localhost holds only from .*set the clock right"
    ):
        keys.issue("alice@localhost", Role.USER, NOW - back)
    keys.issue("alice@localhost", Role.USER, NOW)


def test_certificate_ends_with_its_ca(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path)
    ca = keys.create_ca(NOW)
    issued = keys.issue(USER, Role.USER, NOW, lifetime=2 * CA_LIFETIME)
    assert certificates.valid_until(issued) == certificates.valid_until(ca) == NOW + CA_LIFETIME


def test_renewal_keeps_the_key_unless_asked(keys: KeyStore) -> None:
    first = keys.issue(USER, Role.USER, NOW)
    renewed = keys.renew(USER, NOW + DAY)
    assert renewed.serial_number != first.serial_number
    assert certificates.same_key(first, renewed)
    assert keys.identity(USER)[1] == renewed
    other = keys.renew(USER, NOW + 2 * DAY, new_key=True)
    assert not certificates.same_key(renewed, other)
    assert keys.identity(USER)[0].public_key() == other.public_key()


def test_pin_follows_the_party_s_key(keys: KeyStore) -> None:
    """A verifier that runs all the while sees a new key, and refuses the old one."""
    keys.issue(USER, Role.USER, NOW)
    keys.issue("bank@localhost", Role.BANK, NOW)
    bank = keys.notary("bank@localhost")
    old = keys.notary(USER).seal(QUERY, NOW)
    assert bank.open(text_of(old), NOW) == old
    keys.renew(USER, NOW + SECOND, new_key=True)
    new = keys.notary(USER).seal(QUERY, NOW)
    assert bank.open(text_of(new), NOW) == new
    with pytest.raises(SealInvalid, match="is on file"):
        bank.open(text_of(old), NOW)


def test_lost_pin_is_put_back(keys: KeyStore) -> None:
    certificate = keys.issue(USER, Role.USER, NOW)
    (keys.folder / "pins" / f"{USER}.pem").unlink()
    assert keys.certificate_on_file(USER) is None
    keys.issue(USER, Role.USER, NOW)
    assert keys.certificate_on_file(USER) == certificate


def test_inventory_tells_state_and_expiry(keys: KeyStore) -> None:
    keys.issue("bob@localhost", Role.USER, NOW, lifetime=DAY)
    keys.issue(USER, Role.USER, NOW)
    keys.renew(USER, NOW + HOUR)
    keys.issue("carol@localhost", Role.USER, NOW)
    keys.revoke("carol@localhost", NOW, "left")
    rows = [(e.name, e.state, e.current) for e in keys.inventory(NOW + 2 * DAY)]
    assert {e.role for e in keys.inventory(NOW)} == {Role.USER}
    assert rows == [
        (USER, "valid", False),
        (USER, "valid", True),
        ("bob@localhost", "expired", True),
        ("carol@localhost", "revoked", True),
    ]
    assert {e.state for e in keys.inventory(NOW - DAY)} == {"not yet valid", "revoked"}
    bob = next(e for e in keys.inventory(NOW) if e.name == "bob@localhost")
    assert bob.valid_until == NOW + DAY
    assert len(bob.fingerprint) == 32 * 3 - 1


def test_revocation_covers_every_certificate_and_needs_a_new_key(keys: KeyStore) -> None:
    first = keys.issue(USER, Role.USER, NOW)
    second = keys.renew(USER, NOW + HOUR)
    lines = keys.revoke(USER, NOW + 2 * HOUR, "laptop stolen")
    assert {line.serial for line in lines} == {certificates.serial_text(first), certificates.serial_text(second)}
    assert {line.reason for line in keys.revocations()} == {"laptop stolen"}
    assert keys.is_revoked(first)
    assert keys.is_revoked(second)
    assert keys.revoke(USER, NOW + 3 * HOUR) == ()
    with pytest.raises(ConfigurationError, match="a new key"):
        keys.renew(USER, NOW + 3 * HOUR)
    fresh = keys.issue(USER, Role.USER, NOW + 3 * HOUR)
    assert not keys.is_revoked(fresh)
    assert not certificates.same_key(second, fresh)


def test_revocation_is_seen_by_others_at_once(keys: KeyStore) -> None:
    certificate = keys.issue(USER, Role.USER, NOW)
    other = KeyStore(keys.folder)
    assert not other.is_revoked(certificate)
    keys.revoke(USER, NOW)
    assert other.is_revoked(certificate)
    bob = keys.issue("bob@localhost", Role.USER, NOW)
    assert not other.is_revoked(bob)
    keys.revoke("bob@localhost", NOW)
    assert other.is_revoked(bob)


def test_damaged_revocation_list_is_not_an_empty_one(keys: KeyStore) -> None:
    certificate = keys.issue(USER, Role.USER, NOW)
    keys.revoke(USER, NOW)
    path = keys.folder / "revoked.json"
    path.write_text(path.read_text("utf-8")[:-5], "utf-8")
    with pytest.raises(ConfigurationError, match=r"revoked\.json: revocation list cannot be read"):
        KeyStore(keys.folder).is_revoked(certificate)


@pytest.mark.parametrize("name", ["", "../ca", "a/b", ".hidden", "alice@", "al ice", "alice@localhost/res", "x" * 300])
def test_names_stay_within_the_folder(keys: KeyStore, name: str) -> None:
    with pytest.raises(ConfigurationError, match="invalid party name"):
        keys.issue(name, Role.USER, NOW)
    assert keys.certificate_on_file(name) is None


def test_missing_things_say_what_to_do(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="ramp keys issue alice@localhost"):
        keys.identity(USER)
    with pytest.raises(ConfigurationError, match="ramp keys init"):
        keys.issue(USER, Role.USER, NOW)
    with pytest.raises(ConfigurationError, match="no certificate was issued for 'alice@localhost'"):
        keys.revoke(USER, NOW)
    assert keys.inventory(NOW) == ()


def test_nothing_is_left_half_written(keys: KeyStore) -> None:
    keys.issue(USER, Role.USER, NOW)
    keys.renew(USER, NOW)
    keys.revoke(USER, NOW)
    assert list(keys.folder.rglob(".*")) == []


def test_only_one_of_two_first_issues_stands(keys: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two start on one store: the second waits while the first makes its key, and finds that one."""
    certify, second = issuing.certify, []

    def meanwhile(*arguments: Any) -> x509.Certificate:
        second.append(pool.submit(KeyStore(keys.folder).issue, USER, Role.USER, NOW))
        with pytest.raises(TimeoutError):
            second[0].result(0.2)
        return certify(*arguments)

    monkeypatch.setattr(issuing, "certify", meanwhile)
    with ThreadPoolExecutor() as pool:
        assert keys.issue(USER, Role.USER, NOW) == second[0].result()
    assert len(keys.inventory(NOW)) == 1


# Roles


def test_certificate_states_the_role(keys: KeyStore) -> None:
    for role in Role:
        certificate = keys.issue(f"{role}1@localhost", role, NOW)
        units = certificate.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATIONAL_UNIT_NAME)
        assert [unit.value for unit in units] == [role.value]
        assert certificates.role_of(certificate) is role
        assert keys.notary(f"{role}1@localhost").role is role
    assert [(entry.name, entry.role) for entry in keys.inventory(NOW)] == sorted(
        (f"{role}1@localhost", role) for role in Role
    )


def test_role_is_not_changed_while_the_certificate_holds(keys: KeyStore) -> None:
    """Two certificates would let one key speak in two roles."""
    keys.issue(USER, Role.USER, NOW)
    with pytest.raises(ConfigurationError, match="certified as user, not as bank"):
        keys.issue(USER, Role.BANK, NOW)
    with pytest.raises(ConfigurationError, match="certified as user, not as bank"):
        keys.renew(USER, NOW, role=Role.BANK, new_key=True)
    assert keys.renew(USER, NOW, role=Role.USER) == keys.identity(USER)[1]
    keys.revoke(USER, NOW)
    assert certificates.role_of(keys.issue(USER, Role.BANK, NOW)) is Role.BANK


def test_renewal_keeps_the_role(keys: KeyStore) -> None:
    keys.issue(USER, Role.KEEPER, NOW)
    assert certificates.role_of(keys.renew(USER, NOW)) is Role.KEEPER
    assert certificates.role_of(keys.renew(USER, NOW, new_key=True)) is Role.KEEPER
