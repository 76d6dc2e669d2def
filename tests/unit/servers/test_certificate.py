"""The certificate of a local server: trusted through its own authority only, kept, and renewed in time."""

import datetime
import ssl
import stat

import pytest
from cryptography import x509

from ramp.servers import certificate


def handshake(files, ca_file, server_name):
    """A TLS handshake in memory, client and server."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(files.certificate_file, files.key_file)
    client_context = ssl.create_default_context(cafile=ca_file)
    client_context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=server_name)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server, client, server]
    for side in waiting:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client.version()


def test_certificate_is_trusted_through_its_own_authority_only(tmp_path):
    ours = certificate.ensure_server_certificate(tmp_path / "a", "market.test")
    other = certificate.ensure_server_certificate(tmp_path / "b", "market.test")
    assert handshake(ours, ours.ca_file, "market.test") == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(ours, other.ca_file, "market.test")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(ours, ours.ca_file, "elsewhere.test")


def test_certificate_is_kept_mended_and_private(tmp_path):
    first = certificate.ensure_server_certificate(tmp_path, "localhost")
    authority = first.ca_file.read_bytes()
    assert certificate.ensure_server_certificate(tmp_path, "localhost").ca_file.read_bytes() == authority
    assert stat.S_IMODE(first.key_file.stat().st_mode) == 0o600
    first.certificate_file.write_bytes(b"half a certifi")
    again = certificate.ensure_server_certificate(tmp_path, "localhost")
    assert again.ca_file.read_bytes() != authority
    assert handshake(again, again.ca_file, "localhost") == "TLSv1.3"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.pem", "localhost_cert.pem", "localhost_key.pem"]


def test_certificate_does_not_begin_when_it_is_made(tmp_path):
    """So a clock that is set back keeps no agent out."""
    made = certificate.ensure_server_certificate(tmp_path, "localhost")
    for path in (made.ca_file, made.certificate_file):
        found = x509.load_pem_x509_certificate(path.read_bytes())
        assert found.not_valid_before_utc < datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=365)


def test_certificate_near_its_end_is_renewed(tmp_path, monkeypatch):
    authority = certificate.ensure_server_certificate(tmp_path, "localhost").ca_file.read_bytes()
    monkeypatch.setattr(certificate, "RENEW_BEFORE_DAYS", certificate.VALID_DAYS + 1)
    assert certificate.ensure_server_certificate(tmp_path, "localhost").ca_file.read_bytes() != authority
